"""What kinds say in the same way: identity, who made a pod, whose annotations count, what they say of the group."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object, OwnerReference
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Deadline, MemberLost, Root, Source, Workload
from slurm_bridge.workloads.chain import OwnerChain, OwnerLink

#: How users call what follows when a member is lost.
MEMBER_LOST: Final[Mapping[str, MemberLost]] = {"keep": MemberLost.KEEP, "restart-group": MemberLost.RESTART}

#: More than any group has, and less than what costs time to read.
_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def itself(pod: Pod) -> Root:
    """The workload that is this one incarnation of a pod."""
    return Root(kind=kinds.PODS.kind, namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.uid)


def made_by(child: Object, kind: Kind[Any]) -> OwnerReference | None:
    """The reference to an object's controller where that is of this kind."""
    return kind.maker_of(child)


def controller(pod: Pod) -> Root | None:
    """What makes such pods, as the pod says; it may not be readable, or not be there.

    Therefore it is one of the pod's own namespace: nothing that is filed under it reaches any other.
    """
    for reference in pod.metadata.owner_references:
        if reference.controller and kinds.resolves(reference):
            namespace = pod.metadata.namespace
            return Root(kind=reference.kind, namespace=namespace, name=reference.name, uid=reference.uid)
    return None


def own(pod: Pod) -> Source:
    """The pod speaks for itself; for a gang its first member does."""
    return Source(kind=kinds.PODS.kind, name=pod.metadata.name, annotations=pod.metadata.annotations)


def source(kind: Kind[Any], found: Object) -> Source:
    """An object speaks."""
    return Source(kind=kind.kind, name=found.metadata.name, annotations=found.metadata.annotations)


def above(chain: OwnerChain) -> tuple[Source, ...]:
    """The owner that speaks, if there is one."""
    speaker = chain.speaker
    return () if speaker is None else (source(speaker.kind, speaker.object),)


def alone(pod: Pod, chain: OwnerChain, job_name: str, sources: tuple[Source, ...] = ()) -> Workload:
    """One pod that is placed by itself, described by itself and by the owner that speaks, or by these."""
    return Workload(
        root=itself(pod),
        pods=(pod,),
        sources=sources or (own(pod), *above(chain)),
        job_name=job_name,
        controller=controller(pod),
        suspended=suspended(chain),
        deadline=deadline(chain),
    )


def suspended(chain: OwnerChain) -> str:
    """The owner above the pods that must not run now, "" when all may."""
    return next((_title(link) for link in chain.links if link.suspended), "")


def deadline(chain: OwnerChain) -> Deadline | None:
    """How long the owner above the pods lets them run. It counts from the owner's start, so no pod runs longer."""
    for link in chain.links:
        if link.deadline_seconds is not None:
            return Deadline(seconds=link.deadline_seconds, subject=_title(link))
    return None


def _title(link: OwnerLink) -> str:
    return f"{link.kind.kind} {link.object.metadata.namespace}/{link.name}"


def together(annotations: Mapping[str, str]) -> bool | None:
    """Whether an object wants one placeholder for all its pods; None where it does not say.

    Words that mean nothing are left to the translation, which tells the user about each of them.
    """
    said = {"true": True, "false": False}.get(annotations.get(names.ANNOTATION_GANG, "").strip().lower())
    if said is None and (number(annotations.get(names.ANNOTATION_MINIMUM_NODES)) or 1) > 1:
        # One pod has one node.
        return True
    return said


def member_lost(sources: Iterable[Source], default: MemberLost) -> MemberLost:
    """The strongest voice that says what follows when a member is lost."""
    said = [MEMBER_LOST.get(one.annotations.get(names.ANNOTATION_MEMBER_LOST, "").strip().lower()) for one in sources]
    return next((one for one in reversed(said) if one is not None), default)


def number(text: str | None) -> int | None:
    """What a label or an annotation counts; None where it does not."""
    found = _DIGITS.fullmatch((text or "").strip())
    return int(found.group()) if found is not None else None
