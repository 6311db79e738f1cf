"""The PodGroup of the coscheduling plugin: named in a label of its pods. Its annotations win over the owner's."""

from typing import Final

from slurm_bridge.model import kinds, names
from slurm_bridge.model.announcement import Announcement
from slurm_bridge.model.groups import CoschedulingPodGroup
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options

#: Phases in which the group has not been placed.
_UNPLACED: Final = ("", "Pending", "Unknown")


def handles(pod: Pod) -> tuple[str, ...]:
    """The name of the PodGroup."""
    name = _name(pod)
    return (name,) if name else ()


def claim(pod: Pod, known: Known, _options: Options) -> Root | None:
    """A pod with the label, whether or not the PodGroup exists."""
    return gangs.named(kinds.COSCHEDULING_PODGROUPS, _name(pod), pod, known)


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang."""
    group = given.known.find(kinds.COSCHEDULING_PODGROUPS, root.namespace, root.name)
    if group is None:
        return gangs.missing(root)
    chain = given.owners.resolve(members.any())
    spoken = (*voices.above(chain), voices.source(kinds.COSCHEDULING_PODGROUPS, group))
    plan = gangs.GangPlan(
        called=str(root),
        job_name=root.name,
        minimum=max(1, group.spec.min_member),
        sources=lambda first: (voices.own(first), *spoken),
        suspended=voices.suspended(chain),
    )
    return gangs.whole(root, plan, members, given)


def _name(pod: Pod) -> str:
    return pod.metadata.labels.get(names.LABEL_COSCHEDULING, "")


def _announced(group: CoschedulingPodGroup) -> bool:
    return group.status.phase not in _UNPLACED


def _announcement(_group: CoschedulingPodGroup, _message: str, _wall: float) -> Manifest:
    """The plugin's own word for "placed, and not all of them running yet"."""
    return {"phase": "Scheduling"}


SPEC = KindSpec(
    name=kinds.COSCHEDULING_PODGROUPS.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    resource=kinds.COSCHEDULING_PODGROUPS,
    announcement=Announcement(says=_announced, status=_announcement),
    counted="spec.minMember",
    prefixes=frozenset({"scheduling.x-k8s.io"}),
    page=KindPage(
        title="PodGroup of the coscheduling plugin (`scheduling.x-k8s.io`)",
        pods="the label `scheduling.x-k8s.io/pod-group` names it",
        one="the group",
        minimum="`minMember`",
        sources="pod, owner, PodGroup",
    ),
)
