"""An application is what makes pods, or what they name: its workloads are asks of it, and it counts once."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge
from tests.unit.workloads import owned

ID = "yunikorn.apache.org/app-id"
OTHER = "other"


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus, and two namespaces."""
    made = Bridge(tmp_path)
    made.kube.create(kinds.NAMESPACES, {"metadata": {"name": OTHER}})
    return made


def owner(bridge: Bridge, name: str, kind: Kind[Any] = kinds.REPLICASETS, *above: Any) -> dict[str, Any]:
    """An object that makes pods, and the reference by which these name it."""
    made = bridge.kube.create(kind, {"metadata": {"name": name, "namespace": "default", "ownerReferences": [*above]}})
    return owned.reference(kind, name, made["metadata"]["uid"])


def replicas(queues: Queues, above: Any, *names: str, **changes: Any) -> None:
    """Pods of this owner."""
    for name in names:
        queues.pod(name, ownerReferences=[above], **changes)


def told(bridge: Bridge, name: str, namespace: str) -> str:
    """Why a pod of any namespace waits."""
    found = bridge.manifest(name, namespace)["status"].get("conditions", ())
    return next((str(one["message"]) for one in found if one["type"] == "PodScheduled"), "")


def one_at_a_time(bridge: Bridge, *more: Any) -> Queues:
    """Queue a runs one application."""
    return Queues(bridge, queue("a", maxapplications=1), *more)


def test_all_pods_of_a_replicaset_are_one_application(bridge: Bridge) -> None:
    """They all start, the next ReplicaSet waits and says why, and starts when the last pod of the first has ended."""
    queues = one_at_a_time(bridge)
    replicas(queues, owner(bridge, "web"), "w1", "w2", "w3")
    bridge.run(3)
    replicas(queues, owner(bridge, "db"), "d1", "d2")
    bridge.run(5)
    assert queues.running("w1", "w2", "w3", "d1", "d2") == ["w1", "w2", "w3"]
    reason, message = queues.said("d1")
    assert reason == "QueueWaiting"
    assert message == "in queue root.a: queue root.a runs 1 of 1 applications; one has to end first"
    for name in ("w1", "w2"):
        bridge.delete(name, grace=0)
    bridge.run(5)
    assert queues.running("d1", "d2") == []
    bridge.delete("w3", grace=0)
    bridge.run(5)
    assert queues.running("d1", "d2") == ["d1", "d2"]


def test_the_highest_controller_is_the_application(bridge: Bridge) -> None:
    """While a Deployment is updated, its old and its new ReplicaSet are one."""
    queues = one_at_a_time(bridge)
    above = owner(bridge, "web", kinds.DEPLOYMENTS)
    replicas(queues, owner(bridge, "web-1", kinds.REPLICASETS, above), "old")
    replicas(queues, owner(bridge, "web-2", kinds.REPLICASETS, above), "new")
    bridge.run(5)
    assert queues.running("old", "new") == ["old", "new"]


def test_each_job_of_a_schedule_is_one(bridge: Bridge) -> None:
    """A CronJob makes runs, which are counted one by one."""
    queues = one_at_a_time(bridge)
    above = owner(bridge, "nightly", kinds.CRONJOBS)
    replicas(queues, owner(bridge, "run-1", kinds.REPLICASETS, above), "one")
    bridge.run(3)
    replicas(queues, owner(bridge, "run-2", kinds.REPLICASETS, above), "two")
    bridge.run(5)
    assert queues.running("one", "two") == ["one"]


def test_the_executors_belong_to_their_driver(bridge: Bridge) -> None:
    """Spark's driver owns them; it is an application itself before it has any."""
    queues = one_at_a_time(bridge)
    uid = queues.pod("driver")
    bridge.run(3)
    replicas(queues, owned.reference(kinds.PODS, "driver", uid), "exec-1", "exec-2")
    queues.pod("stranger")
    bridge.run(5)
    assert queues.running("exec-1", "exec-2", "stranger") == ["exec-1", "exec-2"]


@pytest.mark.parametrize(
    "names",
    [
        {"labels": {"applicationId": "app-1"}},
        {"labels": {ID: "app-1"}},
        {"annotations": {ID: "app-1"}},
        {"labels": {"spark-app-selector": "app-1"}},
    ],
)
def test_pods_that_name_an_application_are_one(bridge: Bridge, names: Any) -> None:
    """By each of YuniKorn's labels and annotations."""
    queues = one_at_a_time(bridge)
    for name in ("one", "two"):
        queues.pod(name, **names)
    bridge.run(3)
    queues.pod("three")
    bridge.run(5)
    assert queues.running("one", "two", "three") == ["one", "two"]


def test_the_same_id_in_another_namespace_is_another_application(bridge: Bridge) -> None:
    """Nobody joins the application of another team by writing its id."""
    queues = one_at_a_time(bridge)
    queues.pod("one", labels={"applicationId": "app-1"})
    bridge.run(3)
    marks = {"slurmjob.slinky.slurm.net/queue": "root.a"}
    bridge.pod("stranger", OTHER, annotations=marks, labels={"applicationId": "app-1"})
    bridge.run(5)
    assert "runs 1 of 1 applications" in told(bridge, "stranger", OTHER)


@pytest.mark.parametrize("claimed", ["ReplicaSet", "Deployment"])
def test_an_owner_that_is_not_the_one_that_is_meant_makes_no_application(bridge: Bridge, claimed: str) -> None:
    """A pod of another namespace writes the reference of a pod that runs; an old uid is no better."""
    queues = one_at_a_time(bridge)
    above = owner(bridge, "web")
    replicas(queues, above, "w1")
    bridge.run(3)
    marks = {"slurmjob.slinky.slurm.net/queue": "root.a"}
    forged = {**above, "kind": claimed}
    bridge.pod("stranger", OTHER, annotations=marks, ownerReferences=[forged])
    queues.pod("old", ownerReferences=[{**above, "uid": "before"}])
    bridge.run(5)
    assert "runs 1 of 1 applications" in told(bridge, "stranger", OTHER)
    assert not queues.running("old")


def test_a_restart_comes_to_the_same_applications(bridge: Bridge) -> None:
    """From pods alone; what the queue uses is the same, too."""
    queues = one_at_a_time(bridge)
    web = owner(bridge, "web")
    replicas(queues, web, "w1", "w2")
    bridge.run(3)
    bridge.start()
    queues = one_at_a_time(bridge)
    replicas(queues, web, "w3")
    replicas(queues, owner(bridge, "db"), "d1")
    bridge.run(5)
    assert queues.running("w3", "d1") == ["w3"]
    picture = queues.hook.picture()
    assert picture is not None
    (leaf,) = [one for one in picture["queues"]["queues"] if one["path"] == "root.a"]
    assert (leaf["running"], leaf["used"]["vcore"]) == (1, 3000)


def test_the_application_with_less_goes_first(bridge: Bridge) -> None:
    """With the policy fair, the one that uses nothing is served before the one that runs, although it came later."""
    fair = {"application.sort.policy": "fair"}
    queues = Queues(bridge, queue("a", properties=fair, resources={"max": {"vcore": "2"}}))
    rich, poor = owner(bridge, "rich"), owner(bridge, "poor")
    replicas(queues, rich, "r1", "r2")
    bridge.run(3)
    replicas(queues, rich, "r3")
    bridge.run(2)
    replicas(queues, poor, "p1")
    bridge.run(2)
    bridge.delete("r1", grace=0)
    bridge.run(5)
    assert queues.running("r3", "p1") == ["p1"]


def test_the_more_important_ask_of_an_application_goes_first(bridge: Bridge) -> None:
    """Although it came later."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "1"}}))
    web = owner(bridge, "web")
    replicas(queues, web, "w1")
    bridge.run(3)
    replicas(queues, web, "low", spec={"priority": 1})
    bridge.run(2)
    replicas(queues, web, "high", spec={"priority": 5})
    bridge.run(2)
    bridge.delete("w1", grace=0)
    bridge.run(5)
    assert queues.running("low", "high") == ["high"]


def test_the_queue_is_read_from_yunikorns_labels_too(bridge: Bridge) -> None:
    """The canonical label, its annotation, and the short label; ours counts before them."""
    queues = Queues(bridge, queue("a"), queue("b"))
    marks: dict[str, Any] = {
        "label": {"labels": {"yunikorn.apache.org/queue": "root.b"}},
        "annotation": {"annotations": {"yunikorn.apache.org/queue": "root.b"}},
        "short": {"labels": {"queue": "root.b"}},
        "ours": {"labels": {"queue": "root.b"}, "annotations": {"slurmjob.slinky.slurm.net/queue": "root.a"}},
    }
    for name, mark in marks.items():
        bridge.pod(name, **mark)
    bridge.run(5)
    assert queues.running(*marks) == list(marks)
    picture = queues.hook.picture()
    assert picture is not None
    runs = {one["path"]: one["running"] for one in picture["queues"]["queues"]}
    assert (runs["root.a"], runs["root.b"]) == (1, 3)


@pytest.mark.parametrize("change", [{"queue": "root.b"}, {"spec": {"serviceAccountName": "robot"}}])
def test_a_deployment_moves_to_another_queue_or_account_pod_by_pod(bridge: Bridge, change: Any) -> None:
    """Its new pods start beside the old ones, as an application of their own."""
    queues = Queues(bridge, queue("a"), queue("b"))
    above = owner(bridge, "web", kinds.DEPLOYMENTS)
    replicas(queues, owner(bridge, "web-1", kinds.REPLICASETS, above), "old")
    bridge.run(3)
    replicas(queues, owner(bridge, "web-2", kinds.REPLICASETS, above), "new", **change)
    bridge.run(5)
    assert queues.running("old", "new") == ["old", "new"]
    picture = queues.hook.picture()
    assert picture is not None
    assert picture["queues"]["running"] == 2


def test_pods_of_an_application_that_name_another_queue_are_refused(bridge: Bridge) -> None:
    """They read which queue theirs is; when the application is over, they are one of their own."""
    queues = Queues(bridge, queue("a"), queue("b"))
    queues.pod("one", labels={"applicationId": "app-1"})
    bridge.run(3)
    queues.pod("two", "root.b", labels={"applicationId": "app-1"})
    bridge.run(3)
    reason, message = queues.said("two")
    assert reason == "QueueRejected"
    assert "asks for queue root.b, but application default/app-1 is in queue root.a" in message
    bridge.delete("one", grace=0)
    bridge.run(5)
    assert queues.running("two") == ["two"]


def test_pods_of_another_user_are_no_part_of_an_application(bridge: Bridge) -> None:
    """Another service account would use what belongs to the first one."""
    queues = Queues(bridge, queue("a"))
    queues.pod("one", labels={"applicationId": "app-1"})
    bridge.run(3)
    queues.pod("two", labels={"applicationId": "app-1"}, spec={"serviceAccountName": "robot"})
    bridge.run(3)
    reason, message = queues.said("two")
    assert reason == "QueueRejected"
    assert "user system:serviceaccount:default:robot" in message
    assert "application default/app-1 belongs to user system:serviceaccount:default:default" in message


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (
            {"annotations": {ID: "x" * 5000}},
            f"Pod default/odd: annotation {ID}={'x' * 60}...: use 1 to 63 letters, digits, - _ and ., ",
        ),
        ({"annotations": {ID: "a/b"}}, f"Pod default/odd: annotation {ID}=a/b: use 1 to 63"),
        (
            {"labels": {"applicationId": "a"}, "annotations": {ID: "b"}},
            f"Pod default/odd: label applicationId=a and annotation {ID}=b name two applications",
        ),
        (
            {"labels": {"queue": "root.a", "yunikorn.apache.org/queue": "root.b"}},
            "Pod default/odd: label queue=root.a and label yunikorn.apache.org/queue=root.b name two queues",
        ),
        (
            {"annotations": {"yunikorn.apache.org/queue": "root." + "x" * 5000}},
            "Pod default/odd: annotation yunikorn.apache.org/queue=root.",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_pod_the_key_and_the_rule(
    bridge: Bridge, mark: Any, words: str
) -> None:
    """And the pod beside it is not harmed."""
    queues = Queues(bridge, queue("a"), queue("b"))
    bridge.pod("odd", **mark)
    queues.pod("good")
    bridge.run(5)
    assert queues.running("odd", "good") == ["good"]
    reason, message = queues.said("odd")
    assert reason == "QueueRejected"
    assert message.startswith(words)


def test_who_a_pod_says_that_it_is_of_is_not_believed_and_that_is_told(bridge: Bridge) -> None:
    """Neither YuniKorn's annotation nor its label makes a user of another one."""
    ann = {"yunikorn.apache.org/user.info": '{"user": "ann", "groups": ["admins"]}'}
    limits = [{"limit": "each", "users": ["*"], "maxresources": {"vcore": "1"}}]
    queues = Queues(bridge, queue("a", limits=limits))
    queues.pod("one")
    bridge.run(3)
    queues.pod("two", annotations=ann)
    bridge.run(3)
    assert not queues.running("two")
    message = queues.said("two")[1]
    assert "annotation yunikorn.apache.org/user.info is not read" in message
    assert "the user is system:serviceaccount:default:default" in message


def test_a_priority_class_is_seen_with_what_it_says_of_preemption(bridge: Bridge) -> None:
    """The core is told of each workload of the class."""
    said = {"yunikorn.apache.org/allow-preemption": "false"}
    bridge.kube.create(kinds.PRIORITYCLASSES, {"metadata": {"name": "kept", "annotations": said}, "value": 5})
    queues = Queues(bridge, queue("a"))
    queues.pod("one", spec={"priorityClassName": "kept"})
    queues.pod("two")
    bridge.run(3)
    manager = queues.hook._manager
    assert manager is not None
    opted = {one.demand.title: one.demand.opts_out for one in manager.members.values()}
    assert opted == {"default/one": True, "default/two": False}


def test_a_huge_application_does_not_hold_up_another_queue(bridge: Bridge) -> None:
    """Its pods wait for its own queue only."""
    queues = Queues(bridge, queue("a", maxapplications=1, resources={"max": {"vcore": "4"}}), queue("b"))
    replicas(queues, owner(bridge, "web"), *(f"w{number}" for number in range(40)))
    queues.pod("other", "root.b")
    bridge.run(10)
    assert queues.running("other") == ["other"]
