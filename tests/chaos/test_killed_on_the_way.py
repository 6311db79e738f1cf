"""The daemon is killed at chosen orders while pods are evicted for others: its successors go on from there.

Each scene has a way, the orders by which it comes to its end. The moments of death are before and after each of them,
drawn without repetition: some in one round, the others in the next ones, each in the order of the way.
"""

import contextlib
import dataclasses
import pathlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.chaos.support_size import Size
from tests.e2e import (
    support_families,
    support_farm,
    support_foreign,
    support_gate,
    support_groups,
    support_observer,
    support_servers,
    support_world,
)
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_gate import Gate, Order, When
from tests.e2e.support_queues import hook, most, pod, queue
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

SECONDS = 60.0
#: So many lives end in one round.
IN_A_ROUND = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Moment:
    """The how manieth of these orders in a round, counting each pod or job once, and on which side of it."""

    what: str
    number: int
    when: When

    def __str__(self) -> str:
        return f"{self.when.value} {self.what} {self.number}"


def both(what: str, count: int) -> tuple[Moment, ...]:
    """Both sides of so many of these orders."""
    return tuple(Moment(what=what, number=number, when=when) for number in range(1, count + 1) for when in When)


class Scene(Protocol):
    """What happens in each round while the daemon is killed."""

    #: In the order in which they come.
    way: Sequence[Moment]
    world: World

    def hooks(self) -> list[Json]:
        """How the daemon is configured."""

    def prepare(self, turn: int) -> None:
        """Until everything is as it has to be before the first order."""

    def begin(self, turn: int) -> None:
        """What makes the daemon act."""

    def concerns(self, order: Order) -> bool:
        """Whether an order belongs to the way of this round."""

    def end(self, turn: int) -> None:
        """Until the end is reached, which is the right one."""


class Preempted:
    """A queue gets back its guarantee: a pod and a gang of two go, two others and one with a guarantee stay."""

    world: World
    way = (
        *both("note", 1),
        *both("mark", 3),
        *both("evict", 3),
        *both("cancel", 2),
        *both("submit", 1),
        *both("bind", 1),
    )

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._victims: list[Json] = []
        self._jobs: set[str] = set()

    def hooks(self) -> list[Json]:
        soon = {"preemption.delay": "1s"}
        guaranteed = queue("mine", resources={"guaranteed": {"vcore": "3"}}, properties=soon)
        due = queue("due", resources={"guaranteed": {"vcore": "1"}})
        made = hook(queue("team", guaranteed, queue("others"), due, resources=most(vcore="6")), evict_seconds=60)
        made[0]["options"]["configuration"]["partitions"][0]["queues"][0]["submitacl"] = "*"
        return made

    def _borrower(self, name: str, path: str = "root.team.others", **labels: str) -> Json:
        made = pod(self.world, name, path, **{"kwok.local/terminating": "2s"})
        made["metadata"]["labels"] = dict(labels)
        return made

    def prepare(self, turn: int) -> None:
        if not turn:
            self._run([self._borrower("old-1"), self._borrower("old-2")])
            self._run([self._borrower("due", "root.team.due")])
        together = {names.GROUP: f"gang-{turn}", names.GROUP_SIZE: "2"}
        gang = [self._borrower(f"gang-{turn}-{number}", **together) for number in range(2)]
        self._victims = [*self._run(gang), *self._run([self._borrower(f"alone-{turn}")])]
        self._jobs = {str(support_world.job_id(one)) for one in self._victims}

    def _run(self, made: Sequence[Json]) -> list[Json]:
        """Each lot in another second than the one before it."""
        wait.next_second()
        names_ = [one["metadata"]["name"] for one in self.world.create(*made)]
        return [self.world.await_pod(name, "a node", support_world.is_bound, SECONDS) for name in names_]

    def begin(self, turn: int) -> None:
        self.world.create(pod(self.world, f"asker-{turn}", "root.team.mine", cpu="3"))
        self.world.create(pod(self.world, f"late-{turn}", "root.team.others"))

    def concerns(self, order: Order) -> bool:
        if order.what == "cancel":
            return order.target in self._jobs
        return order.what not in {"submit", "bind"} or order.target.startswith("asker-")

    def end(self, turn: int) -> None:
        """The planned victims are evicted, once each; the pod that waited runs, by one job; no other pod changes."""
        world, planned = self.world, sorted(one["metadata"]["name"] for one in self._victims)
        world.await_pod(f"asker-{turn}", "a node", support_world.is_bound, SECONDS)
        assert sorted(self._gate.done("evict")) == planned
        there = {one["metadata"]["name"]: one for one in world.pods() if stays(one)}
        assert there.keys() == {"old-1", "old-2", "due", f"asker-{turn}", f"late-{turn}"}
        assert not support_world.is_bound(there[f"late-{turn}"])
        running = [one for one in there.values() if support_world.is_bound(one)]
        wait.until(lambda: self._owners() == sorted(support_families.uids(running)), "a job for each, and no other")
        wait.until(lambda: not noted(world), "end of what was noted")
        world.delete(f"late-{turn}")
        world.await_gone(f"late-{turn}")
        world.annotate(f"asker-{turn}", support_world.SHORT)
        world.await_pod(f"asker-{turn}", "success", support_world.has_succeeded)

    def _owners(self) -> list[str]:
        """What a daemon that was killed has tried on its start is not among them: it goes a minute later."""
        return sorted(str(one.owner["uid"]) for one in support_groups.living(self.world))


def stays(one: Json) -> bool:
    """It is neither over nor on its way out."""
    return "deletionTimestamp" not in one["metadata"] and not support_world.is_over(one)


def noted(world: World) -> list[str]:
    """The pods that still say that others are evicted for them, or they for others."""
    keys = {names.ANNOTATION_ROOM, names.ANNOTATION_MAKES_ROOM}
    return [one["metadata"]["name"] for one in world.pods() if keys & one["metadata"].get("annotations", {}).keys()]


SCENES = {"preemption": Preempted}


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """A machine of our own, with room for what the queues may have and no more."""
    with support_farm.built(kube, slurm, 0, cpus=6) as made:
        yield made


@pytest.fixture
def gate(cluster: Mapping[str, str], work: pathlib.Path) -> Iterator[Gate]:
    """Where the daemon is killed."""
    with support_gate.opened(cluster, work, "on-the-way") as made:
        yield made


@pytest.fixture(params=SCENES)
def scene(
    request: pytest.FixtureRequest, kube: support_servers.Kubernetes, open_world: OpenWorld, farm: Farm, gate: Gate
) -> Iterator[Scene]:
    """With a daemon whose orders go through the gate."""
    made = SCENES[request.param](gate)
    with support_families.granted(kube, "yunikorn"):
        # Killed, it cannot give its lease back: this is about what a successor finds, not about how long it waits.
        lead = {"enabled": False}
        where = {"partition": farm.partition}
        made.world = open_world("on-the-way", hooks=made.hooks(), defaults=where, leader_election=lead, **gate.settings)
        yield made


@pytest.mark.real
@pytest.mark.timeout(900)
def test_killed_at_any_order_it_is_done_once_and_to_its_end(
    scene: Scene, gate: Gate, foreign: support_foreign.Foreign, size: Size, record_property: Callable[[str, str], None]
) -> None:
    """No pod is evicted twice or beyond the plan, the waiting pod gets the room, and foreign jobs are as they were."""
    before, world = foreign.now(), scene.world
    drawn = random.Random(size.seed).sample(scene.way, len(scene.way))
    moments = [drawn[number % len(drawn)] for number in range(size.kills)]
    record_property("moments", ", ".join(map(str, moments)))
    with support_observer.observing(world) as observer:
        for turn, part in enumerate(rounds(moments)):
            played(scene, gate, turn, sorted(part, key=scene.way.index))
        world.finish(world.pods())
        world.await_nothing_in_slurm(2 * SECONDS)
        seen = observer.end()
    assert seen.wrong == set()
    assert seen.looks > size.kills, f"the observer saw too little: {seen.misses} misses"
    assert foreign.now() == before


def played(scene: Scene, gate: Gate, turn: int, moments: Sequence[Moment]) -> None:
    """One round, in which the daemon dies at each of these moments."""
    world = scene.world
    scene.prepare(turn)
    gate.orders.clear()
    begun = False
    for moment in moments:
        trap = gate.trap(moment.when, lambda order, moment=moment: comes(gate, scene, moment, order), world.daemon.kill)
        if begun:
            world.daemon.start()
        else:
            scene.begin(turn)
        begun = True
        with telling(world, moment):
            wait.until(trap.snapped.is_set, "death", SECONDS)
    world.daemon.start()
    with telling(world, moments[-1]):
        scene.end(turn)


@contextlib.contextmanager
def telling(world: World, moment: Moment) -> Iterator[None]:
    """What failed, and where the daemon was killed."""
    try:
        yield
    except AssertionError as error:
        pods = "\n".join(map(support_world.told, world.pods()))
        raise AssertionError(f"{moment}: {error}\n{pods}\n{world.daemon.last_words()}") from error


def comes(gate: Gate, scene: Scene, moment: Moment, order: Order) -> bool:
    """It is the one that is waited for."""
    if order.what != moment.what or not scene.concerns(order):
        return False
    done = {one.target for one in tuple(gate.orders) if one.what == order.what and scene.concerns(one)}
    return len(done | {order.target}) >= moment.number


def rounds(moments: Sequence[Moment]) -> Iterator[Sequence[Moment]]:
    """As many as belong to one round, until none is left."""
    for first in range(0, len(moments), IN_A_ROUND):
        yield moments[first : first + IN_A_ROUND]
