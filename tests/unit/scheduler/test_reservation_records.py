"""What an owner record says of nodes that are kept, and the names of reservations."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import marks
from slurm_bridge.model.marks import Owner
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.scheduler.reservations.node_record import NodeRecord

OWNER = Owner(cluster="east", kind="Pod", namespace="team", name="train", uid="u1")


@given(
    nodes=st.sets(st.from_regex(r"[a-z]{1,3}[0-9]{1,3}", fullmatch=True), min_size=1, max_size=20),
    until=st.integers(0, 2**40),
    priority=st.none() | st.integers(1, 2**32),
)
def test_what_was_written_is_read(nodes: set[str], until: int, priority: int | None) -> None:
    """In any order of the nodes."""
    says = NodeRecord(nodes=tuple(sorted(nodes)), until=until, priority=priority)
    found = node_record.read(says.text)
    assert found is not None
    assert (set(found.nodes), found.until, found.priority) == (nodes, until, priority)


@pytest.mark.parametrize("text", ["", "x", "12 n[1-", "12 n1 high", "soon n1"])
def test_what_is_not_readable_says_nothing(text: str) -> None:
    """An empty one is the usual case."""
    assert node_record.read(text) is None


def test_more_than_a_record_holds_is_not_written() -> None:
    """The record of a job that says this is still one."""
    many = NodeRecord(nodes=tuple(f"{'x' * (number % 40 + 1)}{number * 7}" for number in range(200)), until=1)
    assert many.text == ""
    largest = NodeRecord(nodes=tuple(f"node{number * 2}" for number in range(150)), until=1)
    assert 0 < len(largest.text) <= node_record.MOST_BYTES
    record = Owner(cluster="east", kind="Pod", namespace="n" * 63, name="a" * 253, uid="u" * 36, reserved=largest.text)
    assert marks.read(marks.write(record)) == record


@given(number=st.integers(60, 260), until=st.integers(2**30, 2**33))
def test_what_is_written_has_room_for_a_priority(number: int, until: int) -> None:
    """It may have to be said later: a job that is the first of all would stay it if its own priority were lost."""
    says = NodeRecord(nodes=tuple(f"n{index * 3}" for index in range(number)), until=until)
    more = dataclasses.replace(says, priority=2**32 - 1)
    assert bool(more.text) == bool(says.text)
    assert len(more.text) <= node_record.MOST_BYTES


def test_names_tell_bridges_and_workloads_apart() -> None:
    """They are Slurm's words, and the same in every life of the daemon."""
    others = [
        Owner(cluster="west", kind="Pod", namespace="team", name="train", uid="u1"),
        Owner(cluster="east", kind="Pod", namespace="team", name="train", uid="u2"),
    ]
    every = [node_record.name(one) for one in (OWNER, *others)]
    assert len(set(every)) == 3
    assert [name.startswith(node_record.prefix("east")) for name in every] == [True, False, True]
    assert every[0] == node_record.name(Owner(cluster="east", kind="Pod", namespace="team", name="train", uid="u1"))
