"""Numbers of CPUs as Linux writes them."""

import pytest

from slurm_bridge.model import cpuset


@pytest.mark.parametrize(
    ("text", "cpus"), [("0", {0}), ("0-3,8", {0, 1, 2, 3, 8}), ("5,1-2", {1, 2, 5}), ("8191", {8191})]
)
def test_a_list_is_read(text: str, cpus: set[int]) -> None:
    """Single numbers and ranges, in any order."""
    assert cpuset.parse(text) == cpus


@pytest.mark.security("input")
@pytest.mark.parametrize("text", ["", " ", "a", "1-", "3-1", "0-8192", "-1", "1,,2", "0-1-2", "٣", "1" * 70_000])
def test_what_is_no_list_is_none(text: str) -> None:
    """Nor is one that no machine has."""
    assert cpuset.parse(text) is None


@pytest.mark.parametrize(("cpus", "text"), [({3}, "3"), ({0, 1, 2, 8}, "0-2,8"), ({1, 3}, "1,3"), (set(), "")])
def test_a_list_is_written(cpus: set[int], text: str) -> None:
    """With ranges where numbers follow each other."""
    assert cpuset.write(cpus) == text
