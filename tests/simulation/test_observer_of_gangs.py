"""The observer says of each way to treat a group wrongly what it is; what is right passes in silence."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.names import JobId
from tests.simulation import fleet, troupes
from tests.simulation.broken_promise import Broken
from tests.simulation.groups import BIND_SECONDS
from tests.simulation.manual_daemon import Hand
from tests.simulation.troupes import Form, Size, Troupe
from tests.simulation.world import NAMESPACE, World

TROUPE = Troupe(form=Form.PODGROUP, name="t", leader=Size(), worker=Size(), workers=2, minimum=3)
RESTARTS = {names.ANNOTATION_MEMBER_LOST: "restart-group"}


class Director:
    """A world with one troupe `t`, and what a daemon does to it."""

    def __init__(self, token: pathlib.Path) -> None:
        self.world = World(1, token, fleet=fleet.hall(6))
        self.world.slurm.world.config = dataclasses.replace(self.world.slurm.world.config, configuring_seconds=0.0)
        self.hand = Hand(self.world)

    def enter(self, form: Form = Form.PODGROUP, **changes: Any) -> None:
        """A leader and two workers, unless said otherwise."""
        troupe = dataclasses.replace(TROUPE, form=form, **changes)
        for kind, manifest in troupes.manifests(troupe, names.SCHEDULER_NAME):
            self.world.kube.create(kind, manifest)
        self.world.pass_time(1.0)

    @property
    def pods(self) -> list[str]:
        """The pods that are there and not over, in order."""
        return [name for name, pod in self.world.pods() if pod["status"]["phase"] not in ("Succeeded", "Failed")]

    @property
    def group(self) -> str:
        """What the members' placeholder is called."""
        return next(pod.group for pod in self.world.observer.pods.values() if pod.ours and not pod.over)

    def submit(self, tasks: int = 3, **fields: Any) -> JobId:
        """A placeholder for all of them, on one node."""
        return self.hand.ask(self.hand.request("t", self.group, kind="Gang", cpus=tasks, memory=200 * tasks, **fields))

    def bind(self, job_id: JobId, *pods: str) -> None:
        """Each to the first node of its job."""
        for pod in pods or self.pods:
            self.hand.bind(pod, self.hand.node_of(job_id), job_id)

    def complaints(self) -> list[str]:
        """Which promises would be broken if this were the end."""
        return [text[:2] for text in self.world.observer.complaints()]

    def end(self, job_id: JobId) -> None:
        """scancel, of all that belongs to it."""
        self.hand.slurm.cancel(job_id)

    def delete(self, pod: str) -> None:
        """A user does, and the pod is gone at once."""
        self.world.delete_pod(pod, 0)
        self.world.pass_time(1.0)


@pytest.fixture
def director(tmp_path: pathlib.Path) -> Director:
    """An empty stage."""
    return Director(tmp_path / "token")


@pytest.mark.parametrize("form", list(Form))
def test_what_is_right_is_silent(director: Director, form: Form) -> None:
    """Whole groups of every form are placed, end, and leave nothing."""
    director.enter(form, seconds=0 if form is Form.LWS else 5)
    for _ in range(3):
        waiting = [name for name in director.pods if not director.world.find(name)["spec"].get("nodeName")]  # type: ignore[index]
        if waiting:
            uid = director.world.find(waiting[0])["metadata"]["uid"]  # type: ignore[index]
            group = director.world.observer.pods[uid].group
            director.bind(director.hand.ask(director.hand.request("t", group, cpus=3, memory=600)), *waiting)
            assert director.complaints() == []
        director.world.pass_time(3.0)
    for job in director.world.ours("RUNNING"):
        director.world.end_job(job)
    if form is Form.LWS:
        director.world.kube.delete(kinds.LEADERWORKERSETS, (NAMESPACE, "t"))
    director.world.pass_time(60.0)
    assert director.complaints() == []


def test_i1_two_jobs_of_one_group(director: Director) -> None:
    """A second living job is seen as soon as it is there."""
    director.enter()
    director.submit()
    with pytest.raises(Broken, match="I1"):
        director.submit()


def test_i1_components_of_one_job_are_one(director: Director) -> None:
    """They have ids of their own, and one placeholder is one placeholder."""
    director.enter()
    part = director.hand.request("t", director.group, cpus=2)
    director.hand.ask(director.hand.request("t", director.group, components=(part,)))
    assert len(director.world.observer.living(director.group)) == 2


def test_i1_a_job_for_a_member_alone(director: Director) -> None:
    """A pod of a group has no job of its own."""
    director.enter()
    with pytest.raises(Broken, match=r"I1.*member"):
        director.hand.submit("t-0")


def test_i2_a_job_of_another_group(director: Director) -> None:
    """A node that another workload's job holds is not theirs."""
    director.enter()
    job_id = director.submit()
    director.enter(name="u")
    with pytest.raises(Broken, match="I2"):
        director.bind(job_id, "u-0")


def test_i2_a_component_that_does_not_run(director: Director) -> None:
    """A heterogeneous job runs when all its parts do."""
    director.enter()
    part = director.hand.request("t", director.group, cpus=2)
    job_id = director.hand.ask(director.hand.request("t", director.group, components=(part,)))
    director.world.slurm.control.suspend(director.world.slurm.control.job(job_id).components[1])
    director.world.pass_time(20.0)
    with pytest.raises(Broken, match="I2"):
        director.bind(job_id, "t-0")


def test_i2_the_node_of_any_component(director: Director) -> None:
    """Members may be on every node that the job holds, whichever part it is of."""
    director.enter()
    part = director.hand.request("t", director.group, cpus=2)
    job_id = director.hand.ask(director.hand.request("t", director.group, components=(part,)))
    other = director.world.slurm.control.job(director.world.slurm.control.job(job_id).components[1])
    director.hand.bind("t-0", director.hand.node_of(job_id), job_id)
    director.hand.bind("t-1", other.grant.nodes[0], job_id)  # type: ignore[union-attr]


def test_i3_more_members_than_the_job_has_room_for(director: Director) -> None:
    """Each alone would fit, all together do not."""
    director.enter()
    job_id = director.submit(tasks=2)
    with pytest.raises(Broken, match="I3"):
        director.bind(job_id)


@pytest.mark.parametrize("size", [Size(memory_mib=900), Size(gpus=1)])
def test_i3_counts_everything(director: Director, size: Size) -> None:
    """Memory and devices as well."""
    director.enter(leader=size)
    with pytest.raises(Broken, match="I3"):
        director.bind(director.submit())


def test_i3_a_member_that_is_over_takes_no_room(director: Director) -> None:
    """The pod that replaces it takes its place."""
    director.enter()
    job_id = director.submit()
    director.bind(job_id)
    director.world.kube.merge(kinds.PODS, (NAMESPACE, "t-1"), {"status": {"phase": "Failed"}}, "status")
    made = troupes.member(TROUPE, 3, names.SCHEDULER_NAME)
    director.world.kube.create(*made)
    director.bind(job_id, "t-3")
    assert director.complaints() == []


def test_i3_a_gang_that_is_not_complete(director: Director) -> None:
    """No pod of a gang is bound before enough of them are there."""
    director.enter()
    job_id = director.submit()
    director.delete("t-2")
    director.world.pass_time(60.0)
    with pytest.raises(Broken, match=r"I3.*gang of 3"):
        director.bind(job_id)


@pytest.mark.parametrize("form", [Form.PODGROUP, Form.COSCHEDULING])
def test_i3_a_group_that_is_called_scheduled_too_early(director: Director, form: Form) -> None:
    """Its object says so when all are placed."""
    director.enter(form)
    with pytest.raises(Broken, match=r"I3.*scheduled"):
        _praise(director, form)


def _praise(director: Director, form: Form, text: str = "") -> None:
    kind = kinds.PODGROUPS if form is Form.PODGROUP else kinds.COSCHEDULING_PODGROUPS
    found = director.hand.cluster.get(kind, NAMESPACE, "t")
    assert found is not None
    line = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "message": text}
    line["lastTransitionTime"] = "2024-01-01T00:00:00Z"
    status = {"conditions": [line]} if form is Form.PODGROUP else {"phase": "Scheduling"}
    director.hand.cluster.patch(kind, found, {"status": status}, subresource="status")


def test_i5_a_group_is_changed(director: Director) -> None:
    """Nothing but its status is ours to write."""
    director.enter()
    found = director.hand.cluster.get(kinds.PODGROUPS, NAMESPACE, "t")
    assert found is not None
    with pytest.raises(Broken, match="I5"):
        director.hand.cluster.patch(kinds.PODGROUPS, found, {"metadata": {"labels": {"a": "b"}}})


def test_i5_a_job_is_changed(director: Director) -> None:
    """Nor the controller that makes the pods."""
    director.enter(Form.JOB)
    found = director.hand.cluster.get(kinds.JOBS, NAMESPACE, "t")
    assert found is not None
    with pytest.raises(Broken, match="I5"):
        director.hand.cluster.patch(kinds.JOBS, found, {"spec": {"suspend": True}})


def test_a_group_is_called_scheduled_once(director: Director) -> None:
    """When all of it is placed, and never again, whatever has taken it back."""
    director.enter()
    director.bind(director.submit())
    _praise(director, Form.PODGROUP)
    director.world.kube.merge(kinds.PODGROUPS, (NAMESPACE, "t"), {"status": {"conditions": []}}, "status")
    director.world.pass_time(1.0)
    with pytest.raises(Broken, match=r"I5.*once more"):
        _praise(director, Form.PODGROUP, "again")


def test_i4_a_job_without_any_member(director: Director) -> None:
    """It outlives its pods."""
    director.enter()
    job_id = director.submit()
    for pod in director.pods:
        director.delete(pod)
    assert director.complaints() == ["I4"]
    director.end(job_id)
    assert director.complaints() == []


def test_i4_a_job_of_a_group_that_may_not_run(director: Director) -> None:
    """A suspended group holds no place."""
    director.enter(Form.JOB, slow_end=True)
    job_id = director.submit()
    director.bind(job_id)
    director.world.kube.merge(kinds.JOBS, (NAMESPACE, "t"), {"spec": {"suspend": True}})
    director.world.pass_time(1.0)
    assert director.complaints() == ["I4"]


def test_i4_a_job_of_a_gang_that_is_not_complete(director: Director) -> None:
    """It would start for nothing; without it the pods that are there may go on waiting."""
    director.enter()
    job_id = director.submit(hold=True)
    director.delete("t-2")
    assert director.complaints()[0] == "I4"
    director.end(job_id)
    assert director.complaints() == []


def test_i6_a_gang_that_waits_though_it_is_complete(director: Director) -> None:
    """Each of its pods is a complaint."""
    director.enter()
    assert director.complaints() == ["I6"] * 3


def test_i6_a_gang_of_which_a_part_is_bound(director: Director) -> None:
    """All or none: a pod with a place in the job that runs is not left behind."""
    director.enter()
    director.bind(director.submit(), "t-0", "t-1")
    assert director.complaints() == ["I6"]


def test_i6_one_more_than_there_is_room_for_may_wait(director: Director) -> None:
    """A newcomer waits until the others have done their work."""
    director.enter()
    director.bind(director.submit())
    director.world.kube.create(*troupes.member(TROUPE, 3, names.SCHEDULER_NAME))
    assert director.complaints() == []


def test_i6_one_more_starts_anew_with_all_others_when_one_was_lost(director: Director) -> None:
    """Where the policy says so."""
    director.enter(words=RESTARTS)
    director.bind(director.submit())
    director.delete("t-0")
    director.world.kube.create(*troupes.member(TROUPE, 3, names.SCHEDULER_NAME))
    assert director.complaints() == ["I6"]


def test_i6_what_an_earlier_job_lost_restarts_no_member(director: Director) -> None:
    """However short a time ago that was: one more than there is room for may wait."""
    director.enter(words=RESTARTS)
    director.bind(job_id := director.submit())
    director.end(job_id)
    for pod in director.pods:
        director.delete(pod)
    for number in range(TROUPE.size):
        director.world.kube.create(*troupes.member(TROUPE, number, names.SCHEDULER_NAME))
    director.world.pass_time(1.0)
    director.bind(director.submit())
    director.world.kube.create(*troupes.member(TROUPE, 3, names.SCHEDULER_NAME))
    assert director.complaints() == []


def test_i6_members_without_a_job(director: Director) -> None:
    """They sit on resources that Slurm may give to others."""
    director.enter()
    job_id = director.submit()
    director.bind(job_id)
    director.end(job_id)
    assert director.complaints() == ["I6"] * 3


def test_i7_a_member_whose_job_lives(director: Director) -> None:
    """It is not deleted."""
    director.enter()
    director.bind(director.submit())
    with pytest.raises(Broken, match="I7"):
        director.hand.delete("t-1")


def test_i7_that_an_earlier_job_has_ended_says_nothing(director: Director) -> None:
    """What counts is the job that the pod names."""
    director.enter()
    director.end(director.submit())
    director.bind(director.submit())
    with pytest.raises(Broken, match="I7"):
        director.hand.delete("t-1")


@pytest.mark.parametrize("words", [{}, RESTARTS])
def test_i7_the_others_go_only_where_a_loss_ends_all(director: Director, words: dict[str, str]) -> None:
    """With the policy that says so, and with none that does not."""
    director.enter(words=words)
    director.bind(director.submit())
    director.world.kube.merge(kinds.PODS, (NAMESPACE, "t-0"), {"status": {"phase": "Failed"}}, "status")
    if words:
        director.hand.delete("t-1")
        return
    with pytest.raises(Broken, match="I7"):
        director.hand.delete("t-1")


def test_i7_no_member_was_lost(director: Director) -> None:
    """Such a policy is no licence."""
    director.enter(words=RESTARTS)
    director.bind(director.submit())
    with pytest.raises(Broken, match="I7"):
        director.hand.delete("t-1")


def test_i7_a_start_that_could_not_be_finished_in_time(director: Director) -> None:
    """A part of a gang is taken back after a while, and not before."""
    director.enter()
    director.bind(director.submit(), "t-0", "t-1")
    with pytest.raises(Broken, match="I7"):
        director.hand.delete("t-0")
    director.world.pass_time(BIND_SECONDS)
    director.hand.delete("t-1")


def test_a_world_of_troupes_is_made_by_its_seed(tmp_path: pathlib.Path) -> None:
    """The same seed, the same machines and the same strangers."""
    make: Callable[[], World] = lambda: World(4, tmp_path / "token", fleet=fleet.hall(6, gpu_type="a100"))  # noqa: E731
    assert make().journal == make().journal
    assert make().slurm.world.nodes == make().slurm.world.nodes
