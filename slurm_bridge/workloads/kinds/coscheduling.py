"""The PodGroup of the coscheduling plugin: named in a label of its pods. It speaks louder than their owner."""

from slurm_bridge.model import kinds, names
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.known import Known, Options


def handles(pod: Pod) -> tuple[str, ...]:
    """The PodGroup."""
    name = _name(pod)
    return (name,) if name else ()


def claim(pod: Pod, known: Known, _options: Options) -> Root | None:
    """A pod with the label, be its PodGroup there or not."""
    kind, name, namespace = kinds.COSCHEDULING_PODGROUPS, _name(pod), pod.metadata.namespace
    if not name or not known.served(kind):
        return None
    group = known.find(kind, namespace, name)
    # The built-in kind has the same name; both may be in one cluster.
    uid = group.uid if group is not None else f"{kind.kind}.{kind.group}:{namespace}/{name}"
    return Root(kind=kind.kind, namespace=namespace, name=name, uid=uid)


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang."""
    group = given.known.find(kinds.COSCHEDULING_PODGROUPS, root.namespace, root.name)
    if group is None:
        return gangs.missing(root)
    chain = given.owners.resolve(members.any())
    spoken = (*voices.above(chain), voices.source(kinds.COSCHEDULING_PODGROUPS, group))
    plan = gangs.Plan(
        called=str(root),
        job_name=root.name,
        minimum=max(1, group.spec.min_member),
        sources=lambda first: (voices.own(first), *spoken),
        suspended=voices.suspended(chain),
    )
    return gangs.whole(root, plan, members, given)


def _name(pod: Pod) -> str:
    return pod.metadata.labels.get(names.LABEL_COSCHEDULING, "")
