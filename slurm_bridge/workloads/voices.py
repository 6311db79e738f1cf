"""What several kinds share: identity, the controller of a pod, the annotations that count, and what they ask for."""

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurm_bridge.model import creator, kinds, names
from slurm_bridge.model.creator import Creator
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Deadline, MemberLost, Root, Source, Workload, controller_uid
from slurm_bridge.workloads.chain import OwnerChain, OwnerChains, OwnerLink

#: The values of the annotation `member-lost`.
MEMBER_LOST: Final[Mapping[str, MemberLost]] = {"keep": MemberLost.KEEP, "restart-group": MemberLost.RESTART}

#: More digits than any count needs, and few enough to be read fast.
_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def itself(pod: Pod) -> Root:
    """The workload that is this one incarnation of a pod."""
    return Root(kind=kinds.PODS.kind, namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.uid)


def controller(pod: Pod) -> Root | None:
    """The controller of the pod as its owner reference names it; the object may be unreadable, or not exist.

    Its namespace is that of the pod, so what is stored under this key never reaches another namespace.
    """
    for reference in pod.metadata.owner_references:
        if reference.controller and kinds.resolves(reference):
            namespace = pod.metadata.namespace
            return Root(kind=reference.kind, namespace=namespace, name=reference.name, uid=reference.uid)
    return None


def own(pod: Pod) -> Source:
    """The annotations of a pod; for a gang, those of its first member count."""
    return Source(kind=kinds.PODS.kind, name=pod.metadata.name, annotations=pod.metadata.annotations)


def source(kind: Kind[Any], found: Object) -> Source:
    """The annotations of an object."""
    return Source(kind=kind.kind, name=found.metadata.name, annotations=found.metadata.annotations)


def above(chain: OwnerChain) -> tuple[Source, ...]:
    """The annotations of the owner that count, if there is one."""
    speaker = chain.speaker
    return () if speaker is None else (source(speaker.kind, speaker.object),)


def topmost(chain: OwnerChain) -> Root | None:
    """The highest controller above the pods, as it was read; its namespace is that of the pods."""
    link = chain.topmost
    if link is None:
        return None
    metadata = link.object.metadata
    return Root(kind=link.kind.kind, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def alone(pod: Pod, chain: OwnerChain, job_name: str, sources: tuple[Source, ...] = ()) -> Workload:
    """One pod that is placed by itself; `sources` replace its own annotations and those of its owner."""
    return Workload(
        root=itself(pod),
        pods=(pod,),
        sources=sources or (own(pod), *above(chain)),
        job_name=job_name,
        controller=controller(pod),
        topmost=topmost(chain),
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


def creators(workload: Workload, owners: OwnerChains) -> Mapping[str, Creator | None]:
    """The users that created the objects above the members, by the uid of the controller of each."""
    firsts: dict[str, Pod] = {}
    for pod in workload.pods:
        firsts.setdefault(controller_uid(pod), pod)
    return {uid: _creator(owners.resolve(pod)) for uid, pod in firsts.items() if uid}


def _creator(chain: OwnerChain) -> Creator | None:
    """That of the nearest controller with a record: the others were made by controllers."""
    for link in itertools.takewhile(lambda link: link.controls, chain.links):
        said = link.object.metadata.annotations.get(names.ANNOTATION_CREATED_BY)
        if said is not None:
            return creator.read(said)
    return None


def together(annotations: Mapping[str, str]) -> bool | None:
    """Whether an object asks for one placeholder for all its pods; None where it does not say.

    Invalid values are left to the translation, which reports each of them to the user.
    """
    said = {"true": True, "false": False}.get(annotations.get(names.ANNOTATION_GANG, "").strip().lower())
    if said is None and (number(annotations.get(names.ANNOTATION_MINIMUM_NODES)) or 1) > 1:
        # One pod has one node.
        return True
    return said


def member_lost(sources: Iterable[Source], default: MemberLost) -> MemberLost:
    """The policy for a lost member, from the last source that has a valid one."""
    said = [MEMBER_LOST.get(one.annotations.get(names.ANNOTATION_MEMBER_LOST, "").strip().lower()) for one in sources]
    return next((one for one in reversed(said) if one is not None), default)


def number(text: str | None) -> int | None:
    """The number in a label or an annotation; None where it is not a number."""
    found = _DIGITS.fullmatch((text or "").strip())
    return int(found.group()) if found is not None else None
