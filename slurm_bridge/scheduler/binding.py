"""From nodes that Slurm allocated to pods that are bound there.

    1 read     the job: is it still this workload's, running, and of what was asked?
    2 place    pods onto its nodes, always the same way; those of a gang by what the job holds of each node
    3 check    each node exists, is usable, has room for all that is there, and is free of pods whose job has ended
    4 bind     with the uid and version that were checked, the job id and the node's name in the same write

What cannot be bound gives its nodes back: the job is cancelled and the next attempt avoids the node. Once a part of a
gang is bound nothing is given back here: the rest is tried again, until the ganger has all of it undone.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.hooks.base import Deny
from slurm_bridge.hooks.snapshot import ClusterSnapshot, NodeFacts, fits
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import slots
from slurm_bridge.scheduler.members import Crew, Standing
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.submitting import Submitter
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.wish import Wish
from slurm_bridge.translate import resources

#: A pod that changed under our hands, or whose binding was not answered: its next event says more, or this does.
LOOK_AGAIN = 2.0
#: How old a reading of a job may be when its pods are bound by it, in seconds.
FRESH = 3.0
#: A watch that has not told of a binding for this long is not waited for any more.
ECHO = 30.0
#: A pod that leaves its node wakes those who wait for that; one whose job holds the node again does not.
VACATED_LOOK = 5.0
#: How many seconds an allocation is kept waiting for the remains of earlier pods on its node.
PATIENCE = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A pod and the node for it, under both of its names."""

    pod: Pod
    slurm_name: str
    node: NodeFacts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Why an allocation is of no use. `nodes` are what to avoid from now on, none when no node is to blame."""

    reason: str
    message: str
    nodes: tuple[str, ...] = ()


#: Pods on a node whose own job has ended already.
Remains = Callable[[str], tuple[Pod, ...]]


class Binder:
    """The steps BIND and JOIN."""

    def __init__(self, tools: Tools, submitter: Submitter, remains: Remains) -> None:
        self._tools, self._submitter, self._remains = tools, submitter, remains
        #: Since when a workload waits for others to leave its node, and which workloads wait for which node.
        self._since: dict[str, float] = {}
        self._for_node: dict[str, set[str]] = {}
        #: By workload: pods that were bound, and of which no watch has told yet.
        self._sent: dict[str, dict[str, float]] = {}

    def forget(self, uid: str) -> None:
        """The workload is over."""
        self._since.pop(uid, None)
        self._sent.pop(uid, None)
        for waiting in list(self._for_node.values()):
            waiting.discard(uid)

    def begin(self) -> None:
        """A leadership begins."""
        self._since.clear()

    def awaited(self, crew: Crew) -> float | None:
        """How long to wait for the watch to tell which pods are bound; None when nothing of the kind is awaited."""
        sent = self._sent.get(crew.root.uid)
        if not sent:
            return None
        now = self._tools.clock.now()
        still = {pod.uid for pod in crew.pods(Standing.WANTING)}
        waits = any(since + ECHO > now for uid, since in list(sent.items()) if uid in still)
        return LOOK_AGAIN if waits else None

    def arrived(self, uid: str, pod_uid: str) -> None:
        """The watch has told."""
        sent = self._sent.get(uid)
        if sent is not None:
            sent.pop(pod_uid, None)

    def vacated(self, node: str) -> tuple[str, ...]:
        """A pod has left that node: the workloads that waited for that."""
        return tuple(self._for_node.pop(node, ()))

    def bind(self, wish: Wish, placeholder: Placeholder) -> Filed:
        """Give the pods of this workload their nodes, or the nodes back."""
        read = self._running(wish, placeholder)
        if isinstance(read, Filed):
            return read
        if not read.owner.request.startswith(f"{wish.intent}:"):
            return self._submitter.replace(read, "the pods changed before they were bound")
        wish = dataclasses.replace(wish, workload=slots.those_who_came_first(wish.workload, read.owner))
        # Whoever goes on with a start that was interrupted can tell by this who belongs to it.
        renamed = self._submitter.rename(wish, read)
        if renamed is not None:
            return renamed
        snapshot = self._tools.keeper.snapshot()
        spots = self._spots(wish, read, snapshot)
        if isinstance(spots, Misfit):
            return self._give_back(wish, read, spots)
        problem = self._problem(wish.workload, spots, snapshot)
        return self._bind_all(wish, spots, read) if problem is None else self._not_now(wish, read, problem)

    def join(self, wish: Wish, crew: Crew, placeholder: Placeholder) -> Filed:
        """Give those who want nodes what the job has left for them."""
        read = self._running(wish, placeholder)
        if isinstance(read, Filed):
            return read
        snapshot = self._tools.keeper.snapshot()
        some = slots.as_many_as_fit(wish.workload, crew, read)
        spots = self._spots(dataclasses.replace(wish, workload=some), read, snapshot)
        if isinstance(spots, Misfit):
            text = f"Slurm job {read.job_id} has no place left for this pod: {spots.message}"
            return self._later(wish.workload, "GangFull", text, ECHO)
        problem = self._problem(some, spots, snapshot)
        if problem is not None:
            return self._later(wish.workload, problem.reason, problem.message, VACATED_LOOK)
        if not spots:
            text = f"Slurm job {read.job_id} has no place left for this pod; it takes the place of one that leaves"
            return self._later(wish.workload, "GangFull", text, None)
        return self._bind_all(wish, spots, read)

    def _later(self, workload: Workload, reason: str, message: str, after: float | None) -> Filed:
        self._tools.say(workload, reason, message)
        return Filed(after=after)

    def _running(self, wish: Wish, placeholder: Placeholder) -> Placeholder | Filed:
        """The job in full, read since it started and not long ago: what it held then may be another's now."""
        if self._tools.mirror.failing:
            # Nobody knows what Slurm has done since; its next answer wakes everybody who waits for it.
            return self._submitter.back_off(wish.workload.root.uid)
        at = placeholder.read
        if at is not None and at >= placeholder.since and self._tools.clock.now() - at <= FRESH:
            return placeholder
        read = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        return read if read is not None and read.phase is Phase.RUNNING else AT_ONCE

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

    def _problem(self, workload: Workload, spots: tuple[Spot, ...], snapshot: ClusterSnapshot) -> Misfit | Wait | None:
        by_node: dict[str, list[Spot]] = {}
        for spot in spots:
            by_node.setdefault(spot.node.name, []).append(spot)
        checked = [self._check(workload.root.uid, there) for there in by_node.values()]
        problem = _together(one for one in checked if one is not None)
        if problem is not None:
            return problem
        verdict = self._tools.config.chain.verify(workload, {one.pod.uid: one.node.name for one in spots}, snapshot)
        if verdict is None or isinstance(verdict, Wait):
            return verdict
        if isinstance(verdict, Deny):
            return Misfit(reason="NodeDenied", message=verdict.message, nodes=tuple(sorted(verdict.nodes)))
        return Misfit(reason=verdict.reason, message=verdict.message)

    def _check(self, uid: str, spots: Sequence[Spot]) -> Misfit | Wait | None:
        """Whether one node can take all who are to come there."""
        node = spots[0].node
        left = self._remains(node.name)
        if left:
            self._for_node.setdefault(node.name, set()).add(uid)
            text = f"node {node.name} still runs pod {'/'.join(left[0].key)}, whose Slurm job does not hold it any more"
            return Wait(reason="NodeNotVacated", message=text, retry_after=VACATED_LOOK)
        # Who is counted there since an earlier try whose answer was lost must not be in his own way.
        new = [spot.pod for spot in spots if not self._tools.keeper.holds(spot.pod.uid, node.name)]
        why = fits(node, _sum(new)) if new else None
        if why is not None:
            return Misfit(reason="NodeFull", message=f"node {node.name} has no room: {why}", nodes=(node.name,))
        return None

    def _not_now(self, wish: Wish, read: Placeholder, problem: Misfit | Wait) -> Filed:
        if isinstance(problem, Misfit):
            return self._give_back(wish, read, problem)
        now = self._tools.clock.now()
        left = self._since.setdefault(wish.workload.root.uid, now) + PATIENCE - now
        if left <= 0:
            return self._give_back(wish, read, Misfit(reason=problem.reason, message=problem.message))
        self._tools.say(wish.workload, problem.reason, problem.message)
        return Filed(after=left if problem.retry_after is None else min(left, problem.retry_after))

    def _give_back(self, wish: Wish, read: Placeholder, misfit: Misfit) -> Filed:
        """The nodes go back to Slurm; the next attempt is told to avoid the one that is to blame."""
        tools, uid = self._tools, wish.workload.root.uid
        self._since.pop(uid, None)
        text = f"{misfit.message}; Slurm job {read.job_id} is given back"
        tools.voice.group(wish.workload, misfit.reason, text, warning=True)
        tools.say(wish.workload, misfit.reason, text)
        tools.tally.attempt("unschedulable")
        for node in misfit.nodes:
            tools.avoided.add(uid, node, misfit.message, tools.clock.now())
        tools.refresh_facts()
        pause = self._submitter.back_off(uid)
        if tools.avoided.tries(uid) > tools.limits.bind_tries:
            pause = Filed(after=tools.limits.backoff_most)
        replaced = self._submitter.replace(read, misfit.message)
        return pause if replaced is AT_ONCE else replaced

    def _bind_all(self, wish: Wish, spots: tuple[Spot, ...], read: Placeholder) -> Filed:
        """In rank order: the first alone, for one that changed stops the whole while none is bound; then all others."""
        uid = wish.workload.root.uid
        self._quiet(uid, spots)
        if not self._bind(uid, spots[0], read):
            return Filed(after=LOOK_AGAIN)
        if not all(self._tools.each(lambda spot: self._bind(uid, spot, read), spots[1:])):
            return Filed(after=LOOK_AGAIN)
        self._since.pop(uid, None)
        self._tools.avoided.success(uid)
        self._tools.tally.attempt("scheduled")
        self._say_bound(wish.workload, spots, read)
        return WOKEN

    def _quiet(self, uid: str, spots: tuple[Spot, ...]) -> None:
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
        self._tools.voice.scheduled(workload)

    def _bind(self, uid: str, spot: Spot, read: Placeholder) -> bool:
        """An answer that was lost leaves the assumption: the pod may be there, and nobody may count on its place."""
        tools, pod = self._tools, spot.pod
        tools.keeper.assume(pod.uid, spot.node.name, resources.requests_of(pod))
        try:
            tools.cluster.bind(_binding(spot, read))
        except errors.Disagreement as problem:
            self._disagreed(pod, problem)
            return False
        except (errors.Unavailable, errors.NotLeading):
            tools.keeper.forget(pod.uid)
            raise
        self._sent.setdefault(uid, {})[pod.uid] = tools.clock.now()
        tools.tally.bound(pod, tools.clock.now() - read.since)
        return True

    def _disagreed(self, pod: Pod, problem: errors.Disagreement) -> None:
        """It changed meanwhile, is gone, or was bound by a try whose answer was lost: only a look can tell."""
        logger.bind(workload="/".join(pod.key)).info("not bound: {}", problem)
        now = self._tools.cluster.get(kinds.PODS, *pod.key)
        if now is None or now.uid != pod.uid or not now.bound:
            self._tools.keeper.forget(pod.uid)


def _binding(spot: Spot, read: Placeholder) -> ports.Binding:
    meta = spot.pod.metadata
    return ports.Binding(
        namespace=meta.namespace,
        pod=meta.name,
        uid=meta.uid,
        node=spot.node.name,
        resource_version=meta.resource_version,
        annotations={names.ANNOTATION_SLURM_NODE: spot.slurm_name},
        labels={names.LABEL_JOB_ID: str(read.job_id)},
    )


def _together(problems: Iterable[Misfit | Wait]) -> Misfit | Wait | None:
    """All nodes that are to blame are told of at once: each costs a group the whole of an allocation."""
    found = list(problems)
    misfits = [one for one in found if isinstance(one, Misfit)]
    if len(misfits) < 2:  # noqa: PLR2004
        return next(iter([*misfits, *found]), None)
    nodes = tuple(node for one in misfits for node in one.nodes)
    text = f"{misfits[0].message} (and {len(misfits) - 1} more nodes likewise)"
    return Misfit(reason=misfits[0].reason, message=text, nodes=nodes)


def _sum(pods: Iterable[Pod]) -> Mapping[str, Fraction]:
    """What all of them need."""
    total: dict[str, Fraction] = {}
    for pod in pods:
        for name, amount in resources.requests_of(pod).items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total
