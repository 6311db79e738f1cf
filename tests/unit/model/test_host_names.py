"""Names of hosts are written as a hostlist once, and those of nearly all hosts without a look at each of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import hostlist
from slurm_bridge.model.host_names import HostGroups, HostNames
from tests.effort import Work

HOSTS = st.lists(
    st.one_of(
        st.sampled_from(["login", "n0x", "1", "07"]),
        st.builds("{}{:0{}}".format, st.sampled_from(["ext", "n", "n0"]), st.integers(0, 30), st.integers(1, 3)),
    ),
    unique=True,
)


@given(HOSTS, st.data())
def test_all_but_a_few_are_the_others_written_as_a_hostlist(hosts: list[str], data: st.DataObject) -> None:
    """Names, their order and the notation are those of the list that is left, however the numbers are interrupted."""
    few = data.draw(st.sets(st.sampled_from(hosts))) if hosts else set()
    left = tuple(host for host in hosts if host not in few)
    made = HostGroups(hosts).without(few)
    assert (made, made.written) == (left, hostlist.compress(left))


def test_the_groups_serve_many_questions() -> None:
    """What was left out for one question is there for the next."""
    groups = HostGroups([f"n{number}" for number in range(1, 6)])
    assert [groups.without(few).written for few in ({"n3"}, {"n1"}, {"n3", "n5"}, ())] == [
        "n[1-2,4-5]",
        "n[2-5]",
        "n[1-2,4]",
        "n[1-5]",
    ]


def test_a_few_are_left_out_of_very_many_in_a_few_calls() -> None:
    """Each of the hosts was looked at before, once."""
    groups = HostGroups([f"rack{number % 40}-n{number:05}" for number in range(20_000)])
    groups.without(["rack0-n00000"])
    with Work() as work:
        groups.without(["rack1-n00001", "rack2-n00002"])
    assert work.total < 200


@pytest.mark.security("input")
@pytest.mark.parametrize("name", ["", "n1,n2", "n[1-3]", "n 1", "n1\n"])
def test_a_name_that_reads_as_a_list_is_told_wherever_it_stands(name: str) -> None:
    """A node name that Slurm would take for a list is noticed, whichever names it is sent with."""
    groups = HostGroups(["n1", name, "n2"])
    assert groups.without({"n1"}).misread
    assert not groups.without({name}).misread
    assert not HostNames(("n1", "n2")).misread
