"""What users write into the annotations that the bridge reads back, and workloads that surprise it."""

import json
from typing import Any

import pytest

from slurm_bridge.model import marks, names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import written
from slurm_bridge.scheduler.desired_job import Parked
from slurm_bridge.scheduler.eviction import notes
from slurm_bridge.scheduler.guard import Guard
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.preemptive_bridge import preemptive
from tests.component.scheduler.whole_core import Bridge

DEEP = "[" * 60_000
#: What somebody may write who means harm, or nothing at all.
NONSENSE = [
    DEEP,
    '{"victims":' + DEEP,
    "{" * 3000,
    "null",
    "7",
    "[]",
    '{"victims": {"a": 1}}',
    '{"job": "x", "uid": 7}',
    '{"job": ' + "9" * 5000 + "}",
    '"' + "x" * 70_000 + '"',
    "\ud800",
    "NaN",
]
READ_BACK = (names.ANNOTATION_ROOM, names.ANNOTATION_MAKES_ROOM, names.ANNOTATION_PARKED)


def pod(**annotations: str) -> Pod:
    """A pod that says this."""
    return Pod(metadata=ObjectMeta(name="a", namespace="n", uid="u", annotations=annotations))


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_says_nothing(text: str) -> None:
    """Whatever is written, nobody makes room, and nothing raises."""
    pods = [pod(**{names.ANNOTATION_ROOM: text, names.ANNOTATION_MAKES_ROOM: text})]
    assert (notes.room_made_by(pods), notes.room_on(pods)) == ({}, frozenset())
    assert (notes.makes_room_for(pods), notes.cause(pods)) == (None, "")
    assert marks.read(text) is None


@pytest.mark.parametrize("text", NONSENSE[:4] + NONSENSE[7:])
def test_what_is_not_readable_says_why(text: str) -> None:
    """For whoever looks for the reason."""
    found = written.read(text, Parked)
    assert isinstance(found, written.NotReadable)
    assert 0 < len(found.why) <= 200


def test_what_we_write_for_hundreds_of_victims_is_read_back() -> None:
    """A large group that makes room by many keeps that over a restart."""
    victims = {f"{number:036d}": f"namespace/a-pod-of-a-group-{number}" for number in range(500)}
    pods = [pod(**{names.ANNOTATION_ROOM: notes.text({"victims": victims, "nodes": ["n1"]})})]
    assert (notes.room_made_by(pods), notes.room_on(pods)) == (victims, {"n1"})


@pytest.mark.security("input")
@pytest.mark.parametrize("key", READ_BACK)
def test_an_annotation_of_60_kb_of_brackets_stops_nobody(bridge: Bridge, key: str) -> None:
    """No annotation of a pod, however long or deep, ends the daemon or keeps other pods from their nodes."""
    queues = Queues(bridge, queue("a"))
    bridge.pod("evil", annotations={key: DEEP})
    bridge.run(5)
    bridge.start()
    queues = Queues(bridge, queue("a"))
    queues.pod("good", "root.a")
    bridge.until(lambda: bridge.node_of("good"))
    bridge.core.preempt_step()


@pytest.mark.parametrize("key", READ_BACK)
def test_it_stops_no_preemption_either(bridge: Bridge, key: str) -> None:
    """The thread that makes room looks at everybody."""
    preemptive(bridge)
    bridge.slurm.control.pause()
    bridge.pod("evil", annotations={key: DEEP})
    for _ in range(60):
        bridge.step()
        bridge.core.preempt_step()
    assert bridge.told.surprises == []


@pytest.mark.security("input")
def test_a_pod_that_surprises_the_watch_does_not_end_it(bridge: Bridge) -> None:
    """An object that triggers a defect of the daemon is logged and counted, and the watch continues."""
    bridge.run(1)
    odd = Pod(metadata=ObjectMeta(name="odd", namespace="n", uid="odd", labels=None))  # type: ignore[arg-type]
    node = Node(metadata=ObjectMeta(name="odd", uid="odd", labels=None))  # type: ignore[arg-type]
    bridge.core.on_pod(None, odd)
    bridge.core.on_other_pod(None, odd)
    bridge.core.on_node(None, node)
    bridge.core.on_owner(None, odd)
    bridge.bound("good")
    assert "watch of pods" in bridge.told.surprises


@pytest.mark.security("input")
def test_a_workload_that_surprises_the_recovery_does_not_end_it(bridge: Bridge) -> None:
    """A replica becomes leader whatever the objects of one workload contain."""
    queues = Queues(bridge, queue("a"))
    queues.pod("poison", "root.a")
    queues.pod("other", "root.a")
    bridge.until(lambda: bridge.node_of("other") and bridge.node_of("poison"))
    bridge.start()
    gather = bridge.core.context.gather

    def poisoned(members: WorkloadPods, *stands: PodState, one: bool = False) -> Any:
        if members.root.name == "poison":
            raise KeyError("what nobody thought of")
        return gather(members, *stands, one=one)

    bridge.core.context.gather = poisoned
    queues = Queues(bridge, queue("a"))
    queues.pod("good", "root.a")
    bridge.until(lambda: bridge.node_of("good"))
    assert "gathering" in bridge.told.surprises


def test_a_surprise_is_tried_again_later_and_later(bridge: Bridge) -> None:
    """Not every second: each try is a line with a stack."""
    guard, tries = Guard(bridge.clock, bridge.told), list[float]()

    def fall() -> None:
        tries.append(bridge.clock.now())
        raise KeyError("what nobody thought of")

    for _ in range(3600):
        assert guard.one("a loop", "w", fall) is None
        bridge.clock.advance(1.0)
    assert 15 <= len(tries) <= 25
    assert guard.one("a loop", "another", lambda: 7) == 7


def test_a_parked_pod_whose_note_is_readable_stays_parked() -> None:
    """Only nonsense says nothing."""
    text = json.dumps({"job": 7, "why": "cancelled", "intent": "abc"})
    assert written.read(text, Parked) == Parked(job=7, why="cancelled", intent="abc")
