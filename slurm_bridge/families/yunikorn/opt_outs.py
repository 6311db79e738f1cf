"""Which workloads opt out of preemption: they are evicted only where no others are left.

annotation of a pod      counts first, unless the option `pods_opt_out` is false
annotation of its class  counts where the pod does not say, as the administrator of PriorityClasses wants it
neither                  the pod does not opt out
"""

from typing import Final

from slurm_bridge.families.yunikorn import identities
from slurm_bridge.hooks.needs import View
from slurm_bridge.model import texts
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload

KEY: Final = f"{identities.DOMAIN}allow-preemption"
_TRUE, _FALSE = "true", "false"


def opted_out(workload: Workload, classes: View | None, *, by_pods: bool) -> bool:
    """A gang is as protected as the most protected of its pods."""
    return any(_opts_out(pod, classes, by_pods=by_pods) for pod in workload.pods)


def problem(workload: Workload) -> str:
    """The first pod whose annotation has another value than the two."""
    for pod in workload.pods:
        said = _said(pod)
        if said not in ("", _TRUE, _FALSE):
            where = f"Pod {'/'.join(pod.key)}: annotation {KEY}={texts.shown(said)}"
            return f"{where}: use {_TRUE} or {_FALSE}, or leave the annotation out"
    return ""


def unread(workload: Workload) -> str:
    """What is told of pods that opt out where only PriorityClasses may."""
    if any(_said(pod) for pod in workload.pods):
        return f"annotation {KEY} of pods is not read: a PriorityClass may have it"
    return ""


def _opts_out(pod: Pod, classes: View | None, *, by_pods: bool) -> bool:
    said = _said(pod) if by_pods else ""
    if not said and pod.spec.priority_class_name and classes is not None:
        found = classes.get("", pod.spec.priority_class_name)
        said = _said(found) if found is not None else ""
    return said == _FALSE


def _said(marked: Object) -> str:
    return marked.metadata.annotations.get(KEY, "")
