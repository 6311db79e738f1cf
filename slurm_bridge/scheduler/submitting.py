"""One placeholder for each workload: submit it, look for it when an answer was lost, keep it up to date.

What can go wrong between asking and knowing:

    answer lost              the job may exist: look for it, by its chosen id, else by scans that all lost ones share
    id is taken              by an earlier try of ours: adopt it; by one that ended, or by a stranger: the next attempt
    we die                   the owner record is in the job: the next start finds it
    the description changed  update while it pends; cancel and submit again what an update cannot change
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Iterable

import msgspec
from loguru import logger

from slurm_bridge.hooks.chain import Plan
from slurm_bridge.mirror import readings
from slurm_bridge.model import job, kinds, names
from slurm_bridge.model.job import Done, JobRequest, Phase, Refusal, Refused, Unknown
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.ports import Scope
from slurm_bridge.scheduler import records, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.lost import Lost
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.wish import Wish
from slurm_bridge.translate.translator import Value

#: A request that Slurm refused is tried again although nothing of ours has changed: administrators repair things.
REFUSED_AGAIN = 300.0
#: A node that Slurm does not know has just left it, as a rule; when it still does not know it then, something is wrong.
MOST_UNTOLD = 3
#: Of so many groups it is remembered how often they have started.
REMEMBERED = 10_000
#: Annotations that an event names.
MOST_SAID = 6
#: Intent, what an update cannot change, what it can.
MARK_PARTS = 3
#: Ids taken by strangers in a row before something else must be wrong.
MOST_COLLISIONS = 10


class Submitter:
    """The steps SUBMIT, KEEP and what belongs to them. Called for one workload at a time, for many in parallel."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._lost = Lost(tools)
        #: What Slurm refused to change a job into, so that it is asked once only.
        self._refused: dict[str, str] = {}
        #: What Slurm refused to take, and until when it is not asked again for just the same.
        self._declined: dict[str, tuple[str, float]] = {}
        #: The last attempt of groups that may start anew: Slurm remembers the jobs of those before for a while.
        self._attempts: OrderedDict[str, int] = OrderedDict()

    def forget(self, uid: str) -> None:
        """The workload is over."""
        self._lost.forget(uid)
        self._refused.pop(uid, None)
        self._declined.pop(uid, None)

    def submit(self, wish: Wish, planned: Plan, placeholder: Placeholder | None) -> Filed:
        """Make sure that there is a placeholder."""
        if placeholder is not None and placeholder.certainty is Certainty.MAYBE:
            if self._tools.mirror.look(placeholder.job_id, placeholder.owner) is not None:
                return AT_ONCE
            self._tools.table.drop(placeholder.job_id)
        waiting = self._lost.search(wish.workload.root) or self._declined_lately(wish, planned)
        if waiting is not None:
            return waiting
        attempt = self._attempts.get(wish.workload.root.uid, -1) + 1
        return self._send(wish, planned, attempt if placeholder is None else records.next_attempt(placeholder))

    def _declined_lately(self, wish: Wish, planned: Plan) -> Filed | None:
        """The very same request was refused a moment ago: what woke the workload has not changed that."""
        mark, until = self._declined.get(wish.workload.root.uid, ("", 0.0))
        left = until - self._tools.clock.now()
        return Filed(after=left) if left > 0 and mark == wishes.mark(wish, planned) else None

    def _send(self, wish: Wish, planned: Plan, attempt: int) -> Filed:
        # Groups that start anew again and again leave a row of ids that ended jobs keep for a while.
        for number in (attempt + (1 << step) - 1 for step in range(MOST_COLLISIONS)):
            request = self._request(wish, planned, number)
            outcome = self._tools.slurm.submit(request)
            if isinstance(outcome, Refused) and outcome.why is Refusal.EXISTS and request.job_id is not None:
                if self._adopt(request) is not None:
                    return AT_ONCE
                continue
            return self._sent(wish, planned, request, outcome)
        return self._refusal(wish, Refused(why=Refusal.EXISTS, code=0, message="every job id that was tried is taken"))

    def _request(self, wish: Wish, planned: Plan, attempt: int) -> JobRequest:
        owner = records.for_attempt(
            planned.request.owner,
            attempt,
            request=wishes.mark(wish, planned),
            plan=planned.state.text,
            members=wishes.members(wish),
        )
        ids = self._tools.limits.ids
        return dataclasses.replace(planned.request, owner=owner, job_id=ids.choose(owner) if ids else None)

    def _adopt(self, request: JobRequest) -> Placeholder | None:
        """Whose is the id that is taken? None when this attempt's id is of no use."""
        assert request.job_id is not None
        found = self._tools.mirror.look(request.job_id, request.owner, tell=False)
        return found if found is not None and found.alive else None

    def _sent(self, wish: Wish, planned: Plan, request: JobRequest, outcome: job.Outcome) -> Filed:
        if isinstance(outcome, Done):
            return self._created(wish, planned, request, outcome)
        if isinstance(outcome, Unknown):
            return self._unknown(wish, request, outcome)
        if outcome.why not in (Refusal.BUSY, Refusal.UNKNOWN_NODE):
            until = self._tools.clock.now() + REFUSED_AGAIN
            self._declined[request.owner.uid] = (request.owner.request, until)
        return self._refusal(wish, outcome)

    def _created(self, wish: Wish, planned: Plan, request: JobRequest, outcome: Done) -> Filed:
        tools = self._tools
        new = readings.submitted(outcome.job_id, request.owner, tools.clock.now())
        earlier = [one for one in tools.table.of(request.owner.uid) if one.job_id != outcome.job_id]
        tools.table.put(new, tell=False)
        for one in earlier:
            if not one.alive:
                tools.table.drop(one.job_id)
        tools.mirror.nudge()
        self._remember(request.owner)
        tools.tally.attempt("submitted")
        tools.say(wish.workload, "SlurmJobPending", words.waiting(new), key=words.key(new))
        if planned.told:
            tools.voice.group(wish.workload, "SlurmJobWidened", planned.told, warning=True)
        return WOKEN

    def _remember(self, owner: Owner) -> None:
        if owner.kind != kinds.PODS.kind:
            self._attempts[owner.uid] = owner.attempt
            while len(self._attempts) > REMEMBERED:
                self._attempts.popitem(last=False)

    def _unknown(self, wish: Wish, request: JobRequest, outcome: Unknown) -> Filed:
        """It may exist. With an id we know where to look; without one a scan has to tell."""
        tools, job_id = self._tools, request.job_id or outcome.job_id
        logger.bind(workload=str(wish.workload.root)).warning("submit was not answered: {}", outcome.message)
        tools.tally.attempt("unknown")
        if job_id is not None:
            tools.table.put(readings.unknown(job_id, request.owner, tools.clock.now()), tell=False)
            tools.mirror.nudge()
        else:
            self._lost.remember(request.owner)
        self._say_unavailable(wish, "it is not known whether the job was created; looking for it")
        return self.back_off(request.owner.uid)

    def _say_unavailable(self, wish: Wish, what: str) -> None:
        self._tools.say(wish.workload, "SlurmUnavailable", f"Slurm did not answer: {what}")

    def _refusal(self, wish: Wish, outcome: Refused) -> Filed:
        tools, again = self._tools, outcome.why in (Refusal.BUSY, Refusal.UNKNOWN_NODE)
        if outcome.why is Refusal.UNKNOWN_NODE:
            tools.refresh_facts()
            if tools.avoided.tries(wish.workload.root.uid) < MOST_UNTOLD:
                return self.back_off(wish.workload.root.uid)
        busy = outcome.why is Refusal.BUSY
        tools.tally.attempt("unavailable" if busy else "rejected")
        text = f"Slurm refuses the job: {outcome.message} (error {outcome.code})"
        reason = "SlurmUnavailable" if busy else "SlurmJobRejected"
        tools.say(wish.workload, reason, text)
        tools.voice.group(wish.workload, reason, text, warning=True)
        return self.back_off(wish.workload.root.uid) if again else Filed(after=REFUSED_AGAIN)

    def back_off(self, uid: str) -> Filed:
        """Later, and later each time."""
        return Filed(after=self._tools.pause(uid))

    def keep(self, wish: Wish, planned: Plan | Wait | Reject, placeholder: Placeholder) -> Filed:
        """A job that pends: is it still what is wanted?"""
        if isinstance(planned, Wait | Reject):
            self._tools.say(wish.workload, planned.reason, _kept(planned, placeholder))
            return Filed(after=planned.retry_after if isinstance(planned, Wait) else None)
        wanted, asked = wishes.mark(wish, planned), placeholder.owner.request
        if wanted == asked or self._refused.get(placeholder.owner.uid) == wanted:
            self._tell_pending(wish, planned, placeholder)
            renamed = self.rename(wish, placeholder)
            if renamed is not None:
                return renamed
            # A plan of several attempts goes on by itself; everybody else is woken.
            window = planned.window_seconds
            return WOKEN if window is None else Filed(after=min(window, self._tools.limits.attempt_period))
        if _fixed(wanted) != _fixed(asked):
            return self.replace(placeholder, "the request changed")
        return self._update(wish, planned, placeholder)

    def rename(self, wish: Wish, placeholder: Placeholder) -> Filed | None:
        """A member was made anew and asks for the same: the job only has to say for whom it is now. None: it does."""
        members = wishes.members(wish)
        if members == placeholder.owner.members:
            return None
        if self._tools.still_ours(placeholder) is None:
            return AT_ONCE
        owner = msgspec.structs.replace(placeholder.owner, members=members)
        outcome = self._tools.slurm.note(placeholder.job_id, owner)
        if isinstance(outcome, Refused) and outcome.why is not Refusal.BUSY:
            # It helps to tell newcomers from those who were there, and is no reason to keep anybody waiting.
            logger.warning("the record of job {} stays as it is: {}", placeholder.job_id, outcome.message)
            return None
        return self._changed(placeholder) if isinstance(outcome, Done) else self.back_off(placeholder.owner.uid)

    def _changed(self, placeholder: Placeholder) -> Filed:
        """Slurm said yes: what the job says now is what counts. One that says the same as before is left alone."""
        read = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        same = read is not None and read.owner == placeholder.owner
        return self.back_off(placeholder.owner.uid) if same else AT_ONCE

    def _tell_pending(self, wish: Wish, planned: Plan, placeholder: Placeholder) -> None:
        """Only for jobs that wait for long enough to be read: one that starts at once is told of when it is bound."""
        workload, text = wish.workload, words.waiting(placeholder)
        self._tools.say(workload, "SlurmJobPending", text, key=words.key(placeholder))
        if placeholder.view is not None:
            submitted = f"Slurm job {placeholder.job_id}{_asked(planned.request)}{_said(planned.values)}"
            self._tools.voice.group(workload, "SlurmJobSubmitted", submitted)
        if placeholder.view is not None and placeholder.view.reason not in ("", "None"):
            self._tools.voice.group(workload, "SlurmJobPending", text)

    def _update(self, wish: Wish, planned: Plan, placeholder: Placeholder) -> Filed:
        if self._tools.still_ours(placeholder) is None:
            return AT_ONCE
        request = self._request(wish, planned, placeholder.owner.attempt)
        outcome = self._tools.slurm.update(placeholder.job_id, dataclasses.replace(request, job_id=None))
        if isinstance(outcome, Refused):
            return self._not_updated(wish, request, placeholder, outcome)
        changed = self._changed(placeholder)
        return self.back_off(placeholder.owner.uid) if isinstance(outcome, Unknown) else changed

    def _not_updated(self, wish: Wish, request: JobRequest, placeholder: Placeholder, outcome: Refused) -> Filed:
        if outcome.why in (Refusal.STARTED, Refusal.OVER, Refusal.NO_SUCH_JOB):
            self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
            return AT_ONCE
        if outcome.why is Refusal.UNKNOWN_NODE:
            # One name that Slurm does not know spoils every later update of this job too.
            self._tools.refresh_facts()
            return self.replace(placeholder, "a node that it named has left Slurm")
        if outcome.why is Refusal.BUSY:
            return self.back_off(placeholder.owner.uid)
        self._refused[placeholder.owner.uid] = request.owner.request
        text = f"Slurm job {placeholder.job_id} stays as it was, the change is refused: {outcome.message}"
        self._tools.voice.group(wish.workload, "SlurmJobRejected", text, warning=True)
        return WOKEN

    def replace(self, placeholder: Placeholder, why: str) -> Filed:
        """Cancel it, after writing into it that it was us; its end brings the next attempt."""
        if placeholder.certainty is Certainty.MAYBE:
            # An order that is on its way cannot be cancelled; the mirror gives it up in its time.
            found = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
            return AT_ONCE if found is not None else self.back_off(placeholder.owner.uid)
        if placeholder.phase is not Phase.PENDING and self._bound_after_all(placeholder):
            return Filed(after=self._tools.limits.backoff_first)
        if not withdraw(self._tools, placeholder, f"replaced: {why}", noted=True):
            return self.back_off(placeholder.owner.uid)
        owner = placeholder.owner
        workload = f"{owner.kind} {owner.namespace}/{owner.name}"
        logger.bind(workload=workload).info("job {} is replaced: {}", placeholder.job_id, why)
        return AT_ONCE

    def _bound_after_all(self, placeholder: Placeholder) -> bool:
        """A binding whose answer was lost, or of which no watch has told: the job of such a pod must not go."""
        owner = placeholder.owner
        if owner.kind == kinds.PODS.kind:
            now = self._tools.cluster.get(kinds.PODS, owner.namespace, owner.name)
            return now is not None and now.uid == owner.uid and now.bound
        scope = Scope(namespace=owner.namespace, labels=f"{names.LABEL_JOB_ID}={placeholder.job_id}")
        return any(pod.bound and not pod.terminal for pod in self._tools.cluster.list(kinds.PODS, scope).items)


def withdraw(tools: Tools, placeholder: Placeholder, why: str, *, noted: bool = False) -> bool:
    """Note why and cancel; True when the job is over for certain.

    With `noted` the note is a condition: a waiting pod whose job was cancelled without one would be taken for a pod
    whose job an administrator cancelled. Where the job names a node that has left Slurm no note can ever be written.
    """
    if tools.still_ours(placeholder) is None:
        return True
    noting = tools.slurm.note(placeholder.job_id, records.with_note(placeholder.owner, f"withdrawn: {why}"))
    if isinstance(noting, Refused) and noting.why is Refusal.BUSY:
        return False
    if noted and not (_settled(noting) or _unwritable(noting)):
        return False
    outcome = tools.slurm.cancel(placeholder.job_id)
    if not _settled(outcome):
        logger.warning("job {} could not be cancelled yet: {}", placeholder.job_id, outcome)
        return False
    tools.table.put(records.over(placeholder, why, tools.clock.now()), tell=False)
    return True


def _unwritable(outcome: job.Outcome) -> bool:
    return isinstance(outcome, Refused) and outcome.why is Refusal.UNKNOWN_NODE


def _settled(outcome: job.Outcome) -> bool:
    if isinstance(outcome, Refused):
        return outcome.why in (Refusal.OVER, Refusal.NO_SUCH_JOB)
    return isinstance(outcome, Done)


def _kept(obstacle: Wait | Reject, placeholder: Placeholder) -> str:
    return f"{obstacle.message} Slurm job {placeholder.job_id} stays as it was."


def _asked(request: JobRequest) -> str:
    """In what partition and for how much, in a few words."""
    where = f" in partition {request.partition}" if request.partition else ""
    return f"{where}: " + " and ".join(_asked_of(part) for part in (request, *request.components))


def _said(values: Iterable[Value]) -> str:
    """What annotations had a say in, and whose; more than an event can hold is left to `explain`."""
    said = [f"{one.key}={one.value} from {one.subject}" for one in values if one.key]
    more = [f"and {len(said) - MOST_SAID} more"] if len(said) > MOST_SAID else []
    return "; " + ", ".join([*said[:MOST_SAID], *more]) if said else ""


def _asked_of(part: JobRequest) -> str:
    each = f"{part.tasks} tasks of " if part.tasks > 1 else ""
    gres = "".join(f", {one.count} {one.name}" for one in part.gres)
    return f"{each}{part.cpus_per_task} cpus, {part.memory.mib} MiB{gres}"


def _fixed(mark: str) -> str:
    """The half of a digest that an update cannot change."""
    return mark.split(":")[1] if mark.count(":") == MARK_PARTS - 1 else mark
