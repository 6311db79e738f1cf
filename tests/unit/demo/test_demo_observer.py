"""The observer sees both sides without calling either."""

from collections.abc import Iterator

import pytest

from slurm_bridge.demo import ownership, pocket, work
from slurm_bridge.demo.observer import PocketObserver
from slurm_bridge.demo.scene import PodStage
from slurm_bridge.demo.work import Work
from slurm_bridge.model import kinds, names
from slurm_bridge.model.marks import Owner


@pytest.fixture
def world() -> Iterator[pocket.PocketWorld]:
    """With the namespace of the show."""
    with pocket.world(nodes=4) as made:
        made.kube.create(kinds.NAMESPACES, {"metadata": {"name": work.NAMESPACE}})
        yield made


def test_looking_is_not_counted_among_the_calls(world: pocket.PocketWorld) -> None:
    """Only what goes over HTTP is, from the observer's making on."""
    world.cluster.list(kinds.NODES)
    look = PocketObserver(world)
    world.kube.create(kinds.PODS, work.pod(1))
    assert (look.look().calls.kube, look.look().count(PodStage.PENDING)) == (0, 1)
    world.cluster.list(kinds.NODES)
    assert look.look().calls.kube == 1


def test_pods_that_are_gone_for_long_are_only_counted(world: pocket.PocketWorld) -> None:
    """The sums stay right."""
    look = PocketObserver(world, remembered=1)
    for number in (1, 2, 3):
        world.kube.create(kinds.PODS, work.pod(number))
    look.look()
    for number in (1, 2, 3):
        world.kube.delete(kinds.PODS, (work.NAMESPACE, f"pod-{number:03}"), grace=0)
    frame = look.look()
    assert (len(frame.rows), frame.count(PodStage.GONE), frame.pods) == (1, 3, 3)
    assert look.look().pods == 3


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ({"conditions": [{"type": "Complete", "status": "True"}]}, "done"),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, "failed"),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, ""),
        ({}, ""),
    ],
)
def test_a_job_has_the_outcome_that_its_conditions_say(
    world: pocket.PocketWorld, status: dict[str, object], outcome: str
) -> None:
    """Nothing as long as it goes on."""
    spec = {"suspend": True, "template": {"spec": {"containers": [{"name": "c"}]}}}
    world.kube.create(kinds.JOBS, {"metadata": {"name": "a", "namespace": work.NAMESPACE}, "spec": spec})
    world.kube.merge(kinds.JOBS, (work.NAMESPACE, "a"), {"status": status}, "status")
    assert PocketObserver(world).outcome(Work(kind=kinds.JOBS, namespace=work.NAMESPACE, name="a")) == outcome


def test_what_was_deleted_is_gone(world: pocket.PocketWorld) -> None:
    """A bare pod whose node was taken back."""
    assert PocketObserver(world).outcome(Work(kind=kinds.PODS, namespace=work.NAMESPACE, name="nobody")) == "gone"


@pytest.mark.parametrize(
    ("marked", "owner"),
    [
        ({"labels": {names.GROUP: "g"}}, Owner(cluster="c", kind="Group", namespace="ns", name="g", uid="Group:ns/g")),
        (
            {"annotations": {names.GROUP: "g"}},
            Owner(cluster="c", kind="Group", namespace="ns", name="g", uid="Group:ns/g"),
        ),
        (
            {"labels": {names.LABEL_COSCHEDULING: "g"}},
            Owner(cluster="c", kind="PodGroup", namespace="ns", name="g", uid="u7"),
        ),
        (
            {"ownerReferences": [{"controller": True, "uid": "u5"}]},
            Owner(cluster="c", kind="Job", namespace="ns", name="a", uid="u5"),
        ),
        ({}, Owner(cluster="c", kind="Pod", namespace="ns", name="p", uid="u1")),
    ],
)
def test_a_pod_may_have_the_job_of_its_group(marked: dict[str, object], owner: Owner) -> None:
    """Its group is read from the pod alone."""
    pod = {"metadata": {"uid": "u1", "namespace": "ns", **marked}, "spec": {}}
    assert ownership.owner_of(owner) in ownership.candidates(pod)
    named = {**pod, "spec": {"schedulingGroup": {"podGroupName": "h"}}}
    assert "PodGroup:ns/h" in ownership.candidates(named)
    assert "PodGroup:other/h" not in ownership.candidates(named)
