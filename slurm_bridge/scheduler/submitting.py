"""One placeholder for each workload: submit it, and look for it when an answer was lost.

What can go wrong between asking and knowing:

    answer lost              the job may exist: look for it, by its chosen id, else by scans that all lost ones share
    id is taken              by an earlier try of ours: adopt it; by one that ended, or by a stranger: the next attempt
    we die                   the owner record is in the job: the next start finds it
"""

import dataclasses
from collections import OrderedDict

from loguru import logger

from slurm_bridge.hooks import honouring
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.mirror import readings
from slurm_bridge.model import job, kinds, names
from slurm_bridge.model.job import Done, JobRequest, Refusal, Refused, Unknown
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler import records, state, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.job_users import JobUsers
from slurm_bridge.scheduler.lost import Lost
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer

#: A request that Slurm refused is tried again although nothing of ours has changed: administrators repair things.
REFUSED_AGAIN = 300.0
#: A node that Slurm does not know has just left it, as a rule; when it still does not know it then, something is wrong.
MOST_UNTOLD = 3
#: Of so many groups it is remembered how often they have started.
REMEMBERED = 10_000
#: Ids taken by strangers in a row before something else must be wrong.
MOST_COLLISIONS = 10


class Submitter:
    """The step SUBMIT. Called for one workload at a time, for many in parallel."""

    def __init__(self, tools: Tools, replacer: Replacer, users: JobUsers) -> None:
        self._tools, self._replacer, self._users = tools, replacer, users
        self._lost = Lost(tools)
        #: The last attempt of groups that may start anew: Slurm remembers the jobs of those before for a while.
        self._attempts: OrderedDict[WorkloadKey, int] = OrderedDict()

    def search(self, uid: WorkloadKey) -> Filed:
        """Find out whether a submit that was not answered has made a job."""
        return self._lost.search(uid)

    def submit(
        self, wish: Wish, planned: Plan, placeholder: Placeholder | None, served: frozenset[names.JobId] = frozenset()
    ) -> Filed:
        """Make sure that there is a placeholder. Pods of the workload were bound by the jobs that have `served` it."""
        if placeholder is not None and placeholder.certainty is Certainty.MAYBE:
            if self._tools.mirror.look(placeholder.job_id, placeholder.owner) is not None:
                return AT_ONCE
            self._tools.table.drop(placeholder.job_id)
        waiting = self._users.refused_lately(wish) or self._declined_lately(wish, planned)
        if waiting is not None:
            return waiting
        for pod in wish.workload.pods:
            # Bindings that were not answered have not come to pass: nobody has to make room for them any more.
            self._tools.keeper.forget(pod.uid)
        attempt = self._attempts.get(wish.workload.root.key, -1) + 1
        first = attempt if placeholder is None else records.next_attempt(placeholder)
        return self._send(wish, planned, first, served)

    def _declined_lately(self, wish: Wish, planned: Plan) -> Filed | None:
        """The very same request was refused a moment ago: what woke the workload has not changed that."""
        declined = self._tools.states.of(wish.workload.root.key).declined
        left = declined.until - self._tools.clock.now() if declined is not None else 0.0
        return Filed(after=left) if declined and left > 0 and declined.what == wishes.mark(wish, planned) else None

    def _send(self, wish: Wish, planned: Plan, attempt: int, served: frozenset[names.JobId]) -> Filed:
        # Groups that start anew again and again leave a row of ids that ended jobs keep for a while.
        for number in (attempt + (1 << step) - 1 for step in range(MOST_COLLISIONS)):
            request = asked(self._tools, wish, planned, number, aside=number != attempt)
            if request.job_id in served:
                # Slurm may have forgotten that job; whoever names it would pass for bound by this one.
                continue
            outcome = self._tools.slurm.submit(request)
            if isinstance(outcome, Refused) and outcome.why is Refusal.EXISTS and request.job_id is not None:
                if self._adopt(request) is not None:
                    return AT_ONCE
                continue
            return self._sent(wish, planned, request, outcome)
        return self._refusal(wish, Refused(why=Refusal.EXISTS, code=0, message="every job id that was tried is taken"))

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
            self._tools.states.of(request.owner.key).declined = state.Refusal(request.owner.request, until)
        return self._refusal(wish, outcome)

    def _created(self, wish: Wish, planned: Plan, request: JobRequest, outcome: Done) -> Filed:
        tools = self._tools
        new = readings.submitted(outcome.job_id, request.owner, tools.clock.now())
        earlier = [one for one in tools.table.of(request.owner.key) if one.job_id != outcome.job_id]
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
        if planned.ignored:
            tools.voice.group(wish.workload, honouring.REASON, planned.ignored, warning=True)
        return WOKEN

    def _remember(self, owner: Owner) -> None:
        if owner.kind != kinds.PODS.kind:
            self._attempts[owner.key] = owner.attempt
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
        return self._replacer.back_off(request.owner.key)

    def _say_unavailable(self, wish: Wish, what: str) -> None:
        self._tools.say(wish.workload, "SlurmUnavailable", f"Slurm did not answer: {what}")

    def _refusal(self, wish: Wish, outcome: Refused) -> Filed:
        tools, again = self._tools, outcome.why in (Refusal.BUSY, Refusal.UNKNOWN_NODE)
        if outcome.why is Refusal.UNKNOWN_NODE:
            tools.refresh_facts()
            if tools.avoided.tries(wish.workload.root.key) < MOST_UNTOLD:
                return self._replacer.back_off(wish.workload.root.key)
        busy = outcome.why is Refusal.BUSY
        tools.tally.attempt("unavailable" if busy else "rejected")
        text = f"Slurm refuses the job: {outcome.message} (error {outcome.code})"
        reason = "SlurmUnavailable" if busy else "SlurmJobRejected"
        tools.say(wish.workload, reason, text)
        tools.voice.group(wish.workload, reason, text, warning=True)
        return self._replacer.back_off(wish.workload.root.key) if again else Filed(after=REFUSED_AGAIN)


def asked(tools: Tools, wish: Wish, planned: Plan, attempt: int, *, aside: bool = False) -> JobRequest:
    """The plan as it is sent: with the owner record of this attempt, and its id; `aside` of one that is taken."""
    owner = records.for_attempt(
        planned.request.owner,
        attempt,
        request=wishes.mark(wish, planned),
        plan=planned.state.text,
        members=wishes.members(wish),
        reserved=tools.states.of(wish.workload.root.key).leadership.reserved,
    )
    ids = tools.limits.ids
    return dataclasses.replace(planned.request, owner=owner, job_id=ids.choose(owner, aside=aside) if ids else None)
