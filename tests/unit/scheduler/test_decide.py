"""The table in the docstring is the table that is used, and every way of standing has a step."""

import itertools

import msgspec
import pytest

from slurm_bridge.mirror import readings
from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import NamedThing, Pod, PodSpec, PodStatus
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import decide
from slurm_bridge.scheduler.decide import Job, Pods, Step
from slurm_bridge.scheduler.members import Crew, Standing, standing
from tests.unit.mirror.watching import gone, maybe, owner, placeholder


def written() -> dict[tuple[Pods, Job], Step]:
    """The table as people read it."""
    lines = [line.split() for line in (decide.__doc__ or "").splitlines() if line.startswith("    ")]
    head, *rows = lines
    return {(Pods[row[0]], Job[column]): Step[step] for row in rows for column, step in zip(head, row[1:], strict=True)}


def test_the_table_in_the_docstring_is_the_table() -> None:
    """All that is written is done; what is not written is a state that nobody understands."""
    shown = written()
    assert {pair: step for pair, step in decide.TABLE.items() if pair[1] is not Job.UNKNOWN} == shown


def test_every_pair_has_a_step() -> None:
    """However they stand."""
    assert set(decide.TABLE) == set(itertools.product(Pods, Job))
    assert all(decide.decide(pods, job) is step for (pods, job), step in decide.TABLE.items())


@pytest.mark.parametrize("job", [Job.NONE, Job.MAYBE, Job.PENDING, Job.GONE, Job.UNKNOWN, Job.STOPPED])
def test_no_pod_ends_for_a_job_that_is_not_known_to_have_ended(job: Job) -> None:
    """END needs Slurm's own word; DOUBT asks for more evidence first."""
    assert all(decide.decide(pods, job) is not Step.END for pods in Pods)


def test_nothing_is_submitted_for_pods_that_do_not_wait() -> None:
    """Only WAITING asks for nodes; who joins takes what is there."""
    asking = {pods for (pods, _), step in decide.TABLE.items() if step in (Step.SUBMIT, Step.AGAIN, Step.BIND)}
    assert asking == {Pods.WAITING}
    assert {pods for (pods, _), step in decide.TABLE.items() if step is Step.JOIN} == {Pods.JOINING}


def test_every_step_is_taken_somewhere() -> None:
    """A step that never follows would be a word without a meaning."""
    assert set(decide.TABLE.values()) == set(Step)


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
        (pod(), Standing.WANTING),
        (pod(deleted=True), Standing.OVER),
        (pod("n1", job="7"), Standing.BOUND),
        (pod("n1", job="7", phase="Running"), Standing.BOUND),
        (pod("n1", job="7", deleted=True), Standing.LEAVING),
        (pod("n1", job="7", deleted=True, phase="Failed"), Standing.OVER),
        (pod("n1", job="7", phase="Succeeded"), Standing.DONE),
        (pod("n1"), Standing.STRANGE),
        (pod("n1", deleted=True), Standing.STRANGE),
        (pod(phase="Failed"), Standing.OVER),
        (pod(gated=True), Standing.GATED),
    ],
)
def test_how_a_pod_stands(seen: Pod, expected: Standing) -> None:
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
    crew = Crew(Root(kind="Job", namespace="team", name="j", uid="j"))
    for number, one in enumerate(members):
        crew.put(msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, uid=str(number))), 0.0)
    assert decide.pods_of(crew) is expected


def test_nobody_wants_anything() -> None:
    """A workload without pods is over."""
    assert decide.pods_of(None) is Pods.OVER


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (None, Job.NONE),
        (readings.unknown(JobId(1), owner(), 0.0), Job.MAYBE),
        (readings.submitted(JobId(1), owner(), 0.0), Job.PENDING),
        (maybe(words="RUNNING"), Job.MAYBE),
        (gone(words="RUNNING"), Job.GONE),
        *(
            (placeholder(words=words), job)
            for words, job in {
                "PENDING": Job.PENDING,
                "PENDING REQUEUED": Job.PENDING,
                "PENDING REQUEUE_HOLD": Job.PENDING,
                "PENDING SPECIAL_EXIT": Job.PENDING,
                "RUNNING": Job.RUNNING,
                "RUNNING CONFIGURING": Job.STARTING,
                "RUNNING POWER_UP_NODE": Job.STARTING,
                "RUNNING COMPLETING": Job.ENDED,
                "RUNNING STOPPED": Job.STOPPED,
                "SUSPENDED": Job.STOPPED,
                "COMPLETED": Job.ENDED,
                "CANCELLED COMPLETING": Job.ENDED,
                "FAILED LAUNCH_FAILED": Job.ENDED,
                "TIMEOUT": Job.ENDED,
                "PREEMPTED": Job.ENDED,
                "NODE_FAIL": Job.ENDED,
                "BOOT_FAIL": Job.ENDED,
                "DEADLINE": Job.ENDED,
                "OUT_OF_MEMORY": Job.ENDED,
                "REVOKED": Job.UNKNOWN,
                "DREAMING": Job.UNKNOWN,
                "": Job.UNKNOWN,
            }.items()
        ),
        (placeholder(words="RUNNING", torn=True), Job.ENDED),
    ],
)
def test_t28_how_a_placeholder_stands(known: Placeholder | None, expected: Job) -> None:
    """The full table of state words; one that nobody knows is not an end."""
    assert decide.job_of(known) is expected
