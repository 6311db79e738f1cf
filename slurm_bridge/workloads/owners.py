"""Reads the chain of owners above a pod, as far up as it can be read.

    pod ──► ReplicaSet ──► Deployment          the annotations of the highest owner that could be read count
    pod ──► Job ──► JobSet ──► (anything)      those of the highest Job, JobSet, MPIJob or LeaderWorkerSet count
    pod ──► pod (its driver) ──► (anything)    those of a pod count for that pod alone

An owner may be forbidden, unserved, deleted, of an unknown kind, or own itself. None of this keeps a pod from being
scheduled: the chain ends there, and `problem` says so. Only an API server that does not answer is a reason to wait,
because its answer may matter.
"""

import dataclasses
import threading
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds
from slurm_bridge.model.groups import Job
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object, ObjectMeta, OwnerReference
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import caches
from slurm_bridge.runtime.caches import AnswerCache
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.chain import OwnerChain, OwnerLink
from slurm_bridge.workloads.known import Known

T = TypeVar("T", bound=Object)

#: Deeper than any chain that is built on purpose.
DEEPEST: Final = 32
#: How many owner references of one object are followed, its controller first.
MOST_REFERENCES: Final = 8

#: So many namespaces have a budget of their own; the one that asked longest ago is dropped first.
_NAMESPACES: Final = 10_000
#: The shortest pause in seconds, because many pods wait for the same budget.
_PAUSE: Final = 1.0


class Reader(Protocol):
    """The reads of ports.Cluster that are needed here."""

    def served(self, kind: Kind[T], /) -> str | None:
        """The version of this kind, None while the cluster does not serve it."""

    def get(self, kind: Kind[T], namespace: str, name: str, /) -> T | None: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLimits:
    """How long an answer about an owner is kept, and how many.

    An edited annotation of an owner that is not watched is seen after `found` seconds; an owner that was missing or
    forbidden is read again after `absent` seconds. For each namespace the server is asked `reads_at_once` times in a
    row and `reads_per_second` times in the long run; pods with owners that were not read by then wait.
    """

    found: float = 30.0
    absent: float = 10.0
    remembered: int = 10_000
    reads_at_once: int = 100
    reads_per_second: float = 50.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Absent:
    """Why an owner could not be read; `gone`: it was deleted."""

    why: str
    gone: bool = False


class NamespaceBudget:
    """`at_once` calls in a row, and `per_second` in the long run. Safe to use from any thread.

    A namespace that has used up its budget waits, and the others do not.
    """

    def __init__(self, *, at_once: int, per_second: float) -> None:
        self._at_once, self._per_second = float(at_once), per_second
        self._lock = threading.Lock()
        #: How many calls each namespace had left, and when.
        self._left: MutableMapping[str, tuple[float, float]] = caches.bounded(most=_NAMESPACES)

    def take(self, namespace: str, now: float) -> float:
        """Takes one call; 0 when the budget covers it, else the seconds after which to ask again."""
        with self._lock:
            left, since = self._left.get(namespace, (self._at_once, now))
            left = min(self._at_once, left + max(0.0, now - since) * self._per_second)
            allowed = left >= 1
            self._left[namespace] = (left - 1 if allowed else left, now)
        return 0.0 if allowed else max(_PAUSE, (1 - left) / self._per_second)


class Learned:
    """What is known, and the Jobs that were read because no watch had delivered them yet."""

    def __init__(self, known: Known, asked: AnswerCache[tuple[str, str], Job], clock: ports.Clock) -> None:
        self._known, self._asked, self._clock = known, asked, clock

    def served(self, kind: Kind[T]) -> bool:
        """As known."""
        return self._known.served(kind)

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """As known; a Job also as it was read."""
        found = self._known.find(kind, namespace, name)
        if found is None and kind is kinds.JOBS:
            return cast("T | None", self._asked.recall((namespace, name), now=self._clock.now()))
        return found

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """As known."""
        return self._known.spent(namespace, run)


class Owners:
    """Reads chains from what is known; what is not known is read from the server, and cached.

    `known` holds what was given and the Jobs that were read, so that a pod stays with its Job once the Job was read.
    """

    def __init__(
        self,
        cluster: Reader,
        clock: ports.Clock,
        *,
        known: Known,
        more: tuple[Kind[Object], ...] = (),
        limits: OwnerLimits | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._limits = limits or OwnerLimits()
        owners = (*kind_table.OWNERS, *more)
        self._kinds: Mapping[tuple[str, str], Kind[Any]] = {(kind.group, kind.kind): kind for kind in owners}
        self._reads = NamespaceBudget(at_once=self._limits.reads_at_once, per_second=self._limits.reads_per_second)
        self._memory: AnswerCache[tuple[str, ...], Object | _Absent] = AnswerCache(most=self._limits.remembered)
        self._asked: AnswerCache[tuple[str, str], Job] = AnswerCache(most=self._limits.remembered)
        self._heard = known
        self.known: Known = Learned(known, self._asked, clock)

    def resolve(self, pod: Pod) -> OwnerChain:
        """The chain above this pod; TryLater when the server does not say what stands there."""
        links: list[OwnerLink] = []
        met = {pod.uid}
        above: ObjectMeta | None = pod.metadata
        while above is not None and above.owner_references:
            found = self._parent(above, pod.metadata.namespace)
            if isinstance(found, _Absent):
                return OwnerChain(links=tuple(links), problem=found.why, gone=found.gone)
            if found.object.uid in met:
                problem = f"{found.kind.kind} {found.name} owns itself through other objects"
                return OwnerChain(links=tuple(links), problem=problem)
            if len(links) >= DEEPEST:
                return OwnerChain(links=tuple(links), problem=f"more than {DEEPEST} levels of owners")
            links.append(found)
            met.add(found.object.uid)
            above = found.object.metadata
        return OwnerChain(links=tuple(links))

    def _parent(self, child: ObjectMeta, namespace: str) -> OwnerLink | _Absent:
        """The controller, else the first other owner that can be read, else why the controller cannot be."""
        absent: list[_Absent] = []
        controller_first = sorted(child.owner_references, key=lambda reference: not reference.controller)
        for reference in controller_first[:MOST_REFERENCES]:
            found = self._link(reference, namespace)
            if isinstance(found, OwnerLink):
                return found
            absent.append(found)
        return absent[0]

    def _link(self, reference: OwnerReference, namespace: str) -> OwnerLink | _Absent:
        group = reference.api_version.rpartition("/")[0]
        kind = self._kinds.get((group, reference.kind))
        if kind is None:
            return _Absent(f"{_words(reference)} is of a kind that is not read")
        if not kind.named_by(reference):
            return _Absent(f"{_words(reference)} is of a version that the cluster does not serve")
        found = self._object(kind, reference, namespace)
        if isinstance(found, _Absent):
            return found
        spec = kind_table.SPECS.get(kind)
        if spec is None or not spec.owner:
            return OwnerLink(kind=kind, object=found, controls=bool(reference.controller))
        suspended, deadline = spec.suspended(found), spec.deadline(found)
        return OwnerLink(
            kind=kind,
            object=found,
            speaks=True,
            suspended=suspended,
            deadline_seconds=deadline,
            controls=bool(reference.controller),
        )

    def _object(self, kind: Kind[Object], reference: OwnerReference, namespace: str) -> Object | _Absent:
        held = self._heard.find(kind, namespace, reference.name) if kind in kind_table.WATCHED else None
        # The owner may be younger than what was delivered: then the server is asked.
        if held is not None and held.uid == reference.uid:
            return held
        now = self._clock.now()
        # Users may write any uid into a reference: a uid alone must neither hide nor show what another namespace owns.
        key = (kind.group, kind.kind, namespace, reference.name, reference.uid)
        known = self._memory.recall(key, now=now)
        if known is None:
            wait = self._reads.take(namespace, now)
            if wait > 0:
                asked = f"namespace {namespace} has had {self._limits.reads_at_once} owners read at once"
                raise errors.TryLater(f"{asked}, and waits for further reads", retry_after=wait)
            known = self._read(kind, reference, namespace)
            good = self._limits.absent if isinstance(known, _Absent) else self._limits.found
            self._memory.keep(key, known, until=now + good)
            if isinstance(known, Job):
                self._asked.keep((namespace, reference.name), known, until=now + good)
        return known

    def _read(self, kind: Kind[Object], reference: OwnerReference, namespace: str) -> Object | _Absent:
        """Reads one owner from the server: the object, or why it could not be read."""
        try:
            if self._cluster.served(kind) is None:
                return _Absent(f"{_words(reference)} is of a kind that the cluster does not serve")
            found = self._cluster.get(kind, namespace if kind.namespaced else "", reference.name)
        except (errors.NotAuthorized, errors.Disagreement) as refusal:
            return _Absent(f"{_words(reference)} could not be read: {refusal}")
        if found is None:
            return _Absent(f"{_words(reference)} does not exist", gone=True)
        if found.uid != reference.uid:
            return _Absent(f"{_words(reference)} does not exist any more: another object has its name", gone=True)
        return found


def _words(reference: OwnerReference) -> str:
    return f"owner {reference.kind} {reference.name} ({reference.api_version})"
