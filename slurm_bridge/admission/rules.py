"""The rules of admission, and which objects they are for.

A pod is the bridge's if it names one of its schedulers, or if it is created in a managed namespace and names none.

    schedulerName            managed namespace             other namespace
    -----------------------  ----------------------------  ------------------
    one of ours              changed, validated            changed, validated
    none, default-scheduler  becomes ours; not a pod of a  left alone
                             DaemonSet, nor a static pod
    any other                left alone                    left alone
"""

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.admission.review import part
from slurm_bridge.model.features import Feature
from slurm_bridge.translate.rules import Rules
from slurm_bridge.workloads.known import Options

#: What the API server writes where a pod names no scheduler.
DEFAULT_SCHEDULER: Final = "default-scheduler"

#: The kubelet writes it on the pod that shows a static pod.
MIRROR: Final = "kubernetes.io/config.mirror"
#: The group of kubelets.
NODES: Final = "system:nodes"

#: The accounts of controllers: what these create belongs to the creator of its owner.
CONTROLLERS: Final = (
    "system:serviceaccount:kube-system:*-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
    "system:serviceaccount:jobset-system:jobset-controller-manager",
    "system:serviceaccount:lws-system:lws-controller-manager",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRules:
    """What a site has configured.

    `managed`: whether a namespace is managed. `accounts`: patterns of users that may write what only the bridge writes.
    `honoured`: what pods may ask for because some hook sees to it; `strict`: others are refused. `toleration` is added
    to pods of the bridge. `lenient`: what cannot be reviewed because of an error is allowed.
    """

    translation: Rules
    scheduler_names: tuple[str, ...]
    options: Options = dataclasses.field(default_factory=Options)
    managed: Callable[[str], bool] = lambda _namespace: False
    honoured: frozenset[Feature] = frozenset()
    strict: bool = True
    accounts: tuple[str, ...] = ()
    controllers: tuple[str, ...] = CONTROLLERS
    toleration: Mapping[str, str] | None = None
    lenient: bool = False

    def trusts(self, user: str) -> bool:
        """Whether this user may write what only the bridge writes."""
        return _any(self.accounts, user)

    def controls(self, user: str) -> bool:
        """Whether this user is a controller, which creates objects for others."""
        return _any(self.controllers, user)

    def names_ours(self, spec: Mapping[str, Any]) -> bool:
        """Whether the spec of a pod names one of the bridge's schedulers."""
        return spec.get("schedulerName") in self.scheduler_names

    def names_none(self, spec: Mapping[str, Any]) -> bool:
        """Whether the spec of a pod leaves the scheduler open."""
        return (spec.get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER

    def takes(self, pod: Mapping[str, Any], namespace: str, groups: Sequence[str]) -> bool:
        """Whether a pod that is created becomes one of the bridge, or is one."""
        spec = part(pod, "spec")
        if self.names_ours(spec):
            return True
        return self.names_none(spec) and not bound_to_its_node(pod, groups) and self.managed(namespace)


def mirror(pod: Mapping[str, Any], groups: Sequence[str]) -> bool:
    """A pod that a kubelet shows for a static pod, which runs on its node whatever is answered."""
    return MIRROR in part(pod, "metadata", "annotations") and NODES in groups


def bound_to_its_node(pod: Mapping[str, Any], groups: Sequence[str]) -> bool:
    """A pod of a DaemonSet, or a static pod: its node is the point of it."""
    if mirror(pod, groups):
        return True
    owners = part(pod, "metadata").get("ownerReferences")
    return any(
        isinstance(one, Mapping) and one.get("controller") and one.get("kind") == "DaemonSet"
        for one in (owners if isinstance(owners, list) else ())
    )


def _any(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
