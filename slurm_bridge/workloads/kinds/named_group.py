"""A group of pods of any kind, by a name and a size on each of them: as labels, or as annotations."""

import hashlib

from slurm_bridge.model import names, texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options

#: No object has this kind.
KIND = "Group"

UNKNOWN = "GroupSizeUnknown"
UNNAMED = "GroupNameInvalid"

#: Bytes: longer than any label, as much as Slurm shows of a job's name, and short enough for the owner record.
MOST_NAME = 255


def handles(_pod: Pod) -> tuple[str, ...]:
    """No object: only the pods."""
    return ()


def claim(pod: Pod, _known: Known, _options: Options) -> Root | None:
    """A pod that names a group."""
    name, namespace = _said(pod, names.GROUP), pod.metadata.namespace
    if not name:
        return None
    if not _proper(name):
        # Pods with the same invalid name wait together, under a name of bounded length that can be shown.
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return Root(kind=KIND, namespace=namespace, name=texts.shown(name), uid=f"{KIND}:{namespace}/?{digest}")
    return Root(kind=KIND, namespace=namespace, name=name, uid=f"{KIND}:{namespace}/{name}")


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang, of the size on its pods."""
    pod = members.any()
    if not _proper(_said(pod, names.GROUP)):
        said = f'{names.GROUP}="{root.name}"'
        words = f"Pod {'/'.join(pod.key)}: {said}: use printable characters of at most {MOST_NAME} bytes"
        return Wait(reason=UNNAMED, message=words)
    size = _size(pod)
    if size is None:
        return _unknown(root, pod)
    chain = given.owners.resolve(pod)
    plan = gangs.GangPlan(
        called=str(root),
        job_name=root.name,
        minimum=size,
        size=size,
        sources=lambda first: (voices.own(first), *voices.above(chain)),
        suspended=voices.suspended(chain),
    )
    found = gangs.whole(root, plan, members, given)
    # Where its pods name different sizes, a guess could start half of a group.
    gathered = found.pods if isinstance(found, Workload) else ()
    other = next((one for one in gathered if _size(one) != size), None)
    return found if other is None else _unknown(root, other, f", another pod says {size}")


def _proper(name: str) -> bool:
    """Slurm can show the name."""
    return len(name.encode("utf-8", "surrogatepass")) <= MOST_NAME and name.isprintable()


def _unknown(root: Root, pod: Pod, more: str = "") -> Wait:
    size = _said(pod, names.GROUP_SIZE)
    message = (
        f"Pod {'/'.join(pod.key)} of {root}: {names.GROUP_SIZE}={size[:60]!r}{more}: "
        "use the number of pods of the group, the same on each, as a label or an annotation"
    )
    return Wait(reason=UNKNOWN, message=message)


def _size(pod: Pod) -> int | None:
    return voices.number(_said(pod, names.GROUP_SIZE)) or None


def _said(pod: Pod, key: str) -> str:
    return (pod.metadata.labels.get(key) or pod.metadata.annotations.get(key) or "").strip()


SPEC = KindSpec(
    name=KIND,
    handles=handles,
    claim=claim,
    gather=gather,
    page=KindPage(
        title="a group by name",
        pods="`scheduler.slinky.slurm.net/group`, and on each pod `…/group-size`, as labels or annotations",
        one="the pods of that name",
        minimum="the size",
        sources="pod, owner",
    ),
)
