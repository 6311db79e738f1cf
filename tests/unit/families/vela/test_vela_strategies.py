"""Sampling strategies, and the dice that they throw."""

import concurrent.futures
import itertools
import random

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.vela import dice, strategies
from slurm_bridge.families.vela.strategies import Draw, RandomStrategy, RoundRobin, SamplingStrategy, Shared
from tests.unit.families.vela.support_vela import scripted

_counts = st.integers(0, 60)


class TestDistinct:
    @hypothesis.given(_counts, _counts, st.integers(0, 5))
    def test_so_many_different_numbers_below_the_bound(self, below: int, count: int, seed: int):
        """Or all that there are."""
        drawn = dice.distinct(below, count, dice.throw(random.Random(seed)))
        assert len(drawn) == len(set(drawn)) == min(below, count)
        assert all(0 <= number < below for number in drawn)

    @hypothesis.given(st.sampled_from([7, 60, 400, 1000, 20_000]), st.integers(0, 140), st.integers(0, 5))
    def test_how_few_are_wanted_changes_none_of_them(self, below: int, count: int, seed: int):
        """A few are drawn without arrays, in the same throws: as many as are likely to be needed."""
        if below >= dice.LONG and 2 * min(count, below) > below:
            return
        chosen: list[int] = []
        throw, wanted = dice.throw(random.Random(seed)), min(count, below)
        while len(chosen) < wanted:
            missing, left = wanted - len(chosen), below - len(chosen)
            drawn = np.asarray(throw(below, missing * below // left + missing))
            chosen = list(dict.fromkeys([*chosen, *drawn.tolist()]))
        assert dice.distinct(below, count, dice.throw(random.Random(seed))).tolist() == chosen[:wanted]

    def test_repetitions_are_skipped_in_the_order_of_drawing(self):
        """However many numbers are drawn at once."""
        assert dice.distinct(5, 3, scripted(4, 4, 1, 4, 1, 0)).tolist() == [4, 1, 0]

    @pytest.mark.parametrize("below", [dice.LONG - 1, dice.LONG, 5000])
    def test_all_of_a_list_come_in_any_order(self, below: int):
        """However long it is."""
        throw = dice.throw(random.Random(1))
        one, other = (dice.distinct(below, below, throw).tolist() for _ in range(2))
        assert sorted(one) == sorted(other) == list(range(below))
        assert one != other
        assert 0.4 < sum(after > before for before, after in itertools.pairwise(one)) / below < 0.6

    @hypothesis.given(st.lists(st.integers(0, 20)))
    def test_the_first_of_equal_numbers_stays(self, numbers: list[int]):
        """In the order in which they are."""
        assert dice.firsts(np.array(numbers, np.intp)).tolist() == list(dict.fromkeys(numbers))

    def test_dice_that_give_nothing_are_an_error(self):
        """Nobody waits for them for ever."""
        with pytest.raises(RuntimeError, match="the dice gave nothing when 2 more numbers below 5 were wanted"):
            dice.distinct(5, 3, scripted(1))
        with pytest.raises(RuntimeError, match="the dice gave nothing when 900 more numbers below 1000 were wanted"):
            dice.distinct(1000, 900, scripted())

    def test_equal_seeds_fall_equally(self):
        """So tests and simulations repeat."""
        one, other = (dice.throw(random.Random(3))(1000, 20) for _ in range(2))
        assert list(one) == list(other)


class TestRoundRobin:
    @hypothesis.given(st.integers(1, 30), st.lists(st.integers(0, 40), max_size=20))
    def test_every_place_is_given_as_often_as_any_other(self, total: int, requests: list[int]):
        """Up to one time."""
        strategy = RoundRobin()
        given = list(itertools.chain.from_iterable(strategy.sample(total, count) for count in requests))
        often = [given.count(place) for place in range(total)]
        assert max(often) - min(often) <= 1

    @hypothesis.given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 12)), max_size=20))
    def test_a_list_that_changes_its_length_gives_places_that_are_there(self, requests: list[tuple[int, int]]):
        """Nodes come and go."""
        strategy = RoundRobin()
        for total, count in requests:
            sample = strategy.sample(total, count)
            assert len(sample) == len(set(sample)) == min(total, count)
            assert all(0 <= place < total for place in sample)


class Says:
    """A strategy of a package."""

    def __init__(self, *places: int) -> None:
        self._places = places

    def sample(self, _total: int, _count: int) -> tuple[int, ...]:
        return self._places


class TestShared:
    def test_requests_at_once_get_different_nodes_until_the_list_wraps(self):
        """From as many threads as there are pipelines."""
        shared = Shared("round-robin", RoundRobin())
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            samples = list(pool.map(lambda _: shared.sample(400, 20).tolist(), range(20)))
        assert sorted(itertools.chain.from_iterable(samples)) == list(range(400))

    @pytest.mark.parametrize("places", [(5,), (-1,), (0, 99)])
    def test_a_place_that_is_not_there_is_an_error(self, places: tuple[int, ...]):
        """Which names the strategy."""
        with pytest.raises(ValueError, match=r"strategy odd named a place outside of 0\.\.4"):
            Shared("odd", Says(*places)).sample(5, 3)

    def test_more_than_was_asked_for_is_cut_off(self):
        """The first ones stay."""
        assert Shared("eager", Says(3, 1, 2)).sample(5, 2).tolist() == [3, 1]


class TestLoad:
    def test_only_what_is_configured_is_loaded(self):
        """A package that is broken is in nobody's way."""

        def broken() -> strategies.Builder:
            raise ImportError("no such module")

        loaded = strategies.load(
            ["random", "mine"], random.Random(0), {"mine": lambda: lambda _: Says(1), "odd": broken}
        )
        assert (list(loaded), loaded["mine"].sample(5, 1).tolist()) == (["random", "mine"], [1])
        with pytest.raises(ValueError, match="strategy odd: cannot be loaded: ImportError: no such module"):
            strategies.load(["odd"], random.Random(0), {"odd": broken})

    def test_what_is_unknown_is_named_with_what_there_is(self):
        """Built in and installed."""
        with pytest.raises(
            ValueError, match=r"strategy fair: neither built in nor installed .* use one of mine, random, round-robin"
        ):
            strategies.load(["fair"], random.Random(0), {"mine": lambda: lambda _: Says()})

    def test_a_constructor_that_raises_is_named(self):
        """With what it said."""

        def build(_dice: dice.Dice) -> Says:
            raise TypeError("give me more")

        with pytest.raises(ValueError, match="strategy mine: cannot be built: TypeError: give me more"):
            strategies.load(["mine"], random.Random(0), {"mine": lambda: build})

    def test_what_has_no_method_is_none(self):
        """A mapping is no strategy."""
        with pytest.raises(ValueError, match="strategy mine: has no method sample"):
            strategies.load(["mine"], random.Random(0), {"mine": lambda: lambda _: {}})  # type: ignore[arg-type,return-value]

    def test_random_is_an_ordinary_strategy(self):
        """With dice of its own."""
        assert RandomStrategy(scripted(2, 0)).sample(3, 2).tolist() == [2, 0]


class Same:
    """A foreign strategy that names the first places again and again, each of them twice."""

    def sample(self, total: int, count: int) -> list[int]:
        return [place // 2 % total for place in range(2 * count)] if total else []


class TestDraw:
    @hypothesis.given(
        st.sampled_from(["random", "round-robin", "foreign"]),
        st.integers(0, 40),
        st.integers(1, 9),
        st.sets(st.integers(0, 39)),
    )
    def test_every_place_of_use_is_drawn_once_before_the_sample_is_over(
        self, kind: str, total: int, missing: int, useless: set[int]
    ):
        """Whatever the strategy does, and though others draw by it meanwhile."""
        made: dict[str, SamplingStrategy] = {
            "random": RandomStrategy(dice.throw(random.Random(1))),
            "round-robin": RoundRobin(),
            "foreign": Same(),
        }
        shared = Shared(kind, made[kind])
        draw = Draw(shared, total, lambda places: places[~np.isin(places, list(useless))])
        rounds: list[list[int]] = []
        while not draw.done:
            rounds.append(draw.next(missing).tolist())
            shared.sample(total, 3)
        drawn = [place for places in rounds for place in places]
        first = set(rounds[0]) if rounds else set[int]()
        assert len(drawn) == len(set(drawn))
        assert {*drawn, *first} == {*range(total)} - (useless - first)

    def test_round_robin_goes_on_where_it_was(self):
        """Also within a sample of several rounds; what is no use is passed over."""
        shared = Shared("round-robin", RoundRobin(last=3))
        draw = Draw(shared, 8, lambda places: places[places != 6])
        assert [draw.next(2).tolist() for _ in range(4)] == [[4, 5], [7], [0, 1], [2, 3]]
        assert draw.done
