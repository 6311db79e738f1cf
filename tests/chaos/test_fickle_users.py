"""Groups of every kind whose users and administrators change their minds, while the daemon is killed now and then."""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.chaos.support_size import Size
from tests.e2e import support_foreign, support_groups, support_kinds, support_observer, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}
GROUP, GROUP_SIZE = names.SCHEDULER_PREFIX + "group", names.SCHEDULER_PREFIX + "group-size"
COSCHEDULING = "scheduling.x-k8s.io/pod-group"

#: How long they go on, and how many groups there are.
SECONDS, GROUPS = 25.0, 20

#: The Job controller lets its pods wait longer and longer after failures.
PATIENCE = 90.0


class Play:
    """One world, its groups, and what may happen to them."""

    def __init__(self, world: World, dice: random.Random) -> None:
        self.world, self.objects, self.dice = world, Objects(world), dice
        self.kinds = {f"g{number:02}": dice.choice(list(MAKERS)) for number in range(GROUPS)}
        self.sizes = {name: dice.randint(2, 6) for name in self.kinds}
        #: Nothing is done to these, so that they have to be whole in the end.
        self.spared = set(dice.sample(sorted(self.kinds), GROUPS // 3))
        self.told: list[str] = []

    def make(self, name: str) -> None:
        """In the way of its kind."""
        MAKERS[self.kinds[name]](self, name, self.sizes[name])

    def disturb(self) -> None:
        """A user changes one group; what does not exist any more is no obstacle."""
        name = self.dice.choice(sorted(self.kinds.keys() - self.spared))
        what = self.dice.choice(list(DEEDS))
        self.told.append(f"{what} {self.kinds[name]} {name}")
        with tolerance():
            DEEDS[what](self, name)

    def members(self, name: str) -> list[Json]:
        """Its pods as they are now."""
        return support_kinds.members(self.world, f"{name}-")


@contextlib.contextmanager
def tolerance() -> Iterator[None]:
    """Another client was faster: it exists already, or does not exist any more."""
    try:
        yield
    except support_servers.Refused as refusal:
        if refusal.status not in {404, 409}:
            raise


def _bare(play: Play, name: str, size: int) -> None:
    labels = {GROUP: name, GROUP_SIZE: str(size)}
    support_kinds.grouped(play.world, name, size, marks=support_world.FOREVER, labels=labels)


def _coscheduling(play: Play, name: str, size: int) -> None:
    play.objects.create("CoschedulingPodGroup", name, {"minMember": size})
    support_kinds.grouped(play.world, name, size, marks=support_world.FOREVER, labels={COSCHEDULING: name})


def _job(play: Play, name: str, size: int) -> None:
    spec = support_kinds.job_spec(support_kinds.template(play.world), size, backoffLimit=50)
    play.objects.create("Job", name, spec, GANG)


def _job_set(play: Play, name: str, size: int) -> None:
    pods = support_kinds.template(play.world)
    parts = {"a": support_kinds.job_spec(pods, 1, backoffLimit=0), "b": support_kinds.job_spec(pods, size - 1)}
    play.objects.create("JobSet", name, support_kinds.job_set_spec(parts, failurePolicy={"maxRestarts": 50}))


def _leader_worker_set(play: Play, name: str, size: int) -> None:
    spec = support_kinds.leader_worker_spec(support_kinds.served(play.world), size)
    play.objects.create("LeaderWorkerSet", name, spec)


MAKERS: Mapping[str, Callable[[Play, str, int], None]] = {
    "Group": _bare,
    "CoschedulingPodGroup": _coscheduling,
    "Job": _job,
    "JobSet": _job_set,
    "LeaderWorkerSet": _leader_worker_set,
}


def _delete_one(play: Play, name: str) -> None:
    if there := play.members(name):
        play.world.delete(play.dice.choice(there)["metadata"]["name"])


def _fail_one(play: Play, name: str) -> None:
    for one in play.members(name)[:1]:
        support_kinds.fail(play.world, one)


def _crash_one(play: Play, name: str) -> None:
    for one in play.members(name)[-1:]:
        support_kinds.crash(play.world, one)


def _delete_all(play: Play, name: str) -> None:
    if play.kinds[name] in {"Job", "JobSet", "LeaderWorkerSet"}:
        play.objects.delete(play.kinds[name], name)
    for one in play.members(name):
        play.world.delete(one["metadata"]["name"])


def _cancel(play: Play, name: str) -> None:
    mine = [one.job_id for one in support_groups.living(play.world) if one.owner["name"] == name]
    play.world.slurm.cancel(*mine)


def _nap(play: Play, name: str) -> None:
    if play.kinds[name] in {"Job", "JobSet"}:
        play.objects.change(play.kinds[name], name, suspend=True)
        threading.Event().wait(play.dice.uniform(0, 1))
        play.objects.change(play.kinds[name], name, suspend=False)


def _make_again(play: Play, name: str) -> None:
    if not play.members(name):
        play.make(name)


DEEDS: Mapping[str, Callable[[Play, str], None]] = {
    "delete one of": _delete_one,
    "fail one of": _fail_one,
    "crash one of": _crash_one,
    "delete": _delete_all,
    "scancel": _cancel,
    "suspend and resume": _nap,
    "make again": _make_again,
}


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize("round_", range(10))
def test_whatever_people_do_to_groups_no_job_is_doubled_misplaced_or_left(
    open_world: OpenWorld, foreign: support_foreign.Foreign, size: Size, round_: int
) -> None:
    """Groups that no user touched are whole in the end, and when all pods are gone nothing is left in Slurm."""
    if size.short and round_ > 0:
        pytest.skip("--short is one round")
    before = foreign.now()
    world = open_world("fickle", leader_election={"enabled": False})
    play = Play(world, random.Random(f"{size.seed} {round_}"))
    with support_observer.observing(world) as observer:
        act(play)
        for name in play.spared:
            pods = support_groups.placed(world, f"{name}-", play.sizes[name], PATIENCE)
            support_groups.together(world, pods)
        remove_everything(play)
        wait.until(lambda: not world.pods(), "end of all pods", 60, every=0.5)
        world.await_nothing_in_slurm(60)
        seen = observer.end()
    # What people delete themselves is not the daemon's doing.
    assert {line for line in seen.wrong if not line.startswith("I7")} == set(), "\n".join(play.told)
    assert foreign.now() == before


def act(play: Play) -> None:
    """Groups appear while others are disturbed, and the daemon is killed twice."""
    begin, left = time.monotonic(), sorted(play.kinds)
    deaths = sorted(play.dice.uniform(0, SECONDS) for _ in range(2))
    while (passed := time.monotonic() - begin) < SECONDS:
        if left and passed > SECONDS / 2 * (1 - len(left) / GROUPS):
            with tolerance():
                play.make(left.pop())
        play.disturb()
        if deaths and passed > deaths[0]:
            deaths.pop(0)
            play.told.append("kill -9")
            play.world.daemon.kill()
            play.world.daemon.start()
        threading.Event().wait(play.dice.uniform(0, 0.3))
    for name in left:
        with tolerance():
            play.make(name)


def remove_everything(play: Play) -> None:
    """Objects first: otherwise their controllers make new pods."""
    for name, kind in play.kinds.items():
        if kind != "Group":
            play.objects.delete(kind, name)
    play.world.kube.delete(f"{play.world.path}?gracePeriodSeconds=2")
