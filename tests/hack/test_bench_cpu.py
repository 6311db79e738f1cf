"""What the benchmark of the daemon's processor time measures, and what it makes of it."""

import pathlib

import pytest
from cpubench import costs, turns
from cpubench.chains import CHAINS, EVERY, PLAIN
from cpubench.turns import Turn


def turn(who: str, round_: int, ms: float) -> Turn:
    """A hundred pods."""
    return Turn(who=who, round=round_, pods=100, cpu=ms / 10, seconds=1.0)


def test_a_chain_is_compared_with_the_plain_one_of_its_round() -> None:
    """A slow round slows both."""
    played = [turn(PLAIN, number, slow) for number, slow in enumerate((2.0, 4.0, 20.0))]
    played += [turn(EVERY, number, slow + 1.5) for number, slow in enumerate((2.0, 4.0, 20.0))]
    plain, every = costs.costs(played, PLAIN)
    assert (plain.ms, plain.least, plain.most, plain.more) == pytest.approx((4.0, 2.0, 20.0, 0.0))
    assert (every.ms, every.more) == pytest.approx((5.5, 1.5))
    assert "all" in costs.table([every])
    assert "+1.50 ms" in costs.table([every])


def test_each_family_has_a_chain_of_its_own_and_all_have_one_together() -> None:
    """The plain chain has none."""
    families = [name for name in CHAINS if name not in (PLAIN, EVERY)]
    assert families == ["yunikorn", "kai", "vela", "kube-scheduler"]
    assert CHAINS[PLAIN] == ()
    assert [hook["name"] for hook in CHAINS[EVERY]] == families


def test_a_turn_binds_all_pods_between_pocket_servers(tmp_path: pathlib.Path) -> None:
    """With all families: a configuration that the daemon refuses is noticed here."""
    played = turns.play(EVERY, 0, 20, 5, tmp_path)
    assert (played.who, played.pods) == (EVERY, 5)
    assert played.cpu >= 0
