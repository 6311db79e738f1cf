import threading

import pytest
from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.informers.reflector import Handler, Reflector, ReflectorSubject
from slurm_bridge.informers.store import Store
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Object
from slurm_bridge.runtime.clock import VirtualClock
from tests.unit.informers.conftest import Cluster, HighDice, listing, thing


class Looking(VirtualClock):
    """Looks at a store whenever somebody waits."""

    def __init__(self, store: Store[Object]) -> None:
        super().__init__()
        self._store = store
        self.seen: list[int] = []

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.seen.append(len(self._store))
        return super().wait(stop, seconds)


class World:
    """A reflector on virtual time, run until the script says stop."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.store: Store[Object] = Store()
        self.clock = VirtualClock()
        self.stop = threading.Event()
        self.told: list[tuple[str, str]] = []
        self.restart()

    def restart(self, handler: Handler[Object] | None = None) -> None:
        """A new reflector, for another handler or clock."""
        subject = ReflectorSubject(cluster=self.cluster, kind=kinds.NAMESPACES)
        handler = handler or self._told
        self.reflector = Reflector(subject, self.store, handlers=(handler,), clock=self.clock, dice=HighDice())

    def _told(self, old: Object | None, new: Object | None) -> None:
        item = new or old
        assert item is not None
        self.told.append((item.metadata.name, "gone" if new is None else "new" if old is None else "changed"))

    def run(self) -> float:
        """Let it run until something stops it; returns how much time went by."""
        began = self.clock.now()
        self.reflector.run(self.stop)
        return self.clock.now() - began


@pytest.fixture
def world(cluster: Cluster) -> World:
    """A reflector of the scripted cluster."""
    return World(cluster)


def test_list_then_watch(world: World, cluster: Cluster) -> None:
    """First everything there is, then every change after it."""
    cluster.lists = [listing(thing("a", 3), version=5)]
    cluster.watches = [[ports.Put(thing("b", 6)), ports.Gone(thing("a", 7)), world.stop.set]]
    assert world.run() == 0
    assert world.told == [("a", "new"), ("b", "new"), ("a", "gone")]
    assert cluster.since == ["5"]
    assert [item.metadata.name for item in world.store.all()] == ["b"]


def test_watch_goes_on_from_the_last_version(world: World, cluster: Cluster) -> None:
    """A watch that ends is continued where it was, bookmarks included, without a list and without a pause."""
    cluster.lists = [listing(version=5)]
    cluster.watches = [[ports.Put(thing("a", 6))], [ports.Bookmark("9")], [world.stop.set]]
    assert world.run() == 0
    assert cluster.since == ["5", "6", "9"]
    assert cluster.listed == 1


@pytest.mark.parametrize("in_stream", [False, True])
def test_expired(world: World, cluster: Cluster, *, in_stream: bool) -> None:
    """An expired version, when connecting or in the stream, means a new list, and what was missed is told."""
    expired = errors.Expired("too old")
    cluster.lists = [listing(thing("a", 1), version=5), listing(thing("b", 8), version=9)]
    cluster.watches = [[expired] if in_stream else expired, [world.stop.set]]
    world.run()
    assert world.told == [("a", "new"), ("a", "gone"), ("b", "new")]
    assert cluster.since == ["5", "9"]


def test_stored_objects_survive_a_failing_list(world: World, cluster: Cluster) -> None:
    """Unknown is not gone: until a new list came, what was known stays."""
    cluster.lists = [listing(thing("a", 1), version=5), errors.Unavailable("down"), listing(version=9)]
    cluster.watches = [[errors.Expired("too old")], [world.stop.set]]
    world.clock = Looking(world.store)
    world.restart()
    world.run()
    assert world.clock.seen == [1, 1]
    assert len(world.store) == 0


def test_errors_pause_longer_each_time(world: World, cluster: Cluster) -> None:
    """Failures are repeated after growing pauses, whoever would have to act."""
    cluster.lists = [
        errors.Unavailable("down"),
        errors.NotAuthenticated("who"),
        errors.BadAnswer("what"),
        listing(version=1),
    ]
    cluster.watches = [[world.stop.set]]
    assert world.run() == pytest.approx(0.2 + 0.4 + 0.8)
    assert world.reflector.counters.failures == 3


def test_success_forgets_failures(world: World, cluster: Cluster) -> None:
    """After anything new from the server, the next pause is short again."""
    down = errors.Unanswered("silence")
    cluster.lists = [listing(version=1)]
    cluster.watches = [down, down, [ports.Bookmark("2"), down], [world.stop.set]]
    assert world.run() == pytest.approx(0.2 + 0.4 + 0.2)
    assert cluster.listed == 1


def test_a_forgotten_version_after_an_outage_is_no_further_failure(world: World, cluster: Cluster) -> None:
    """A server that is back and has forgotten wants a list now; the pause of the outage has lost its reason."""
    cluster.lists = [listing(version=1), listing(version=9)]
    down = errors.Unavailable("down")
    outage = [down] * 9
    cluster.watches = [*outage, errors.Expired("too old"), [world.stop.set]]
    paused = world.run()
    assert paused == pytest.approx(sum(min(30, 0.2 * 2**number) for number in range(9)) + 0.2)


def test_a_long_watch_is_a_success(world: World, cluster: Cluster) -> None:
    """A connection that held for long was a good one, even if nothing happened."""
    cluster.lists = [listing(version=1)]
    down = errors.Unanswered("reset")
    cluster.watches = [down, down, [lambda: world.clock.advance(60), down], [world.stop.set]]
    assert world.run() == pytest.approx(0.2 + 0.4 + 60 + 0.2)


def test_watch_that_ends_at_once(world: World, cluster: Cluster) -> None:
    """A server that ends every watch as it begins is not asked in a busy loop."""
    cluster.lists = [listing(version=1)]
    cluster.watches = [[], [], [world.stop.set]]
    assert world.run() == pytest.approx(0.2 + 0.4)


def test_quiet_watch_ends_in_time(world: World, cluster: Cluster) -> None:
    """A watch that ends after its time without news is continued without a pause."""
    cluster.lists = [listing(version=1)]
    cluster.watches = [[lambda: world.clock.advance(250)], [world.stop.set]]
    assert world.run() == 250


def test_retry_after(world: World, cluster: Cluster) -> None:
    """The server's wish is honoured."""
    cluster.lists = [errors.Unavailable("busy", retry_after=9), listing(version=1)]
    cluster.watches = [[world.stop.set]]
    assert world.run() == 9


def test_synced_after_the_handlers(world: World, cluster: Cluster) -> None:
    """Synced means that handlers have heard of everything in the first list."""
    synced: list[bool] = []
    world.restart(lambda _old, _new: synced.append(world.store.synced))
    cluster.lists = [listing(thing("a", 1), version=1)]
    cluster.watches = [[world.stop.set]]
    world.run()
    assert synced == [False]
    assert world.store.synced


def test_handler_error_is_not_swallowed(world: World, cluster: Cluster) -> None:
    """A handler that fails ends the loop, and the watch is closed."""
    cluster.lists = [listing(version=1)]
    cluster.watches = [[ports.Put(thing("a", 2))]]
    world.restart(lambda _old, _new: {}["nothing"])
    with pytest.raises(KeyError):
        world.run()
    assert cluster.opened[0].closed.is_set()


def test_stop_between_changes(world: World, cluster: Cluster) -> None:
    """A stop is seen after the change at hand, and the watch is closed."""
    cluster.lists = [listing(version=1)]
    cluster.watches = [[world.stop.set, ports.Put(thing("a", 2)), ports.Put(thing("b", 3))]]
    world.run()
    assert world.told == [("a", "new")]
    assert cluster.opened[0].closed.is_set()


def test_stop_while_failing(world: World, cluster: Cluster) -> None:
    """What a stopped watch looks like from inside is no failure, and nothing waits."""
    cluster.lists = [listing(version=1)]
    cluster.watches = [[world.stop.set, errors.BadAnswer("closed")]]
    assert world.run() == 0
    assert world.reflector.counters.failures == 0


def test_counters(world: World, cluster: Cluster) -> None:
    """What happened is counted."""
    cluster.lists = [listing(version=1), listing(version=5)]
    cluster.watches = [
        [ports.Put(thing("a", 2)), ports.Bookmark("3"), errors.Expired("old")],
        [ports.Gone(thing("a", 6)), world.stop.set],
    ]
    world.run()
    made = world.reflector.counters
    assert (made.lists, made.watches, made.events, made.bookmarks, made.failures) == (2, 2, 2, 1, 1)


def test_trouble_is_logged_once(world: World, cluster: Cluster) -> None:
    """Each failure is one line that says what and when next."""
    lines: list[str] = []
    sink = logger.add(lines.append, format="{message}", level="WARNING")
    cluster.lists = [errors.Unavailable("connection refused"), listing(version=1)]
    cluster.watches = [[world.stop.set]]
    world.run()
    logger.remove(sink)
    assert lines == ["lost touch, next try in 0.2 s: connection refused\n"]
