"""From nodes that Slurm allocated to pods that are bound there.

    1 read     the job: is it still this workload's, running, and of what was asked?
    2 place    pods onto its nodes, always the same way; those of a gang by what the job holds of each node
    3 check    each node exists, is usable, and has room for all that is there, pods whose job has ended among them
    4 bind     with the uid and version that were checked, the job id and the node's name in the same write

What cannot be bound gives its nodes back: the job is cancelled and the next attempt avoids the node. Once a part of a
gang is bound nothing is given back here: the rest is tried again, until the ganger has all of it undone.
"""

import dataclasses
import threading

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import job_users, resizing, slots
from slurm_bridge.scheduler.checking import PATIENCE, VACATED_LOOK, Checker, Misfit, Occupied, Remains, Spot
from slurm_bridge.scheduler.keeping import Warden
from slurm_bridge.scheduler.members import Crew, Standing
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer
from slurm_bridge.translate import resources

#: A pod that changed under our hands, or whose binding was not answered: its next event says more, or this does.
LOOK_AGAIN = 2.0
#: How old a reading of a job may be when its pods are bound by it, in seconds.
FRESH = 3.0
#: A watch that has not told of a binding for this long is not waited for any more.
ECHO = 30.0


class Binder:
    """The steps BIND and JOIN."""

    def __init__(
        self, tools: Tools, replacer: Replacer, warden: Warden, users: job_users.JobUsers, remains: Remains
    ) -> None:
        self._tools, self._replacer, self._warden, self._users = tools, replacer, warden, users
        self.checker = Checker(tools, remains)
        self._placing = threading.Lock()
        #: Pods that count on their nodes since they were placed, and that nobody has tried to bind since.
        self._claimed: set[str] = set()

    def awaited(self, crew: Crew) -> float | None:
        """How long to wait for the watch to tell which pods are bound; None when nothing of the kind is awaited."""
        state = self._tools.states.get(crew.root.key)
        if state is None or not state.sent:
            return None
        now = self._tools.clock.now()
        still = {pod.uid for pod in crew.pods(Standing.WANTING)}
        waits = any(since + ECHO > now for uid, since in list(state.sent.items()) if uid in still)
        return LOOK_AGAIN if waits else None

    def arrived(self, uid: WorkloadKey, pod_uid: str) -> None:
        """The watch has told."""
        state = self._tools.states.get(uid)
        if state is not None:
            state.sent.pop(pod_uid, None)

    def bind(self, wish: Wish, placeholder: Placeholder) -> Filed:
        """Give the pods of this workload their nodes, or the nodes back."""
        read = self._running(wish, placeholder)
        if isinstance(read, Filed):
            return read
        if not read.owner.request.startswith(f"{wish.intent}:"):
            return self._replacer.replace(read, "the pods changed before they were bound")
        wish = dataclasses.replace(wish, workload=slots.those_who_came_first(wish.workload, read.owner))
        # Whoever goes on with a start that was interrupted can tell by this who belongs to it.
        renamed = self._warden.rename(wish, read)
        if renamed is not None:
            return renamed
        spots, problem = self._place(wish, read)
        if isinstance(spots, Misfit):
            # One reading of what the job holds may be garbled.
            again = self._tools.mirror.look(read.job_id, read.owner, tell=False)
            if again is None or again.phase is not Phase.RUNNING:
                return AT_ONCE
            spots, problem = self._place(wish, again)
        if isinstance(spots, Misfit):
            return self._give_back(wish, read, spots)
        return self._bind_all(wish, spots, read) if problem is None else self._not_now(wish, read, problem)

    def join(self, wish: Wish, crew: Crew, placeholder: Placeholder) -> Filed:
        """Give those who want nodes what the job has left for them."""
        read = self._running(wish, placeholder)
        if isinstance(read, Filed):
            return read
        everybody = wish.workload
        wish = dataclasses.replace(wish, workload=slots.as_many_as_fit(everybody, crew, read))
        spots, problem = self._place(wish, read)
        if isinstance(spots, Misfit) and not crew.on(read.job_id):
            return self._give_back(wish, read, spots)
        if isinstance(spots, Misfit):
            text = f"Slurm job {read.job_id} has no place left for this pod: {spots.message}"
            return self._later(everybody, "GangFull", text, ECHO)
        if problem is not None:
            return self._later(everybody, problem.reason, problem.message, VACATED_LOOK)
        if not spots:
            text = f"Slurm job {read.job_id} has no place left for this pod; it takes the place of one that leaves"
            return self._later(everybody, "GangFull", text, None)
        return self._bind_all(wish, spots, read)

    def _later(self, workload: Workload, reason: str, message: str, after: float | None) -> Filed:
        self._tools.say(workload, reason, message)
        return Filed(after=after)

    def _running(self, wish: Wish, placeholder: Placeholder) -> Placeholder | Filed:
        """The job in full, read since it started and not long ago: what it held then may be another's now."""
        if self._tools.mirror.failing:
            # Nobody knows what Slurm has done since; its next answer wakes everybody who waits for it.
            return self._replacer.back_off(wish.workload.root.key)
        at = placeholder.read
        fresh = at is not None and at >= placeholder.since and self._tools.clock.now() - at <= FRESH
        look = self._tools.mirror.look
        read = placeholder if fresh else look(placeholder.job_id, placeholder.owner, tell=False)
        if read is None or not (fresh or read.phase is Phase.RUNNING):
            return AT_ONCE
        return self._users.refuse(wish, read) if job_users.improper(read) else read

    def _place(self, wish: Wish, read: Placeholder) -> tuple[tuple[Spot, ...] | Misfit, Misfit | Wait | None]:
        """Where each pod that wants a node comes, and what is wrong with that; where nothing is, they count there.

        One at a time: of two that are bound at the same moment the second has to see the first.
        """
        with self._placing:
            snapshot = self._tools.keeper.snapshot()
            spots = self._spots(wish, read, snapshot)
            if isinstance(spots, Misfit):
                return spots, None
            problem = self.checker.problem(wish.workload, spots, snapshot, whole=_shares_no_node(wish, read, snapshot))
            if problem is None:
                self._claim(spots)
            return spots, problem

    def _claim(self, spots: tuple[Spot, ...]) -> None:
        for spot in spots:
            if not self._tools.keeper.holds(spot.pod.uid, spot.node.name):
                self._claimed.add(spot.pod.uid)
            self._assume(spot)

    def _unclaim(self, spots: tuple[Spot, ...]) -> None:
        """Of those that nobody tried to bind nothing is to be counted."""
        for uid in sorted(self._claimed.intersection(spot.pod.uid for spot in spots)):
            self._claimed.discard(uid)
            self._tools.keeper.forget(uid)

    def _assume(self, spot: Spot) -> None:
        self._tools.keeper.assume(spot.pod.uid, spot.node.name, resources.requests_of(spot.pod), spot.pod)

    def _spots(self, wish: Wish, read: Placeholder, snapshot: ClusterSnapshot) -> tuple[Spot, ...] | Misfit:
        """Where each pod that wants a node comes."""
        placed = slots.placed(wish, read, self._tools)
        if isinstance(placed, Reject):
            return Misfit(reason=placed.reason, message=placed.message)
        spots = []
        for pod in wish.workload.pods:
            if pod.bound:
                continue
            slurm_name = placed[pod.uid]
            node = snapshot.by_slurm_name(slurm_name)
            if node is None:
                text = f"Slurm allocated node {slurm_name}, which is no node of this Kubernetes cluster"
                return Misfit(reason="NodeUnknown", message=text, nodes=(slurm_name,))
            spots.append(Spot(pod=pod, slurm_name=slurm_name, node=node))
        return tuple(spots)

    def _not_now(self, wish: Wish, read: Placeholder, problem: Misfit | Wait) -> Filed:
        if isinstance(problem, Misfit):
            return self._give_back(wish, read, problem)
        now = self._tools.clock.now()
        patience, nodes = (problem.patience, problem.nodes) if isinstance(problem, Occupied) else (PATIENCE, ())
        leadership = self._tools.states.of(wish.workload.root.key).leadership
        if leadership.occupied_since is None:
            leadership.occupied_since = now
        left = leadership.occupied_since + patience - now
        if left <= 0:
            return self._give_back(wish, read, Misfit(reason=problem.reason, message=problem.message, nodes=nodes))
        self._tools.say(wish.workload, problem.reason, problem.message)
        return Filed(after=left if problem.retry_after is None else min(left, problem.retry_after))

    def _give_back(self, wish: Wish, read: Placeholder, misfit: Misfit) -> Filed:
        """The nodes go back to Slurm; the next attempt is told to avoid the one that is to blame."""
        tools, uid = self._tools, wish.workload.root.key
        self._tools.states.of(uid).leadership.occupied_since = None
        text = f"{misfit.message}; Slurm job {read.job_id} is given back"
        tools.voice.group(wish.workload, misfit.reason, text, warning=True)
        tools.say(wish.workload, misfit.reason, text)
        tools.tally.attempt("unschedulable")
        for node in misfit.nodes:
            tools.avoided.add(uid, node, misfit.message, tools.clock.now())
        tools.refresh_facts()
        pause = self._replacer.back_off(uid)
        if tools.avoided.tries(uid) > tools.limits.bind_tries:
            pause = Filed(after=tools.limits.backoff_most)
        replaced = self._replacer.replace(read, misfit.message)
        return pause if replaced is AT_ONCE else replaced

    def _bind_all(self, wish: Wish, spots: tuple[Spot, ...], read: Placeholder) -> Filed:
        """In rank order: the first alone, for one that changed stops the whole while none is bound; then all others."""
        uid = wish.workload.root.key
        self._quiet(uid, spots)
        try:
            first = self._bind(uid, spots[0], read)
            others = self._tools.each(lambda spot: self._bind(uid, spot, read), spots[1:]) if first else []
        finally:
            self._unclaim(spots)
        if len(others) + 1 < len(spots) or not first or not all(others):
            return Filed(after=LOOK_AGAIN)
        self._tools.states.of(uid).leadership.occupied_since = None
        self._tools.avoided.success(uid)
        self._tools.tally.attempt("scheduled")
        self._say_bound(wish.workload, spots, read)
        return WOKEN

    def _quiet(self, uid: WorkloadKey, spots: tuple[Spot, ...]) -> None:
        """What is still to be written of their waiting would only change the pods under our hands."""
        for one in (uid, *(spot.pod.uid for spot in spots)):
            self._tools.voice.forget(one)

    def _say_bound(self, workload: Workload, spots: tuple[Spot, ...], read: Placeholder) -> None:
        if workload.gang is None:
            spot = spots[0]
            self._tools.voice.event(spot.pod, "Scheduled", f"bound to {spot.node.name} by Slurm job {read.job_id}")
            return
        nodes = {spot.node.name for spot in spots}
        where = next(iter(nodes)) if len(nodes) == 1 else f"{len(nodes)} nodes"
        self._tools.voice.group(workload, "Scheduled", f"{len(spots)} pods bound to {where} by Slurm job {read.job_id}")
        if len(workload.pods) >= workload.gang.minimum:
            self._tools.voice.scheduled(workload)

    def _bind(self, uid: WorkloadKey, spot: Spot, read: Placeholder) -> bool:
        """An answer that was lost leaves the assumption: the pod may be there, and nobody may count on its place."""
        tools, pod = self._tools, spot.pod
        self._claimed.discard(pod.uid)
        self._assume(spot)
        try:
            tools.cluster.bind(_binding(spot, read))
        except errors.Disagreement as problem:
            self._disagreed(pod, problem)
            return False
        except (errors.Unavailable, errors.NotLeading):
            tools.keeper.forget(pod.uid)
            raise
        tools.states.of(uid).sent[pod.uid] = tools.clock.now()
        tools.tally.bound(pod, tools.clock.now() - read.since)
        return True

    def _disagreed(self, pod: Pod, problem: errors.Disagreement) -> None:
        """It changed meanwhile, is gone, or was bound by a try whose answer was lost: only a look can tell."""
        logger.bind(workload="/".join(pod.key)).info("not bound: {}", problem)
        now = self._tools.cluster.get(kinds.PODS, *pod.key)
        if now is None or now.uid != pod.uid or not now.bound:
            self._tools.keeper.forget(pod.uid)


def _shares_no_node(wish: Wish, read: Placeholder, snapshot: ClusterSnapshot) -> bool:
    """Slurm gives the job whole nodes, because of what was asked for or of its partition."""
    partition = read.view.partition if read.view is not None else ""
    exclusive = any(one.exclusive for one in snapshot.partitions if one.name == partition)
    return wish.translated.request.exclusive or exclusive


def _binding(spot: Spot, read: Placeholder) -> ports.Binding:
    meta = spot.pod.metadata
    return ports.Binding(
        namespace=meta.namespace,
        pod=meta.name,
        uid=meta.uid,
        node=spot.node.name,
        resource_version=meta.resource_version,
        annotations={
            names.ANNOTATION_SLURM_NODE: spot.slurm_name,
            names.ANNOTATION_BOUND_BY: read.owner.cluster,
            names.ANNOTATION_COUNTED: resizing.written(spot.pod),
        },
        labels={names.LABEL_JOB_ID: str(read.job_id)},
    )
