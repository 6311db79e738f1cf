"""Which of a workload's jobs counts, and how its pods stand to it. Pure."""

from slurm_bridge.mirror import table
from slurm_bridge.model import names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import records, words
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import PLACED, PodState, WorkloadPods, job_id_of, slurm_node_of


def on(node: str, members: WorkloadPods) -> tuple[Pod, ...]:
    """The members that are there."""
    return tuple(pod for pod in members.pods(*PLACED) if pod.spec.node_name == node)


def outlived(members: WorkloadPods, placeholder: Placeholder) -> bool:
    """The pods that a job bound are over, and it runs on: for the rest of its start, or for members that come later.

    Not where all have gone without having done anything: then it is a start like any other.
    """
    job_id = placeholder.job_id
    if members.root.kind == "Pod" or placeholder.phase is not Phase.RUNNING or job_id not in members.served:
        return False
    return members.of_job(job_id).ever < records.starters_of(placeholder.owner) or any(
        job_id_of(pod) == job_id for pod in members.pods(PodState.DONE)
    )


def left_behind(members: WorkloadPods, placeholder: Placeholder | None, placeholders: tuple[Placeholder, ...]) -> bool:
    """All pods with nodes are leaving although their job has ended: no workload has to wait for them."""
    if members.count(PodState.BOUND) or placeholder is None:
        return False
    theirs = [one for one in placeholders if one.job_id in members.named]
    return len(theirs) == len(members.named) and not any(one.alive for one in theirs)


def relevant(
    members: WorkloadPods | None, placeholders: tuple[Placeholder, ...]
) -> tuple[Placeholder | None, frozenset[names.JobId]]:
    """The job that counts, and all that pods are named after.

    Where pods are bound it is one that they name, and of several one that ended: its pods are dealt with first.
    """
    named = members.named if members is not None else frozenset[names.JobId]()
    if not named:
        return table.current(placeholders), named
    theirs = [one for one in placeholders if one.job_id in named]
    if len(theirs) < len(named):
        return None, named
    # Pods that name a job that has ended get nothing more from it.
    holding = [one for one in theirs if members is not None and members.nodes(one.job_id)]
    ended = [one for one in holding if not one.alive]
    if ended:
        return ended[0], named
    if not holding and not any(one.alive for one in theirs):
        return table.current(placeholders), named
    return table.current(holding or theirs), named


def shrunk(members: WorkloadPods, placeholder: Placeholder) -> tuple[Pod, ...]:
    """Pods whose node their running job no longer holds; only a reading newer than the start of the job can tell.

    A text of nodes that cannot be read is unknown, and nothing follows from it.

    The reading of a heterogeneous job shows the nodes of its first component only; a lost component tells by its end.
    """
    view = placeholder.view
    if view is None or placeholder.phase is not Phase.RUNNING or (placeholder.read or 0.0) < placeholder.since:
        return ()
    if view.state.phase is not Phase.RUNNING or not view.nodes or view.het_job_id is not None:
        return ()
    held = frozenset(view.nodes)
    if held.issuperset(members.nodes(placeholder.job_id)):
        return ()
    return tuple(
        pod
        for pod in members.pods(PodState.BOUND)
        if job_id_of(pod) == placeholder.job_id and slurm_node_of(pod) not in held
    )


def is_unexplained(desired: DesiredJob, placeholder: Placeholder) -> bool:
    """It is not known yet why the job ended, or it was cancelled.

    Not where the job stood for other pods: then these replace the pods that were ended with it.
    """
    if placeholder.certainty is Certainty.GONE or placeholder.owner.note:
        return False
    gang = desired.workload.gang is not None
    if gang and placeholder.started and not records.stands_for(placeholder.owner, desired.workload.pods):
        return False
    read = placeholder.read is not None and placeholder.read >= placeholder.since
    return not read or placeholder.torn or words.end_word(placeholder) == "CANCELLED"
