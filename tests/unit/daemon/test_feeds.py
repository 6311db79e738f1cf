"""The watches of kinds that group pods: kinds that come later, which changes are told, and what delays a start."""

import queue
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from slurm_bridge import errors, ports
from slurm_bridge.daemon import feeds
from slurm_bridge.daemon.feeds import Feeds
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.telemetry.collectors import InformerNumbers
from slurm_bridge.workloads import kind_table
from tests import wait


class Changes:
    """A watch that says what the test hands it, until it is closed."""

    def __init__(self) -> None:
        self.said: queue.Queue[Any] = queue.Queue()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.said.get, None)

    def close(self) -> None:
        self.said.put(None)


class Cluster:
    """Serves the kinds that it is told to; a list may be held back."""

    def __init__(self, *served: Kind[Any]) -> None:
        self.kinds, self.objects = set(served), dict[Kind[Any], list[Object]]()
        self.asked: list[Kind[Any]] = []
        self.problem: errors.BridgeError | None = None
        self.refused: set[Kind[Any]] = set()
        self.open = threading.Event()
        self.open.set()
        self.watches: dict[Kind[Any], Changes] = {}

    def served(self, kind: Kind[Any]) -> str | None:
        self.asked.append(kind)
        if self.problem is not None:
            raise self.problem
        return "v1" if kind in self.kinds else None

    def list(self, kind: Kind[Any], _scope: ports.Scope) -> ports.Listing[Any]:
        if kind in self.refused:
            raise errors.NotAuthorized(f"may not list {kind.plural}")
        if kind is not kinds.JOBS:
            assert self.open.wait(20)
        return ports.Listing(items=tuple(self.objects.get(kind, ())), resource_version="1")

    def watch(self, kind: Kind[Any], _since: str, _scope: ports.Scope) -> Changes:
        return self.watches.setdefault(kind, Changes())


class World:
    """Feeds of such a cluster, and what they told."""

    def __init__(self, *served: Kind[Any]) -> None:
        self.cluster, self.clock = Cluster(*served), VirtualClock()
        self.feeds = Feeds(self.cluster, self.clock, random.Random(1))  # type: ignore[arg-type]
        self.told: queue.Queue[tuple[Object | None, Object | None]] = queue.Queue()
        self.appeared = 0
        self.known = self.feeds.groups(lambda old, new: self.told.put((old, new)), self._come)
        self._version = 1

    def _come(self) -> None:
        self.appeared += 1

    def made(self, kind: Kind[Any], name: str = "x", **values: Any) -> Any:
        """An object at the next version."""
        self._version += 1
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(self._version)}
        metadata |= {"annotations": values.pop("annotations", {}), "ownerReferences": values.pop("owners", [])}
        return msgspec.convert({"metadata": metadata, **values}, kind.record)

    def say(self, kind: Kind[Any], change: Any) -> None:
        """As the server's watch does."""
        self.cluster.watches.setdefault(kind, Changes()).said.put(change)

    def hear(self) -> tuple[Object | None, Object | None]:
        """The next thing that was told."""
        return self.told.get(timeout=20)

    def look(self, until: Callable[[], object], what: str) -> None:
        """Turn the loop that looks for kinds until this holds."""

        def turned() -> object:
            self.feeds.look_for_kinds()
            return until()

        wait.until(turned, what, 20, every=0.005)


@pytest.fixture
def make() -> Iterator[Callable[..., World]]:
    """Worlds that end with the test."""
    made: list[World] = []

    def new(*served: Kind[Any]) -> World:
        made.append(World(*served))
        return made[-1]

    yield new
    for world in made:
        world.cluster.open.set()
        world.feeds.stop()


def ready(world: World) -> None:
    """Start, and wait until everything is there."""
    world.feeds.start()
    world.look(lambda: world.feeds.synced, "start")


def test_nothing_is_synced_before_the_cluster_has_said_what_it_serves(make: Callable[..., World]) -> None:
    """A pod of a group must not be taken for a single one because the group had not been looked for."""
    world = make()
    world.feeds.start()
    wait.until(lambda: world.feeds._informers["jobs"].store.synced, "list of Jobs", 20, every=0.005)
    assert not world.feeds.synced
    assert world.feeds.problem() == "not listed yet: the kinds of workloads"
    world.feeds.look_for_kinds()
    assert world.feeds.synced
    assert world.feeds.problem() == ""
    assert not any(world.known.served(kind) for kind in kind_table.WATCHED if kind is not kinds.JOBS)


def test_a_cluster_that_does_not_answer_is_asked_again_soon(make: Callable[..., World]) -> None:
    """And nothing is taken for its answer meanwhile."""
    world = make(kinds.JOBSETS)
    world.cluster.problem = errors.Unavailable("down")
    world.feeds.start()
    world.feeds.look_for_kinds()
    world.feeds.look_for_kinds()
    assert len(world.cluster.asked) == 1
    world.cluster.problem = None
    assert not world.feeds.synced
    world.clock.advance(feeds.NO_ANSWER)
    world.look(lambda: world.feeds.synced, "start")
    assert world.known.served(kinds.JOBSETS)


def test_what_is_served_from_the_start_is_waited_for(make: Callable[..., World]) -> None:
    """And told before anything is decided, because pods were heard of before."""
    world = make(kinds.JOBSETS)
    world.cluster.open.clear()
    world.feeds.start()
    world.feeds.look_for_kinds()
    wait.until(lambda: world.feeds.problem() == "not listed yet: jobsets", "wait for JobSets", 20, every=0.005)
    assert not world.known.served(kinds.JOBSETS)
    world.cluster.open.set()
    world.look(lambda: world.feeds.synced, "start")
    assert world.appeared == 1


def test_a_kind_that_appears_is_picked_up_without_a_restart(make: Callable[..., World]) -> None:
    """It counts once its first list is there, and does not hold up the others before."""
    world = make()
    ready(world)
    world.cluster.kinds.add(kinds.LEADERWORKERSETS)
    world.cluster.objects[kinds.LEADERWORKERSETS] = [world.made(kinds.LEADERWORKERSETS, "l")]
    world.cluster.open.clear()
    world.clock.advance(feeds.ASK_AGAIN)
    world.feeds.look_for_kinds()
    assert world.feeds.synced
    assert (world.appeared, world.known.served(kinds.LEADERWORKERSETS)) == (0, False)
    world.cluster.open.set()
    world.look(lambda: world.appeared, "word of the new kind")
    assert world.known.served(kinds.LEADERWORKERSETS)
    assert world.known.find(kinds.LEADERWORKERSETS, "ns", "l") is not None
    assert world.feeds.dead() == ()
    assert world.feeds.synced


def test_unserved_kinds_are_asked_for_at_a_constant_cost(make: Callable[..., World]) -> None:
    """However often the loop turns; those that are served are not asked for again."""
    world = make(kinds.JOBSETS)
    ready(world)
    first = len(world.cluster.asked)
    assert first == len(kind_table.WATCHED) - 1
    for _ in range(100):
        world.feeds.look_for_kinds()
    assert len(world.cluster.asked) == first
    world.clock.advance(feeds.ASK_AGAIN)
    for _ in range(100):
        world.feeds.look_for_kinds()
    assert len(world.cluster.asked) == 2 * first - 1


def test_of_a_change_only_what_counts_is_told(make: Callable[..., World]) -> None:
    """A JobSet's status changes with each of its pods, and each such change would concern all of them."""
    world = make(kinds.JOBSETS)
    ready(world)
    first = world.made(kinds.JOBSETS, spec={"suspend": False})
    progress = world.made(kinds.JOBSETS, spec={"suspend": False}, status={"restarts": 1})
    suspended = world.made(kinds.JOBSETS, spec={"suspend": True})
    spoken = world.made(kinds.JOBSETS, spec={"suspend": True}, annotations={"a": "b"})
    for change in (first, progress, suspended, spoken):
        world.say(kinds.JOBSETS, ports.Put(change))
    world.say(kinds.JOBSETS, ports.Gone(spoken))
    assert world.hear() == (None, first)
    assert world.hear() == (progress, suspended)
    assert world.hear() == (suspended, spoken)
    assert world.hear() == (spoken, None)


def test_a_workload_is_told_as_the_podgroups_that_name_it(make: Callable[..., World]) -> None:
    """Pods know nothing of it."""
    world = make(kinds.PODGROUPS, kinds.WORKLOADS)
    ready(world)
    policy = {"gang": {"minCount": 1}}
    made_from = {"workload": {"workloadName": "w"}}
    group = world.made(kinds.PODGROUPS, "g", spec={"schedulingPolicy": policy, "podGroupTemplateRef": made_from})
    other = world.made(kinds.PODGROUPS, "other", spec={"schedulingPolicy": policy})
    for one in (group, other):
        world.say(kinds.PODGROUPS, ports.Put(one))
        assert world.hear() == (None, one)
    for change in (ports.Put(world.made(kinds.WORKLOADS, "w")), ports.Gone(world.made(kinds.WORKLOADS, "w"))):
        world.say(kinds.WORKLOADS, change)
        assert world.hear() == (None, group)


def test_jobs_that_need_fewer_pods_are_found_by_the_run_of_their_jobset(make: Callable[..., World]) -> None:
    """Those that have only begun are not among them, so that there are not thousands to go through."""
    world = make()
    ready(world)
    spec = {"parallelism": 2, "completions": 2}
    set_ = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set", "uid": "u", "controller": True}
    done = world.made(kinds.JOBS, "done", spec=spec, status={"succeeded": 1}, owners=[set_])
    begun = world.made(kinds.JOBS, "begun", spec=spec, owners=[set_])
    for job in (done, begun):
        job.metadata.labels.update({names.LABEL_JOBSET_ATTEMPT: "3"})
        world.say(kinds.JOBS, ports.Put(job))
        world.hear()
    assert world.known.spent("ns", "u:3") == (done,)
    assert world.known.spent("ns", "u:2") == ()


def test_every_informer_is_shown_those_that_come_later_too(make: Callable[..., World]) -> None:
    """The two kinds of PodGroups under different names."""
    world = make()
    shown: dict[str, Callable[[], InformerNumbers]] = {}
    world.feeds.show(shown.__setitem__)
    ready(world)
    assert set(shown) == {"jobs"}
    world.cluster.kinds |= {kinds.PODGROUPS, kinds.COSCHEDULING_PODGROUPS}
    world.clock.advance(feeds.ASK_AGAIN)
    world.look(lambda: world.appeared, "word of the new kinds")
    assert set(shown) == {"jobs", "podgroups", "podgroups.scheduling.x-k8s.io"}
    assert shown["jobs"]().synced


def test_what_hooks_need_later_is_watched_while_everything_runs(make: Callable[..., World]) -> None:
    """Its first list is in when it counts, and changes of it are told like those of the others."""
    world, told = make(), queue.Queue[object]()
    ready(world)
    world.cluster.objects[kinds.SERVICES] = [world.made(kinds.SERVICES, "first")]
    found = world.feeds.more_views([Need.SERVICES], lambda _old, new: told.put(new))
    assert found[Need.SERVICES].get("ns", "first") is not None
    world.say(kinds.SERVICES, ports.Put(world.made(kinds.SERVICES, "second")))
    wait.until(lambda: found[Need.SERVICES].get("ns", "second"), "the change", 20, every=0.005)
    assert world.feeds.synced
    assert world.feeds.dead() == ()


def test_what_cannot_be_listed_is_not_waited_for(make: Callable[..., World]) -> None:
    """All or nothing; those that are watched already go on."""
    world = make()
    ready(world)
    world.cluster.refused.add(kinds.SERVICES)
    with pytest.raises(errors.BadConfiguration, match=r"need .*services, which could not be listed"):
        world.feeds.more_views([Need.SERVICES, Need.PVCS], lambda _old, _new: None, within=0.2)
    assert (world.feeds.problem(), world.feeds.dead()) == ("", ())
    wait.until(lambda: "informer-services" not in {one.name for one in threading.enumerate()}, "its end", 10)


def test_a_reload_that_fails_leaves_no_listener(make: Callable[..., World]) -> None:
    """Each change would be told once more after each of them."""
    world, heard = make(kinds.RESOURCESLICES), queue.Queue[str]()
    slices = world.feeds.slices(lambda _old, _new: heard.put("nodes"))
    ready(world)
    world.look(lambda: slices() is not None, "the list")
    world.cluster.refused.add(kinds.SERVICES)
    wanted = [Need.RESOURCESLICES, Need.SERVICES]
    for _ in range(2):
        with pytest.raises(errors.BadConfiguration):
            world.feeds.more_views(wanted, lambda _old, _new: heard.put("hooks"), within=0.2)
    world.say(kinds.RESOURCESLICES, ports.Put(world.made(kinds.RESOURCESLICES, "gpus")))
    assert heard.get(timeout=10) == "nodes"
    assert heard.empty()


def test_slices_that_are_served_meanwhile_have_one_informer(make: Callable[..., World]) -> None:
    """The one that waits for them starts, and none displaces it."""
    world = make()
    slices = world.feeds.slices(lambda _old, _new: None)
    ready(world)
    world.cluster.kinds.add(kinds.RESOURCESLICES)
    seen = world.feeds.more_views([Need.RESOURCESLICES], lambda _old, _new: None)
    world.say(kinds.RESOURCESLICES, ports.Put(world.made(kinds.RESOURCESLICES, "gpus")))
    world.clock.advance(feeds.ASK_AGAIN)
    world.look(slices, "the slice")
    assert slices() == tuple(seen[Need.RESOURCESLICES].all())
    assert len([one for one in threading.enumerate() if one.name == "informer-resourceslices"]) == 1


class TestOptional:
    """What every chain looks at where the cluster serves it."""

    def watched(self, world: World) -> Any:
        """The view of it."""
        found = world.feeds.views([], lambda _old, _new: None)
        ready(world)
        return found[Need.DEVICECLASSES]

    def test_what_is_not_served_is_waited_for_by_nobody(self, make: Callable[..., World]) -> None:
        """There is none of it, until it is served."""
        world = make()
        view = self.watched(world)
        assert (world.feeds.synced, world.feeds.problem(), len(view)) == (True, "", 0)
        world.cluster.objects[kinds.DEVICECLASSES] = [world.made(kinds.DEVICECLASSES, "big")]
        world.cluster.kinds.add(kinds.DEVICECLASSES)
        world.clock.advance(feeds.ASK_AGAIN)
        world.look(lambda: len(view), "the class")
        assert world.feeds.dead() == ()

    def test_what_may_not_be_listed_holds_up_no_start(self, make: Callable[..., World]) -> None:
        """The rights of an earlier version do not have it."""
        world = make(kinds.DEVICECLASSES)
        world.cluster.refused.add(kinds.DEVICECLASSES)
        view = self.watched(world)
        world.look(lambda: kinds.DEVICECLASSES in world.cluster.asked, "the question")
        assert (world.feeds.synced, world.feeds.problem(), len(view)) == (True, "", 0)

    def test_slices_are_unknown_until_they_are_served_and_listed(self, make: Callable[..., World]) -> None:
        """An API server without them holds up no start."""
        world = make()
        slices = world.feeds.slices(lambda _old, _new: None)
        ready(world)
        assert (world.feeds.synced, slices()) == (True, None)
        world.cluster.kinds.add(kinds.RESOURCESLICES)
        world.clock.advance(feeds.ASK_AGAIN)
        world.look(lambda: slices() is not None, "the list")
        assert slices() == ()

    def test_what_a_hook_declares_is_waited_for(self, make: Callable[..., World]) -> None:
        """Without the classes of devices a start would take claims that are known for such that are not."""
        world = make(kinds.DEVICECLASSES)
        world.cluster.refused.add(kinds.DEVICECLASSES)
        world.feeds.views([Need.DEVICECLASSES], lambda _old, _new: None)
        world.feeds.start()
        assert "deviceclasses" in world.feeds.problem()

    @pytest.mark.parametrize("late", [False, True])
    def test_hooks_and_the_node_controller_share_the_slices(self, make: Callable[..., World], late: bool) -> None:
        """One watch of them, whichever asks first; both hear of every change."""
        heard: set[str] = set()
        world = make(kinds.RESOURCESLICES)

        def view() -> Any:
            ask = world.feeds.more_views if late else world.feeds.views
            return ask([Need.RESOURCESLICES], lambda _old, _new: heard.add("hooks"))[Need.RESOURCESLICES]

        first = None if late else view()
        slices = world.feeds.slices(lambda _old, _new: heard.add("nodes"))
        ready(world)
        world.look(lambda: slices() is not None, "the list")
        seen = first if first is not None else view()
        world.say(kinds.RESOURCESLICES, ports.Put(world.made(kinds.RESOURCESLICES, "gpus")))
        wait.until(lambda: heard == {"hooks", "nodes"}, "the change", 10)
        assert slices() == tuple(seen.all())
        assert len([one for one in threading.enumerate() if one.name == "informer-resourceslices"]) == 1
