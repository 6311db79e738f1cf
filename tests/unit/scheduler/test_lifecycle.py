"""Trap T28: the table of job states and pod states is complete, and what is decided is what it says."""

import pytest

from slurm_bridge.model import names
from slurm_bridge.model.job import BASE_STATES, JobState, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod, PodSpec, PodStatus
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import current_job, decide, lifecycle, words
from slurm_bridge.scheduler.decide import Action, Facts, MembersFact
from slurm_bridge.scheduler.lifecycle import CellOutcome, JobCase, LifecycleRow, PodCase
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods

OWNER = Owner(cluster="one", kind="Pod", namespace="team", name="a", uid="u")
JOB = JobId(7)

#: Every flag of slurmrestd's job_state; the base states are in BASE_STATES.
FLAGS = frozenset(
    "LAUNCH_FAILED REQUEUED REQUEUE_HOLD SPECIAL_EXIT RESIZING CONFIGURING COMPLETING STOPPED RECONFIG_FAIL "
    "POWER_UP_NODE REVOKED REQUEUE_FED RESV_DEL_HOLD SIGNALING STAGE_OUT EXPEDITING".split()
)
PHASES = {
    JobCase.QUEUED: {Phase.PENDING},
    JobCase.HELD_UP: {Phase.STARTING, Phase.STOPPED},
    JobCase.HOLDING: {Phase.RUNNING},
    JobCase.CANCELLED: {Phase.ENDED},
    JobCase.ENDED: {Phase.ENDED},
    JobCase.UNREADABLE: {Phase.UNKNOWN},
}
#: Of these the effect asks Slurm why the job has ended, and takes the one or the other way.
ASKED = {CellOutcome.PARK: "CANCELLED", CellOutcome.RESUBMIT: None}
ACTIONS = {
    CellOutcome.SUBMIT: {Action.SUBMIT},
    CellOutcome.WAIT: {Action.KEEP, Action.AWAIT_SLURM},
    CellOutcome.BIND: {Action.BIND},
    CellOutcome.RESUBMIT: {Action.SUBMIT, Action.ASK_WHY},
    CellOutcome.PARK: {Action.ASK_WHY},
    CellOutcome.KEEP: {Action.REST},
    CellOutcome.REGAIN: {Action.REGAIN},
    CellOutcome.RESTORE: {Action.RESTORE},
    CellOutcome.END: {Action.END},
    CellOutcome.CANCEL: {Action.WITHDRAW},
    CellOutcome.LEAVE: {Action.LEAVE},
    CellOutcome.NOTHING: {Action.FORGET, Action.LEAVE},
    CellOutcome.LOOK_UP: {Action.LOOK_UP},
    # The earlier pod's workload; the new pod has a workload of its own, and no job.
    CellOutcome.RENEW: {Action.WITHDRAW},
}
CELLS = [
    pytest.param(row, case, id=f"{row.title}-{case.name}".replace(" ", "-"))
    for row in lifecycle.ROWS
    for case in PodCase
    if row.cells[case] is not CellOutcome.NEVER
]


def placeholder(row: LifecycleRow) -> Placeholder | None:
    """The job of the pod, as the daemon knows it."""
    if row.case is JobCase.UNSENT:
        return None
    certainty = {JobCase.UNANSWERED: Certainty.MAYBE, JobCase.FORGOTTEN: Certainty.GONE}.get(row.case, Certainty.SEEN)
    state = JobState(frozenset(row.words or ("RUNNING",)))
    lost = row.case is JobCase.FORGOTTEN
    return Placeholder(job_id=JOB, owner=OWNER, state=state, certainty=certainty, since=0.0, lost=lost)


def pod(case: PodCase) -> Pod:
    """The pod in this state."""
    placed = case is not PodCase.UNBOUND
    phases = {PodCase.SUCCEEDED: "Succeeded", PodCase.FAILED: "Failed"}
    labels = {names.LABEL_JOB_ID: str(JOB)} if placed else {}
    deleted = "2026-01-01T00:00:00Z" if case is PodCase.TERMINATING else None
    meta = ObjectMeta(namespace="team", name="a", uid="u", labels=labels, deletion_timestamp=deleted)
    running = "Pending" if case in (PodCase.UNBOUND, PodCase.UNSTARTED) else "Running"
    status = PodStatus(phase=phases.get(case, running))
    return Pod(metadata=meta, spec=PodSpec(node_name="n1" if placed else ""), status=status)


def facts(row: LifecycleRow, case: PodCase) -> Facts:
    """Of the workload that is this one pod, when nothing else is in the way."""
    members = None
    if case not in (PodCase.GONE, PodCase.RECREATED):
        members = WorkloadPods(Root(kind="Pod", namespace="team", name="a", uid="u"))
        members.put(pod(case), 0.0)
    known = placeholder(row)
    jobs = (known,) if known is not None else ()
    found, _ = current_job.relevant(members, jobs)
    bound = members is not None and members.count(PodState.BOUND) > 0
    return Facts(
        pods=decide.pods_of(members),
        job=decide.job_of(found if members is not None else known),
        members=MembersFact.COMPLETE,
        bound=bound,
        turn=True,
        restorable=found is not None and found.lost and bound,
        explained=row.case is JobCase.FORGOTTEN,
    )


@pytest.mark.parametrize(("row", "case"), CELLS)
def test_t28_what_is_decided_is_what_the_table_says(row: LifecycleRow, case: PodCase) -> None:
    """Each cell of the table."""
    outcome = row.cells[case]
    if outcome is CellOutcome.SUBMIT and case is PodCase.RECREATED:
        assert decide.decide(facts(row, PodCase.GONE)).action is Action.FORGET
        row, case = lifecycle.ROWS[0], PodCase.UNBOUND
    assert decide.decide(facts(row, case)).action in ACTIONS[outcome]


def test_t28_every_word_of_slurm_is_in_the_table() -> None:
    """A word that a later Slurm adds has to be sorted in."""
    assert {word for row in lifecycle.ROWS for word in row.words} == {*BASE_STATES, *FLAGS, "FROZEN"}


@pytest.mark.parametrize("row", [row for row in lifecycle.ROWS if row.words], ids=lambda row: row.title)
def test_t28_words_mean_what_their_row_says(row: LifecycleRow) -> None:
    """The phase, and whether it was an administrator's or user's wish that the job ended."""
    known = placeholder(row)
    assert known is not None
    assert known.phase in PHASES[row.case]
    if known.phase is Phase.ENDED:
        assert (words.end_word(known) == "CANCELLED") is (row.case is JobCase.CANCELLED)


@pytest.mark.parametrize("case", JobCase)
def test_t28_every_kind_of_state_has_a_row_and_every_pod_a_cell(case: JobCase) -> None:
    """Nothing is left open."""
    assert any(row.case is case for row in lifecycle.ROWS)
    assert set(lifecycle.CELLS[case]) == set(PodCase)


@pytest.mark.parametrize("case", PodCase)
def test_t28_no_pod_ends_for_words_that_the_bridge_does_not_know(case: PodCase) -> None:
    """A forged or a new word is unknown, and unknown is not gone."""
    for said in ("", "CANCELED", "x" * 10_000, "RUNNING PENDING", "\x00"):
        row = LifecycleRow((said,), JobCase.UNREADABLE)
        assert decide.decide(facts(row, case)).action not in (Action.END, Action.DOUBT, Action.RESTORE)
