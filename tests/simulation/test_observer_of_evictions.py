"""The observer says of each way to evict wrongly what it is; what is right passes in silence."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping

import pytest

from slurm_bridge.model import kinds, names
from tests.simulation import families, fleet
from tests.simulation.broken_promise import Broken
from tests.simulation.manual_daemon import Hand
from tests.simulation.queue_guarantees import QUEUE, WINDOW, Law, Realm
from tests.simulation.world import NAMESPACE, World

LAW = Law(entitled={"root.left": 2, "root.right": 2}, most=4)


class Court:
    """Three pods that borrow run, of one cpu each, and one waits that is entitled to two."""

    def __init__(self, token: pathlib.Path) -> None:
        self.world = World(1, token, fleet=fleet.WIDE)
        self.world.slurm.world.config = dataclasses.replace(self.world.slurm.world.config, configuring_seconds=0.0)
        self.realm = Realm(LAW, families.USUAL_QUEUE)
        self.world.observer.evicted.realm = self.realm
        self.hand = Hand(self.world)
        for name in ("b1", "b2", "b3"):
            self.run(name)
        self.world.pod("mine", cpu="2", marks={QUEUE: "root.left"})

    def run(self, name: str, queue: str = "") -> None:
        """One more that has its node."""
        self.world.pod(name, marks={QUEUE: queue} if queue else {})
        job_id = self.hand.submit(name)
        self.hand.bind(name, self.hand.slurm.allocation(job_id).nodes[0].replace("s8", "n8"), job_id)  # type: ignore[union-attr]

    def uid(self, name: str) -> str:
        """Of a pod."""
        found = self.world.find(name)
        assert found is not None
        return str(found["metadata"]["uid"])

    def write(self, name: str, key: str, says: Mapping[str, object]) -> None:
        """The daemon writes on a pod."""
        pod = self.hand.cluster.get(kinds.PODS, NAMESPACE, name)
        assert pod is not None
        self.hand.cluster.patch(kinds.PODS, pod, {"metadata": {"annotations": {key: json.dumps(says)}}})

    def ask(self, *victims: str, asker: str = "mine") -> None:
        """The waiting pod names its victims."""
        self.write(asker, names.ANNOTATION_ROOM, {"victims": {self.uid(one): one for one in victims}, "nodes": []})

    def mark(self, *victims: str, asker: str = "mine") -> None:
        """Each of them names the pod that it goes for."""
        for one in victims:
            self.write(one, names.ANNOTATION_MAKES_ROOM, {"uid": self.uid(asker) if asker else "", "for": "x"})

    def evict(self, name: str) -> None:
        """The API server is asked to."""
        self.hand.cluster.evict(NAMESPACE, name, self.uid(name))


@pytest.fixture
def court(tmp_path: pathlib.Path) -> Court:
    """Before the first note."""
    return Court(tmp_path / "token")


def test_what_is_agreed_is_silent(court: Court) -> None:
    """Two that borrow, for one that is entitled to as much."""
    court.ask("b2", "b3")
    court.mark("b2", "b3")
    court.evict("b3")
    court.evict("b2")
    assert court.world.observer.evicted.for_others == 2


def test_i7_there_are_no_notes(court: Court) -> None:
    """An eviction alone is no licence."""
    with pytest.raises(Broken, match="I7"):
        court.evict("b1")


def test_i7_only_the_victim_has_a_note(court: Court) -> None:
    """Nor is what a victim says."""
    court.mark("b1")
    with pytest.raises(Broken, match="I7"):
        court.evict("b1")


def test_i7_the_victim_has_no_note(court: Court) -> None:
    """Nor what the other one says."""
    court.ask("b1")
    with pytest.raises(Broken, match="I7"):
        court.evict("b1")


def test_i7_they_do_not_mean_each_other(court: Court) -> None:
    """The victim names another pod that waits."""
    court.world.pod("other", marks={QUEUE: "root.right"})
    court.ask("b1")
    court.mark("b1", asker="other")
    with pytest.raises(Broken, match="I7"):
        court.evict("b1")


def test_i7_a_pod_does_not_go_for_itself(court: Court) -> None:
    """Whatever it says."""
    court.write("b1", names.ANNOTATION_ROOM, {"victims": {court.uid("b1"): "b1"}})
    court.mark("b1", asker="b1")
    with pytest.raises(Broken, match="I7"):
        court.evict("b1")


def test_i7_not_all_of_them_say_so(court: Court) -> None:
    """A restart would take it for something that has not begun."""
    court.ask("b2", "b3")
    court.mark("b3")
    with pytest.raises(Broken, match="I7"):
        court.evict("b3")


def test_i7_the_pod_it_goes_for_does_not_wait_any_more(court: Court) -> None:
    """For longer than a daemon may be deaf."""
    court.ask("b1")
    court.mark("b1")
    court.world.delete_pod("mine", 0)
    court.world.pass_time(60.0)
    with pytest.raises(Broken, match="I7"):
        court.evict("b1")


def test_i10_a_pod_is_told_twice(court: Court) -> None:
    """By a daemon that has got an answer."""
    court.ask("b3")
    court.mark("b3")
    court.world.annotate("b3", "kwok.local/terminating", "60s")
    court.evict("b3")
    with pytest.raises(Broken, match="I10"):
        court.evict("b3")


def test_i10_a_queue_has_what_it_is_entitled_to(court: Court) -> None:
    """No pod of it goes."""
    court.run("r", "root.right")
    court.ask("r")
    court.mark("r")
    with pytest.raises(Broken, match=r"I10.*entitled"):
        court.evict("r")


def test_i10_the_asker_is_not_entitled_to_that_much(court: Court) -> None:
    """Its queue has a part of it already."""
    court.run("l", "root.left")
    court.world.pass_time(WINDOW + 2)
    court.ask("b1")
    court.mark("b1")
    with pytest.raises(Broken, match=r"I10.*not entitled"):
        court.evict("b1")


def test_i10_no_workload_asked_and_there_is_not_too_much(court: Court) -> None:
    """All of them have room."""
    court.world.delete_pod("mine", 0)
    court.world.pass_time(WINDOW + 2)
    court.mark("b1", asker="")
    with pytest.raises(Broken, match=r"I10.*for no workload"):
        court.evict("b1")


def test_no_workload_asked_and_the_maximum_was_lowered(court: Court) -> None:
    """What is beyond it may go."""
    court.realm.decree(dataclasses.replace(LAW, most=2), court.world.clock.now())
    court.mark("b1", asker="")
    court.evict("b1")
    assert court.world.observer.evicted.for_no_workload == 1


def test_i10_what_is_written_is_taken_back(court: Court) -> None:
    """At the end no pod that stays has a note that it goes, and none with a node a note that others go for it."""
    court.mark("b1")
    court.ask("b2", asker="b2")
    assert [text[:3] for text in court.world.observer.complaints()].count("I10") == 2


def test_i6_a_pod_without_a_guarantee_waits(court: Court) -> None:
    """While there is no room; and a pod with a guarantee does not, as long as others have borrowed."""
    complaints = court.world.observer.complaints()
    assert [text.split()[2] for text in complaints] == ["'mine')"]
    court.world.pod("late", cpu="2")
    assert court.world.observer.complaints() == complaints
    court.realm.decree(dataclasses.replace(LAW, most=None), court.world.clock.now())
    assert len(court.world.observer.complaints()) == 2
