"""What users and operators read of it."""

from slurm_bridge.families.vela import commit
from slurm_bridge.families.vela.cases import Pace, SamplingCase, Turn
from slurm_bridge.families.vela.decision import SamplingDecision
from slurm_bridge.families.vela.office import AgentsUnavailable
from slurm_bridge.model.verdict import Wait

SAMPLING = "Sampling"
UNSCHEDULABLE = "Unschedulable"
UNAVAILABLE = "AgentsUnavailable"

#: For operators: the chain had no node left of a sample.
WIDENED = "nothing is left of the sample: all nodes are looked at"

#: A pass looks again by itself should an answer be lost.
LOOK_AGAIN_SECONDS = 15.0
#: The sampling queue has no room: it empties quickly.
CROWDED_SECONDS = 1.0


def waiting(case: SamplingCase, turn: Turn, now: float, pace: Pace) -> Wait:
    """Why a pass ends here."""
    if turn.outcome is None:
        return Wait(reason=SAMPLING, message="nodes are being sampled for it", retry_after=LOOK_AGAIN_SECONDS)
    why = "no node that was sampled can take it" if isinstance(turn.outcome, SamplingDecision) else turn.outcome.message
    after = max(0.0, turn.due - now)
    if case.parked:
        return Wait(reason=commit.FAILED, message=f"{why}; {given_up(pace)}", retry_after=after, warning=True)
    if isinstance(turn.outcome, AgentsUnavailable):
        return Wait(reason=UNAVAILABLE, message=f"{why}; they are asked again", retry_after=after)
    text = f"{why}; it is sampled again, {case.retries} of {pace.max_retries} times"
    return Wait(reason=UNSCHEDULABLE, message=text, retry_after=after)


def given_up(pace: Pace) -> str:
    """Of a pod that is parked, after the reason."""
    return f"it was tried {pace.max_retries + 1} times, and is tried again when nodes or agents change"


def crowded() -> Wait:
    return Wait(reason=SAMPLING, message="too many pods wait to be sampled", retry_after=CROWDED_SECONDS)


def sampled(decision: SamplingDecision) -> str:
    """For operators: the agents that answered, and what was left out."""
    parts = [f"{len(decision.nodes)} of {decision.sampled} sampled nodes are left, from {', '.join(decision.answered)}"]
    parts += [f"agent {name} is left out: {why}" for name, why in decision.failed.items()]
    parts += [f"{number} nodes were {reason}" for reason, number in decision.dropped.items()]
    return "; ".join(parts)
