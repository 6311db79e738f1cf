"""Pods that want nodes, when it is known what they want: a job for them, the nodes that theirs has, or why not."""

import dataclasses
from collections.abc import Callable

from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import job_users, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.binding import Binder
from slurm_bridge.scheduler.decide import Pods, Step, decide, job_of
from slurm_bridge.scheduler.ending import Ender
from slurm_bridge.scheduler.ganging import Ganger
from slurm_bridge.scheduler.keeping import Warden
from slurm_bridge.scheduler.members import Crew
from slurm_bridge.scheduler.obstacles import Obstacles
from slurm_bridge.scheduler.queue import LINE_UP, WOKEN, Filed
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.submitting import Submitter
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer

#: Why the rest of a heterogeneous job is ended.
TORN = "a component of it has ended"
#: Why a job is taken back that has not started.
MADE_ROOM = "its queue makes room for"

#: What is left to do once it is clear what that is; it may take its time.
Act = Callable[[], Filed]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Those who do what is decided here."""

    replacer: Replacer
    submitter: Submitter
    warden: Warden
    obstacles: Obstacles
    ender: Ender
    binder: Binder
    ganger: Ganger
    users: job_users.JobUsers


class Asker:
    """From a wish to what follows of it."""

    def __init__(self, tools: Tools, parts: Parts) -> None:
        self._tools, self._parts = tools, parts

    def go_on(self, crew: Crew, wish: Wish, placeholder: Placeholder | None, *, turn: bool) -> Act | Filed:
        """It is known what they want, and that nobody else is about to come."""
        unwanted = self._unwanted(wish, placeholder)
        if unwanted is not None:
            return unwanted
        step = decide(Pods.WAITING, job_of(placeholder))
        if step is Step.SUBMIT:
            return self._submit(crew, wish, placeholder, turn=turn)
        if placeholder is None or step is Step.HOLD:
            return self._hold(wish, placeholder)
        if step is Step.AGAIN:
            return self._again(crew, wish, placeholder, turn=turn)
        if step is Step.BIND:
            return self._bind(crew, wish, placeholder)
        planned = wishes.plan(wish, self._tools, placeholder)
        return lambda: self._parts.warden.keep(wish, planned, placeholder)

    def _unwanted(self, wish: Wish, placeholder: Placeholder | None) -> Act | Filed | None:
        """They may not have a job now, or have to give it back for others: nobody has to be evicted for that."""
        if wish.workload.suspended or wishes.parked(wish):
            return self._parked(wish, placeholder)
        if placeholder is None:
            return None
        if placeholder.alive and job_users.improper(placeholder):
            return lambda: self._parts.users.refuse(wish, placeholder)
        if decide(Pods.PARKED, job_of(placeholder)) is not Step.WITHDRAW:
            return None
        why = self._taken_back(wish, placeholder)
        return (lambda: self._parts.replacer.replace(placeholder, why)) if why else None

    def _taken_back(self, wish: Wish, placeholder: Placeholder) -> str:
        """Why the job that they have is not to give them nodes; empty where it may."""
        chain, root = self._tools.config.chain, wish.workload.root
        lacking = chain.unhonoured(wish.translated)
        if lacking is not None:
            return lacking.message
        state = self._tools.states.of(root.key)
        returned, state.returned = state.returned, None
        if returned == placeholder.job_id and placeholder.phase is Phase.PENDING:
            return f"namespace {root.namespace} has more than its share of the window, and others wait"
        recall = chain.evicts.recalled(root.key) if chain.evicts is not None else None
        return f"{MADE_ROOM} {recall.cause}" if recall is not None else ""

    def _parked(self, wish: Wish, placeholder: Placeholder | None) -> Act | Filed:
        """They may not have a job now."""
        suspended = wish.workload.suspended
        if placeholder is not None and placeholder.torn:
            return lambda: self._parts.replacer.replace(placeholder, TORN)
        if not suspended and wishes.without(wish, wishes.note_of(wish)):
            return lambda: self._parts.ender.spread(wish)
        if placeholder is not None and decide(Pods.PARKED, job_of(placeholder)) is Step.WITHDRAW:
            why = f"{suspended} is suspended" if suspended else "the pods are parked"
            return lambda: self._parts.replacer.replace(placeholder, why)
        return self._parts.ender.tell_parked(wish)

    def _bind(self, crew: Crew, wish: Wish, placeholder: Placeholder) -> Act | Filed:
        if self._parts.ganger.anew(wish.workload, crew, placeholder):
            why = "its pods are gone, and the group starts anew"
            return lambda: self._parts.replacer.replace(placeholder, why)
        self._parts.ganger.starts(wish.workload.root.key, placeholder.job_id)
        return lambda: self._parts.binder.bind(wish, placeholder)

    def _hold(self, wish: Wish, placeholder: Placeholder | None) -> Filed:
        if placeholder is not None:
            self._tools.say(wish.workload, "SlurmJobPending", words.waiting(placeholder), key=words.key(placeholder))
        return WOKEN

    def _submit(self, crew: Crew, wish: Wish, placeholder: Placeholder | None, *, turn: bool) -> Act | Filed:
        why = self._held(wish.workload)
        if why is not None and not wishes.noted(wish):
            return lambda: self._parts.ender.park(
                wish, None, f"{why}; what replaces the pods that were ended is not submitted by itself"
            )
        if not turn:
            return LINE_UP
        planned = wishes.plan(wish, self._tools, placeholder)
        tools = self._tools
        if isinstance(planned, Wait) and tools.cleared(wish.workload):
            tools.promised.crowds_out(wish.workload.root.key)
        if isinstance(planned, Wait) and planned.retry_after is None and tools.avoid(wish.workload):
            # Nobody tells when a node is no longer avoided.
            planned = dataclasses.replace(planned, retry_after=tools.avoided.seconds)
        if isinstance(planned, Wait | Reject):
            return self._parts.obstacles.of_workload(wish.workload, planned)
        late = tools.config.chain.commit(wish.workload, planned, tools.keeper.snapshot())
        if late is not None:
            return self._parts.obstacles.of_workload(wish.workload, late)
        return lambda: self._parts.submitter.submit(wish, planned, placeholder, crew.served)

    def _held(self, workload: Workload) -> str | None:
        """Why whoever makes these pods is not to get another job for them."""
        makers = [workload.root.object_key] + ([workload.controller.key] if workload.controller else [])
        return next((why for key in makers if (why := self._tools.held.get(key)) is not None), None)

    def _again(self, crew: Crew, wish: Wish, placeholder: Placeholder, *, turn: bool) -> Act | Filed:
        """Its job has ended. Whether that was somebody's wish is asked once, and then it lines up or parks."""
        known = wishes.answered(wish, placeholder) or not self._parts.ender.puzzling(wish, placeholder)
        if known and not placeholder.torn:
            return self._submit(crew, wish, placeholder, turn=turn)

        def act() -> Filed:
            filed = self._parts.ender.again(wish, placeholder)
            return LINE_UP if filed is None else filed

        return act
