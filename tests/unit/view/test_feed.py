"""One model for all viewers, and none without viewers."""

import pytest

from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.view.feed import Feed, TooManyViewers
from slurm_bridge.view.live_model import EVERYTHING
from tests.unit.view.viewing import Delta, Model


class Scene:
    """A feed, and the models that it has made."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.models: list[Model] = []
        self.feed = Feed(self._make, self.clock, most=2, period=1.0)  # type: ignore[arg-type]

    def _make(self) -> Model:
        self.models.append(Model())
        return self.models[-1]


def test_there_is_a_model_while_there_are_viewers() -> None:
    """The first one makes it, and the last one closes it."""
    scene = Scene()
    with scene.feed.viewer(), scene.feed.viewer():
        assert len(scene.models) == 1
    assert scene.models[0].closed
    with scene.feed.viewer():
        assert len(scene.models) == 2


def test_a_step_is_made_once_for_all_viewers() -> None:
    """By the first that finds it due."""
    scene = Scene()
    with scene.feed.viewer() as one, scene.feed.viewer() as other:
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
    with scene.feed.viewer(), scene.feed.viewer(), pytest.raises(TooManyViewers), scene.feed.viewer():
        pass
    assert scene.feed.viewers == 0


def test_what_comes_after_all_rows_were_given_follows() -> None:
    """Nothing is given twice, and nothing is left out."""
    scene = Scene()
    with scene.feed.viewer() as viewer:
        scene.models[0].next = [Delta("first")]
        assert scene.feed.full(viewer, EVERYTHING) == [b'{"full":"all"}']
        assert scene.feed.more(viewer, EVERYTHING) == []
