"""Hostlists are read and written as Slurm does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import hostlist
from tests.effort import Work

NAMES = st.lists(
    st.builds(
        lambda prefix, number, width: f"{prefix}{number:0{width}}",
        st.sampled_from(["ext", "gpu-", "rack1-n", "n"]),
        st.integers(0, 2000),
        st.integers(1, 5),
    ),
    max_size=40,
)


@given(NAMES)
def test_what_is_written_reads_back_as_the_same_set(names: list[str]) -> None:
    """Compressing loses no name and adds none."""
    assert sorted(hostlist.expand(hostlist.compress(names))) == sorted(set(names))


@given(NAMES)
def test_what_is_written_in_order_reads_back_in_this_order(names: list[str]) -> None:
    """A place in the list is the number of a node in its job."""
    assert list(hostlist.expand(hostlist.in_order(names))) == names


@given(NAMES)
def test_the_spelling_does_not_depend_on_the_order(names: list[str]) -> None:
    """The same set is always written the same way, so that an unchanged list is seen as unchanged."""
    assert hostlist.compress(names) == hostlist.compress(reversed(names))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        ("ext[001-003]", ("ext001", "ext002", "ext003")),
        ("ext[1,3-4],login", ("ext1", "ext3", "ext4", "login")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n[9-11]", ("n9", "n10", "n11")),
        ("n[2-2]x", ("n2x",)),
        ("n[3-1]", ()),
    ],
)
def test_a_hostlist_names_these_hosts(text: str, hosts: tuple[str, ...]) -> None:
    """Brackets, ranges, several brackets and leading zeros are understood."""
    assert hostlist.expand(text) == hosts


@pytest.mark.parametrize("text", ["a[", "a]", "a[[1]]", "a[x]", "a[]", "a,,b", ",", "a, b", "n[1-999999999]"])
def test_what_is_no_hostlist_is_refused(text: str) -> None:
    """A broken list is an error, never a shorter list."""
    with pytest.raises(ValueError, match=r"hostlist|range|hosts"):
        hostlist.expand(text)


@pytest.mark.security("fairness")
@pytest.mark.parametrize(
    "text",
    [
        f"n[{','.join(['1'] * 20_002)}]",
        ",".join(["n"] * 20_002),
        "n" * 2_000_000,
        ",".join(["n[1-90000]"] * 9_000),
        f"n[{','.join(['1-90000'] * 15_000)}]",
        "n" + "[1-90000]" * 15_000,
    ],
    ids=["numbers", "names", "letters", "parts", "ranges", "brackets"],
)
def test_a_list_without_end_is_refused_before_it_is_written_out(text: str) -> None:
    """A list of hosts in a user's job costs little, however long it is and however often it repeats a host."""
    with Work() as work, pytest.raises(ValueError, match=r"hostlist|range"):
        hostlist.expand(text)
    assert work.total < 100


def test_a_long_list_costs_a_few_calls() -> None:
    """Numbers and names are not looked at one by one by functions of ours; each brackets' content is one of them."""
    with Work() as work:
        assert hostlist.expand(f"n[{','.join(['1'] * 15_000)}]") == ("n1",) * 15_000
    assert work.total < 10


def test_numbers_of_different_width_stay_different_names() -> None:
    """ext1 and ext01 are two nodes."""
    assert hostlist.compress(["ext1", "ext01", "ext02"]) == "ext1,ext[01-02]"
