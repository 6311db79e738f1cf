"""Which namespaces the daemon of one part serves, agreed with the daemons of the other parts by one Lease for each.

    (other)  ──it belongs to this part, and no part has it──► CLAIMED  ──pods and jobs are known──► SERVED
    SERVED   ──it belongs to another part, or is of no use──► LEAVING  ──nothing is known of it──► LEFT
    LEFT     ──the record is given back──► (other)

Settings and labels say to which part a namespace belongs, and two daemons may see different ones for a while. So no
daemon acts before the record of the namespace names its part, and each change of a record replaces exactly the version
that was read. A record that names another part is replaced only if

    1  the record was read,
    2  the lease of that part was read after that, and no daemon leads there: it is given up, gone, or has not changed
       for its whole duration by the clock of this machine,
    3  the record is still as it was read.

A leader writes each of its records anew before it acts. So the record has changed between 1 and 3 if the other part has
got a leader between 2 and 3, and one of the two writes is refused.
"""

import dataclasses
import datetime as dt
import enum
import functools
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds, names, parts, texts
from slurm_bridge.model.lease import Lease, LeaseSpec
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.parts import ClusterParts
from slurm_bridge.runtime import hands


class Standing(enum.Enum):
    """Of a namespace whose record names this part."""

    CLAIMED = "its pods and jobs are not known yet"
    SERVED = "its workloads are scheduled"
    LEAVING = "no workload of it is looked at any more; some may be under way"
    LEFT = "nothing is known of it any more, and its record is to be given back"


#: The labels of a namespace, None where there is none of this name.
Labels = Callable[[str], Mapping[str, str] | None]

_FOLLOWED = (Standing.SERVED, Standing.LEAVING)
_UNSETTLED = frozenset({Standing.CLAIMED, Standing.LEAVING})
#: A namespace that is gone, and another part's, is looked at again after so many seconds, if a job of it lives then.
QUIET: Final = 60.0
#: The records are read again after so many seconds, because others may have deleted or changed them.
COMPARE: Final = 300.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipPorts:
    """What this works with. `needed`: pods or jobs of ours are known of a namespace.

    `term` counts leaderships and daemons without parts. `whole`: such a daemon, which serves all namespaces, may lead.
    `lease_seconds`: what leases of parts last.
    """

    cluster: ports.Cluster
    clock: ports.Clock
    labels: Labels
    needed: Callable[[str], bool]
    leading: Callable[[], bool]
    term: Callable[[], int]
    whole: Callable[[], bool]
    lease_seconds: float
    each: hands.Each = hands.in_turn


class NamespaceOwnership:
    """Any thread may ask. `begin`, `commence`, `serve` and `left` are the scheduler's, `step` is for another thread."""

    def __init__(self, given: ClusterParts, reach: OwnershipPorts) -> None:
        self._parts, self._reach = given, reach
        #: Of the one that asks the API server; and of the states, which is held for a moment only.
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._standings: dict[str, Standing] = {}
        #: Those that the scheduler has to take up or to let go.
        self._unsettled: set[str] = set()
        self._records: dict[str, Lease] = {}
        #: Namespaces of whatever part, and whether a living job of them was met.
        self._met: dict[str, bool] = {}
        #: Namespaces that are gone and another part's: when they are looked at again.
        self._quiet: dict[str, float] = {}
        #: The leases of leaders of other parts as last read, None where there is none, and since when that is so.
        self._leaders: dict[str, tuple[Lease | None, float]] = {}
        self._others: dict[str, str] = {}
        #: Some namespace could not be dealt with in the last step.
        self._owing = False
        self._began: int | None = None
        self._compared = reach.clock.now()
        #: Namespaces whose label names no part, and what it says.
        self._strange: dict[str, str] = {}
        #: Something has changed that the next step may act on.
        self.stirred = threading.Event()
        #: A daemon with parts had the lease that all of them share when a leadership was last to begin.
        self.marked = False

    # -- questions ---------------------------------------------------------------------------------------------------

    def serves(self, namespace: str) -> bool:
        """Pods and jobs of this namespace are this daemon's."""
        return self._standings.get(namespace) in _FOLLOWED or self._is_nowhere(namespace)

    def schedules(self, namespace: str) -> bool:
        """Workloads of this namespace may be looked at."""
        return self._standings.get(namespace) is Standing.SERVED or self._is_nowhere(namespace)

    def _is_nowhere(self, namespace: str) -> bool:
        """Jobs of no namespace, as `slurm-bridge check` submits them, are the first part's."""
        return self._parts.own == self._parts.every[0] and not parts.is_namespace(namespace)

    @property
    def current(self) -> bool:
        """This daemon leads its part, has written its records since it does, and none without parts leads."""
        return self._began == self._reach.term() and self._reach.leading() and not self._reach.whole()

    def standing(self, *wanted: Standing) -> tuple[str, ...]:
        """The namespaces in these states."""
        if _UNSETTLED.issuperset(wanted):
            return tuple(name for name in tuple(self._unsettled) if self._standings.get(name) in wanted)
        return tuple(name for name, one in tuple(self._standings.items()) if one in wanted)

    @property
    def unsettled(self) -> bool:
        """Some namespace is to be taken up or let go."""
        return bool(self._unsettled)

    @property
    def busy(self) -> bool:
        """Something is on its way, here or with another part."""
        return (
            self._owing
            or bool(self._others)
            or any(one is not Standing.SERVED for one in tuple(self._standings.values()))
        )

    @property
    def awaited(self) -> Mapping[str, str]:
        """Namespaces of this part that another part still has, and which."""
        return self._others

    def met(self, namespace: str, *, by_job: bool = True) -> None:
        """There are pods or living jobs of ours in this namespace, which may be of any part."""
        known = self._met.get(namespace)
        if known is None and parts.is_namespace(namespace):
            self._met[namespace] = by_job
            if namespace not in self._quiet:
                self.stirred.set()
        elif known is False and by_job:
            self._met[namespace] = True

    def told(self, namespace: str, *, there: bool) -> None:
        """A namespace has come or gone, or has other labels. What is gone and was met by its pods only is forgotten."""
        if there:
            self._quiet.pop(namespace, None)
        elif self._met.get(namespace) is False and namespace not in self._standings:
            self._met.pop(namespace, None)
        self.stirred.set()

    # -- the scheduler's thread --------------------------------------------------------------------------------------

    def begin(self) -> tuple[int, frozenset[str]]:
        """A leadership begins: its number, and the namespaces that the records give to this part."""
        term = self._reach.term()
        with self._turn:
            self._refuse_beside_a_whole()
            self._compared = self._reach.clock.now()
            mine = [item for item in self._listed().items() if item[1].spec.holder_identity == self._parts.own]
            renewed = self._reach.each(self._renewed, mine)
            self._records = {name: one for (name, _), one in zip(mine, renewed, strict=True) if one is not None}
            return term, frozenset(self._records)

    def commence(self, term: int, namespaces: Collection[str]) -> None:
        """These are served from now on, and nothing else."""
        with self._lock:
            self._standings = dict.fromkeys(namespaces, Standing.SERVED)
            self._unsettled.clear()
            self._began = term
        self.stirred.set()

    def _refuse_beside_a_whole(self) -> None:
        """A daemon without parts serves all namespaces, and knows nothing of records."""
        lease = self._reach.cluster.lease(self._parts.lease_namespace, self._parts.lease_name)
        marked = lease is not None and names.ANNOTATION_PARTS in lease.metadata.annotations
        self.marked = marked and not self._reach.whole()
        if not self.marked:
            raise errors.TryLater(
                f"Lease {self._parts.lease_namespace}/{self._parts.lease_name} was not taken by a daemon with parts "
                "yet: a daemon without parts may lead"
            )

    def _renewed(self, item: tuple[str, Lease]) -> Lease | None:
        """None where another part was faster."""
        try:
            return self._write(item[0], item[1], self._parts.own)
        except errors.Disagreement:
            return None

    def serve(self, namespaces: Iterable[str]) -> frozenset[str]:
        """The pods and jobs of these are followed from now on; those that are still to be served."""
        return self._move(namespaces, Standing.CLAIMED, Standing.SERVED)

    def defer(self, namespaces: Iterable[str]) -> None:
        """Their jobs could not be read: they are followed later."""
        self._move(namespaces, Standing.SERVED, Standing.CLAIMED)

    def left(self, namespaces: Iterable[str]) -> None:
        """Nothing of these is known or under way any more."""
        self._move(namespaces, Standing.LEAVING, Standing.LEFT)
        self.stirred.set()

    def _move(self, namespaces: Iterable[str], old: Standing, new: Standing) -> frozenset[str]:
        with self._lock:
            moved = frozenset(name for name in namespaces if self._standings.get(name) is old)
            for name in moved:
                self._put(name, new)
            return moved

    def _put(self, namespace: str, standing: Standing | None) -> None:
        """Under the lock."""
        if standing is None:
            self._standings.pop(namespace, None)
        else:
            self._standings[namespace] = standing
        (self._unsettled.add if standing in _UNSETTLED else self._unsettled.discard)(namespace)

    # -- its own thread ----------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Compare all namespaces with the part that they belong to, and claim or give back what differs."""
        self.stirred.clear()
        with self._turn:
            if not self.current:
                return
            now = self._reach.clock.now()
            for name in [name for name, until in tuple(self._quiet.items()) if until <= now]:
                self._quiet.pop(name, None)
            self._owing = False
            if now - self._compared >= COMPARE:
                self._compare_all()
            known = dict.fromkeys((*tuple(self._met), *tuple(self._standings)))
            self._claim_some([name for name in known if self._try(name, self._look)])

    def _try(self, namespace: str, act: Callable[[str], bool]) -> bool:
        try:
            return act(namespace)
        except errors.BridgeError as problem:
            self._owing = True
            logger.info("part {}: namespace {}: not now: {}", self._parts.own, namespace, problem)
            return False

    def _look(self, namespace: str) -> bool:
        """What becomes of a namespace; True if it is to be claimed."""
        standing = self._standings.get(namespace)
        if standing is None:
            return namespace not in self._quiet and self._belongs(namespace)
        if standing is Standing.LEFT:
            self._give_back(namespace)
        elif standing is not Standing.LEAVING and not self._remains(namespace, standing):
            self._leave(namespace)
        return False

    def _leave(self, namespace: str) -> None:
        """What the scheduler has not taken up is left already."""
        left = self._move([namespace], Standing.CLAIMED, Standing.LEFT)
        leaving = self._move([namespace], Standing.SERVED, Standing.LEAVING)
        if left or leaving:
            logger.info("part {}: namespace {} is let go", self._parts.own, namespace)

    def _remains(self, namespace: str, standing: Standing) -> bool:
        """A namespace that is gone stays with its part as long as jobs of ours are left of it."""
        labels = self._reach.labels(namespace)
        if labels is None:
            return standing is Standing.CLAIMED or self._reach.needed(namespace)
        return self._part(namespace, labels) == self._parts.own

    def _part(self, namespace: str, labels: Mapping[str, str]) -> str:
        """The part that a namespace belongs to; a label that does not count is told once."""
        said, part = self._parts.strange(labels), self._parts.of(namespace, labels)
        if said and self._strange.get(namespace) != said:
            logger.warning(
                "namespace {} belongs to part {} by its name: its label {}={} names none of parts.names ({})",
                namespace,
                part,
                names.LABEL_PART,
                texts.shown(said),
                ", ".join(self._parts.every),
            )
            self._strange[namespace] = said
        elif not said:
            self._strange.pop(namespace, None)
        return part

    def _belongs(self, namespace: str) -> bool:
        """A namespace that is gone is the part's that had it; without a record, by its name, if a job of it lives."""
        labels = self._reach.labels(namespace)
        if labels is not None:
            return self._part(namespace, labels) == self._parts.own
        self._strange.pop(namespace, None)
        record = self._record(namespace)
        holder = (record.spec.holder_identity or "") if record is not None else ""
        heir = holder if holder in self._parts.every else self._parts.of(namespace, {})
        if heir == self._parts.own and (record is not None or self._met.get(namespace)):
            return True
        self._quiet[namespace] = self._reach.clock.now() + QUIET
        self._met.pop(namespace, None)
        return False

    def _compare_all(self) -> None:
        """Others may have deleted or changed records: all are read, and dealt with one by one."""
        self._compared = self._reach.clock.now()
        try:
            found = self._listed()
        except errors.BridgeError as problem:
            logger.info("part {}: the records of namespaces cannot be read now: {}", self._parts.own, problem)
            return
        mine = [name for name, seen in found.items() if seen.spec.holder_identity == self._parts.own]
        for name in dict.fromkeys((*self._records, *mine)):
            self._try(name, functools.partial(self._compare, seen=found.get(name)))

    def _compare(self, namespace: str, seen: Lease | None) -> bool:
        """Gone: written again. With another part: let go. With this part, which has not claimed it: given back."""
        own, known = self._parts.own, namespace in self._records
        if seen is None:
            logger.warning("part {}: the record of namespace {} was deleted; it is written again", own, namespace)
            self._records[namespace] = self._write(namespace, None, own)
        elif seen.spec.holder_identity != own:
            logger.warning("part {}: the record of namespace {} was changed by others", own, namespace)
            self._leave(namespace)
        else:
            self._records[namespace] = seen
            with self._lock:
                if not known and namespace not in self._standings:
                    logger.warning("part {}: the record of namespace {} was given to it by others", own, namespace)
                    self._put(namespace, Standing.LEFT)
        return False

    def _listed(self) -> dict[str, Lease]:
        found = self._reach.cluster.list(kinds.LEASES, ports.Scope(namespace=self._parts.lease_namespace)).items
        return {name: one for one in found if (name := self._parts.recorded(one.metadata.name))}

    def _record(self, namespace: str) -> Lease | None:
        return self._reach.cluster.lease(self._parts.lease_namespace, self._parts.record(namespace))

    def _give_back(self, namespace: str) -> None:
        """Of a namespace that is gone no record stays, and it is not looked at until a job of it is met again."""
        record, gone = self._records.get(namespace), self._reach.labels(namespace) is None
        if record is None:
            record = self._record(namespace)
        mine = record is not None and record.spec.holder_identity == self._parts.own
        # Where it is refused it has been written meanwhile; the next step reads it again.
        self._records.pop(namespace, None)
        if record is not None and mine and gone:
            self._reach.cluster.delete(kinds.LEASES, record, version=record.metadata.resource_version)
        elif record is not None and mine:
            self._write(namespace, record, "")
        with self._lock:
            self._put(namespace, None)
        if gone:
            self._met.pop(namespace, None)
            self._strange.pop(namespace, None)

    def _claim_some(self, wanted: Iterable[str]) -> None:
        """The records first, then the leases of the parts that have them, then the writes."""
        read: dict[str, Lease | None] = {}

        def learn(namespace: str) -> bool:
            read[namespace] = self._record(namespace)
            return True

        for name in wanted:
            self._try(name, learn)
        holders = {name: (one.spec.holder_identity or "") if one is not None else "" for name, one in read.items()}
        free = {holder: self._is_free(holder) for holder in sorted(set(holders.values()) - {"", self._parts.own})}
        self._others = {name: holder for name, holder in holders.items() if not free.get(holder, True)}
        for name, record in read.items():
            if name not in self._others:
                self._try(name, functools.partial(self._claim, record=record))

    def _is_free(self, part: str) -> bool:
        """No daemon leads this part."""
        asked = self._reach.clock.now()
        try:
            lease = self._reach.cluster.lease(self._parts.lease_namespace, self._parts.lease(part))
        except errors.BridgeError as problem:
            logger.info("part {}: the lease of part {}: not now: {}", self._parts.own, part, problem)
            return False
        if lease is not None and not lease.spec.holder_identity:
            return True
        before = self._leaders.get(part)
        if before is None or _version(before[0]) != _version(lease):
            self._leaders[part] = before = (lease, self._reach.clock.now())
        # What the answer says was so when it was asked for at the latest: a slow one is no silence.
        lasts = lease.spec.lease_duration_seconds if lease is not None else None
        return asked - before[1] >= (self._reach.lease_seconds if lasts is None else lasts)

    def _claim(self, namespace: str, record: Lease | None) -> bool:
        if not self.current:
            return False
        try:
            self._records[namespace] = self._write(namespace, record, self._parts.own)
        except errors.TryLater:
            # It may have been written: then it has to be given back, whatever the namespace belongs to by then.
            with self._lock:
                self._put(namespace, Standing.LEFT)
            raise
        with self._lock:
            self._put(namespace, Standing.CLAIMED)
        logger.info("part {}: namespace {} is claimed", self._parts.own, namespace)
        return True

    def _write(self, namespace: str, record: Lease | None, holder: str) -> Lease:
        """Every write differs from the one before, or the API server would not count it as one."""
        before = record.spec if record is not None else LeaseSpec()
        now = dt.datetime.fromtimestamp(self._reach.clock.wall(), tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = LeaseSpec(
            holder_identity=holder,
            acquire_time=before.acquire_time if holder == before.holder_identity else now,
            renew_time=now,
            lease_transitions=(before.lease_transitions or 0) + 1,
        )
        new = ObjectMeta(namespace=self._parts.lease_namespace, name=self._parts.record(namespace))
        metadata = record.metadata if record is not None else new
        return self._reach.cluster.write_lease(Lease(metadata=metadata, spec=spec))


def _version(lease: Lease | None) -> tuple[str, str] | None:
    return (lease.uid, lease.metadata.resource_version) if lease is not None else None
