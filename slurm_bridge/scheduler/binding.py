"""From nodes that Slurm allocated to pods that are bound there.

    1 read     the job: is it still this workload's, running, and of what was asked?
    2 place    pods onto its nodes, always the same way
    3 check    each node exists, is usable, has room for all that is there, and is free of pods whose job has ended
    4 bind     with the uid and version that were checked, the job id and the node's name in the same write

What cannot be bound gives its nodes back: the job is cancelled and the next attempt avoids the node.
"""

import dataclasses
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.hooks.base import Deny
from slurm_bridge.hooks.snapshot import ClusterSnapshot, NodeFacts, fits
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.scheduler.place import place
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
    """Why an allocation is of no use. `node` is what to avoid from now on, "" when no node is to blame."""

    reason: str
    message: str
    node: str = ""


#: Pods on a node whose own job has ended already.
Remains = Callable[[str], tuple[Pod, ...]]


class Binder:
    """The step BIND."""

    def __init__(self, tools: Tools, submitter: Submitter, remains: Remains) -> None:
        self._tools, self._submitter, self._remains = tools, submitter, remains
        #: Since when a workload waits for others to leave its node, and who waits for which node.
        self._since: dict[str, float] = {}
        self._for_node: dict[str, set[str]] = {}
        #: Pods that were bound, and of which no watch has told yet.
        self._sent: dict[str, float] = {}

    def forget(self, uid: str) -> None:
        """The workload is over."""
        self._since.pop(uid, None)
        self._sent.pop(uid, None)
        for waiting in list(self._for_node.values()):
            waiting.discard(uid)

    def sent(self, uid: str) -> float | None:
        """How long to wait for the watch to tell that this pod is bound; None when nothing of the kind is awaited."""
        since = self._sent.get(uid)
        left = since + ECHO - self._tools.clock.now() if since is not None else 0.0
        return left if left > 0 else None

    def arrived(self, uid: str) -> None:
        """The watch has told."""
        self._sent.pop(uid, None)

    def vacated(self, node: str) -> tuple[str, ...]:
        """A pod has left that node: those who waited for that."""
        return tuple(self._for_node.pop(node, ()))

    def bind(self, wish: Wish, placeholder: Placeholder) -> Filed:
        """Give the pods of this workload their nodes, or the nodes back."""
        if self._tools.mirror.failing:
            # Nobody knows what Slurm has done since; its next answer wakes everybody who waits for it.
            return self._submitter.back_off(wish.workload.root.uid)
        read = self._read(placeholder)
        if read is None or read.phase is not Phase.RUNNING:
            return AT_ONCE
        if not read.owner.request.startswith(f"{wish.intent}:"):
            return self._submitter.replace(wish, read, "the pod changed before it was bound")
        snapshot = self._tools.keeper.snapshot()
        spots = self._spots(wish, read, snapshot)
        if isinstance(spots, tuple):
            problem = self._problem(wish, spots, snapshot)
            return self._bind_all(wish, spots, read) if problem is None else self._not_now(wish, read, problem)
        return self._give_back(wish, read, spots)

    def _read(self, placeholder: Placeholder) -> Placeholder | None:
        """The job in full, read since it started and not long ago: what it held then may be another's now."""
        read = placeholder.read
        if read is not None and read >= placeholder.since and self._tools.clock.now() - read <= FRESH:
            return placeholder
        return self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)

    def _spots(self, wish: Wish, read: Placeholder, snapshot: ClusterSnapshot) -> tuple[Spot, ...] | Misfit:
        assert read.view is not None
        placed = place(wish.workload.pods, read.view.nodes)
        if isinstance(placed, Reject):
            return Misfit(reason=placed.reason, message=placed.message)
        spots = []
        for pod in wish.workload.pods:
            slurm_name = placed[pod.uid]
            node = snapshot.by_slurm_name(slurm_name)
            if node is None:
                text = f"Slurm allocated node {slurm_name}, which is no node of this Kubernetes cluster"
                return Misfit(reason="NodeUnknown", message=text, node=slurm_name)
            spots.append(Spot(pod=pod, slurm_name=slurm_name, node=node))
        return tuple(spots)

    def _problem(self, wish: Wish, spots: tuple[Spot, ...], snapshot: ClusterSnapshot) -> Misfit | Wait | None:
        for spot in spots:
            problem = self._check(spot)
            if problem is not None:
                return problem
        verdict = self._tools.config.chain.verify(
            wish.workload, {spot.pod.uid: spot.node.name for spot in spots}, snapshot
        )
        if verdict is None or isinstance(verdict, Wait):
            return verdict
        if isinstance(verdict, Deny):
            return Misfit(reason="NodeDenied", message=verdict.message, node=next(iter(sorted(verdict.nodes)), ""))
        return Misfit(reason=verdict.reason, message=verdict.message)

    def _check(self, spot: Spot) -> Misfit | Wait | None:
        name = spot.node.name
        left = self._remains(name)
        if left:
            self._for_node.setdefault(name, set()).add(spot.pod.uid)
            text = f"node {name} still runs pod {'/'.join(left[0].key)}, whose Slurm job does not hold it any more"
            return Wait(reason="NodeNotVacated", message=text, retry_after=VACATED_LOOK)
        if self._tools.keeper.holds(spot.pod.uid, name):
            # Counted there since an earlier try whose answer was lost; it must not be in its own way.
            return None
        why = fits(spot.node, resources.requests_of(spot.pod))
        if why is not None:
            return Misfit(reason="NodeFull", message=f"node {name} has no room: {why}", node=name)
        return None

    def _not_now(self, wish: Wish, read: Placeholder, problem: Misfit | Wait) -> Filed:
        if isinstance(problem, Misfit):
            return self._give_back(wish, read, problem)
        now = self._tools.clock.now()
        left = self._since.setdefault(wish.workload.root.uid, now) + PATIENCE - now
        if left <= 0:
            return self._give_back(wish, read, Misfit(reason=problem.reason, message=problem.message))
        self._tools.voice.waiting(wish.workload.pods[0], problem.reason, problem.message)
        return Filed(after=left if problem.retry_after is None else min(left, problem.retry_after))

    def _give_back(self, wish: Wish, read: Placeholder, misfit: Misfit) -> Filed:
        """The nodes go back to Slurm; the next attempt is told to avoid the one that is to blame."""
        tools, uid = self._tools, wish.workload.root.uid
        self._since.pop(uid, None)
        text = f"{misfit.message}; Slurm job {read.job_id} is given back"
        tools.voice.event(wish.workload.pods[0], misfit.reason, text, warning=True)
        tools.voice.waiting(wish.workload.pods[0], misfit.reason, text)
        tools.tally.attempt("unschedulable")
        if misfit.node:
            tools.avoided.add(uid, misfit.node, misfit.message, tools.clock.now())
        tools.refresh_facts()
        pause = self._submitter.back_off(uid)
        if tools.avoided.tries(uid) > tools.limits.bind_tries:
            pause = Filed(after=tools.limits.backoff_most)
        replaced = self._submitter.replace(wish, read, misfit.message)
        return pause if replaced is AT_ONCE else replaced

    def _bind_all(self, wish: Wish, spots: tuple[Spot, ...], read: Placeholder) -> Filed:
        for spot in spots:
            if not self._bind(spot, read):
                return Filed(after=LOOK_AGAIN)
        self._since.pop(wish.workload.root.uid, None)
        self._tools.avoided.success(wish.workload.root.uid)
        self._tools.tally.attempt("scheduled")
        return WOKEN

    def _bind(self, spot: Spot, read: Placeholder) -> bool:
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
        self._sent[pod.uid] = tools.clock.now()
        tools.tally.bound(pod, tools.clock.now() - read.since)
        tools.voice.event(pod, "Scheduled", f"bound to {spot.node.name} by Slurm job {read.job_id}")
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
