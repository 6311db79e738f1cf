"""Finds what is explained: the workload of a pod that exists, or the workloads that manifests would form."""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.explain import drafts, gangs
from slurm_bridge.explain.sketch import Sketch, SketchKnown, SketchReader
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.translate.translator import Value
from slurm_bridge.workloads import base, kind_table
from slurm_bridge.workloads.gangs import rank
from slurm_bridge.workloads.given import Given
from slurm_bridge.workloads.known import Known, Options, wants_node
from slurm_bridge.workloads.owners import Owners, Reader

#: A kind may pass a pod on to the object that groups it. This bounds how often.
_MOVES = 4

LATER = "its uid, and with it the job id, are assigned when it is created; zeros stand for them here"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLookup:
    """Reads owners and groups; `server` None: offline."""

    clock: ports.Clock
    known: Known
    server: Reader | None
    options: Options
    more: tuple[Kind[Any], ...] = ()

    def given(self, sketch: Sketch) -> Given:
        """The records for the kinds of workloads: drawn objects before existing ones."""
        drawing, known = SketchReader(sketch, self.server), SketchKnown(sketch, self.known)
        return Given(owners=Owners(drawing, self.clock, known=known, more=self.more), options=self.options)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSubject:
    """`title` is for people; `exists`: the workload is in the cluster, so that its uid and its placeholder are real.

    `members` are its pods as they are, in rank order. `workload` has the pods that would be requested, as if none of
    them was bound; None if it cannot be determined. `obstacle` is why it is not requested yet. `gang` describes what
    holds the pods together; empty for a single pod.
    """

    title: str
    root: Root
    members: tuple[Pod, ...]
    workload: Workload | None
    obstacle: Wait | None = None
    exists: bool = False
    notes: tuple[str, ...] = ()
    gang: tuple[Value, ...] = ()

    @property
    def lead(self) -> Pod:
        """The pod that represents all members."""
        return self.members[0]


class _Members:
    """Implements Members on a tuple of pods."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = tuple(pods)

    def __len__(self) -> int:
        return len(self._pods)

    def any(self) -> Pod:
        if not self._pods:
            raise LookupError("no pod wants a node")
        return self._pods[0]

    def all(self) -> Sequence[Pod]:
        return self._pods


def of_objects(objects: Iterable[Manifest], lookup: OwnerLookup) -> Sequence[ExplainSubject]:
    """Every workload that these objects form together; BadConfiguration if there is none."""
    sketch, objects = Sketch(), tuple(objects)
    for manifest in objects:
        drafts.draw(sketch, manifest)
    if not sketch.pods:
        seen = ", ".join(sorted({str(manifest["kind"]) for manifest in objects})) or "nothing"
        raise errors.BadConfiguration(f"nothing to explain in {seen}: pods come from {', '.join(drafts.NAMES)}")
    given = lookup.given(sketch)
    found: dict[object, list[ExplainSubject]] = collections.defaultdict(list)
    for root, pods in _by_root(sketch.pods, given):
        likeness = tuple(sorted(collections.Counter(map(sketch.origin, pods)).items()))
        found[likeness].append(_planned(root, pods, given, sketch.origin(pods[0])))
    return [_with_twins(alike) for alike in found.values()]


def of_pod(pod: Pod, mates: Callable[[], Iterable[Pod]], lookup: OwnerLookup) -> ExplainSubject:
    """The workload of a pod that exists, as if it were scheduled now; `mates` lists the pods of its namespace."""
    given = lookup.given(Sketch())
    root = base.claim(pod, given.known, given.options)
    others = (one for one in mates() if one.uid != pod.uid) if root.kind != kinds.PODS.kind else ()
    workload_pods = [pod, *(one for one in others if base.claim(one, given.known, given.options).key == root.key)]
    alive = [one for one in workload_pods if not (one.terminal or one.terminating)] or [pod]
    unbound = [msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, node_name="")) for one in alive]
    found = _gathered(root, unbound, given)
    members = tuple(sorted(workload_pods, key=rank))
    return dataclasses.replace(found, members=members, exists=True, notes=(*_state(members), *found.notes))


def root_of(pod: Pod, lookup: OwnerLookup) -> Root:
    """The workload of a pod."""
    return base.claim(pod, lookup.known, lookup.options)


def whole(lookup: OwnerLookup) -> Callable[[Root, Sequence[Pod]], Workload | None]:
    """Returns a function that gathers a started workload from its pods, or None if that is impossible now."""
    given = lookup.given(Sketch())

    def made(root: Root, pods: Sequence[Pod]) -> Workload | None:
        found = base.gather(root, _Members(pods), given, started=True)
        return found if isinstance(found, Workload) else None

    return made


def _by_root(pods: Iterable[Pod], given: Given) -> Iterable[tuple[Root, list[Pod]]]:
    crews: dict[str, tuple[Root, list[Pod]]] = {}
    for pod in pods:
        root = base.claim(pod, given.known, given.options)
        crews.setdefault(root.key, (root, []))[1].append(pod)
    return crews.values()


def _planned(root: Root, pods: Sequence[Pod], given: Given, origin: str) -> ExplainSubject:
    """A subject of pods that do not exist yet."""
    found = _gathered(root, pods, given)
    single = found.root.kind == kinds.PODS.kind and not origin.startswith(drafts.BARE)
    title = f"{origin}, through a pod that it makes" if single else found.title
    return dataclasses.replace(found, title=title, notes=(LATER, *found.notes))


def _with_twins(alike: Sequence[ExplainSubject]) -> ExplainSubject:
    """One subject stands for all that differ only in their names."""
    first, more = alike[0], len(alike) - 1
    if not more:
        return first
    note = f"{more} more like this: each is a workload of its own"
    return dataclasses.replace(first, notes=(*first.notes, note))


def _gathered(root: Root, pods: Sequence[Pod], given: Given) -> ExplainSubject:
    """Gather as the scheduler does; if it would wait for more pods, also with the pods that are there."""
    workload_pods = _Members([pod for pod in pods if wants_node(pod)] or pods)
    for _ in range(_MOVES):
        found = base.gather(root, workload_pods, given)
        if not isinstance(found, base.Moved):
            break
        root = found.root
    whole = base.gather(root, workload_pods, given, started=True) if isinstance(found, Wait) else found
    workload = whole if isinstance(whole, Workload) else None
    members = workload.pods if workload is not None else tuple(sorted(workload_pods.all(), key=rank))
    return ExplainSubject(
        title=kind_table.called(root),
        root=root,
        members=members,
        workload=workload,
        obstacle=found if isinstance(found, Wait) else None,
        notes=_remarks(workload, given),
        gang=gangs.values(workload, given) if workload is not None else (),
    )


def _remarks(workload: Workload | None, given: Given) -> tuple[str, ...]:
    if workload is None:
        return ()
    problem = given.owners.resolve(workload.lead).problem
    suspended = f"{workload.suspended} is suspended: it makes no pods until spec.suspend is false"
    return (*((suspended,) if workload.suspended else ()), *((f"owners: {problem}",) if problem else ()))


def _state(members: Sequence[Pod]) -> tuple[str, ...]:
    """What has happened already."""
    pod = members[0]
    if len(members) > 1:
        bound = sum(one.bound for one in members)
        words = f"{bound} of {len(members)} members are bound" if bound else ""
    elif pod.terminal:
        words = f"it is over ({pod.status.phase})"
    elif pod.terminating:
        words = "it is being deleted"
    else:
        words = f"it is bound to node {pod.spec.node_name}" if pod.bound else ""
    return (f"{words}; what follows would be requested today",) if words else ()
