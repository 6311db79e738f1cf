"""Every known trap of bridging pods and Slurm has a named test somewhere in this tree.

A name like `test_t41_jobs_that_are_not_ours_are_never_touched` says which trap it closes; the number is the trap's own
and is found in test names only. There are no t07, t19 and t54 to t59.
"""

import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parents[1]

REQUIRED = (
    *(f"t{number:02}" for number in (1, 2, 3, 4, 5, 6, 8, 9, 10)),
    *(f"t{number}" for number in (11, 12, 13, 14, 15, 16, 17, 18, *range(20, 44))),
    *(f"t{number}" for number in (*range(45, 54), *range(60, 64))),
    *("t12a", "t43a", "t43b", "t52a", "t66", "t67"),
    *(f"s{number}" for number in range(1, 4)),
    *(f"c{number}" for number in range(1, 8)),
)

_NAME = re.compile(r"^ *def test_([tsc]\d+[a-z]?)_\w+\(", re.MULTILINE)


@pytest.fixture(scope="module")
def named() -> frozenset[str]:
    """The traps that some test names."""
    sources = (path.read_text() for path in TESTS.rglob("test_*.py"))
    return frozenset(trap for source in sources for trap in _NAME.findall(source))


@pytest.mark.parametrize("trap", REQUIRED)
def test_a_trap_has_a_test(trap: str, named: frozenset[str]) -> None:
    """Delete the last test of a trap and this one says which."""
    assert trap in named, f"no test is named test_{trap}_…"


def test_no_name_claims_a_trap_that_does_not_exist(named: frozenset[str]) -> None:
    """A slip of the pen would look like a closed trap."""
    assert not named - {*REQUIRED, "t44", "t65"}
