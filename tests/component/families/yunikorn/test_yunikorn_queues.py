"""Workloads wait in their queues, are let in by these, and give back what they used."""

import pathlib
from typing import Any

import pytest
import yaml

from slurm_bridge import errors
from slurm_bridge.hooks.services import CarriedState, HookServices, Silent
from slurm_bridge.model import names
from tests.component.families.yunikorn.yunikorn_scenes import Queues, document, made, queue
from tests.component.scheduler.whole_core import Bridge


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


def full(bridge: Bridge) -> Queues:
    """Queue a has two cpus, which one pod uses."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}), queue("b"))
    queues.pod("first", cpu="2")
    bridge.run(3)
    assert queues.running("first")
    return queues


def test_a_queue_over_its_maximum_waits_with_the_reason(bridge: Bridge) -> None:
    """Nothing is submitted, and the user reads what is used of what."""
    queues = full(bridge)
    queues.pod("second")
    bridge.run(3)
    assert queues.submitted() == ["first"]
    reason, message = queues.said("second")
    assert reason == "QueueWaiting"
    assert message == (
        "in queue root.a: queue root.a uses 2 of 2 vcore, and this asks for 1; others in root.a have to end first"
    )


def test_a_workload_runs_when_its_queue_is_freed(bridge: Bridge) -> None:
    """The end of another one wakes it."""
    queues = full(bridge)
    queues.pod("second")
    bridge.run(3)
    bridge.status("first", phase="Succeeded")
    bridge.run(5)
    assert queues.running("second")


def test_another_queue_is_not_held_up(bridge: Bridge) -> None:
    """What is full is full for itself."""
    queues = full(bridge)
    queues.pod("other", "root.b")
    bridge.run(3)
    assert queues.running("other")


def test_a_placeholder_that_waits_in_slurm_counts(bridge: Bridge) -> None:
    """Usage is from the submission to the end."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}))
    bridge.slurm.control.pause()
    queues.one_by_one("one", "two", "three")
    assert queues.submitted() == ["one", "two"]


def test_a_workload_that_never_fits_says_so(bridge: Bridge) -> None:
    """It is larger than its queue may ever be."""
    queues = full(bridge)
    queues.pod("huge", cpu="3")
    bridge.run(3)
    assert queues.said("huge") == (
        "QueueTooSmall",
        "asks for 3 vcore, and queue root.a never has more than 2: it has to ask for less, or go into another queue",
    )


@pytest.mark.parametrize("acl", ["system:serviceaccount:default:default", " system:serviceaccounts:default"])
def test_an_access_list_admits_a_service_account_by_its_name_and_its_group(bridge: Bridge, acl: str) -> None:
    """As Kubernetes writes them, without any entry of `users`."""
    root = {"name": "root", "queues": [queue("a", submitacl=acl)]}
    queues = Queues(bridge, configuration={"partitions": [{"name": "default", "queues": [root]}]})
    queues.pod("mine")
    bridge.run(3)
    assert queues.running("mine")


def test_a_configuration_with_a_name_that_cannot_be_read_is_refused(bridge: Bridge) -> None:
    """The message has the queue, the field and the name."""
    with pytest.raises(errors.BadConfiguration, match=r"submitacl: of queue root\.a has the user 'bob;carl'"):
        Queues(bridge, queue("a", submitacl="ann,bob;carl"))


@pytest.mark.parametrize(
    ("below_root", "path"),
    [
        ((queue("testqueue"), queue("parent", queue("testqueue"))), "root.parent.testqueue"),
        ((queue("parent1", queue("queue-1")), queue("parent2", queue("queue-1"))), "root.parent2.queue-1"),
    ],
)
def test_a_name_has_several_places_where_the_option_allows_it(bridge: Bridge, below_root: Any, path: str) -> None:
    """The configurations of YuniKorn's documents; a dry run goes by the same option."""
    queues = Queues(bridge, *below_root, one_place=False)
    queues.pod("mine", path)
    bridge.run(3)
    assert queues.running("mine")
    assert queues.hook.desk.problems(yaml.safe_dump(document(*below_root)).encode()) == ()
    with pytest.raises(errors.BadConfiguration, match="a name has one place"):
        Queues(bridge, *below_root)


def test_a_property_that_is_not_known_is_logged_once(bridge: Bridge) -> None:
    """With its queue and the known ones; the queues work."""
    heard = Heard()
    odd = document(queue("a", properties={"colour": "red"}))
    carried = CarriedState()
    for ahead in (1, 2):
        services = HookServices(clock=bridge.clock, threads=False, log=heard, carried=carried)
        hook = made({"configuration": odd, "ahead": ahead}, services)
        hook.restored((), {}, fresh=False)
    (line,) = heard.lines
    where = "partitions[0].queues[0].queues[0].properties.colour"
    assert line.startswith(f"configuration of the queues: {where}: of queue root.a is no property")
    assert "application.sort.policy" in line


class Heard(Silent):
    """A logger that keeps its warnings."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, message: object, /) -> None:
        self.lines.append(str(message))


def test_an_unknown_order_of_nodes_is_told_with_the_annotation_and_the_known_ones(bridge: Bridge) -> None:
    """The user has to write another one, or none."""
    queues = Queues(bridge, queue("a"))
    queues.pod("odd", annotations={"slurmjob.slinky.slurm.net/node-sort-policy": "smallest"})
    queues.pod("good", annotations={"slurmjob.slinky.slurm.net/node-sort-policy": "binpacking"})
    bridge.run(3)
    assert queues.running("odd", "good") == ["good"]
    reason, message = queues.said("odd")
    assert reason == "QueueRejected"
    assert message == (
        "annotation slurmjob.slinky.slurm.net/node-sort-policy is 'smallest': use fair or binpacking, "
        "or leave the annotation out"
    )


def test_a_queue_that_does_not_exist_is_told_with_those_that_take_the_user(bridge: Bridge) -> None:
    """Leaves that admit the user, and no others."""
    root = {"name": "root", "queues": [queue("a", submitacl="*"), queue("b", submitacl="ann"), queue("c", queue("d"))]}
    queues = Queues(bridge, configuration={"partitions": [{"name": "default", "queues": [root]}]})
    queues.pod("lost", "root.z")
    bridge.run(3)
    reason, message = queues.said("lost")
    assert reason == "QueueRejected"
    assert "root.z does not exist" in message
    assert message.endswith("; queues that take workloads of this user: root.a")


@pytest.mark.parametrize("backoff", ["1", "2", "5"])
def test_a_pause_keeps_no_workload_from_a_place_ahead_that_is_free(bridge: Bridge, backoff: str) -> None:
    """Both that wait were refused one, and the next follows at once when a workload starts."""
    pauses = {"application.unschedasks.backoff": backoff, "application.unschedasks.backoff.delay": "1h"}
    queues = Queues(bridge, queue("a", properties=pauses), ahead=1)
    bridge.slurm.control.pause()
    queues.one_by_one("one", "two", "three")
    assert queues.submitted() == ["one"]
    bridge.slurm.control.unpause()
    bridge.run(10)
    assert queues.running("one", "two", "three") == ["one", "two", "three"]


def test_an_access_list_refuses_with_its_words(bridge: Bridge) -> None:
    """By the service account, whatever the pod says of itself."""
    root = {"name": "root", "queues": [queue("a", submitacl="ann"), queue("b")]}
    rules = [{"name": "provided"}]
    queues = Queues(
        bridge, configuration={"partitions": [{"name": "default", "queues": [root], "placementrules": rules}]}
    )
    queues.pod("mine")
    bridge.run(3)
    reason, message = queues.said("mine")
    assert reason == "QueueRejected"
    assert "user system:serviceaccount:team:default may not submit to root.a" in message.replace(
        "default:default", "team:default"
    )


def test_a_user_limit_refuses_with_its_words(bridge: Bridge) -> None:
    """Users are told whose limit it is."""
    limits = [{"limit": "each", "users": ["*"], "maxresources": {"vcore": "1"}}]
    queues = Queues(bridge, queue("a", limits=limits))
    queues.one_by_one("one", "two")
    assert queues.running("one", "two") == ["one"]
    assert "(by the limit of *) has 1000m of 1000m that queue root.a allows" in queues.said("two")[1]


def test_the_number_of_workloads_of_a_queue_is_limited(bridge: Bridge) -> None:
    """The next one runs when one has ended."""
    queues = Queues(bridge, queue("a", maxapplications=1))
    queues.one_by_one("one", "two")
    assert queues.running("one", "two") == ["one"]
    assert "queue root.a runs 1 of 1 applications; one has to end first" in queues.said("two")[1]
    bridge.delete("one", grace=0)
    bridge.run(5)
    assert queues.running("two")


def test_so_many_are_ahead_and_the_queues_choose_the_next(bridge: Bridge) -> None:
    """Whoever was there first does not fill Slurm's queue: the other queue has its turn."""
    queues = Queues(bridge, queue("a"), queue("b"), ahead=2)
    bridge.slurm.control.pause()
    queues.one_by_one("a1", "a2", "a3", "a4")
    queues.pod("b1", "root.b")
    bridge.run(2)
    assert queues.submitted() == ["a1", "a2"]
    assert "2 workloads are ahead and wait for nodes" in queues.said("b1")[1]
    bridge.delete("a1", grace=0)
    bridge.run(3)
    assert queues.submitted() == ["a2", "b1"]


def test_whoever_has_started_is_not_ahead_any_more(bridge: Bridge) -> None:
    """All of them come to run, two at a time."""
    queues = Queues(bridge, queue("a"), ahead=2)
    names = [f"p{number}" for number in range(6)]
    for name in names:
        queues.pod(name)
    bridge.run(20)
    assert queues.running(*names) == names


def test_whoever_no_node_can_take_uses_up_nothing(bridge: Bridge) -> None:
    """Neither the queue nor a place ahead: others go on, and it says what is wrong with it."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "1"}}), ahead=1)
    queues.pod("lost", spec={"nodeSelector": {"kubernetes.io/hostname": "nowhere"}})
    bridge.run(3)
    queues.pod("good")
    bridge.run(5)
    assert queues.running("good")
    assert queues.said("lost")[0] == "Unschedulable"


def test_a_cancelled_job_gives_back_what_it_used(bridge: Bridge) -> None:
    """The pods are parked and wait without a job; the queue is others'."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "1"}}))
    bridge.slurm.control.pause()
    queues.pod("one")
    bridge.run(2)
    queues.pod("two")
    bridge.run(2)
    bridge.slurm.control.end(bridge.job("one").job_id, "CANCELLED")
    bridge.run(10)
    assert queues.submitted() == ["two"]


def test_a_gang_is_let_in_as_a_whole(bridge: Bridge) -> None:
    """Room for one of two is no room."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}))
    queues.pod("first")
    bridge.run(3)
    together = {names.GROUP: "pair", names.GROUP_SIZE: "2"}
    queues.pod("g1", labels=together)
    queues.pod("g2", labels=together)
    bridge.run(5)
    assert "uses 1 of 2 vcore, and this asks for 2" in queues.said("g1")[1]
    assert queues.said("g2") == queues.said("g1")
    bridge.delete("first", grace=0)
    bridge.run(8)
    assert queues.running("g1", "g2") == ["g1", "g2"]


def test_a_gang_that_loses_a_member_leaves_its_queue(bridge: Bridge) -> None:
    """What it was let in for is others' until it is complete again."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}))
    bridge.slurm.control.pause()
    together = {names.GROUP: "pair", names.GROUP_SIZE: "2"}
    queues.pod("g1", labels=together)
    queues.pod("g2", labels=together)
    bridge.run(3)
    assert len(queues.submitted()) == 1
    queues.pod("other")
    bridge.run(2)
    bridge.delete("g2", grace=0)
    bridge.run(60)
    assert queues.submitted() == ["other"]


def test_a_request_that_grows_waits_in_its_queue_again(bridge: Bridge) -> None:
    """A job that waits is no way around a maximum."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}))
    bridge.slurm.control.pause()
    queues.one_by_one("one", "two")
    assert queues.submitted() == ["one", "two"]
    bridge.annotate("two", cpu_per_task="2")
    bridge.run(3)
    assert "uses 1 of 2 vcore, and this asks for 2" in queues.said("two")[1]


def test_what_runs_counts_after_a_restart(bridge: Bridge) -> None:
    """Usage is rebuilt from pods and placeholders before anybody is let in."""
    queues = full(bridge)
    queues.pod("second")
    bridge.run(2)
    bridge.core.recover()
    bridge.run(3)
    assert queues.submitted() == ["first"]
    assert queues.said("second")[0] == "QueueWaiting"


def test_a_hook_that_is_configured_later_knows_what_runs(bridge: Bridge) -> None:
    """What was submitted before counts in its queue."""
    bridge.bound("early", annotations={"slurmjob.slinky.slurm.net/queue": "root.a"}, cpu="2")
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}))
    queues.pod("late")
    bridge.run(3)
    assert "uses 2 of 2 vcore" in queues.said("late")[1]


def test_a_higher_maximum_lets_in_at_once(bridge: Bridge) -> None:
    """A new configuration takes over the queues with all that is in them."""
    queues = full(bridge)
    queues.pod("second")
    bridge.run(2)
    old = queues.hook
    queues.configure(queue("a", resources={"max": {"vcore": "3"}}), queue("b"))
    old.close()
    bridge.run(3)
    assert queues.running("second")


def test_a_removed_queue_drains(bridge: Bridge) -> None:
    """What runs there runs on and counts there; nobody new gets in."""
    queues = full(bridge)
    queues.configure(queue("b"), configuration=document(queue("b"), rules=[{"name": "provided"}]))
    queues.pod("late")
    bridge.run(3)
    assert not bridge.leaving("first")
    reason, message = queues.said("late")
    assert reason == "QueueRejected"
    assert "root.a is draining" in message


def test_a_leaf_in_use_cannot_become_a_parent(bridge: Bridge) -> None:
    """Such a configuration is refused as a whole, and what is in force stays."""
    queues = full(bridge)
    with pytest.raises(errors.BadConfiguration, match=r"root\.a"):
        queues.configure(queue("a", queue("x")))
    queues.pod("second")
    bridge.run(3)
    assert "uses 2 of 2 vcore" in queues.said("second")[1]


def test_whoever_was_refused_is_asked_again_with_the_next_configuration(bridge: Bridge) -> None:
    """Its queue may be there by then."""
    queues = Queues(bridge, configuration=document(queue("b"), rules=[{"name": "provided"}]))
    queues.pod("early")
    bridge.run(3)
    assert queues.said("early")[0] == "QueueRejected"
    queues.configure(queue("a"), queue("b"))
    bridge.run(3)
    assert queues.running("early")


def test_a_job_goes_to_what_its_queue_is_in_slurm(bridge: Bridge) -> None:
    """By the entry of the queue nearest above it."""
    queues = Queues(bridge, queue("team", queue("x")), map={"root.team": {"partition": "batch"}})
    bridge.slurm.control.pause()
    queues.pod("one", "root.team.x")
    bridge.run(2)
    assert bridge.job("one").ask.partitions == ("batch",)


def test_slurm_decides_where_it_is_told_to(bridge: Bridge) -> None:
    """Maxima, numbers and order of the queues do not count, and nobody is held."""
    small = queue("a", resources={"max": {"vcore": "1"}}, maxapplications=1)
    queues = Queues(bridge, small, mode="slurm", ahead=1)
    bridge.slurm.control.pause()
    for name in ("one", "two", "three"):
        queues.pod(name)
    bridge.run(3)
    assert sorted(queues.submitted()) == ["one", "three", "two"]
    assert not hasattr(queues.hook, "order")


def test_queues_that_are_off_hold_nobody(bridge: Bridge) -> None:
    """Not even who may submit to none."""
    root = {"name": "root", "queues": [queue("a", submitacl="ann")]}
    queues = Queues(bridge, configuration={"partitions": [{"queues": [root]}]}, mode="off")
    queues.pod("one")
    bridge.run(3)
    assert queues.running("one")
