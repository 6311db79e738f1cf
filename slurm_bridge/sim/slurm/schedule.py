"""One pass of the scheduler: limits, then every pending job in order of priority, then backfill.

reason               when
-------------------  ------------------------------------------------------------
JobHeldUser/Admin    priority 0 (set elsewhere, kept here)
BeginTime            its begin time is in the future
PartitionDown        the partition starts no jobs; PartitionInactive likewise
PartitionTimeLimit   requests more time than the partition allows: waits for ever
PartitionNodeLimit   requests more nodes than the partition has
ReqNodeNotAvail      a required node is down, drained or reserved for others
Licenses             fits, but licenses are used up
Resources            the first job of its partition that does not fit
Priority             behind such a job, and would delay it
"""

import dataclasses
from collections.abc import Sequence

from slurm_bridge.sim.slurm import lookahead, prospects, select, state
from slurm_bridge.sim.slurm.world import World

_UNAVAILABLE = "ReqNodeNotAvail, May be reserved for other job"

#: The reason given at submit stands this long before the scheduler sets its own.
_FRESH_SECONDS = 1.0

#: The reasons of jobs that may start because time has passed.
_AGEING = ("BeginTime", "PartitionConfig", "ReqNodeNotAvail")

_HOPELESS = {
    prospects.Outlook.NEVER: ("BadConstraints", ""),
    prospects.Outlook.TOO_LARGE: ("PartitionConfig", ""),
    prospects.Outlook.STRANDED: ("ReqNodeNotAvail", _UNAVAILABLE),
}


def tick(world: World) -> None:
    """Everything that is due by now."""
    _finish_configuring(world)
    for job in list(world.expired()):
        world.end(job, "TIMEOUT", reason="TimeLimit")
    _close_reservations(world)
    world.forget_old()
    if not world.paused:
        world.last_pass = world.now
        # Jobs become eligible and reservations begin at certain times; checking once a second is enough.
        late = world.now >= world.last_look + _FRESH_SECONDS
        if world.dirty or (late and any(world.jobs[job_id].reason in _AGEING for job_id in world.pending)):
            world.dirty = False
            world.last_look = world.now
            SchedulingPass(world).run()


def start_now(world: World, job: state.SlurmJob) -> bool:
    """Start this job at once if no job waits before it and it fits."""
    if world.paused or any(not world.jobs[other].held for other in world.pending if other != job.job_id):
        return False
    SchedulingPass(world).consider(job)
    return world.jobs[job.job_id].running


class SchedulingPass:
    """One pass over the whole queue, and what it remembers on the way."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._grounds: dict[tuple[str, str], list[state.Node]] = {}
        self._hopeless: set[object] = set()
        self._outlooks: dict[object, prospects.Outlook] = {}
        self._blocked: set[str] = set()
        self._plans: dict[int, state.StartPlan] = {}

    def run(self) -> None:
        """Consider every pending job, the highest priority first."""
        world = self._world
        waiting = [world.jobs[job_id] for job_id in world.pending]
        for job in sorted(waiting, key=lambda job: (-job.priority, job.submitted, job.job_id)):
            if job.leader == job.job_id or not (job.held or job.leader):
                self.consider(job)
        world.plans = self._plans

    def consider(self, job: state.SlurmJob) -> None:
        """Start the job, or set its reason."""
        if job.components:
            self._together(job)
            return
        obstacle = self._obstacle(job)
        if obstacle is not None:
            self._world.explain(job, *obstacle)
        else:
            self._alone(job)

    def _alone(self, job: state.SlurmJob) -> None:
        key = job.ask.shape
        grant = None if key in self._hopeless else self._find(job)
        if grant is None:
            self._hopeless.add(key)
            self._wait(job)
        elif not self._licensed(job):
            self._world.explain(job, "Licenses")
        else:
            self._start(job, grant)

    def _together(self, leader: state.SlurmJob) -> None:
        """Start all components or none; components that wait only for others get that reason.

        One cancelled component keeps the rest waiting for ever.
        """
        family = [job for job in self._world.family(leader) if job.pending]
        kept_back = any(job.held or self._obstacle(job) is not None for job in family)
        found = [] if kept_back else self._apart(family)
        if found and len(found) == len(leader.components):
            for job, grant in zip(family, found, strict=True):
                self._start(job, grant)
            return
        for job in family:
            if not job.held:
                self._world.explain(job, *(self._obstacle(job) or ("Resources", "")))

    def _apart(self, family: Sequence[state.SlurmJob]) -> list[state.Grant]:
        """Nodes for each component, apart from those of the others; none if one component finds none."""
        used: tuple[str, ...] = ()
        found = []
        for job in family:
            apart = dataclasses.replace(job, ask=dataclasses.replace(job.ask, excluded=job.ask.excluded + used))
            grant = self._find(apart)
            if grant is None:
                return []
            used += grant.nodes
            found.append(grant)
        return found

    def _start(self, job: state.SlurmJob, grant: state.Grant) -> None:
        self._world.start(job, grant)
        full = {name for name in grant.nodes if not self._world.free[name].cpus}
        if full:
            for nodes in self._grounds.values():
                nodes[:] = [node for node in nodes if node.name not in full]

    def _wait(self, job: state.SlurmJob) -> None:
        key = job.ask.shape
        if key not in self._outlooks:
            self._outlooks[key] = prospects.best(self._world, job.ask)
        outlook = self._outlooks[key]
        if outlook is not prospects.Outlook.GOOD:  # so no job waits behind it
            self._world.explain(job, *_HOPELESS[outlook])
            return
        behind = any(name in self._blocked for name in job.ask.partitions)
        self._world.explain(job, "Priority" if behind else "Resources")
        self._blocked.update(job.ask.partitions)
        if self._world.config.backfill and len(self._plans) < self._world.config.backfill_depth:
            plan = lookahead.plan(self._world, job, [self._ground(job, name) for name in job.ask.partitions])
            if plan is not None:
                self._plans[job.job_id] = plan

    def _find(self, job: state.SlurmJob) -> state.Grant | None:
        for name in job.ask.partitions:
            if _partition_obstacle(job, self._world.partitions.get(name)) is not None:
                continue
            grant = select.choose(job.ask, self._ground(job, name))
            if grant is not None and self._respects_plans(job, grant):
                return grant
        return None

    def _respects_plans(self, job: state.SlurmJob, grant: state.Grant) -> bool:
        """A later job may start first only if the planned jobs do not need its nodes, or it ends before they do."""
        end = float("inf") if job.ask.minutes is None else self._world.now + job.ask.minutes * 60
        return all(end <= plan.start or not set(plan.nodes) & set(grant.nodes) for plan in self._plans.values())

    def _ground(self, job: state.SlurmJob, name: str) -> select.NodeChoice:
        partition = self._world.partitions[name]
        key = (name, job.ask.reservation)
        if key not in self._grounds:
            self._grounds[key] = usable(self._world, partition, job)
        return select.NodeChoice(nodes=self._grounds[key], free=self._world.free, partition=partition)

    def _licensed(self, job: state.SlurmJob) -> bool:
        world = self._world
        return all(
            world.licenses.get(name, 0) - world.licenses_used[name] >= count for name, count in job.ask.licenses.items()
        )

    def _obstacle(self, job: state.SlurmJob) -> tuple[str, str] | None:
        """An obstacle that free resources would not remove: reason and description."""
        if job.ask.begin > self._world.now:
            return "BeginTime", ""
        reasons = [_partition_obstacle(job, self._world.partitions.get(name)) for name in job.ask.partitions]
        if None not in reasons:
            fresh = job.reason == "PartitionConfig" and self._world.now < job.submitted + _FRESH_SECONDS
            return (job.reason if fresh else reasons[0] or ""), ""
        ask = job.ask
        if not ask.required or ask.candidates:
            return None
        nodes = [self._world.nodes.get(name) for name in ask.required]
        closed = self._world.closed_nodes(ask.reservation)
        if all(node is not None and node.usable and node.name not in closed for node in nodes):
            return None
        return "ReqNodeNotAvail", _UNAVAILABLE


def usable(world: World, partition: state.Partition, job: state.SlurmJob) -> list[state.Node]:
    """The nodes of a partition on which this job may start."""
    closed = world.closed_nodes(job.ask.reservation)
    nodes = [world.nodes[name] for name in partition.nodes if name in world.nodes and name not in closed]
    reservation = world.reservations.get(job.ask.reservation)
    if reservation is not None and "FLEX" not in reservation.flags:
        nodes = [node for node in nodes if node.name in reservation.nodes]
    return [node for node in nodes if node.usable and world.free[node.name].cpus > 0]


def _partition_obstacle(job: state.SlurmJob, partition: state.Partition | None) -> str | None:
    if partition is None or not partition.starts_jobs:
        return "PartitionDown" if partition is None or partition.state == "DOWN" else "PartitionInactive"
    limit = partition.maximum_minutes
    if limit is not None and (job.ask.minutes is None or job.ask.minutes > limit):
        return "PartitionTimeLimit"
    return "PartitionNodeLimit" if job.ask.minimum_nodes > len(partition.nodes) else None


def _finish_configuring(world: World) -> None:
    seconds = world.config.configuring_seconds
    ready: Sequence[state.SlurmJob] = [
        job
        for job in (world.jobs[job_id] for job_id in (world.running if seconds else ()))
        if job.configuring and job.started + seconds <= world.now
    ]
    for job in ready:
        world.put(dataclasses.replace(job, configuring=False))


def _close_reservations(world: World) -> None:
    """Remove a reservation that is over and, unless it was a flexible one, end its jobs.

    Jobs that wait for it go on waiting without it, and are held unless it says otherwise.
    """
    over = [reservation for reservation in world.reservations.values() if reservation.end <= world.now]
    for reservation in over:
        world.unreserve(reservation.name)
        for job in [world.jobs[job_id] for job_id in world.pending]:
            if job.ask.reservation == reservation.name:
                left = dataclasses.replace(job, ask=dataclasses.replace(job.ask, reservation=""))
                if "NO_HOLD_JOBS_AFTER_END" not in reservation.flags:
                    left = dataclasses.replace(left, priority=0, reason=state.RESERVATION_DELETED)
                world.put(left)
        if "FLEX" not in reservation.flags:
            running = [world.jobs[job_id] for job_id in world.running]
            for job in running:
                if job.ask.reservation == reservation.name:
                    world.end(job, "TIMEOUT", reason="TimeLimit")
