"""The PodGroup that Kubernetes itself serves: named in the spec of its pods.

With the gang policy its pods start together. With the basic policy each is placed by itself; the annotations of the
PodGroup still count. Of several annotations with the same key the last one counts: pod, PodGroup, owner of the pod, the
Workload that the PodGroup was made from.
"""

from collections.abc import Sequence
from typing import Final

from slurm_bridge.model import kinds, texts
from slurm_bridge.model.announcement import Announcement
from slurm_bridge.model.groups import PodGroup
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.chain import OwnerChain
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import Companion, KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options

#: The condition of a PodGroup whose members all have nodes.
PLACED: Final = "PodGroupScheduled"

#: The index of PodGroups by the Workload that they were made from.
_BY_WORKLOAD: Final = "workload"


def handles(pod: Pod) -> tuple[str, ...]:
    """The name of the PodGroup."""
    name = _name(pod)
    return (name,) if name else ()


def claim(pod: Pod, known: Known, _options: Options) -> Root | None:
    """A pod that names a PodGroup, whether or not the PodGroup exists."""
    name, namespace = _name(pod), pod.metadata.namespace
    if not name or not known.served(kinds.PODGROUPS):
        return None
    group = known.find(kinds.PODGROUPS, namespace, name)
    if group is not None and group.spec.scheduling_policy.gang is None:
        return voices.itself(pod)
    uid = group.uid if group is not None else f"{kinds.PODGROUPS.kind}:{namespace}/{name}"
    return Root(kind=kinds.PODGROUPS.kind, namespace=namespace, name=name, uid=uid)


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang, or one pod of a group with another policy."""
    pod = members.any()
    group = given.known.find(kinds.PODGROUPS, root.namespace, _name(pod))
    if group is None:
        return gangs.missing(root)
    chain = given.owners.resolve(pod)
    policy = group.spec.scheduling_policy.gang
    if policy is None:
        return voices.alone(pod, chain, group.metadata.name, _sources(pod, group, chain, given.known))
    plan = gangs.GangPlan(
        called=str(root),
        job_name=root.name,
        minimum=policy.min_count,
        sources=lambda first: _sources(first, group, chain, given.known),
        suspended=voices.suspended(chain),
    )
    return gangs.whole(root, plan, members, given)


def _sources(pod: Pod, group: PodGroup, chain: OwnerChain, known: Known) -> tuple[Source, ...]:
    """A Workload that does not exist is left out."""
    name = group.spec.workload_name
    workload = known.find(kinds.WORKLOADS, group.metadata.namespace, name) if name else None
    strongest = (voices.source(kinds.WORKLOADS, workload),) if workload is not None else ()
    return voices.own(pod), voices.source(kinds.PODGROUPS, group), *voices.above(chain), *strongest


def _name(pod: Pod) -> str:
    group = pod.spec.scheduling_group
    return (group.pod_group_name or "") if group is not None else ""


def _workloads(group: PodGroup) -> Sequence[str]:
    """The Workload that this PodGroup was made from."""
    name = group.spec.workload_name
    return (f"{group.metadata.namespace}/{name}",) if name else ()


def _announced(group: PodGroup) -> bool:
    return any(line.type == PLACED and line.status == "True" for line in group.status.conditions)


def _announcement(group: PodGroup, message: str, wall: float) -> Manifest:
    """The condition as kube-scheduler writes it."""
    line: Manifest = {"type": PLACED, "status": "True", "reason": "Scheduled", "message": texts.plain(message)}
    observed = {"observedGeneration": group.metadata.generation} if group.metadata.generation else {}
    return {"conditions": [{**line, **observed, "lastTransitionTime": texts.timestamp(wall)}]}


SPEC = KindSpec(
    name=kinds.PODGROUPS.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    resource=kinds.PODGROUPS,
    companions=(Companion(resource=kinds.WORKLOADS, index=_BY_WORKLOAD),),
    indexes={kinds.PODGROUPS: {_BY_WORKLOAD: _workloads}},
    announcement=Announcement(says=_announced, status=_announcement),
    counted="spec.schedulingPolicy.gang.minCount",
    prefixes=frozenset({"scheduling.k8s.io"}),
    page=KindPage(
        title="PodGroup of Kubernetes (`scheduling.k8s.io`)",
        pods="`spec.schedulingGroup.podGroupName` names it",
        one="the group, with the gang policy; with the basic policy each pod",
        minimum="`minCount`",
        sources="pod, PodGroup, owner, the Workload that the PodGroup was made from",
    ),
)
