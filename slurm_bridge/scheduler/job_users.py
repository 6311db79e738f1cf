"""The user of a job as slurmctld resolved it: only its number tells whether a name is an account of the system.

Every reading of a job carries the number, so the check costs no call. The last reading is the one before the binding.
"""

from slurm_bridge.model.job import JobView
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.wish import Wish
from slurm_bridge.scheduler.withdrawing import Replacer
from slurm_bridge.translate import forms

#: A job of the same request is not submitted again before so many seconds have passed: administrators repair things.
REFUSED_AGAIN = 300.0


class JobUsers:
    """Withdraws jobs of users that are no ordinary users, and remembers which requests led to them."""

    def __init__(self, tools: Tools, replacer: Replacer) -> None:
        self._tools, self._replacer = tools, replacer
        #: By workload: the intent that was refused, and until when it is not submitted again.
        self._refused: dict[WorkloadKey, tuple[str, float]] = {}

    def forget(self, key: WorkloadKey) -> None:
        """The workload is over."""
        self._refused.pop(key, None)

    def refused_lately(self, wish: Wish) -> Filed | None:
        """How long this request has to wait, None when it may be submitted."""
        intent, until = self._refused.get(wish.workload.root.key, ("", 0.0))
        left = until - self._tools.clock.now()
        return Filed(after=left) if left > 0 and intent == wish.intent else None

    def refuse(self, wish: Wish, placeholder: Placeholder) -> Filed:
        """Withdraw the job, and tell its user why."""
        tools, key = self._tools, wish.workload.root.key
        text = f"Slurm job {placeholder.job_id} {_wrong(placeholder.view)}; the job is withdrawn"
        tools.say(wish.workload, "UserNotAllowed", text)
        tools.voice.group(wish.workload, "UserNotAllowed", text, warning=True)
        tools.tally.attempt("rejected")
        filed = self._replacer.replace(placeholder, "its user is not allowed")
        self._refused[key] = (wish.intent, tools.clock.now() + REFUSED_AGAIN)
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
