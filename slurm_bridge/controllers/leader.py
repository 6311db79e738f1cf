"""Election of the leader on a Lease, by the monotonic clock of this machine alone.

    follower ──the lease is free, or has not changed for its whole duration──► leader
    leader ──could not renew for `renew_seconds` (by itself, whatever else hangs), or another holds it──► follower

No two clocks are compared: a lease counts as abandoned when *we* have seen it unchanged for as long as its holder
said it would last. A leader stops leading `lease_seconds - renew_seconds` before any other replica may take over,
counted from the moment at which its last good renewal was *sent*. A lease is no fence all the same: preconditions
protect what must not happen twice.
"""

import dataclasses
import datetime as dt
import math
import random
import threading
from collections.abc import Callable

import msgspec
from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.model import names
from slurm_bridge.model.lease import Lease, LeaseSpec
from slurm_bridge.model.meta import ObjectMeta


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The Lease, its holder, and its durations. `identity` is unique for each process."""

    namespace: str
    name: str
    identity: str
    lease_seconds: int = 15
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0
    #: Replicas that share this lease have parts of their own beside it; those without parts never take it again.
    parts: bool = False

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_seconds > self.retry_seconds > 0:
            raise errors.BadConfiguration(
                "leader_election: lease_seconds > renew_seconds > retry_seconds > 0 is needed, not "
                f"{self.lease_seconds} > {self.renew_seconds} > {self.retry_seconds}"
            )


class Election:
    """One replica's part in the election; `step` is one try, `run` tries until told to stop."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        terms: Terms,
        *,
        dice: random.Random,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._terms = terms
        self._dice = dice
        self._journal = logger.bind(lease=f"{terms.namespace}/{terms.name}")
        self._lock = threading.Lock()
        self._until = -math.inf
        self._told = self._warned = False
        #: How often this replica has begun to lead.
        self.term = 0
        #: A daemon without parts holds, or held, the lease that those with parts share; and how often one has come.
        self.beside_a_whole, self.wholes = False, 0
        self._released = False
        #: The lease as last read or written, and when it was first seen like this.
        self._seen: Lease | None = None
        self._seen_at = -math.inf

    @property
    def leading(self) -> bool:
        """This replica may act now; turns False by itself when renewals stop."""
        return self._clock.now() < self._until

    @property
    def holder(self) -> str:
        """The holder of the lease when it was last read, empty when there was none."""
        return (self._seen.spec.holder_identity or "") if self._seen is not None else ""

    @property
    def host(self) -> str:
        """The host, in a cluster the pod, of another replica that holds the lease; empty when none is known."""
        return self.holder.rsplit("-", 2)[0] if self.holder != self._terms.identity else ""

    def step(self) -> None:
        """Renews the lease or takes a free one, and logs a change of the lead."""
        with self._lock:
            mine = self._mine()
            # What we wrote last is probably still there: one call is enough, and the precondition fails when it is not.
            if not self._released and (mine is None or not self._attempt("renewed", lambda: self._take(mine))):
                self._attempt("taken", self._look)
        self._tell()

    def run(self, stop: threading.Event, stands: Callable[[], bool] = lambda: True) -> None:
        """Takes part until `stop` is set, while it `stands` for election; a lead lapses when it does not any more.

        The lease is kept at the end: `release` gives it up, once the work is done.
        """
        while not stop.is_set():
            if stands():
                self.step()
            self._clock.wait(stop, self._terms.retry_seconds * self._dice.uniform(1.0, 1.2))

    def release(self) -> None:
        """Gives the lead up, so that another replica takes over at once. For the end of the process: it is final."""
        with self._lock:
            self._until = -math.inf
            self._released = True
            mine = self._mine()
            if mine is not None:
                self._attempt("released", lambda: self._write(mine, self._spec(mine, holder="")))
        self._tell()

    def _mine(self) -> Lease | None:
        """The lease as we remember it, if we hold it."""
        seen = self._seen
        return seen if seen is not None and seen.spec.holder_identity == self._terms.identity else None

    def _attempt(self, what: str, act: Callable[[], None]) -> bool:
        """One try; False when the server disagreed: the lease has changed, and is perhaps not ours."""
        try:
            act()
        except errors.Disagreement as refusal:
            self._until = -math.inf
            self._forget()
            self._journal.info("lease not {}, another replica was faster: {}", what, refusal)
            return False
        except errors.BridgeError as error:
            self._journal.warning("lease not {}: {}", what, error)
        return True

    def _look(self) -> None:
        found = self._cluster.lease(self._terms.namespace, self._terms.name)
        self._observe(found)
        if found is not None and not self._terms.parts and names.ANNOTATION_PARTS in found.metadata.annotations:
            self._until = -math.inf
            self._refuse()
            return
        held = False
        if found is not None and found.spec.holder_identity not in (None, "", self._terms.identity):
            # Another holds it, unless it has not renewed it for its whole duration.
            lasts = found.spec.lease_duration_seconds or self._terms.lease_seconds
            held = self._clock.now() < self._seen_at + lasts
        if held:
            self._until = -math.inf
        else:
            self._take(found)

    def _take(self, lease: Lease | None) -> None:
        """Write our claim over exactly what was read; we lead from the moment in which it was sent."""
        sent = self._clock.now()
        self._write(lease, self._spec(lease, holder=self._terms.identity))
        if sent >= self._until:
            self.term += 1
        self._until = sent + self._terms.renew_seconds

    def _write(self, lease: Lease | None, spec: LeaseSpec) -> None:
        new = ObjectMeta(namespace=self._terms.namespace, name=self._terms.name)
        metadata = lease.metadata if lease is not None else new
        if self._terms.parts:
            marks = {**metadata.annotations, names.ANNOTATION_PARTS: "true"}
            metadata = msgspec.structs.replace(metadata, annotations=marks)
        self._observe(self._cluster.write_lease(Lease(metadata=metadata, spec=spec)))

    def _refuse(self) -> None:
        """Once: the log would say nothing else."""
        if not self._warned:
            self._warned = True
            self._journal.error(
                "this daemon has no parts and does not lead: daemons with parts have used its lease; "
                "stop all of them and delete the lease, or configure parts here"
            )

    def _spec(self, lease: Lease | None, *, holder: str) -> LeaseSpec:
        before = lease.spec if lease is not None else LeaseSpec()
        now = dt.datetime.fromtimestamp(self._clock.wall(), tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        # A lease that is given up is free at once.
        lasts = self._terms.lease_seconds if holder else 1
        if holder == before.holder_identity or not holder:
            acquired, transitions = before.acquire_time or now, before.lease_transitions or 0
        else:
            acquired, transitions = now, (before.lease_transitions or 0) + (1 if lease is not None else 0)
        return LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=lasts,
            acquire_time=acquired,
            renew_time=now,
            lease_transitions=transitions,
        )

    def _observe(self, lease: Lease | None) -> None:
        if lease is None:
            self._forget()
        elif self._seen is None or _version(lease) != _version(self._seen):
            self._seen, self._seen_at = lease, self._clock.now()
            whole = self._terms.parts and names.ANNOTATION_PARTS not in lease.metadata.annotations
            if whole and not self.beside_a_whole:
                self.wholes += 1
            self.beside_a_whole = whole

    def _forget(self) -> None:
        self._seen, self._seen_at = None, -math.inf

    def _tell(self) -> None:
        leads = self.leading
        if leads != self._told:
            self._told = leads
            self._journal.info("{} {}", self._terms.identity, "leads now" if leads else "does not lead any more")


def _version(lease: Lease) -> tuple[str, str]:
    return lease.uid, lease.metadata.resource_version
