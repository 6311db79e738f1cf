"""Every family alone, each pair, all four and none: what fits somewhere starts, and what fits nowhere says why.

pytest tests/simulation/test_family_matrix.py --runs 2000      a share of so many seeds
pytest tests/simulation/test_family_matrix.py --seed 1234      one of them again; a failure prints its journal
"""

import itertools
import pathlib
from collections.abc import Sequence

import pytest

from tests.simulation.broken_promise import Broken
from tests.simulation.matrix_case import Case
from tests.simulation.matrix_wishes import Shape

#: In the order in which a configuration has them.
FAMILIES = ("quotas", "places", "samples", "rules")
CHAINS = [chosen for count in (0, 1, 2, 4) for chosen in itertools.combinations(FAMILIES, count)]

#: Cells of other seeds that have failed once: a job was told of one set and another by turns, or taken back to one.
FOUND = [
    (6029, ("places", "samples"), Shape.HET),
    (6033, FAMILIES, Shape.GANG),
    (6035, FAMILIES, Shape.GANG),
    (6061, ("places", "samples"), Shape.GANG),
]


@pytest.mark.parametrize("load", ["idle", "full"])
@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "+".join(chain) or "none")
def test_what_fits_starts_and_what_does_not_says_why(
    matrix_seed: int, chain: Sequence[str], shape: Shape, load: str, tmp_path: pathlib.Path
) -> None:
    """In bounded time, as soon as whatever it waits for is there."""
    play(matrix_seed, Case(matrix_seed, tmp_path / "token", chain, shape), full=load == "full")


@pytest.mark.parametrize(("found", "chain", "shape"), FOUND)
def test_what_has_failed_once_passes(found: int, chain: Sequence[str], shape: Shape, tmp_path: pathlib.Path) -> None:
    """On a full cluster, where a job goes through all that it may be tried on."""
    play(found, Case(found, tmp_path / "token", chain, shape), full=True)


def play(seed: int, case: Case, *, full: bool) -> None:
    """To its end; a failure tells all that has happened."""
    try:
        case.play_all(full=full)
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(case.world.journal), pytrace=False)
