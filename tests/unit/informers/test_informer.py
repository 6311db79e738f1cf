import random
import threading
from collections.abc import Callable, Iterator

import pytest

from slurm_bridge import ports
from slurm_bridge.informers.informer import Informer
from slurm_bridge.informers.reflector import ReflectorSubject
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Object
from slurm_bridge.runtime.clock import SystemClock
from tests import wait
from tests.unit.informers.conftest import Cluster, listing, thing


class Blocking(Cluster):
    """Its watches say nothing until they are closed."""

    def watch(self, kind: object, since: str, scope: ports.Scope) -> object:
        opened = super().watch(kind, since, scope)
        opened._steps = [*opened._steps, lambda: opened.closed.wait(wait.PATIENCE)]
        return opened


Make = Callable[..., Informer[Object]]


@pytest.fixture
def blocking() -> Blocking:
    """A cluster with one object, and silence after what the test adds."""
    cluster = Blocking()
    cluster.lists = [listing(thing("a", 1), version=1)]
    cluster.watches = [[]]
    return cluster


@pytest.fixture
def make(blocking: Blocking) -> Iterator[Make]:
    """Makes informers and stops them."""
    made: list[Informer[Object]] = []

    def one(*handlers: Callable[[Object | None, Object | None], None]) -> Informer[Object]:
        subject = ReflectorSubject(cluster=blocking, kind=kinds.NAMESPACES)
        made.append(Informer(subject, clock=SystemClock(), dice=random.Random(1), handlers=handlers))
        return made[-1]

    yield one
    for informer in made:
        informer.stop()


def test_follows_and_stops(make: Make, blocking: Blocking) -> None:
    """It follows from start to stop; a stop ends a silent watch at once, and may be repeated."""
    informer = make()
    assert not informer.alive
    informer.start()
    assert informer.store.wait_synced(wait.PATIENCE)
    assert informer.alive
    assert len(informer.store) == 1
    informer.stop()
    assert not informer.alive
    informer.stop()
    assert all(changes.closed.is_set() for changes in blocking.opened)


def test_handlers_in_order(make: Make) -> None:
    """Every handler hears of every change, in the order given."""
    heard: list[str] = []
    informer = make(lambda _old, _new: heard.append("first"), lambda _old, _new: heard.append("second"))
    informer.start()
    assert informer.store.wait_synced(wait.PATIENCE)
    assert heard == ["first", "second"]
    assert informer.numbers().lists == 1


def test_stopped_before_started(make: Make) -> None:
    """A stop before the start is no error."""
    informer = make()
    informer.stop()
    assert not informer.alive


def test_a_failing_handler_is_loud(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that raises ends the thread with its error, where everybody can see it."""
    died: list[type[BaseException]] = []
    dead = threading.Event()

    def hook(args: threading.ExceptHookArgs) -> None:
        died.append(args.exc_type)
        dead.set()

    monkeypatch.setattr(threading, "excepthook", hook)
    informer = make(lambda _old, _new: {}["nothing"])
    informer.start()
    assert dead.wait(wait.PATIENCE)
    informer.stop()
    assert died == [KeyError]
    assert not informer.alive
    assert not informer.store.synced
