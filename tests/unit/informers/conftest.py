"""A cluster that says what a test wrote down: lists and watches in order, errors in between."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from slurm_bridge import ports
from slurm_bridge.model.meta import Object, ObjectMeta

Step = ports.Put[Object] | ports.Gone[Object] | ports.Bookmark | Exception | Callable[[], object]


def thing(name: str, version: int, *, uid: str = "", **labels: str) -> Object:
    """An object of no particular kind."""
    metadata = ObjectMeta(name=name, namespace="ns", uid=uid or name, resource_version=str(version), labels=labels)
    return Object(metadata=metadata)


def listing(*items: Object, version: int) -> ports.Listing[Object]:
    """A list at a version."""
    return ports.Listing(items=items, resource_version=str(version))


class Changes:
    """A watch that goes through its steps; a callable among them is called, an exception raised."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[ports.Put[Object] | ports.Gone[Object] | ports.Bookmark]:
        for step in self._steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, (ports.Put, ports.Gone, ports.Bookmark)):
                yield step
            else:
                step()

    def close(self) -> None:
        self.closed.set()


class Cluster:
    """The two verbs that informers use; whoever asks for more than was written has stopped before."""

    def __init__(self) -> None:
        self.lists: list[ports.Listing[Object] | Exception] = []
        self.watches: list[Sequence[Step] | Exception] = []
        self.since: list[str] = []
        self.listed = 0
        self.opened: list[Changes] = []

    def list(self, _kind: object, _scope: ports.Scope) -> ports.Listing[Object]:
        self.listed += 1
        return _answer(self.lists.pop(0))

    def watch(self, _kind: object, since: str, _scope: ports.Scope) -> Changes:
        self.since.append(since)
        steps = _answer(self.watches.pop(0))
        self.opened.append(Changes(steps))
        return self.opened[-1]


def _answer(said: object) -> object:
    if isinstance(said, Exception):
        raise said
    return said


class HighDice(random.Random):
    """Never takes anything away, so that pauses are exact."""

    def uniform(self, _low: float, high: float) -> float:
        return high


@pytest.fixture
def cluster() -> Cluster:
    """What the cluster says."""
    return Cluster()
