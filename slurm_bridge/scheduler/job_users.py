"""The user of a job as slurmctld resolved it: only its number tells whether a name is an account of the system.

Every reading of a job carries the number, so the check costs no call. The last reading is the one before the binding.
"""

from slurm_bridge.model.job import JobView
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler import state
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer
from slurm_bridge.translate import forms

#: A job of the same request is not submitted again before so many seconds have passed: administrators repair things.
REFUSED_AGAIN = 300.0


class JobUsers:
    """Withdraws jobs of users that are no ordinary users, and remembers which requests led to them."""

    def __init__(self, tools: Tools, replacer: Replacer) -> None:
        self._tools, self._replacer = tools, replacer

    def refused_lately(self, wish: Wish) -> Filed | None:
        """How long this request has to wait, None when it may be submitted."""
        refused = self._tools.states.of(wish.workload.root.key).user_refused
        left = refused.until - self._tools.clock.now() if refused is not None else 0.0
        return Filed(after=left) if refused and left > 0 and refused.what == wish.intent else None

    def refuse(self, wish: Wish, placeholder: Placeholder) -> Filed:
        """Withdraw the job, and tell its user why; by two readings, one may be garbled."""
        tools, key = self._tools, wish.workload.root.key
        read = tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        if read is None or not improper(read):
            return AT_ONCE
        placeholder = read
        text = f"Slurm job {placeholder.job_id} {_wrong(placeholder.view)}; the job is withdrawn"
        tools.say(wish.workload, "UserNotAllowed", text)
        tools.voice.group(wish.workload, "UserNotAllowed", text, warning=True)
        tools.tally.attempt("rejected")
        filed = self._replacer.replace(placeholder, "its user is not allowed")
        tools.states.of(key).user_refused = state.Refusal(wish.intent, tools.clock.now() + REFUSED_AGAIN)
        return Filed(after=REFUSED_AGAIN) if filed is AT_ONCE else filed


def improper(placeholder: Placeholder) -> bool:
    """Slurm has said that the job belongs to an account of the system."""
    view = placeholder.view
    return view is not None and view.user_id is not None and not forms.ordinary(view.user_id)


def _wrong(view: JobView | None) -> str:
    assert view is not None
    return (
        f"belongs to user {view.user or 'without a name'} with the number {view.user_id}; allowed are numbers from"
        f" {forms.FIRST_USER} on except 65534: change the annotation user-id, the policy's defaults or defaults.user"
    )
