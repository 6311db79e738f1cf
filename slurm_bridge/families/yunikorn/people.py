"""Whose a workload is, and what is known of its namespace: never from anything that its user can write on it."""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence

from slurm_bridge.families.yunikorn.options import UserOptions
from slurm_bridge.hooks.needs import View
from slurm_bridge.model import texts
from slurm_bridge.model.workload import Workload

_PREFIX = "system:serviceaccount"


@dataclasses.dataclass(frozen=True, slots=True)
class QueueUser:
    """The user of a workload with its groups, and the account that it is known by: two accounts never share."""

    name: str
    groups: tuple[str, ...]
    account: str


def several(workload: Workload, options: Sequence[UserOptions]) -> str:
    """Why the user of these pods is unknown: several service accounts, or several creators; "" where it is known."""
    if len(workload.pods) == 1:
        return ""
    accounts = sorted({pod.spec.service_account_name or "default" for pod in workload.pods})
    if len(accounts) > 1:
        return (
            f"its pods run under several service accounts ({', '.join(accounts)}); "
            f"a queue is entered by one: give all of them the same"
        )
    if not _by_creators(workload.root.namespace, accounts[0] if accounts else "default", options):
        return ""
    made_by = {workload.creator_of(pod) for pod in workload.pods}
    if len(made_by) <= 1:
        return ""
    users = sorted("an unknown user" if one is None else one.user for one in made_by)
    return f"its pods were created by several users ({texts.listed(users)}); a queue is entered by one"


def user_of(workload: Workload, options: Sequence[UserOptions]) -> QueueUser:
    """By the first entry that matches: the creator, or a name and groups; else the service account."""
    namespace, account = workload.root.namespace, workload.service_account
    made_by = workload.creator_of(workload.lead) if workload.pods else None
    if made_by is not None and _by_creators(namespace, account, options):
        return QueueUser(made_by.user, made_by.groups, f"user {made_by.user}")
    return QueueUser(*_known_as(namespace, account, options), account)


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


def _by_creators(namespace: str, account: str, options: Sequence[UserOptions]) -> bool:
    """Whether the first entry that matches takes the creator for the user."""
    for one in options:
        if _matches(namespace, one.namespaces) and _matches(account, one.service_accounts):
            return one.creators
    return False


def tags_of(workload: Workload, namespaces: View | None) -> Mapping[str, str]:
    """What placement rules may look at: the namespace and its labels, names in lower case."""
    name = workload.root.namespace
    found = namespaces.get("", name) if namespaces is not None else None
    labels = found.metadata.labels if found is not None else {}
    return {**{key.lower(): value for key, value in labels.items()}, "namespace": name}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
