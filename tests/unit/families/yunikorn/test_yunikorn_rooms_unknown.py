"""Attempts to evict while it is not known yet what nodes have: they cost little, and hold up no other ask."""

import collections

from slurm_bridge.families.yunikorn import setup
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.hooks.evictions import QueueSituation
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.runtime.clock import VirtualClock
from tests.component.families.yunikorn.yunikorn_scenes import document, queue
from tests.unit.families.yunikorn.test_yunikorn_sharing import demand

STANDING = 30
WAITING = 20


class Unknown:
    """Queue b has all of the cluster, queue a is guaranteed it, and nothing is known of nodes."""

    def __init__(self) -> None:
        self.asked: collections.Counter[str] = collections.Counter()
        self.clock = VirtualClock()
        owed = queue("a", resources={"guaranteed": {"vcore": "5000"}})
        given = YunikornOptions.model_validate({"configuration": document(owed, queue("b")), "ahead": 0})
        services = HookServices(clock=self.clock, wake=lambda _: None, threads=False, situation=self.situation)
        self.manager = Manager(setup.make(given), services)
        self.manager.begin(())
        for number in range(STANDING):
            self.manager.enter(demand("root.b", number))
            self.manager.started(demand("root.b", number).uid)
        self.manager.measure({"vcore": 1000 * STANDING, "pods": 1000})

    def situation(self, key: WorkloadKey) -> QueueSituation | None:
        """Slurm has to be asked first."""
        self.asked[key] += 1
        return None

    def wait(self) -> list[str]:
        """Asks that are owed what queue b has, old enough for an attempt."""
        for number in range(STANDING, STANDING + WAITING):
            self.manager.enter(demand("root.a", number))
        self.clock.advance(31)
        self.asked.clear()
        return [one.demand.uid for one in self.manager.members.values() if one.stage is Stage.ASKED]


def test_a_look_ends_with_the_first_ask_of_which_nothing_is_known_yet() -> None:
    """Each of the others would be searched victims for in vain, in every turn."""
    scene = Unknown()
    assert len(scene.wait()) == WAITING
    scene.manager.engine.turn()
    assert scene.asked.total() == 1


def test_an_ask_of_which_nothing_is_known_for_long_holds_up_no_other() -> None:
    """Look by look all have their turn, and then the first once more."""
    scene = Unknown()
    waiting = scene.wait()
    for _ in range(WAITING):
        scene.manager.engine.turn()
    assert scene.asked == dict.fromkeys(waiting, 1)
    scene.manager.engine.turn()
    assert scene.asked[waiting[0]] == 2
