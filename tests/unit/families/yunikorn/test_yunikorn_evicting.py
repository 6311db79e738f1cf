"""The core says who has to go; the manager keeps that until it is done, and a new one takes it over."""

import threading

import pytest

from slurm_bridge.families.yunikorn import core_requests, setup
from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.queues.records import Eviction, News
from slurm_bridge.families.yunikorn.restorer import RestoredWorkload
from slurm_bridge.hooks.evictions import Evicts, Recall
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.runtime.clock import VirtualClock
from tests import wait
from tests.component.families.yunikorn.yunikorn_scenes import document, made, queue


class Log:
    """What was said in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def trace(self, message: object, /) -> None:
        self.lines.append(str(message))

    debug = info = warning = trace


class Scene:
    """Queue a is guaranteed two of the four cpus that it has together with b."""

    def __init__(self, *known: RestoredWorkload, ahead: int = 16, quota: bool = False) -> None:
        self.clock, self.log, self.woken = VirtualClock(), Log(), list[str]()
        mine = queue("a", resources={"guaranteed": {"vcore": "2"}}, properties={"preemption.delay": "5s"})
        others = queue("b", properties={"quota.preemption.delay": "10s"} if quota else {})
        team = queue("team", mine, others, resources={"max": {"vcore": "4"}})
        partition = {"preemption": {"quotapreemptionenabled": True}} if quota else {}
        options = YunikornOptions.model_validate({"configuration": document(team, **partition), "ahead": ahead})
        services = HookServices(clock=self.clock, wake=self.woken.append, log=self.log, threads=False)
        self.manager = Manager(setup.make(options), services)
        self.manager.begin(known)

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.clock.advance(seconds)
        self.manager.engine.turn()

    @property
    def victims(self) -> dict[str, str]:
        """Who is to go, for whom."""
        return {uid: one.asker for uid, one in self.manager.evictions.recalls().items()}

    @property
    def used(self) -> dict[str, int]:
        """By queue a and queue b."""
        found = self.manager.engine.committed(lambda partition: partition.root.children["team"].children)
        assert isinstance(found, dict)
        return {name: one.allocated.get("vcore", 0) // 1000 for name, one in found.items()}


def demand(uid: str, path: str = "root.team.b", cpus: int = 1, created: float = 0.0) -> CoreDemand:
    """A workload of a queue."""
    return CoreDemand(
        uid=uid,
        title=f"team/{uid}",
        total={"vcore": 1000 * cpus, "pods": 1},
        priority=0,
        created=created,
        queue=path,
        user="ann",
        groups=(),
        tags={},
        node_sort="",
    )


def running(**changes: str) -> list[RestoredWorkload]:
    """Four of queue b, one cpu each; b4 came last."""
    there = {f"b{number}": "" for number in (1, 2, 3, 4)} | changes
    return [
        RestoredWorkload(demand=demand(uid, created=float(uid[1:])), makes_room_for=asker)
        for uid, asker in there.items()
        if asker != "gone"
    ]


MINE = demand("mine", "root.team.a", cpus=2)


def full(ahead: int = 16) -> Scene:
    """Queue b has everything, and one of queue a has waited for long enough."""
    scene = Scene(*running(), ahead=ahead)
    scene.manager.enter(MINE)
    scene.later(6)
    return scene


def test_the_hook_is_one_that_evicts() -> None:
    """The scheduler finds it by what it can do."""
    assert isinstance(made({"configuration": document(queue("a"))}, clock=VirtualClock()), Evicts)


def test_the_newest_that_borrow_go_for_whoever_is_entitled() -> None:
    """Each of them is woken, and knows for whom."""
    scene = full()
    assert scene.victims == {"b3": "mine", "b4": "mine"}
    assert scene.manager.evictions.recall("b4") == Recall(victim="b4", asker="mine", cause="team/mine")
    room = scene.manager.evictions.rooms()["mine"]
    assert (room.where, dict(room.victims)) == ("root.team.a", {"b3": "team/b3", "b4": "team/b4"})
    assert {"b3", "b4"} <= set(scene.woken)


def test_whoever_comes_from_the_future_waits_from_now_on() -> None:
    """This machine's clock may be behind the API server's, for longer than anybody likes to wait."""
    scene = Scene(*running())
    scene.manager.enter(demand("mine", "root.team.a", cpus=2, created=scene.clock.wall() + 600))
    scene.later(6)
    assert scene.victims == {"b3": "mine", "b4": "mine"}


def test_a_plan_is_seen_whole_or_not_at_all() -> None:
    """Whoever asks while the core is telling waits until it has said everything."""
    scene, seen, begun = full(), list[str](), threading.Event()

    def ask() -> None:
        begun.set()
        seen.extend(scene.manager.evictions.recalls())

    asker = threading.Thread(target=ask)
    with scene.manager.lock:
        asker.start()
        assert begun.wait(wait.PATIENCE)
        asker.join(0.05)
        assert seen == []
    asker.join()
    assert sorted(seen) == ["b3", "b4"]


def test_what_they_leave_is_kept_for_whoever_asked() -> None:
    """Nobody else of either queue gets it, though the first has gone before the second."""
    scene = full()
    scene.manager.enter(demand("late"))
    for uid in ("b4", "b3"):
        assert scene.manager.members["mine"].stage is Stage.ASKED
        scene.manager.gone(uid)
    assert scene.manager.members["mine"].stage is Stage.GIVEN
    assert scene.manager.members["late"].stage is Stage.ASKED
    assert scene.used == {"a": 2, "b": 2}
    assert scene.log.lines == []


def test_a_room_is_on_record_until_there_is_a_job() -> None:
    """A restart before that would give it to others."""
    scene = full()
    scene.manager.gone("b3")
    scene.manager.gone("b4")
    assert list(scene.manager.evictions.rooms()) == ["mine"]
    scene.manager.seen(scene.manager.members["mine"])
    assert not scene.manager.evictions.rooms()


def test_whoever_is_spared_stays_and_another_one_goes() -> None:
    """When it is looked at again."""
    scene = full()
    scene.manager.spared("b4")
    assert scene.victims == {"b3": "mine"}
    scene.manager.gone("b3")
    scene.later(20)
    assert scene.victims == {"b2": "mine"}


def test_nobody_goes_for_one_that_would_wait_for_a_place_ahead() -> None:
    """Its room would stand empty."""
    scene = Scene(*running(), ahead=1)
    scene.manager.enter(demand("other", "root.default.x"))
    for one in ("b1", "b2"):
        scene.manager.ahead.seen(scene.manager.members[one].name)
    scene.manager.enter(MINE)
    scene.later(6)
    assert scene.victims == {}


def test_whoever_others_went_for_has_a_place_ahead() -> None:
    """Though somebody has taken the last one meanwhile."""
    scene = full(ahead=1)
    scene.manager.ahead.seen(scene.manager.members["b1"].name)
    scene.manager.gone("b3")
    scene.manager.gone("b4")
    assert scene.manager.members["mine"].stage is Stage.GIVEN


def test_nobody_goes_for_one_that_left_while_the_core_was_about_to_say_so() -> None:
    """It would go as if a maximum had been lowered, which needs nobody who asks."""
    scene = full()
    asker, victim = (core_requests.id_of(scene.manager.members[uid]) for uid in ("mine", "b4"))
    scene.manager.leave("mine")
    scene.manager.spared("b3")
    scene.manager.spared("b4")
    scene.manager.update(News(evictions=(Eviction(victim=victim, asker=asker, message="preempted for it"),)))
    assert scene.victims == {}


def test_whoever_is_not_to_go_any_more_keeps_its_place() -> None:
    """The word that it has gone comes late: it has entered its queue anew, and may have a job by now."""
    scene = full()
    scene.manager.enter(scene.manager.members["b4"].demand)
    entered = scene.manager.members["b4"]
    scene.manager.gone("b4")
    assert scene.manager.members["b4"] is entered


def test_a_lowered_maximum_names_no_asker() -> None:
    """It names the queue."""
    scene = Scene(*running(), quota=True)
    options = scene.manager.setup.options
    lowered = queue("b", resources={"max": {"vcore": "3"}}, properties={"quota.preemption.delay": "10s"})
    after = document(queue("team", queue("a"), lowered), preemption={"quotapreemptionenabled": True})
    scene.manager.follow(setup.make(options.model_copy(update={"configuration": after})), ())
    scene.later(9)
    assert scene.victims == {}
    scene.later(2)
    ((uid, asker),) = scene.victims.items()
    assert asker == ""
    assert scene.manager.evictions.recalls()[uid].cause == "queue root.team.b (over its maximum)"


def waits(*victims: str) -> RestoredWorkload:
    """The one that asked, as its pods say."""
    return RestoredWorkload(demand=MINE, waits=True, room_made_by={uid: f"team/{uid}" for uid in victims})


@pytest.mark.parametrize("gone", [(), ("b4",), ("b3", "b4")])
def test_a_new_core_goes_on_where_the_old_one_was(gone: tuple[str, ...]) -> None:
    """Whoever was to go is to go, nobody else is, and what has become free is for whoever asked."""
    marks = {"b3": "mine", "b4": "mine"} | dict.fromkeys(gone, "gone")
    scene = Scene(*running(**marks), waits("b3", "b4"))
    scene.manager.enter(demand("late"))
    scene.later(6)
    rest = [uid for uid in ("b3", "b4") if uid not in gone]
    assert scene.victims == dict.fromkeys(rest, "mine")
    for uid in rest:
        scene.manager.gone(uid)
    assert scene.manager.members["mine"].stage is Stage.GIVEN
    assert scene.used == {"a": 2, "b": 2}


def test_what_pods_say_that_nobody_acted_on_is_dropped() -> None:
    """Who is said to go says nothing of it: the core thinks anew, and comes to its own."""
    scene = Scene(*running(), waits("b1"))
    assert scene.victims == {"b3": "mine", "b4": "mine"}
    assert scene.manager.evictions.rooms()["mine"].victims.keys() == {"b3", "b4"}


def test_whoever_leaves_is_not_asked_to_go_again() -> None:
    """Nor anybody in its place: what it leaves is enough."""
    known = running()
    scene = Scene(*known[:2], *(RestoredWorkload(demand=one.demand, leaves=True) for one in known[2:]))
    assert scene.victims == {"b3": "", "b4": ""}
    scene.manager.enter(MINE)
    scene.later(60)
    assert scene.victims == {"b3": "", "b4": ""}


def test_a_victim_whose_asker_has_gone_stays() -> None:
    """It was not told yet."""
    scene = Scene(*running(b4="somebody"))
    assert scene.victims == {}
