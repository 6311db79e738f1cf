"""One model for all viewers, and none without viewers."""

from collections.abc import Callable

import pytest

from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.view.feed import RESTS, Feed, TooManyViewers
from slurm_bridge.view.live_model import EVERYTHING
from tests.unit.view.viewing import Delta, Model


class Scene:
    """A feed, and the models that it has made."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.models: list[Model] = []
        self.feed = Feed(self._make, self.clock, most=2, period=1.0)  # type: ignore[arg-type]

    def _make(self, heard: Callable[[], None]) -> Model:
        self.heard = heard
        self.models.append(Model())
        return self.models[-1]


def test_the_model_ends_with_the_first_change_after_its_last_use() -> None:
    """While there is a viewer it stays; some seconds after the last one nothing is kept."""
    scene = Scene()
    with scene.feed.viewer("") as viewer:
        scene.feed.full(viewer, EVERYTHING)
        scene.clock.advance(100)
        scene.heard()
        assert not scene.models[0].closed
    scene.clock.advance(RESTS - 1)
    scene.heard()
    assert not scene.models[0].closed
    scene.clock.advance(1)
    scene.heard()
    assert scene.models[0].closed


def test_questions_one_after_another_have_one_model() -> None:
    """Each of them keeps it for some seconds more."""
    scene = Scene()
    for _ in range(5):
        scene.feed.all(EVERYTHING)
        scene.clock.advance(RESTS - 1)
        scene.heard()
    assert len(scene.models) == 1
    scene.clock.advance(1)
    scene.heard()
    scene.feed.all(EVERYTHING)
    assert (len(scene.models), scene.models[0].closed) == (2, True)


def test_a_step_is_made_once_for_all_viewers() -> None:
    """By the first that finds it due."""
    scene = Scene()
    with scene.feed.viewer("") as one, scene.feed.viewer("") as other:
        scene.feed.full(one, EVERYTHING)
        scene.feed.full(other, EVERYTHING)
        scene.models[0].next = [Delta("news")]
        scene.clock.advance(1.0)
        assert scene.feed.more(one, EVERYTHING) == [b'{"news":"all"}']
        assert scene.feed.more(other, EVERYTHING) == [b'{"news":"all"}']
        assert scene.feed.more(one, EVERYTHING) == []
        assert scene.models[0].steps == 2


def test_more_viewers_than_allowed_are_refused() -> None:
    """Nothing is made for them."""
    scene = Scene()
    with scene.feed.viewer(""), scene.feed.viewer(""), pytest.raises(TooManyViewers), scene.feed.viewer(""):
        pass
    assert scene.feed.viewers == 0


def test_what_comes_after_all_rows_were_given_follows() -> None:
    """Nothing is given twice, and nothing is left out."""
    scene = Scene()
    with scene.feed.viewer("") as viewer:
        scene.feed.namespaces()
        scene.models[0].next = [Delta("first")]
        scene.clock.advance(1.0)
        assert scene.feed.full(viewer, EVERYTHING) == [b'{"full":"all"}']
        assert scene.feed.more(viewer, EVERYTHING) == []
