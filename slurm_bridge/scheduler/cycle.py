"""One look at one workload.

    1 gather   its pods and those who speak for it      -> Workload | Wait | Reject
    2 look     at its placeholder, in memory            -> Placeholder | None
    3 decide   from how both stand                      -> Step
    4 shape    the request by Slurm's limits and hooks  -> Plan | Wait | Reject     (only where it is to be sent)
    5 act      on either side                           -> Filed

Thinking (1 to 4) happens in one thread, in the order of the queue; acting is handed out and may take its time.
"""

import dataclasses
from collections.abc import Callable

from loguru import logger

from slurm_bridge.mirror import table
from slurm_bridge.model import names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import ending, submitting, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.binding import Binder
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.decide import Pods, Step, decide, job_of, pods_of
from slurm_bridge.scheduler.queue import LINE_UP, WOKEN, Filed
from slurm_bridge.scheduler.restoring import Restorer
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.wish import Wish

#: Workloads that this version understands. A job of any other kind was made by a later one, and is left alone.
POD, CHECK = "Pod", "Check"
#: How old the job of a check may become before it counts as forgotten.
FORGOTTEN = 60.0

#: What is left to do once it is clear what that is; it may take its time.
Act = Callable[[], Filed]


class Cycle:
    """Knows every step; keeps nothing of its own."""

    def __init__(self, tools: Tools, census: Census) -> None:
        self._tools, self._census = tools, census
        self.submitter = submitting.Submitter(tools)
        self.ender = ending.Ender(tools)
        self.restorer = Restorer(tools, self.ender)
        self.binder = Binder(tools, self.submitter, self._remains)

    def think(self, uid: str, *, turn: bool) -> Act | Filed:
        """What to do with this workload; `turn` says that it may submit now."""
        pod, placeholders = self._census.get(uid), self._tools.table.of(uid)
        pods = pods_of(pod)
        placeholder = _relevant(pods, pod, placeholders)
        surplus = table.surplus(placeholders, placeholder)
        if surplus and pods is not Pods.OVER:
            return lambda: self.ender.cancel_surplus(surplus)
        if pod is not None and pods is Pods.WAITING:
            echo = self.binder.sent(uid)
            # What we know of the pod is older than its binding: nothing may be concluded from it.
            return Filed(after=echo) if echo is not None else self._waiting(pod, placeholder, turn=turn)
        return self._other(uid, pod, pods, placeholder)

    def _other(self, uid: str, pod: Pod | None, pods: Pods, placeholder: Placeholder | None) -> Act | Filed:
        """Pods that want nothing of Slurm any more, or have what they wanted."""
        if pod is None and placeholder is not None and placeholder.owner.kind != POD:
            return self._not_a_pod(uid, placeholder)
        step = decide(pods, job_of(placeholder))
        if step is Step.WITHDRAW:
            return lambda: self.ender.withdraw(uid, pod, seen=self._census.seen_gone(uid))
        if pod is None or step is Step.FORGET:
            return self._forget(uid)
        if step is Step.LOOK:
            return lambda: self.ender.look(pod)
        if pods is Pods.LEAVING:
            return lambda: self.ender.leaving(pod)
        return self._bound(pod, placeholder, step)

    def _not_a_pod(self, uid: str, placeholder: Placeholder) -> Act | Filed:
        """The job of a check that was killed half-way has to go; what a later version made is not ours to judge."""
        age = self._tools.clock.now() - placeholder.since
        if placeholder.owner.kind != CHECK:
            logger.warning("job {} stands for a {}: left alone", placeholder.job_id, placeholder.owner.kind)
            return WOKEN
        if placeholder.alive and age < FORGOTTEN:
            return Filed(after=FORGOTTEN - age)
        if not placeholder.alive:
            return self._forget(uid)
        return lambda: self.ender.withdraw(uid, None, seen=True)

    def _bound(self, pod: Pod, placeholder: Placeholder | None, step: Step) -> Act | Filed:
        if placeholder is None:
            return WOKEN
        kind = next((one.kind for one in pod.metadata.owner_references if one.controller), "")
        if step is Step.END:
            return lambda: self.ender.end(pod, placeholder, kind)
        if step is Step.DOUBT:
            return self._doubt(pod, placeholder, kind)
        if placeholder.phase is Phase.PENDING:
            return lambda: self.restorer.pending(pod, placeholder)
        if ending.shrunk(pod, placeholder):
            text = f"Slurm job {placeholder.job_id} no longer holds node {pod.spec.node_name}"
            return lambda: self.ender.end_pod(pod, "SHRUNK", text)
        return WOKEN

    def _doubt(self, pod: Pod, placeholder: Placeholder, kind: str) -> Act:
        """The job of a running pod is unknown to Slurm: forgotten, or over for so long that it was purged?"""
        gathered = self._tools.gather(pod) if self.restorer.can(placeholder) else None
        wish = wishes.read(gathered, self._tools) if isinstance(gathered, Workload) else None
        if isinstance(wish, Wish):
            return lambda: self.restorer.restore(wish, placeholder, kind)
        return lambda: self.ender.doubt(pod, placeholder, kind)

    def _waiting(self, pod: Pod, placeholder: Placeholder | None, *, turn: bool) -> Act | Filed:
        """A pod without a node: what it wants has to be known before anything else is."""
        if pod.gated:
            # Not ours yet, and told so by whoever holds it back.
            return WOKEN
        gathered = self._tools.gather(pod)
        if gathered is None:
            return WOKEN
        wish = gathered if isinstance(gathered, Wait | Reject) else wishes.read(gathered, self._tools)
        if isinstance(wish, Wait | Reject):
            return self._obstacle(pod, wish)
        pods = Pods.PARKED if wishes.parked(wish) else Pods.WAITING
        return self._wanting(
            wish, placeholder, decide(pods, job_of(placeholder)), parked=pods is Pods.PARKED, turn=turn
        )

    def _wanting(
        self, wish: Wish, placeholder: Placeholder | None, step: Step, *, parked: bool, turn: bool
    ) -> Act | Filed:
        if step is Step.SUBMIT:
            return self._submit(wish, placeholder, turn=turn)
        if step is Step.AGAIN and placeholder is not None:
            return self._again(wish, placeholder, turn=turn)
        if step is Step.KEEP and placeholder is not None:
            planned = wishes.plan(wish, self._tools, placeholder)
            return lambda: self.submitter.keep(wish, planned, placeholder)
        if step is Step.BIND and placeholder is not None:
            return lambda: self.binder.bind(wish, placeholder)
        if step is Step.WITHDRAW and placeholder is not None:
            return lambda: self.submitter.replace(wish, placeholder, "the pod is parked")
        return self.ender.tell_parked(wish) if parked else self._hold(wish, placeholder)

    def _hold(self, wish: Wish, placeholder: Placeholder | None) -> Filed:
        if placeholder is not None:
            pod, text = wish.workload.pods[0], words.waiting(placeholder)
            self._tools.voice.waiting(pod, "SlurmJobPending", text, key=words.key(placeholder))
        return WOKEN

    def _submit(self, wish: Wish, placeholder: Placeholder | None, *, turn: bool) -> Act | Filed:
        controller = wish.workload.controller
        why = self._tools.held.get(controller.uid) if controller is not None else None
        if why is not None and not wishes.noted(wish):
            return lambda: self.ender.park(wish, None, f"{why}; this pod replaces the one that was ended")
        if not turn:
            return LINE_UP
        planned = wishes.plan(wish, self._tools, placeholder)
        tools = self._tools
        if isinstance(planned, Wait) and planned.retry_after is None and tools.avoid(wish.workload):
            # Nobody tells when a node is no longer avoided.
            planned = dataclasses.replace(planned, retry_after=tools.avoided.seconds)
        if isinstance(planned, Wait | Reject):
            return self._obstacle(wish.workload.pods[0], planned)
        late = tools.config.chain.commit(wish.workload, planned, tools.keeper.snapshot())
        if late is not None:
            return self._obstacle(wish.workload.pods[0], late)
        return lambda: self.submitter.submit(wish, planned, placeholder)

    def _again(self, wish: Wish, placeholder: Placeholder, *, turn: bool) -> Act | Filed:
        """Its job has ended. Whether that was somebody's wish is asked once, and then it lines up or parks."""
        if wishes.answered(wish, placeholder) or not self.ender.puzzling(placeholder):
            return self._submit(wish, placeholder, turn=turn)

        def act() -> Filed:
            filed = self.ender.again(wish, placeholder)
            return LINE_UP if filed is None else filed

        return act

    def _obstacle(self, pod: Pod, obstacle: Wait | Reject) -> Filed:
        """Say why, and wait for whatever can change it."""
        rejected = isinstance(obstacle, Reject)
        self._tools.voice.waiting(pod, obstacle.reason, obstacle.message)
        if rejected:
            self._tools.voice.event(pod, obstacle.reason, obstacle.message, warning=True)
            logger.bind(workload="/".join(pod.key)).info("{}: {}", obstacle.reason, obstacle.message)
        self._tools.tally.attempt("rejected" if rejected else "unschedulable")
        return Filed(after=obstacle.retry_after if isinstance(obstacle, Wait) else None)

    def _remains(self, node: str) -> tuple[Pod, ...]:
        """Pods on a node whose place Slurm may have given away: their job ended, or was forgotten and waits again."""
        ended = ((one.owner.uid, one.job_id) for one in self._tools.table.ended())
        restored = ((uid, None) for uid in self.restorer.pods())
        pods = ((self._census.get(uid), job_id) for uid, job_id in (*ended, *restored))
        return tuple(pod for pod, job_id in pods if pod is not None and _remains(pod, node, job_id))

    def _forget(self, uid: str) -> Filed:
        for part in (self.submitter, self.binder, self.ender):
            part.forget(uid)
        return self.ender.drop(uid)


def _remains(pod: Pod, node: str, job_id: names.JobId | None) -> bool:
    """Of a job that has ended it matters whether it was the one that the pod names."""
    there = pod.spec.node_name == node and not pod.terminal
    return there and job_id in (None, ending.job_id_of(pod))


def _relevant(pods: Pods, pod: Pod | None, placeholders: tuple[Placeholder, ...]) -> Placeholder | None:
    """For a bound pod the job that it names, else the one that counts."""
    if pod is not None and pods in (Pods.BOUND, Pods.LEAVING):
        named = ending.job_id_of(pod)
        return next((one for one in placeholders if one.job_id == named), None)
    return table.current(placeholders)
