"""From what Slurm says to what is known of a placeholder, and whether that is news. Pure."""

from slurm_bridge.model.job import JobState, JobStates, JobView, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.runtime import frozen_records

#: Phases in which a job holds nodes.
STARTED = frozenset({Phase.STARTING, Phase.RUNNING, Phase.STOPPED})

#: What the details of a job have to say anew before its workload is woken.
TELLING = ("reason", "held", "nodes", "owner")

#: A start estimate that moves less than this is no news.
START_MOVED = 600


def moved(old: Placeholder, seen: JobStates) -> bool:
    """The state words say something new."""
    components = seen.components
    if len(components) == 1 and components[0].state.words == old.state.words and not old.torn:
        # Nearly always, and for thousands of jobs at a time.
        return old.certainty is Certainty.MAYBE
    words = seen.state.words if seen.components else old.state.words
    return old.certainty is Certainty.MAYBE or words != old.state.words or torn(old, seen) != old.torn


def torn(old: Placeholder, seen: JobStates) -> bool:
    """A component that ended alone is soon forgotten, and what is left then looks whole: it stays torn to its end."""
    return seen.torn or (old.torn and seen.phase is not Phase.ENDED)


def placeholder(view: JobView, old: Placeholder | None, now: float) -> Placeholder:
    """What a full reading makes of what was known."""
    assert view.owner is not None
    same = old is not None and old.certainty is Certainty.SEEN and old.state == view.state
    # An ended job keeps the nodes that it had; a pending one has an estimated start but none.
    has_run = view.state.phase is Phase.ENDED and bool(view.nodes)
    return Placeholder(
        job_id=view.job_id,
        owner=view.owner,
        state=view.state,
        since=old.since if old is not None and same else now,
        # The owner is all that is known from it.
        view=frozen_records.replaced(view, admin_comment=""),
        read=now,
        started=(old is not None and old.started) or view.state.phase in STARTED or has_run,
        torn=view.torn,
    )


def whose(view: JobView) -> str:
    """What a job that is not ours says of whose it is; no more than a user of any namespace may know."""
    if view.owner is not None:
        return f"its owner record is of another workload, of cluster_id {view.owner.cluster[:100]}"
    return "another program has written its admin_comment" if view.admin_comment else "it has no owner record"


def news(old: Placeholder, new: Placeholder) -> bool:
    """Worth waking the workload for."""
    if old.view is None or new.view is None or old.certainty is not new.certainty or old.phase is not new.phase:
        return True
    if any(getattr(old.view, field) != getattr(new.view, field) for field in TELLING):
        return True
    return abs(old.view.start_time - new.view.start_time) > START_MOVED


def unknown(job_id: JobId, owner: Owner, now: float) -> Placeholder:
    """A job that an unanswered order may have made."""
    return Placeholder(
        job_id=job_id, owner=owner, state=JobState(frozenset({"PENDING"})), certainty=Certainty.MAYBE, since=now
    )


def submitted(job_id: JobId, owner: Owner, now: float) -> Placeholder:
    """A job that Slurm has just acknowledged."""
    return Placeholder(job_id=job_id, owner=owner, state=JobState(frozenset({"PENDING"})), since=now)
