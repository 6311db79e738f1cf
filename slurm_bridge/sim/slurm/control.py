"""Controls the pocket Slurm in tests: the actions of administrators, failures of machines and of slurmctld."""

import dataclasses
import threading
from collections.abc import Callable

from slurm_bridge.runtime import clock as clocks
from slurm_bridge.sim.slurm import failures, node_updates, schedule, state
from slurm_bridge.sim.slurm.world import World


class Control:
    """All methods are thread-safe, and done when they return."""

    def __init__(self, world: World, lock: threading.RLock) -> None:
        self._world = world
        self._lock = lock
        self._recovered = threading.Event()
        self._unread: list[Callable[[], object]] = []
        self.outage: int | None = None

    # -- looking -----------------------------------------------------------------------------------------------------

    def job(self, job_id: int) -> state.SlurmJob:
        """The record of one job."""
        with self._lock:
            return self._world.jobs[job_id]

    def jobs(self) -> dict[int, state.SlurmJob]:
        """All records."""
        with self._lock:
            return dict(self._world.jobs)

    def node(self, name: str) -> state.Node:
        """The record of one node."""
        with self._lock:
            return self._world.nodes[name]

    # -- time --------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, and process what falls due."""
        clock = self._world.clock
        if not isinstance(clock, clocks.VirtualClock):
            raise TypeError("only a virtual clock can be moved")
        clock.advance(seconds)
        with self._lock:
            schedule.tick(self._world)

    def pause(self) -> None:
        """Start no job until `unpause`."""
        with self._lock:
            self._world.paused = True

    def unpause(self) -> None:
        """Schedule again."""
        with self._lock:
            self._world.paused = False
            self._world.dirty = True

    # -- jobs --------------------------------------------------------------------------------------------------------

    def hold(self, job_id: int) -> None:
        """An administrator holds a job, all of it."""
        for member in self._family(job_id):
            self._change(member, priority=0, reason="JobHeldAdmin", eligible=0.0)

    def release(self, job_id: int) -> None:
        """Release a held job."""
        for member in self._family(job_id):
            self._change(member, priority=1, reason=state.NO_REASON, eligible=self._world.now)

    def _family(self, job_id: int) -> list[int]:
        with self._lock:
            job = self._world.jobs[job_id]
            return [one.job_id for one in (self._world.family(job) if not job.offset else [job])]

    def prioritise(self, job_id: int, priority: int) -> None:
        """Give a job a higher or lower priority."""
        self._change(job_id, priority=priority)

    def rename(self, job_id: int, name: bytes) -> None:
        """Rename a job as its user may: slurmctld checks no byte of the name."""
        with self._lock:
            text = name.decode("utf-8", "surrogateescape")
            self._change(job_id, ask=dataclasses.replace(self._world.jobs[job_id].ask, name=text))

    def end(self, job_id: int, word: str = "COMPLETED", reason: str = state.NO_REASON) -> None:
        """End a job in any way."""
        with self._lock:
            self._world.end(self._world.jobs[job_id], word, reason=reason)

    def show(self, job_id: int, *words: str) -> None:
        """Show a job in these words, whatever its state is; without words as it is."""
        self._change(job_id, shown=words)

    def preempt(self, job_id: int) -> None:
        """Preempt a job for another one."""
        self.end(job_id, "PREEMPTED")

    def suspend(self, job_id: int) -> None:
        """Suspend a job; it keeps its nodes, which are signalled and do not answer."""
        self._change(job_id, state=state.SUSPENDED)
        grant = self.job(job_id).grant
        if grant is not None and self._world.config.poison_on_signal:
            for name in grant.nodes:
                self.poison(name)

    def resume_job(self, job_id: int) -> None:
        """Resume a suspended job."""
        self._change(job_id, state=state.RUNNING)

    def _change(self, job_id: int, **changes: object) -> None:
        with self._lock:
            self._world.put(dataclasses.replace(self._world.jobs[job_id], **changes))  # type: ignore[arg-type]

    # -- machines ----------------------------------------------------------------------------------------------------

    def fail_node(self, name: str, reason: str = "Not responding") -> None:
        """Fail a machine; its jobs end as NODE_FAIL."""
        with self._lock:
            node_updates.change(self._world, name, ["DOWN"], reason)

    def drain(self, name: str, reason: str = "") -> None:
        """Drain a node: no new jobs."""
        with self._lock:
            node_updates.change(self._world, name, ["DRAIN"], reason)

    def resume(self, name: str) -> None:
        """Resume a node."""
        with self._lock:
            node_updates.change(self._world, name, ["RESUME"])

    def poison(self, name: str) -> None:
        """Make a node NOT_RESPONDING: no jobs until `reconfigure`."""
        with self._lock:
            self._world.put_node(dataclasses.replace(self._world.nodes[name], responding=False))

    def add_node(self, node: state.Node, *partitions: str) -> None:
        """Add a machine."""
        with self._lock:
            self._world.put_node(node)
            for name in partitions:
                found = self._world.partitions[name]
                self._world.partitions[name] = dataclasses.replace(found, nodes=(*found.nodes, node.name))

    def delete_node(self, name: str) -> None:
        """Delete a node from Slurm and its configuration; its jobs fail."""
        with self._lock:
            node_updates.fail_jobs(self._world, name)
            self._world.configured.pop(name, None)
            self._world.remove_node(name)

    def reconfigure(self) -> None:
        """`scontrol reconfigure`."""
        with self._lock:
            node_updates.read_again(self._world)

    def set_partition(self, name: str, **changes: object) -> None:
        """Change fields of a partition: state, maximum_minutes, exclusive."""
        with self._lock:
            found = dataclasses.replace(self._world.partitions[name], **changes)  # type: ignore[arg-type]
            self._world.partitions[name] = found
            self._world.dirty = True

    def reserve(self, reservation: state.Reservation) -> None:
        """Reserve nodes for some users."""
        with self._lock:
            self._world.reserve(reservation)

    def unreserve(self, name: str) -> None:
        """Delete a reservation."""
        with self._lock:
            self._world.unreserve(name)

    # -- slurmctld itself --------------------------------------------------------------------------------------------

    def crash(self, lose_seconds: float = 5.0) -> None:
        """kill -9, and a start from the last saved state: later jobs are lost, and their ids are issued again."""
        with self._lock:
            horizon = self._world.now - lose_seconds
            jobs = list(self._world.jobs.values())
            self._lose_nodes(horizon)
            lost = [job.job_id for job in jobs if job.submitted > horizon]
            kept = [self._placed(_as_of(job, horizon)) for job in jobs if job.submitted <= horizon]
            automatic = [job_id for job_id in lost if job_id < self._world.next_id]
            self._world.restart(kept, min([self._world.next_id, *automatic]))

    def _lose_nodes(self, horizon: float) -> None:
        """Nodes that were added after the last save are gone; external ones of the configuration are in service."""
        for node in list(self._world.nodes.values()):
            if node.dynamic and node.created > horizon:
                self._world.remove_node(node.name)
            elif node.external and not node.dynamic:
                self._world.put_node(dataclasses.replace(node, drain=False))

    def _placed(self, job: state.SlurmJob) -> state.SlurmJob:
        """A job that the saved state has on a node deleted since has failed.

        So has a job that requires such a node, running or not; a job that excludes it goes on.
        """
        if not job.running or job.grant is None:
            return job
        if self._world.nodes.keys() >= {*job.grant.nodes, *job.ask.required}:
            return job
        return dataclasses.replace(job, state="NODE_FAIL", ended=self._world.now, reason="NodeDown")

    def hang(self) -> None:
        """slurmctld accepts calls and never answers."""
        self._recovered.clear()
        self.outage = failures.HUNG

    def down(self) -> None:
        """slurmctld is down."""
        self._unread.clear()
        self._recovered.clear()
        self.outage = failures.DOWN

    def up(self) -> None:
        """slurmctld is back, and processes what it was sent while it hung."""
        with self._lock:
            for call in self._unread:
                call()
            self._unread.clear()
            self.outage = None
        self._recovered.set()

    def remember(self, call: Callable[[], object]) -> None:
        """Something that a hung slurmctld will do later; one that is killed never does."""
        with self._lock:
            self._unread.append(call)

    def linger(self, seconds: float) -> None:
        """The time slurmrestd waits for slurmctld; cut short by `up`."""
        self._recovered.wait(seconds)


def _as_of(job: state.SlurmJob, horizon: float) -> state.SlurmJob:
    """The job as it was at that time; what it did afterwards is undone."""
    if job.over and job.ended > horizon:
        running = job.grant is not None
        job = dataclasses.replace(
            job, state=state.RUNNING if running else state.PENDING, ended=0.0, reason=state.NO_REASON, failed_node=""
        )
    if job.started > horizon:
        job = dataclasses.replace(job, state=state.PENDING, started=0.0, grant=None)
    return job
