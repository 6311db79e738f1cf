"""A job that waits in Slurm: is it still what is wanted, and for whom?

the same                  its members may have changed: their record follows
with required nodes       by an earlier version: they are taken away, because a running job could lose its life by them
what an update can change it is updated, and read back
anything else             it is given back, and the next one takes its place
no node but those that    it is given back: nothing but a job that is not there keeps Slurm from giving it one of them
are cleared for another   the moment it comes free
"""

import dataclasses

import msgspec
from loguru import logger

from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model.job import Done, Refusal, Refused, Unknown
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.scheduler import records, submitting, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer

#: Intent, what an update cannot change, what it can.
MARK_PARTS = 3
#: Why a job is given back that Slurm would start on nodes that are for somebody else.
CROWDED_OUT = "the nodes that are left for it are cleared for another one"


class Warden:
    """The step KEEP."""

    def __init__(self, tools: Tools, replacer: Replacer) -> None:
        self._tools, self._replacer = tools, replacer

    def keep(self, wish: Wish, planned: Plan | Wait | Reject, placeholder: Placeholder) -> Filed:
        """A job that pends: is it still what is wanted?"""
        if isinstance(planned, Wait) and wishes.is_crowded_out(wish, self._tools, placeholder):
            self._tools.promised.crowds_out(wish.workload.root.key)
            return self._replacer.replace(placeholder, CROWDED_OUT)
        if isinstance(planned, Wait | Reject):
            self._tools.say(wish.workload, planned.reason, _kept(planned, placeholder))
            return WOKEN if isinstance(planned, Reject) else Filed(after=planned.retry_after, moving=planned.moving)
        wanted, asked = wishes.mark(wish, planned), placeholder.owner.request
        changed = wanted != asked or bool(placeholder.view is not None and placeholder.view.required_nodes)
        if not changed or self._tools.states.of(placeholder.owner.key).update_refused == wanted:
            self._tell_pending(wish, planned, placeholder)
            renamed = self.rename(wish, placeholder)
            return renamed if renamed is not None else self._in_time(planned)
        if _fixed(wanted) != _fixed(asked):
            return self._replacer.replace(placeholder, "the request changed")
        return self._update(wish, planned, placeholder)

    def _in_time(self, planned: Plan) -> Filed:
        """A plan of several attempts goes on by itself; everybody else is woken."""
        due = wishes.due(planned, self._tools)
        return WOKEN if due is None else Filed(after=due)

    def rename(self, wish: Wish, placeholder: Placeholder) -> Filed | None:
        """A member was made anew and asks for the same: the job only has to say for whom it is now. None: it does."""
        pods = wish.workload.pods
        if wish.workload.gang is None or records.stands_for(placeholder.owner, pods):
            return None
        if self._tools.still_ours(placeholder) is None:
            return AT_ONCE
        # A job that runs has the places that it was asked for, whoever is there to take them.
        places = records.places_of(placeholder.owner) if placeholder.started else None
        owner = msgspec.structs.replace(placeholder.owner, members=records.members_of(pods, places))
        outcome = self._tools.slurm.note(placeholder.job_id, owner)
        if isinstance(outcome, Refused) and outcome.why is not Refusal.BUSY:
            # It helps to tell newcomers from those who were there, and is no reason to keep anybody waiting.
            logger.warning("the record of job {} stays as it is: {}", placeholder.job_id, outcome.message)
            return None
        if not isinstance(outcome, Done):
            return self._replacer.back_off(placeholder.owner.key)
        return self._changed(placeholder)

    def _changed(self, placeholder: Placeholder) -> Filed:
        """Slurm said yes: what the job says now is what counts. One that says the same as before is left alone."""
        read = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        same = read is not None and read.owner == placeholder.owner
        return self._replacer.back_off(placeholder.owner.key) if same else AT_ONCE

    def _tell_pending(self, wish: Wish, planned: Plan, placeholder: Placeholder) -> None:
        """Only for jobs that wait for long enough to be read: one that starts at once is told of when it is bound."""
        workload, text = wish.workload, words.waiting(placeholder)
        wanted = planned.wanted if planned.tried and words.refused(placeholder) else ()
        text = words.nowhere(wanted, text)
        self._tools.say(workload, "SlurmJobPending", text, key=f"{words.key(placeholder)} {'; '.join(wanted)}".rstrip())
        if placeholder.view is not None:
            submitted = f"Slurm job {placeholder.job_id}{words.asked(planned.request)}{words.said(planned.values)}"
            self._tools.voice.group(workload, "SlurmJobSubmitted", submitted)
        if placeholder.view is not None and placeholder.view.reason not in ("", "None"):
            self._tools.voice.group(workload, "SlurmJobPending", text)

    def _update(self, wish: Wish, planned: Plan, placeholder: Placeholder) -> Filed:
        if self._tools.still_ours(placeholder) is None:
            return AT_ONCE
        request = submitting.asked(self._tools, wish, planned, placeholder.owner.attempt)
        outcome = self._tools.slurm.update(placeholder.job_id, dataclasses.replace(request, job_id=None))
        if isinstance(outcome, Refused):
            return self._not_updated(wish, planned, placeholder, outcome)
        changed = self._changed(placeholder)
        return self._replacer.back_off(placeholder.owner.key) if isinstance(outcome, Unknown) else changed

    def _not_updated(self, wish: Wish, planned: Plan, placeholder: Placeholder, outcome: Refused) -> Filed:
        if outcome.why in (Refusal.STARTED, Refusal.OVER, Refusal.NO_SUCH_JOB):
            self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
            return AT_ONCE
        if outcome.why is Refusal.UNKNOWN_NODE:
            # One name that Slurm does not know spoils every later update of this job too.
            self._tools.refresh_facts()
            return self._replacer.replace(placeholder, "a node that it named has left Slurm")
        if outcome.why is Refusal.BUSY:
            return self._replacer.back_off(placeholder.owner.key)
        self._tools.states.of(placeholder.owner.key).update_refused = wishes.mark(wish, planned)
        text = f"Slurm job {placeholder.job_id} stays as it was, the change is refused: {outcome.message}"
        self._tools.voice.group(wish.workload, "SlurmJobRejected", text, warning=True)
        # What comes next may be taken, and the job must not stay with the few nodes that it has now.
        return self._in_time(planned)


def _kept(obstacle: Wait | Reject, placeholder: Placeholder) -> str:
    return f"{obstacle.message} Slurm job {placeholder.job_id} stays as it was."


def _fixed(mark: str) -> str:
    """The half of a digest that an update cannot change."""
    return mark.split(":")[1] if mark.count(":") == MARK_PARTS - 1 else mark
