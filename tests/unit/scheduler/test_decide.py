"""Every combination of facts has one action, and no action that would do harm."""

import itertools
import random
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.mirror import readings
from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import NamedThing, Pod, PodSpec, PodStatus
from slurm_bridge.model.workload import MemberLost, Root
from slurm_bridge.scheduler import decide
from slurm_bridge.scheduler.decide import Action, DecisionTable, Facts, MembersFact, PlaceholderFact, Pods
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods, standing
from tests.unit.mirror.watching import gone, maybe, owner, placeholder

#: The plainest facts of each state: nothing is missing, and nothing has gone wrong.
PLAIN = Facts(
    pods=Pods.WAITING,
    job=PlaceholderFact.NONE,
    members=MembersFact.COMPLETE,
    policy=MemberLost.KEEP,
    bound=True,
    turn=True,
    never_started=True,
)


def plain(pods: Pods, job: PlaceholderFact) -> Facts:
    """These pods and this job, and else what is plain."""
    living = {"bound": pods is not Pods.LEAVING, "wanting": pods in (Pods.WAITING, Pods.JOINING)}
    return msgspec.structs.replace(PLAIN, pods=pods, job=job, **living)


def written() -> dict[tuple[Pods, PlaceholderFact], Action]:
    """The table of the docstring, where WAIT stands for AWAIT_SLURM."""
    lines = [line.split() for line in (decide.__doc__ or "").splitlines() if line.startswith("    ")]
    head, *rows = lines
    return {
        (Pods[row[0]], PlaceholderFact[column]): Action[action.replace("WAIT", "AWAIT_SLURM")]
        for row in rows
        for column, action in zip(head, row[1:], strict=True)
    }


def test_the_table_in_the_docstring_is_what_is_decided_for_plain_facts() -> None:
    """Every pair of states is in it."""
    shown = written()
    assert set(shown) == set(itertools.product(Pods, PlaceholderFact))
    assert {pair: decide.decide(plain(*pair)).action for pair in shown} == shown


def _values(field: msgspec.structs.FieldInfo) -> Sequence[object]:
    """Representatives of a field: each word, both truths, times that are over and that are not."""
    known: dict[object, Sequence[object]] = {
        bool: (False, True),
        str: ("", "a reason"),
        float: (-1.0, 0.0, 2.0),
        float | None: (None, 0.0, 2.0),
        MemberLost | None: (None, *MemberLost),
    }
    return known[field.type] if field.type in known else tuple(field.type)


FIELDS = {field.name: _values(field) for field in msgspec.structs.fields(Facts)}
FACTS = st.builds(Facts, **{name: st.sampled_from(values) for name, values in FIELDS.items()})
ENDS_PODS = {Action.END, Action.END_SHRUNK, Action.DOUBT, Action.RESTART, Action.UNDO_START, Action.RESTORE}
FOR_PODS_WITHOUT_NODES = {Action.SUBMIT, Action.BIND, Action.KEEP, Action.LINE_UP, Action.PARK, Action.ASK_WHY}


@given(FACTS)
def test_any_facts_have_one_action(facts: Facts) -> None:
    """The last row of each view applies to all facts, and the first row that applies counts."""
    found = decide.decide(facts)
    rows = [*decide.FIRST, *decide.ROWS[decide.view(facts)]]
    assert found.action is next(row for row in rows if row.applies(facts)).action
    assert rows[-1].applies(facts)


@given(FACTS)
def test_the_same_facts_have_the_same_decision(facts: Facts) -> None:
    """Nothing but the facts counts."""
    assert decide.decide(facts) == decide.decide(msgspec.structs.replace(facts))


@given(FACTS)
def test_no_pod_ends_for_a_job_whose_state_nobody_knows(facts: Facts) -> None:
    """Unknown is not gone: Slurm's own word, or a job that runs without a node, or no such job."""
    action, known = decide.decide(facts).action, facts.job
    assert action is not Action.END or known is PlaceholderFact.ENDED
    assert action not in (Action.DOUBT, Action.RESTORE) or known is PlaceholderFact.GONE
    # A group of which some pods run may restart, or lose a node, whatever Slurm says of the job besides.
    assert (
        action not in ENDS_PODS
        or known not in (PlaceholderFact.NONE, PlaceholderFact.MAYBE, PlaceholderFact.PENDING)
        or facts.outlived
    )


@given(FACTS)
def test_pods_with_nodes_are_never_submitted_or_bound(facts: Facts) -> None:
    """Only pods that wait, and those that a job which ended has left behind."""
    if decide.decide(facts).action in FOR_PODS_WITHOUT_NODES:
        assert facts.pods is Pods.WAITING or (facts.pods is Pods.JOINING and facts.left_behind)


@given(FACTS)
def test_a_living_job_is_never_joined_by_a_second_one(facts: Facts) -> None:
    """A submit follows only where there is no job, where there may be one, and where it is known why one ended."""
    if decide.decide(facts).action is Action.SUBMIT:
        assert facts.job in (PlaceholderFact.NONE, PlaceholderFact.MAYBE, PlaceholderFact.ENDED, PlaceholderFact.GONE)
        assert facts.turn
        assert not facts.parked
        assert not facts.suspended


@given(FACTS)
def test_only_a_job_that_runs_gives_nodes(facts: Facts) -> None:
    """One that starts, or is suspended, has nodes and gives none."""
    if decide.decide(facts).action is Action.BIND:
        assert facts.job is PlaceholderFact.RUNNING


_MOST_ASKED = ("policy", "lost", "members", "incomplete_left")
#: Rows before the view that do not apply to pods that are over.
_BEFORE_THE_VIEW = {(DecisionTable.OVER, row.says) for row in decide.FIRST if row.action is not Action.SEARCH}


def test_every_row_applies_to_some_facts_first() -> None:
    """A row that never counts would be a line without a meaning; so would an action that never follows."""
    dice = random.Random(16)
    left = {(where, row.says) for where in DecisionTable for row in (*decide.FIRST, *decide.ROWS[where])}
    for _ in range(100_000):
        # Few facts differ from the plainest ones at a time: then late rows come up, too.
        few = (*_MOST_ASKED[: dice.randint(0, len(_MOST_ASKED))], *dice.sample(list(FIELDS), dice.randint(0, 3)))
        changes = {name: dice.choice(FIELDS[name]) for name in few}
        facts = msgspec.structs.replace(plain(dice.choice(list(Pods)), dice.choice(list(PlaceholderFact))), **changes)
        where = decide.view(facts)
        left.discard((where, next(row for row in (*decide.FIRST, *decide.ROWS[where]) if row.applies(facts)).says))
        if len(left) == len(_BEFORE_THE_VIEW):
            break
    assert left == _BEFORE_THE_VIEW
    assert {row.action for rows in (decide.FIRST, *decide.ROWS.values()) for row in rows} == set(Action)


def pod(node: str = "", *, phase: str = "Pending", deleted: bool = False, job: str = "", gated: bool = False) -> Pod:
    """A pod that stands somehow."""
    labels = {names.LABEL_JOB_ID: job} if job else {}
    when = "2026-01-01T00:00:00Z" if deleted else None
    meta = ObjectMeta(name="a", namespace="team", uid="u", labels=labels, deletion_timestamp=when)
    gates = (NamedThing(name="held"),) if gated else ()
    return Pod(metadata=meta, spec=PodSpec(node_name=node, scheduling_gates=gates), status=PodStatus(phase=phase))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (pod(), PodState.WANTING),
        (pod(deleted=True), PodState.OVER),
        (pod("n1", job="7"), PodState.BOUND),
        (pod("n1", job="7", phase="Running"), PodState.BOUND),
        (pod("n1", job="7", deleted=True), PodState.LEAVING),
        (pod("n1", job="7", deleted=True, phase="Failed"), PodState.OVER),
        (pod("n1", job="7", phase="Succeeded"), PodState.DONE),
        (pod("n1"), PodState.STRANGE),
        (pod("n1", deleted=True), PodState.STRANGE),
        (pod(phase="Failed"), PodState.OVER),
        (pod(gated=True), PodState.GATED),
    ],
)
def test_how_a_pod_stands(seen: Pod, expected: PodState) -> None:
    """From what the API server says of it, and nothing else."""
    assert standing(seen) is expected


WANTING, BOUND, LEAVING = pod(), pod("n1", job="7"), pod("n1", job="7", deleted=True)
OVER, DONE, STRANGE, GATED = pod(phase="Failed"), pod("n1", job="7", phase="Succeeded"), pod("n1"), pod(gated=True)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ((), Pods.OVER),
        ((WANTING,), Pods.WAITING),
        ((WANTING, OVER, DONE, GATED, STRANGE), Pods.WAITING),
        ((BOUND,), Pods.BOUND),
        ((BOUND, DONE, LEAVING), Pods.BOUND),
        ((BOUND, WANTING), Pods.JOINING),
        ((LEAVING, WANTING), Pods.JOINING),
        ((LEAVING, DONE), Pods.LEAVING),
        ((OVER, DONE), Pods.OVER),
        ((STRANGE,), Pods.OVER),
        ((GATED,), Pods.OVER),
    ],
)
def test_t11_how_the_pods_of_a_workload_stand(members: tuple[Pod, ...], expected: Pods) -> None:
    """Those that are over, done, gated or somebody else's do not count."""
    workload_pods = WorkloadPods(Root(kind="Job", namespace="team", name="j", uid="j"))
    for number, one in enumerate(members):
        workload_pods.put(
            msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, uid=str(number))), 0.0
        )
    assert decide.pods_of(workload_pods) is expected


def test_nobody_wants_anything() -> None:
    """A workload without pods is over."""
    assert decide.pods_of(None) is Pods.OVER


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (None, PlaceholderFact.NONE),
        (readings.unknown(JobId(1), owner(), 0.0), PlaceholderFact.MAYBE),
        (readings.submitted(JobId(1), owner(), 0.0), PlaceholderFact.PENDING),
        (maybe(words="RUNNING"), PlaceholderFact.MAYBE),
        (gone(words="RUNNING"), PlaceholderFact.GONE),
        *(
            (placeholder(words=words), job)
            for words, job in {
                "PENDING": PlaceholderFact.PENDING,
                "PENDING REQUEUED": PlaceholderFact.PENDING,
                "PENDING REQUEUE_HOLD": PlaceholderFact.PENDING,
                "PENDING SPECIAL_EXIT": PlaceholderFact.PENDING,
                "RUNNING": PlaceholderFact.RUNNING,
                "RUNNING CONFIGURING": PlaceholderFact.STARTING,
                "RUNNING POWER_UP_NODE": PlaceholderFact.STARTING,
                "RUNNING COMPLETING": PlaceholderFact.ENDED,
                "RUNNING STOPPED": PlaceholderFact.STOPPED,
                "SUSPENDED": PlaceholderFact.STOPPED,
                "COMPLETED": PlaceholderFact.ENDED,
                "CANCELLED COMPLETING": PlaceholderFact.ENDED,
                "FAILED LAUNCH_FAILED": PlaceholderFact.ENDED,
                "TIMEOUT": PlaceholderFact.ENDED,
                "PREEMPTED": PlaceholderFact.ENDED,
                "NODE_FAIL": PlaceholderFact.ENDED,
                "BOOT_FAIL": PlaceholderFact.ENDED,
                "DEADLINE": PlaceholderFact.ENDED,
                "OUT_OF_MEMORY": PlaceholderFact.ENDED,
                "REVOKED": PlaceholderFact.UNKNOWN,
                "DREAMING": PlaceholderFact.UNKNOWN,
                "": PlaceholderFact.UNKNOWN,
            }.items()
        ),
        (placeholder(words="RUNNING", torn=True), PlaceholderFact.ENDED),
    ],
)
def test_t28_how_a_placeholder_stands(known: Placeholder | None, expected: PlaceholderFact) -> None:
    """The full table of state words; one that nobody knows is not an end."""
    assert decide.job_of(known) is expected
