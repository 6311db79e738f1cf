"""Checks on the placeholder that was submitted on hold: the rights of the token, the owner of the job, its end."""

from collections.abc import Iterator, Mapping

from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.checks.findings import Remark, failure, info, ok, warning
from slurm_bridge.model.job import Done, Refusal, Refused
from slurm_bridge.translate import forms

#: A larger difference between clocks makes start estimates and logs misleading.
_MOST_SKEW_SECONDS = 30

#: Only an operator may submit for other users, write admin_comment and choose an id. Slurm refuses each differently.
_NO_OPERATOR = frozenset({Refusal.FORBIDDEN, Refusal.NO_SUCH_JOB})

#: Slurm's error_number -> the key of our configuration.
_KEYS: Mapping[int, str] = {
    2000: "defaults.partition",
    2045: "defaults.account",
    2066: "defaults.qos",
    2099: "defaults.mcs_label",
    2166: "defaults.user",
}


def operator(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """The owner record is in a field that only an operator can write, so that users cannot forge it."""
    probe = facts.probe
    if probe is not None and isinstance(probe.outcome, Refused) and probe.outcome.why in _NO_OPERATOR:
        yield failure(f"the token does not belong to an operator: {probe.outcome.message}")
    elif probe is None or probe.view is None:
        yield info("not tested: no placeholder was created")
    elif probe.view.owner != probe.request.owner:
        yield failure("the owner record did not arrive in admin_comment unchanged; a job submit plugin may rewrite it")
    elif probe.request.job_id not in (None, probe.view.job_id):
        yield failure(f"the chosen job id {probe.request.job_id} became {probe.view.job_id}")
    else:
        yield ok("the token may write admin_comment, choose job ids and submit for other users")


def accepted(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """External jobs exist since Slurm 25.05; the site's submit plugins and limits apply to them."""
    outcome = facts.probe.outcome if facts.probe else None
    if outcome is None or (isinstance(outcome, Refused) and outcome.why in _NO_OPERATOR):
        yield info("not tested: the token does not belong to an operator")
    elif isinstance(outcome, Refused) and outcome.why is Refusal.BUSY:
        yield warning(f"slurmctld accepts no jobs now: {outcome.message}")
    elif isinstance(outcome, Refused):
        key = _KEYS.get(outcome.code)
        yield failure(
            f"{f'{key}: ' if key else ''}a placeholder with the configured defaults is refused: {outcome.message}"
        )
    elif not isinstance(outcome, Done):
        yield warning(f"no clear answer to a submit: {outcome.message}")
    else:
        yield ok("a placeholder with the configured defaults is accepted")


def removed(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """The placeholder of the check is cancelled again."""
    probe = facts.probe
    if probe is None or isinstance(probe.outcome, Refused):
        yield ok("nothing was left behind")
    elif isinstance(probe.cancelled, Done):
        yield ok("the placeholder of this check is cancelled")
    elif isinstance(probe.cancelled, Refused) and probe.cancelled.why in (Refusal.OVER, Refusal.NO_SUCH_JOB):
        yield ok("the placeholder of this check is gone")
    else:
        made = probe.outcome.job_id if isinstance(probe.outcome, Done) else probe.request.job_id
        which = f"{probe.request.name}{f' (job {made})' if made else ''}"
        yield warning(f"the placeholder {which} may still be there, on hold")


def plain_user(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Root passes every limit and may enter any reservation; the jobs of system accounts are all withdrawn."""
    view = facts.probe.view if facts.probe else None
    if view is None:
        yield info("not tested: no placeholder was created")
    elif view.user in ("root", "0"):
        yield failure("placeholders belong to root")
    elif view.user_id is not None and not forms.ordinary(view.user_id):
        words = f"a number from {forms.FIRST_USER} on except 65534; the daemon withdraws the job of every pod"
        yield failure(f"placeholders belong to user {view.user} with the number {view.user_id}: use one with {words}")
    elif wanted.user and not wanted.user.isdigit() and view.user != wanted.user:
        yield failure(f"placeholders belong to {view.user}, not to {wanted.user}")
    else:
        yield ok(f"placeholders belong to {view.user}")


def clocks(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Users see Slurm's estimates beside our time."""
    probe = facts.probe
    if probe is None or probe.view is None or not probe.view.submit_time:
        yield info("not tested: no placeholder was created")
        return
    skew = round(probe.view.submit_time - probe.asked_at)
    if abs(skew) > _MOST_SKEW_SECONDS:
        yield warning(f"slurmctld's clock is {abs(skew)} s {'ahead of' if skew > 0 else 'behind'} ours")
    else:
        yield ok(f"slurmctld's clock is within {_MOST_SKEW_SECONDS} s of ours")
