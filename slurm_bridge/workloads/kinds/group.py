"""A group of pods of any kind, by nothing but a name and a size on each of them: as labels, or as annotations."""

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.known import Known, Options

#: No object has this kind.
KIND = "Group"

UNKNOWN = "GroupSizeUnknown"


def handles(_pod: Pod) -> tuple[str, ...]:
    """Nobody but the pods."""
    return ()


def claim(pod: Pod, _known: Known, _options: Options) -> Root | None:
    """A pod that names a group."""
    name, namespace = _said(pod, names.GROUP), pod.metadata.namespace
    if not name:
        return None
    return Root(kind=KIND, namespace=namespace, name=name, uid=f"{KIND}:{namespace}/{name}")


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang, as large as its pods say."""
    pod = members.any()
    size = _size(pod)
    if size is None:
        return _unknown(root, pod)
    chain = given.owners.resolve(pod)
    plan = gangs.Plan(
        called=str(root),
        job_name=root.name,
        minimum=size,
        size=size,
        sources=lambda first: (voices.own(first), *voices.above(chain)),
        suspended=voices.suspended(chain),
    )
    found = gangs.whole(root, plan, members, given)
    return _agreed(found, size) if isinstance(found, Workload) else found


def _agreed(workload: Workload, size: int) -> Workload | Wait:
    """Pods that do not agree on the size may each be right; a guess could start half of a group."""
    other = next((pod for pod in workload.pods if _size(pod) != size), None)
    return workload if other is None else _unknown(workload.root, other, f", another pod says {size}")


def _unknown(root: Root, pod: Pod, more: str = "") -> Wait:
    text = _said(pod, names.GROUP_SIZE)
    message = (
        f"Pod {'/'.join(pod.key)} of {root}: {names.GROUP_SIZE}={text[:60]!r}{more}: "
        "allowed is the number of pods of the group, the same on each, as a label or an annotation"
    )
    return Wait(reason=UNKNOWN, message=message)


def _size(pod: Pod) -> int | None:
    return voices.number(_said(pod, names.GROUP_SIZE)) or None


def _said(pod: Pod, key: str) -> str:
    return (pod.metadata.labels.get(key) or pod.metadata.annotations.get(key) or "").strip()
