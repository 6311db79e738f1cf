"""The test's hand on the pocket Slurm: what administrators, machines and bad luck do to a real one."""

import dataclasses
import threading
from collections.abc import Callable

from slurm_bridge.runtime import clock as clocks
from slurm_bridge.sim.slurm import failures, nodework, schedule, state
from slurm_bridge.sim.slurm.world import World


class Control:
    """All verbs are safe to call from any thread, and done when they return."""

    def __init__(self, world: World, lock: threading.RLock) -> None:
        self._world = world
        self._lock = lock
        self._recovered = threading.Event()
        self._unread: list[Callable[[], object]] = []
        self.outage: int | None = None

    # -- looking -----------------------------------------------------------------------------------------------------

    def job(self, job_id: int) -> state.Job:
        """The record of one job."""
        with self._lock:
            return self._world.jobs[job_id]

    def jobs(self) -> dict[int, state.Job]:
        """All records."""
        with self._lock:
            return dict(self._world.jobs)

    def node(self, name: str) -> state.Node:
        """The record of one node."""
        with self._lock:
            return self._world.nodes[name]

    # -- time --------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, and what it brings happen."""
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
        """Let a held job go."""
        for member in self._family(job_id):
            self._change(member, priority=1, reason=state.NO_REASON, eligible=self._world.now)

    def _family(self, job_id: int) -> list[int]:
        with self._lock:
            job = self._world.jobs[job_id]
            return [one.job_id for one in (self._world.family(job) if not job.offset else [job])]

    def prioritise(self, job_id: int, priority: int) -> None:
        """Put a job before or behind others."""
        self._change(job_id, priority=priority)

    def rename(self, job_id: int, name: bytes) -> None:
        """A user gives a job any name: slurmctld looks at no byte of it."""
        with self._lock:
            text = name.decode("utf-8", "surrogateescape")
            self._change(job_id, ask=dataclasses.replace(self._world.jobs[job_id].ask, name=text))

    def end(self, job_id: int, word: str = "COMPLETED", reason: str = state.NO_REASON) -> None:
        """End a job in any way."""
        with self._lock:
            self._world.end(self._world.jobs[job_id], word, reason=reason)

    def preempt(self, job_id: int) -> None:
        """Somebody more important takes the nodes."""
        self.end(job_id, "PREEMPTED")

    def suspend(self, job_id: int) -> None:
        """An administrator suspends a job; it keeps its nodes, which are told and do not answer."""
        self._change(job_id, state=state.SUSPENDED)
        grant = self.job(job_id).grant
        if grant is not None and self._world.config.poison_on_signal:
            for name in grant.nodes:
                self.poison(name)

    def resume_job(self, job_id: int) -> None:
        """A suspended job runs on."""
        self._change(job_id, state=state.RUNNING)

    def _change(self, job_id: int, **changes: object) -> None:
        with self._lock:
            self._world.put(dataclasses.replace(self._world.jobs[job_id], **changes))  # type: ignore[arg-type]

    # -- machines ----------------------------------------------------------------------------------------------------

    def fail_node(self, name: str, reason: str = "Not responding") -> None:
        """The machine is dead; jobs there end as NODE_FAIL."""
        with self._lock:
            nodework.change(self._world, name, ["DOWN"], reason)

    def drain(self, name: str, reason: str = "") -> None:
        """No new jobs here."""
        with self._lock:
            nodework.change(self._world, name, ["DRAIN"], reason)

    def resume(self, name: str) -> None:
        """The node takes jobs again."""
        with self._lock:
            nodework.change(self._world, name, ["RESUME"])

    def poison(self, name: str) -> None:
        """NOT_RESPONDING: no jobs until `reconfigure`."""
        with self._lock:
            self._world.put_node(dataclasses.replace(self._world.nodes[name], responding=False))

    def add_node(self, node: state.Node, *partitions: str) -> None:
        """A new machine."""
        with self._lock:
            self._world.put_node(node)
            for name in partitions:
                found = self._world.partitions[name]
                self._world.partitions[name] = dataclasses.replace(found, nodes=(*found.nodes, node.name))

    def delete_node(self, name: str) -> None:
        """The machine is gone from Slurm and from its configuration; its jobs fail."""
        with self._lock:
            nodework.fail_jobs(self._world, name)
            self._world.configured.pop(name, None)
            self._world.remove_node(name)

    def reconfigure(self) -> None:
        """`scontrol reconfigure`."""
        with self._lock:
            nodework.read_again(self._world)

    def set_partition(self, name: str, **changes: object) -> None:
        """Change fields of a partition: state, maximum_minutes, exclusive."""
        with self._lock:
            found = dataclasses.replace(self._world.partitions[name], **changes)  # type: ignore[arg-type]
            self._world.partitions[name] = found
            self._world.dirty = True

    def reserve(self, reservation: state.Reservation) -> None:
        """Keep nodes for some users."""
        with self._lock:
            self._world.reserve(reservation)

    def unreserve(self, name: str) -> None:
        """Give them back."""
        with self._lock:
            self._world.unreserve(name)

    # -- slurmctld itself --------------------------------------------------------------------------------------------

    def crash(self, lose_seconds: float = 5.0) -> None:
        """kill -9 and start again from the last saved state: younger jobs never were, and their ids come again."""
        with self._lock:
            horizon = self._world.now - lose_seconds
            jobs = list(self._world.jobs.values())
            lost = [job.job_id for job in jobs if job.submitted > horizon]
            kept = [self._placed(_as_of(job, horizon)) for job in jobs if job.submitted <= horizon]
            automatic = [job_id for job_id in lost if job_id < self._world.next_id]
            self._world.restart(kept, min([self._world.next_id, *automatic]))

    def _placed(self, job: state.Job) -> state.Job:
        """A job that is remembered to run on a node which has left since has failed with it.

        So has one that requires such a node, whether it runs there or not; one that excludes it runs on.
        """
        if not job.running or job.grant is None:
            return job
        if self._world.nodes.keys() >= {*job.grant.nodes, *job.ask.required}:
            return job
        return dataclasses.replace(job, state="NODE_FAIL", ended=self._world.now, reason="NodeDown")

    def hang(self) -> None:
        """slurmctld takes calls and never answers."""
        self._recovered.clear()
        self.outage = failures.HUNG

    def down(self) -> None:
        """slurmctld is not there."""
        self._unread.clear()
        self._recovered.clear()
        self.outage = failures.DOWN

    def up(self) -> None:
        """It is back, and reads what it was sent while it hung."""
        with self._lock:
            for call in self._unread:
                call()
            self._unread.clear()
            self.outage = None
        self._recovered.set()

    def remember(self, call: Callable[[], object]) -> None:
        """Something that a hung slurmctld will do when it wakes up; one that is killed never does."""
        with self._lock:
            self._unread.append(call)

    def linger(self, seconds: float) -> None:
        """What slurmrestd does before it gives up on slurmctld; cut short by `up`."""
        self._recovered.wait(seconds)


def _as_of(job: state.Job, horizon: float) -> state.Job:
    """The job as it was then: what it did afterwards is undone."""
    if job.over and job.ended > horizon:
        running = job.grant is not None
        job = dataclasses.replace(
            job, state=state.RUNNING if running else state.PENDING, ended=0.0, reason=state.NO_REASON, failed_node=""
        )
    if job.started > horizon:
        job = dataclasses.replace(job, state=state.PENDING, started=0.0, grant=None)
    return job
