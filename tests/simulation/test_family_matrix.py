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


@pytest.mark.parametrize("load", ["idle", "full"])
@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "+".join(chain) or "none")
def test_what_fits_starts_and_what_does_not_says_why(
    matrix_seed: int, chain: Sequence[str], shape: Shape, load: str, tmp_path: pathlib.Path
) -> None:
    """In bounded time, as soon as whatever it waits for is there."""
    case = Case(matrix_seed, tmp_path / "token", chain, shape)
    try:
        case.play_all(full=load == "full")
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {matrix_seed}: {broken}\n" + "\n".join(case.world.journal), pytrace=False)
