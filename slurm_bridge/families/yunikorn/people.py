"""Whose a workload is, and what is known of its namespace: never from anything that its user can write on it."""

import fnmatch
from collections.abc import Mapping, Sequence

from slurm_bridge.families.yunikorn.options import UserOptions
from slurm_bridge.hooks.needs import View
from slurm_bridge.model.workload import Workload

_PREFIX = "system:serviceaccount"


def several(workload: Workload) -> tuple[str, ...]:
    """The service accounts of its pods, where they are more than one: then its user is unknown."""
    if len(workload.pods) == 1:
        return ()
    accounts = sorted({pod.spec.service_account_name or "default" for pod in workload.pods})
    return tuple(accounts) if len(accounts) > 1 else ()


def user_of(workload: Workload, options: Sequence[UserOptions]) -> tuple[str, tuple[str, ...]]:
    """The user and the groups, by the first entry that matches; else the service account. Kubernetes' groups count."""
    return _known_as(workload.root.namespace, workload.service_account, options)


def caller(name: str, groups: Sequence[str], options: Sequence[UserOptions]) -> tuple[str, tuple[str, ...]]:
    """The same for a caller of the daemon's API, as the API server knows them.

    The workloads of a service account belong to it; other users have the name and the groups that the API server says.
    """
    namespace, colon, account = name.removeprefix(f"{_PREFIX}:").partition(":")
    if not name.startswith(f"{_PREFIX}:") or not colon:
        return name, tuple(groups)
    user, theirs = _known_as(namespace, account, options)
    return user, tuple(dict.fromkeys((*theirs, *groups)))


def _known_as(namespace: str, account: str, options: Sequence[UserOptions]) -> tuple[str, tuple[str, ...]]:
    name, groups = f"{_PREFIX}:{namespace}:{account}", (f"{_PREFIX}s:{namespace}", f"{_PREFIX}s")
    for one in options:
        if _matches(namespace, one.namespaces) and _matches(account, one.service_accounts):
            return one.user or name, (*one.groups, *groups)
    return name, groups


def tags_of(workload: Workload, namespaces: View | None) -> Mapping[str, str]:
    """What placement rules may look at: the namespace and its labels, names in lower case."""
    name = workload.root.namespace
    found = namespaces.get("", name) if namespaces is not None else None
    labels = found.metadata.labels if found is not None else {}
    return {**{key.lower(): value for key, value in labels.items()}, "namespace": name}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
