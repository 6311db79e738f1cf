"""Slurm's small notations: amounts and feature expressions."""

import pytest

from slurm_bridge.sim.slurm import features, state, tres


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("gres/gpu:2", [("gpu", "", 2)]),
        ("gres/gpu=2", [("gpu", "", 2)]),
        ("gres/gpu", [("gpu", "", 1)]),
        ("gres:gpu:v100:3", [("gpu", "v100", 3)]),
        ("gres/gpu:v100:1,gres/fpga:2", [("gpu", "v100", 1), ("fpga", "", 2)]),
        ("", []),
    ],
)
def test_gres_are_read(text: str, amounts: list[tuple[str, str, int]]) -> None:
    """A missing count is one."""
    assert [(part.name, part.type, part.count) for part in tres.parse_gres(text)] == amounts


@pytest.mark.parametrize("text", ["gpu:1", "gres/", "gres/gpu:1:2:3"])
def test_other_words_are_no_gres(text: str) -> None:
    """The prefix is part of it."""
    with pytest.raises(tres.BadAmount):
        tres.parse_gres(text)


def test_amounts_are_written_as_slurm_does() -> None:
    """Memory in the largest unit without a fraction."""
    assert [tres.memory(mib) for mib in (100, 1000, 1024, 256_000, 1024 * 1024)] == [
        "100M",
        "1000M",
        "1G",
        "250G",
        "1T",
    ]
    assert tres.write(cpus=8, mib=100, nodes=2) == "cpu=8,mem=100M,node=2,billing=8"
    assert tres.details([state.Gres(name="gpu", type="v100", count=2)]) == "gpu:v100(CNT:2)"


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("", True),
        ("a", True),
        ("c", False),
        ("a&b", True),
        ("a&c", False),
        ("c|a", True),
        ("c|d", False),
        ("(c|a)&b", True),
        ("a&(c|d)", False),
    ],
)
def test_expressions_of_features(expression: str, *, holds: bool) -> None:
    """Asked of a node that has a and b."""
    assert features.parse(expression)({"a", "b"}) is holds


@pytest.mark.parametrize("expression", ["&", "a&", "(a", "a)"])
def test_broken_expressions(expression: str) -> None:
    """They are refused, not guessed."""
    with pytest.raises(features.BadFeatureExpression):
        features.parse(expression)


def test_a_bracket_is_one_choice_for_all() -> None:
    """Counts in it are read as "one of them each"."""
    assert features.alternatives("[a|b]") == ("a", "b")
    assert features.alternatives("[a*1&b*2]") == ("a|b",)
    assert features.names("[a*1&b*2]") == {"a", "b"}
