"""The PodGroup that Kubernetes itself serves: named in the spec of its pods.

With the gang policy its pods start together. With the basic policy each is placed by itself; the PodGroup still speaks
for it. Weakest voice first: the pod, the PodGroup, the owner of the pod, the Workload that the PodGroup was made from.
"""

from slurm_bridge.model import kinds
from slurm_bridge.model.groups import PodGroup
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.known import Known, Options
from slurm_bridge.workloads.owners import Chain


def handles(pod: Pod) -> tuple[str, ...]:
    """The PodGroup."""
    name = _name(pod)
    return (name,) if name else ()


def claim(pod: Pod, known: Known, _options: Options) -> Root | None:
    """A pod that names a PodGroup, be it there or not."""
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
        return _alone(pod, group, chain, given.known)
    plan = gangs.Plan(
        called=str(root),
        job_name=root.name,
        minimum=policy.min_count,
        sources=lambda first: _sources(first, group, chain, given.known),
        suspended=voices.suspended(chain),
    )
    return gangs.whole(root, plan, members, given)


def _alone(pod: Pod, group: PodGroup, chain: Chain, known: Known) -> Workload:
    return voices.alone(pod, chain, group.metadata.name, _sources(pod, group, chain, known))


def _sources(pod: Pod, group: PodGroup, chain: Chain, known: Known) -> tuple[Source, ...]:
    """A Workload that is named and is not there says nothing."""
    name = group.spec.workload_name
    workload = known.find(kinds.WORKLOADS, group.metadata.namespace, name) if name else None
    strongest = (voices.source(kinds.WORKLOADS, workload),) if workload is not None else ()
    return voices.own(pod), voices.source(kinds.PODGROUPS, group), *voices.above(chain), *strongest


def _name(pod: Pod) -> str:
    group = pod.spec.scheduling_group
    return (group.pod_group_name or "") if group is not None else ""
