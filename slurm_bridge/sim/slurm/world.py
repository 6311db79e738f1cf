"""The state of slurmctld and the moves that change it: a job comes, starts, changes, ends, is forgotten.

Every index is updated here and nowhere else, so that the free resources always match the jobs. Nothing is decided here:
callers decide which job may start, and where.
"""

import collections
import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Sequence

from slurm_bridge.ports import Clock
from slurm_bridge.sim.slurm import ledger, state

#: Slurm's own job ids (SLUID) are numbers in base 32 without ambiguous letters.
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

_GAP_SECONDS = 30.0


class World:
    """One cluster. Not thread-safe: the pocket holds a lock around every call."""

    def __init__(
        self,
        clock: Clock,
        config: state.PocketConfig,
        *,
        nodes: Sequence[state.Node],
        partitions: Sequence[state.Partition],
        reservations: Iterable[state.Reservation] = (),
    ) -> None:
        self.clock = clock
        self.config = config
        self.nodes = {node.name: node for node in nodes}
        self.partitions = {partition.name: partition for partition in partitions}
        self.configured = dict(self.nodes)
        self._configured_partitions = dict(self.partitions)
        self.licenses = dict(config.licenses)
        self.reservations = {reservation.name: reservation for reservation in reservations}
        self.jobs: dict[int, state.SlurmJob] = {}
        self.pending: dict[int, None] = {}
        self.running: dict[int, None] = {}
        self.plans: dict[int, state.StartPlan] = {}
        self.free = ledger.FreeResources(nodes)
        self.known_features: frozenset[str] = frozenset()
        self.known_gres: frozenset[str] = frozenset()
        self.licenses_used: collections.Counter[str] = collections.Counter()
        self.next_id = config.first_job_id
        self.dirty = True
        self.paused = False
        self.last_pass = self.last_look = 0.0
        #: Leaders that cannot be shown until then, because a component was forgotten.
        self.gaps: dict[int, float] = {}
        self.booted = self.jobs_changed = self.nodes_changed = clock.wall()
        self._deadlines: list[tuple[float, int]] = []
        self._ended: list[tuple[float, int]] = []
        self._learn()

    @property
    def now(self) -> float:
        """Unix time in this world."""
        return self.clock.wall()

    # -- jobs come and change ----------------------------------------------------------------------------------------

    def issue_id(self) -> int:
        """The next free automatic job id; ids chosen by clients do not move this counter."""
        while self.next_id in self.jobs:
            self.next_id += 1
        self.next_id += 1
        if self.next_id > self.config.highest_job_id:
            self.next_id = self.config.first_job_id
        return self.next_id - 1

    def sluid(self, job_id: int, offset: int = 0) -> str:
        """An id that is never issued again, even if the job id is."""
        number, text = int(self.now * 1000) * 1000 + job_id % 1000, ""
        while number:
            number, digit = divmod(number, 32)
            text = _LETTERS[digit] + text
        return f"s{text:0>11}{offset:02}"

    def put(self, job: state.SlurmJob) -> None:
        """Add a job, or replace its record."""
        self.jobs[job.job_id] = job
        self.jobs_changed = self.now
        if job.pending:
            self.pending[job.job_id] = None
        self.dirty = True

    def explain(self, job: state.SlurmJob, reason: str, description: str = "") -> None:
        """Set the reason why a job waits; an unchanged reason costs nothing."""
        if (job.reason, job.description) != (reason, description):
            self.jobs[job.job_id] = dataclasses.replace(job, reason=reason, description=description)
            self.jobs_changed = self.now

    def start(self, job: state.SlurmJob, grant: state.Grant) -> None:
        """Start a job with these resources."""
        begun = dataclasses.replace(
            job,
            state=state.RUNNING,
            configuring=self.config.configuring_seconds > 0,
            reason=state.NO_REASON,
            description="",
            started=self.now,
            evaluated=self.now,
            grant=grant,
        )
        self.hold(begun)

    def hold(self, job: state.SlurmJob) -> None:
        """Add a job that holds resources, and take them."""
        assert job.grant is not None
        self.free.take(job.grant)
        self.licenses_used.update(job.ask.licenses)
        self.pending.pop(job.job_id, None)
        self.running[job.job_id] = None
        self.put(job)
        self.watch(job)
        self.nodes_changed = self.now

    def watch(self, job: state.SlurmJob) -> None:
        """Schedule a check of its time limit; an earlier check that no longer applies is ignored."""
        heapq.heappush(self._deadlines, (job.deadline, job.job_id))

    def end(self, job: state.SlurmJob, word: str, *, reason: str = state.NO_REASON, failed_node: str = "") -> None:
        """End a job; its nodes are free at once, because external jobs have no epilog.

        A job that never ran keeps the reason for which it waited, and its start time is its end.
        """
        now = self.now
        if job.running:
            assert job.grant is not None
            self.free.give(job.grant.shares)
            self.licenses_used.subtract(job.ask.licenses)
            del self.running[job.job_id]
            self.nodes_changed = now
            over = dataclasses.replace(job, configuring=False, reason=reason, description="", failed_node=failed_node)
        else:
            self.pending.pop(job.job_id, None)
            over = dataclasses.replace(job, started=now)
        self.put(dataclasses.replace(over, state=word, ended=now))
        heapq.heappush(self._ended, (now, job.job_id))

    def shrink(self, job: state.SlurmJob, keep: int) -> Sequence[str]:
        """A running job releases all but its first nodes; returns the released names."""
        assert job.grant is not None
        kept, released = job.grant.shares[:keep], job.grant.shares[keep:]
        self.free.give(released)
        grant = dataclasses.replace(job.grant, shares=kept)
        self.put(dataclasses.replace(job, grant=grant))
        self.nodes_changed = self.now
        return [share.node for share in released]

    # -- time passes -------------------------------------------------------------------------------------------------

    def expired(self) -> Iterator[state.SlurmJob]:
        """Running jobs whose time limit has passed, each named once."""
        while self._deadlines and self._deadlines[0][0] <= self.now:
            _, job_id = heapq.heappop(self._deadlines)
            job = self.jobs.get(job_id)
            if job is not None and job.running and job.deadline <= self.now:
                yield job

    def forget_old(self) -> None:
        """Forget jobs that ended MinJobAge ago."""
        horizon = self.now - self.config.minimum_job_age
        while self._ended and self._ended[0][0] <= horizon:
            _, job_id = heapq.heappop(self._ended)
            job = self.jobs.get(job_id)
            if job is not None and job.over and job.ended <= horizon:
                del self.jobs[job_id]
                self.gaps.pop(job_id, None)
                if job.leader in self.jobs:
                    self.gaps[job.leader] = self.now + _GAP_SECONDS
                self.jobs_changed = self.now

    def restart(self, jobs: Iterable[state.SlurmJob], next_id: int) -> None:
        """Replace all jobs with these: what slurmctld does with its state file."""
        self.jobs, self.pending, self.running, self.plans = {}, {}, {}, {}
        self._deadlines, self._ended, self.gaps = [], [], {}
        self.free = ledger.FreeResources(self.nodes.values())
        self.licenses_used.clear()
        self.next_id = next_id
        for job in self._whole(list(jobs)):
            if job.running:
                self.hold(job)
                continue
            self.put(job)
            if job.over:
                heapq.heappush(self._ended, (job.ended, job.job_id))

    def _whole(self, jobs: Sequence[state.SlurmJob]) -> Iterator[state.SlurmJob]:
        """A component without its leader is dropped; an incomplete family fails; each family is sorted by id."""
        known = {job.job_id for job in jobs}
        for job in jobs:
            if job.leader and job.leader not in known:
                continue
            whole = known.issuperset(job.components)
            kept = job
            if not (whole or job.over):
                kept = dataclasses.replace(job, state="FAILED", ended=self.now, reason="SystemFailure")
            yield dataclasses.replace(kept, components=tuple(sorted(job.components)))

    # -- machines ----------------------------------------------------------------------------------------------------

    def put_node(self, node: state.Node) -> None:
        """Add a node, or replace its record."""
        new = node.name not in self.nodes
        self.nodes[node.name] = node
        if new:
            self.free.add(node)
            self._learn()
        self.nodes_changed = self.now
        self.dirty = True

    def join_partitions(self, node: state.Node) -> None:
        """A new node joins the partitions whose NodeSet has one of its features."""
        for partition in list(self.partitions.values()):
            if partition.feature in node.features and partition.feature:
                nodes = tuple(sorted({*partition.nodes, node.name}))
                self.partitions[partition.name] = dataclasses.replace(partition, nodes=nodes)

    def knows_topologies(self, spec: str) -> bool:
        """Whether every topology in `racks:rack1,blocks:block2` is one of this cluster."""
        return all(part.partition(":")[0] in ("racks", "blocks") for part in spec.split(",") if part)

    def remove_node(self, name: str) -> None:
        """Remove a node from every partition."""
        del self.nodes[name]
        self._learn()
        self.free.remove(name)
        for partition in list(self.partitions.values()):
            rest = tuple(node for node in partition.nodes if node != name)
            self.partitions[partition.name] = dataclasses.replace(partition, nodes=rest)
        self.nodes_changed = self.now
        self.dirty = True

    def _learn(self) -> None:
        """Index the existing features and gres: every submit needs them."""
        self.known_features = frozenset(feature for node in self.nodes.values() for feature in node.features)
        self.known_gres = frozenset(pool.name for node in self.nodes.values() for pool in node.gres)

    def read_configuration(self) -> None:
        """Restore nodes that were deleted but are still in the configuration, in their partitions as well."""
        for name, node in self.configured.items():
            if name not in self.nodes:
                self.put_node(node)
                for partition in self._configured_partitions.values():
                    if name in partition.nodes and name not in self.partitions[partition.name].nodes:
                        nodes = tuple(sorted((*self.partitions[partition.name].nodes, name)))
                        self.partitions[partition.name] = dataclasses.replace(partition, nodes=nodes)
        for partition in list(self.partitions.values()):
            if partition.feature:
                self.partitions[partition.name] = dataclasses.replace(partition, nodes=())
        for node in list(self.nodes.values()):
            self.join_partitions(node)

    def recount(self) -> None:
        """Count free resources again from the running jobs."""
        grants = (self.jobs[job_id].grant for job_id in self.running)
        self.free.recount(self.nodes, (grant for grant in grants if grant is not None))
        self.dirty = True

    def jobs_on(self, node: str) -> list[state.SlurmJob]:
        """The running jobs on this node."""
        running = (self.jobs[job_id] for job_id in self.running)
        return [job for job in running if job.grant is not None and node in job.grant.nodes]

    def family(self, job: state.SlurmJob) -> list[state.SlurmJob]:
        """A leader and its components as far as they are remembered, or just the job."""
        if not job.components:
            return [job]
        return [self.jobs[job_id] for job_id in job.components if job_id in self.jobs]

    def reserve(self, reservation: state.Reservation) -> None:
        """Create or change a reservation."""
        self.reservations[reservation.name] = reservation
        self.nodes_changed = self.now
        self.dirty = True

    def unreserve(self, name: str) -> None:
        """Delete a reservation."""
        del self.reservations[name]
        self.nodes_changed = self.now
        self.dirty = True

    def closed_nodes(self, reservation: str) -> set[str]:
        """Nodes that are reserved now, by another reservation than this."""
        now = self.now
        return {
            name
            for other in self.reservations.values()
            if other.active(now) and other.name != reservation
            for name in other.nodes
        }

    def default_partition(self) -> state.Partition | None:
        """The partition of jobs that name none."""
        return next((partition for partition in self.partitions.values() if partition.default), None)
