"""The bounded buffer: a place is free again when its pod was refused, was heard of, or never is."""

import dataclasses

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.web.buffer import BufferLimits, BufferSlot, SubmissionBuffer
from tests.examples import examples

KEY = ("team", "a")


@pytest.fixture
def clock() -> VirtualClock:
    """Moves when told."""
    return VirtualClock()


def test_a_refused_pod_leaves_its_place_at_once(clock: VirtualClock) -> None:
    """As one that was never named."""
    places = SubmissionBuffer(BufferLimits(most=1), clock)
    for _ in range(3):
        with places.take() as place:
            assert place is not None
            places.name(place, KEY)
            with places.take() as second:
                assert second is None
    assert len(places) == 0


def test_an_accepted_pod_keeps_it_until_it_is_heard_of(clock: VirtualClock) -> None:
    """By its own name."""
    places = SubmissionBuffer(BufferLimits(most=1), clock)
    with places.take() as place:
        assert place is not None
        places.name(place, KEY)
        place.accepted = True
    places.hear(("team", "b"))
    assert len(places) == 1
    places.hear(KEY)
    assert len(places) == 0


def test_the_watch_may_be_faster_than_the_answer(clock: VirtualClock) -> None:
    """Heard of before the request has ended: the place goes with the request."""
    places = SubmissionBuffer(BufferLimits(most=1), clock)
    with places.take() as place:
        assert place is not None
        places.name(place, KEY)
        places.hear(KEY)
        place.accepted = True
        assert len(places) == 1
    assert len(places) == 0


def test_a_pod_of_an_earlier_name_does_not_count(clock: VirtualClock) -> None:
    """Where the first generated name was taken, that other pod is heard of and ours is not."""
    places = SubmissionBuffer(BufferLimits(most=1), clock)
    with places.take() as place:
        assert place is not None
        places.name(place, KEY)
        places.hear(KEY)
        places.name(place, ("team", "b"))
        place.accepted = True
    assert len(places) == 1
    places.hear(("team", "b"))
    assert len(places) == 0


def test_what_nobody_hears_of_is_given_up(clock: VirtualClock) -> None:
    """Deleted at once, or changed on its way to be another scheduler's."""
    places = SubmissionBuffer(BufferLimits(most=1, unseen=30), clock)
    with places.take() as place:
        assert place is not None
        places.name(place, KEY)
        place.accepted = True
    clock.advance(29)
    assert len(places) == 1
    clock.advance(1)
    with places.take() as again:
        assert again is not None


def test_a_broken_request_leaves_its_place(clock: VirtualClock) -> None:
    """Whatever it raises."""
    places = SubmissionBuffer(BufferLimits(most=1), clock)
    with pytest.raises(ZeroDivisionError), places.take():
        raise ZeroDivisionError
    assert len(places) == 0


def test_fewer_may_be_under_way_than_may_wait(clock: VirtualClock) -> None:
    """Each of those under way holds a connection of the server, which probes need too."""
    places = SubmissionBuffer(BufferLimits(most=10, inside=1), clock)
    with places.take() as first, places.take() as second:
        assert first is not None
        assert second is None


@dataclasses.dataclass(eq=False)
class Open:
    """A request that has begun."""

    context: object
    place: BufferSlot | None
    key: tuple[str, str] = ("", "")


class Buffer(RuleBasedStateMachine):
    """Any number of requests, in any order: the bounds hold, and in the end nothing is left."""

    LIMITS = BufferLimits(most=4, inside=3, unseen=10.0)

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.places = SubmissionBuffer(self.LIMITS, self.clock)
        self.open: list[Open] = []

    @rule()
    def come(self) -> None:
        context = self.places.take()
        before = len(self.places)
        place = context.__enter__()
        if place is None:
            assert before == self.LIMITS.most or len(self.open) == self.LIMITS.inside
            context.__exit__(None, None, None)
        else:
            self.open.append(Open(context, place))

    @precondition(lambda self: self.open)
    @rule(number=st.integers(0, 9), name=st.sampled_from("abc"))
    def name(self, number: int, name: str) -> None:
        one = self.open[number % len(self.open)]
        one.key = ("team", name)
        self.places.name(one.place, one.key)

    @rule(name=st.sampled_from("abc"))
    def hear(self, name: str) -> None:
        self.places.hear(("team", name))

    @precondition(lambda self: self.open)
    @rule(number=st.integers(0, 9), accepted=st.booleans())
    def go(self, number: int, accepted: bool) -> None:
        one = self.open.pop(number % len(self.open))
        one.place.accepted = accepted and one.key != ("", "")
        one.context.__exit__(None, None, None)

    @rule(seconds=st.sampled_from([1.0, 5.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def bounded(self) -> None:
        assert len(self.open) <= len(self.places) <= self.LIMITS.most
        assert len(self.open) <= self.LIMITS.inside

    def teardown(self) -> None:
        while self.open:
            self.go(0, accepted=True)
        self.clock.advance(11)
        assert len(self.places) == 0
        assert not self.places._named


TestBuffer = Buffer.TestCase
TestBuffer.settings = settings(max_examples=examples(60), stateful_step_count=30)
