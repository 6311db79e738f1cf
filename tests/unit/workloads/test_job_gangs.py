"""Jobs as gangs, ranks, and that no number of pods makes gathering slow."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge import errors
from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import Job, JobSpec, JobStatus
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Deadline, Gang, Root, Workload
from slurm_bridge.workloads import base, gangs, known
from slurm_bridge.workloads.known import Options
from tests.unit.workloads.heard import GANG, NO_GANG, Heard, Members, indexed, reference
from tests.unit.workloads.sets import jobset, of_jobset, part

KEY = names.JOB_PREFIX + "partition"


def job(world: Heard, name: str = "j", pods: int = 2, **values: Any) -> Job:
    """A Job of so many pods."""
    spec = {"parallelism": pods, "completions": pods, "suspend": values.pop("suspend", False)}
    return world.put(kinds.JOBS, name, spec=spec, **values)


def of_job(world: Heard, found: Job, index: int = 0, **values: Any) -> Pod:
    """A pod of it."""
    return world.pod(
        f"{found.metadata.name}-{index}-x", above=(kinds.JOBS, found), annotations=indexed(index), **values
    )


@pytest.mark.parametrize("together", [GANG, NO_GANG])
def test_the_deadline_of_a_job_is_that_of_its_pods(together: dict[str, str]) -> None:
    """Whether they are placed together or one by one; a Job without one has none."""
    world = Heard()
    found = world.put(
        kinds.JOBS, "j", spec={"parallelism": 1, "completions": 1, "activeDeadlineSeconds": 90}, annotations=together
    )
    assert world.whole(of_job(world, found)).deadline == Deadline(seconds=90, subject="Job default/j")
    other = job(world, "k", 1, annotations=together)
    assert world.whole(of_job(world, other)).deadline is None


@pytest.mark.parametrize(("first", "second", "longest"), [(60, 90, 90), (60, None, None), (None, None, None)])
def test_the_deadline_of_a_jobset_is_the_longest_of_its_jobs(
    first: int | None, second: int | None, longest: int | None
) -> None:
    """Where each has one: no member is cut short."""
    world = Heard()
    limits = {"a": first, "b": second}
    templates = {name: {"spec": {"parallelism": 1, "activeDeadlineSeconds": one}} for name, one in limits.items()}
    found = jobset(world, *({**part(name), "template": template} for name, template in templates.items()))
    pods = [of_jobset(world, found, name) for name in ("a", "b")]
    deadline = world.whole(*pods).deadline
    assert (deadline.seconds if deadline else None) == longest


@pytest.mark.parametrize(
    ("setting", "said", "gang"),
    [
        ("pod", {}, False),
        ("pod", GANG, True),
        ("pod", {names.ANNOTATION_GANG: " TRUE "}, True),
        ("pod", {names.ANNOTATION_GANG: "yes"}, False),
        ("pod", {names.ANNOTATION_MINIMUM_NODES: "2"}, True),
        ("pod", {names.ANNOTATION_MINIMUM_NODES: "1"}, False),
        ("pod", {names.ANNOTATION_MINIMUM_NODES: "many"}, False),
        ("gang", {}, True),
        ("gang", NO_GANG, False),
        ("gang", {**NO_GANG, names.ANNOTATION_MINIMUM_NODES: "2"}, False),
    ],
)
def test_when_a_job_is_a_gang(setting: Any, said: dict[str, str], gang: bool) -> None:
    """Its annotations first, then the setting."""
    world = Heard(options=Options(job=setting))
    found = job(world, annotations=said)
    pod = of_job(world, found)
    assert world.claim(pod) == Root(
        kind="Job" if gang else "Pod",
        namespace="default",
        name="j" if gang else pod.metadata.name,
        uid=found.uid if gang else pod.uid,
    )


def test_the_pods_of_a_gang_job_start_together_in_the_order_of_their_indexes() -> None:
    """Under the Job's name and by its words."""
    world = Heard()
    found = job(world, annotations={**GANG, KEY: "gpu"})
    one, two = of_job(world, found), of_job(world, found, 1)
    assert world.wait(two).message == "1 of 2 pods of Job default/j is there"
    whole = world.whole(two, one)
    assert (whole.pods, whole.job_name, whole.gang) == ((one, two), "j", Gang(minimum=2, size=2))
    assert [str(source) for source in whole.sources] == ["Pod/j-0-x", "Job/j"]
    assert whole.controller == whole.root
    assert base.subject(whole.root, world.known) == base.WorkloadObject(kind=kinds.JOBS, object=found)


@pytest.mark.parametrize(
    ("spec", "status", "pods"),
    [
        (JobSpec(), JobStatus(), 1),
        (JobSpec(parallelism=4), JobStatus(), 4),
        (JobSpec(parallelism=4), JobStatus(succeeded=1), 1),
        (JobSpec(parallelism=4, completions=2), JobStatus(), 2),
        (JobSpec(parallelism=2, completions=9), JobStatus(succeeded=3), 2),
        (JobSpec(parallelism=4, completions=4), JobStatus(succeeded=3), 1),
        (JobSpec(parallelism=8, completions=8), JobStatus(succeeded=1, failed_indexes="0,3-5"), 3),
        (JobSpec(parallelism=4, completions=4), JobStatus(succeeded=4), 0),
        (JobSpec(parallelism=0), JobStatus(), 0),
    ],
)
def test_how_many_pods_of_a_job_are_to_come(spec: JobSpec, status: JobStatus, pods: int) -> None:
    """As many as run at once, and no more than are left to do."""
    assert Job(metadata=ObjectMeta(), spec=spec, status=status).pods_to_come == pods


def test_a_gang_whose_minimum_may_fall_looks_again() -> None:
    """A Job's progress is told by no pod."""
    world = Heard()
    wait = world.wait(of_job(world, job(world, annotations=GANG)))
    assert wait.retry_after is not None
    later = job(world, annotations=GANG, status={"succeeded": 1})
    assert world.whole(of_job(world, later)).gang == Gang(minimum=1, size=1)


def test_a_suspended_job_holds_no_placeholder_be_it_a_gang_or_not() -> None:
    """Its pods are about to be deleted."""
    world = Heard()
    for said in (GANG, NO_GANG):
        whole = world.whole(of_job(world, job(world, annotations=said, suspend=True)))
        assert whole.suspended == "Job default/j"


def test_a_pod_moves_to_its_gang_when_its_job_becomes_known() -> None:
    """No watch had delivered the Job when the pod came; once it was read, it stays known."""
    world = Heard()
    found = world.made(kinds.JOBS, "j", spec={"parallelism": 1}, annotations=GANG)
    world.server.there[kinds.JOBS, "default", "j"] = found
    pod = of_job(world, found)
    root = world.claim(pod)
    assert root.uid == pod.uid
    moved = base.gather(root, Members(pod), world.given)
    assert moved == base.Moved(Root(kind="Job", namespace="default", name="j", uid="uid-j"))
    assert world.claim(pod) == moved.root
    assert isinstance(base.gather(moved.root, Members(pod), world.given), Workload)


def test_a_pod_of_another_job_of_that_name_is_not_in_the_gang() -> None:
    """The Job was made anew while its old pods were ending."""
    world = Heard()
    old = job(world, annotations=GANG)
    pod = of_job(world, old)
    job(world, uid="another", annotations=GANG)
    assert world.claim(pod).uid == pod.uid


def test_an_owner_that_cannot_be_asked_is_a_reason_for_any_gang_to_wait() -> None:
    """What it would say may matter."""
    world = Heard()
    world.server.silent = True
    marks = {names.GROUP: "g", names.GROUP_SIZE: "1"}
    pod = world.pod("p", above=(kinds.REPLICASETS, world.made(kinds.REPLICASETS, "r")), annotations=marks)
    wait = world.wait(pod)
    assert (wait.reason, wait.retry_after) == ("OwnerUnreadable", base.RETRY_AFTER)


def test_only_expected_errors_are_waits() -> None:
    """A token that the server does not know is reported to the operator."""
    world = Heard()
    world.server.get = _denied  # type: ignore[method-assign]
    pod = world.pod("p", above=(kinds.REPLICASETS, world.made(kinds.REPLICASETS, "r")))
    with pytest.raises(errors.NotAuthenticated):
        world.gather(pod)


def _denied(*_: object) -> None:
    raise errors.NotAuthenticated("who are you")


def test_a_workload_whose_last_member_went_meanwhile_waits() -> None:
    """Another thread changes what we look at."""
    world = Heard()
    found = job(world, pods=1, annotations=GANG)
    pod = of_job(world, found)

    class Vanishing(Members):
        def all(self) -> tuple[Pod, ...]:
            return ()

    result = base.gather(world.claim(pod), Vanishing(pod), world.given)
    assert isinstance(result, Wait)
    assert result.message == "0 of 1 pods of Job default/j are there"


@given(st.permutations(range(12)))
def test_ranks_follow_the_numbers_that_members_count_themselves_by(order: list[int]) -> None:
    """10 comes after 9, whatever the alphabetical order of names, and a pod with an index before a pod without."""
    world = Heard()
    pods = [world.pod(f"web-{number}") for number in order]
    first = world.pod("zzz", annotations=indexed(3))
    ranked = sorted([*pods, first], key=gangs.rank)
    assert [pod.metadata.name for pod in ranked] == ["zzz", *(f"web-{number}" for number in range(12))]


@pytest.mark.parametrize("name", ["web", "web-", "web-x1", "9", "web-99999999999"])
def test_names_without_a_number_come_last_by_the_alphabet(name: str) -> None:
    """A suffix of letters is no number."""
    assert re.search(r"-\d{1,9}$", name) is None
    world = Heard()
    ranked = sorted([world.pod(name), world.pod("a-1"), world.pod("zzzz")], key=gangs.rank)
    assert [pod.metadata.name for pod in ranked] == ["a-1", *sorted([name, "zzzz"])]


def test_a_burst_of_2000_pods_of_one_jobset_costs_work_in_proportion() -> None:
    """Gathered at every single arrival: members are counted, not looked at, and each Job is looked up once or twice."""
    world = Heard()
    found = jobset(world, part("work", replicas=1000, pods=2))
    pods = [of_jobset(world, found, "work", job=number, index=index) for number in range(1000) for index in (0, 1)]
    counted = _Counted(world.known)
    world.given.owners.known = counted
    members, root = Members(), world.claim(pods[0])
    for pod in pods[:-1]:
        members.add(pod)
        assert world.claim(pod) == root
        assert isinstance(base.gather(root, members, world.given), Wait)
    assert counted.asked <= 30 * len(pods)
    assert members.looked <= 2 * len(pods)
    assert counted.handed_out == 0
    members.add(pods[-1])
    whole = base.gather(root, members, world.given)
    assert isinstance(whole, Workload)
    assert len(whole.pods) == 2000
    assert world.server.asked == 0


class _Counted:
    """Counts questions, and the Jobs in answers that hold many."""

    def __init__(self, inner: known.Known) -> None:
        self._inner, self.asked, self.handed_out = inner, 0, 0

    def served(self, kind: Any) -> bool:
        self.asked += 1
        return self._inner.served(kind)

    def find(self, kind: Any, namespace: str, name: str) -> Any:
        self.asked += 1
        return self._inner.find(kind, namespace, name)

    def spent(self, namespace: str, run: str) -> Any:
        found = self._inner.spent(namespace, run)
        self.asked += 1
        self.handed_out += len(found)
        return found


def test_the_marks_of_a_job_are_those_of_the_batch_group() -> None:
    """Other groups call their kinds Job, too."""
    world = Heard()
    volcano = {**reference(kinds.JOBS, job(world, annotations=GANG)), "apiVersion": "batch.volcano.sh/v1alpha1"}
    pod = world.pod("p", metadata={"ownerReferences": [volcano]})
    assert world.claim(pod).uid == pod.uid
    assert base.handles(pod) == ("j",)
