"""The table of placeholders: its counts are always true, and of several jobs everybody keeps the same one."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.mirror import table
from slurm_bridge.mirror.breaker import Breaker
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Certainty, Placeholder
from tests.unit.mirror.watching import gone, maybe, owner, placeholder

WORDS = ("PENDING", "RUNNING", "RUNNING CONFIGURING", "SUSPENDED", "CANCELLED", "TIMEOUT", "DREAMING")

placeholders = st.builds(
    lambda job_id, uid, words, certainty, started, seen, reserved: placeholder(
        job_id, owner=owner(uid, reserved=reserved), words=words, certainty=certainty, started=started, seen=seen
    ),
    st.integers(1, 6),
    st.sampled_from("abc"),
    st.sampled_from(WORDS),
    st.sampled_from(Certainty),
    st.booleans(),
    st.booleans(),
    st.sampled_from(("", "1 n1")),
)
changes = st.lists(st.one_of(placeholders, st.integers(1, 6)), max_size=30)


def group(uid: str = "u", **more: Any) -> Owner:
    """The record of Job team/u."""
    return owner(uid, kind="Job", **more)


@given(changes)
def test_counts_and_files_stay_true_whatever_happens(done: list[Placeholder | int]) -> None:
    """Put and drop in any order, ids that change hands included: the table equals a plain dictionary."""
    made, plain = Table(lambda _uid: None), dict[JobId, Placeholder]()
    for change in done:
        if isinstance(change, int):
            made.drop(JobId(change))
            plain.pop(JobId(change), None)
        else:
            made.put(change)
            plain[change.job_id] = change
    counted = Counter(one.phase for one in plain.values())
    assert made.counts() == {phase: counted[phase] for phase in Phase}
    assert made.unstarted == counted[Phase.PENDING] + counted[Phase.UNKNOWN]
    assert set(made.all()) == set(plain.values())
    for named in (False, True):
        started = [one for one in plain.values() if one.started and (one.seen or named)]
        vanished = sum(one.certainty is Certainty.GONE for one in started)
        assert made.vanished(named=named) == (vanished, vanished + sum(one.alive for one in started))
    assert set(made.kept_for()) == {one for one in plain.values() if one.alive and one.owner.reserved}
    assert set(made.uids()) == {one.owner.key for one in plain.values()}
    for uid in "abc":
        key = owner(uid).key
        assert made.lives(key) is any(one.alive for one in plain.values() if one.owner.uid == uid)
        assert {one.job_id for one in made.of(key)} == {one.job_id for one in plain.values() if one.owner.uid == uid}


@given(st.lists(st.tuples(placeholders, st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=30), st.data())
def test_those_that_run_for_a_while_those_that_were_not_read_and_their_order_follow_every_change(
    done: list[tuple[Placeholder, int, int | None]], data: st.DataObject
) -> None:
    """As if all were looked at each time; readings come in the order of time."""
    made, plain = Table(lambda _uid: None), dict[JobId, Placeholder]()
    for clock, (change, since, read) in enumerate(done, start=1):
        one = dataclasses.replace(
            change, since=float(since), read=None if read is None else float(clock if read > since else -1)
        )
        made.put(one)
        plain[one.job_id] = one
        if data.draw(st.booleans()):
            before = data.draw(st.integers(0, 9))
            moving, settled = made.divided(float(before))
            running = {one for one in plain.values() if one.alive and one.phase is Phase.RUNNING}
            ran = made.alive_among(settled)
            assert len(ran) == len(settled)
            assert {*moving, *ran} == {one for one in plain.values() if one.alive}
            assert len(moving) + len(ran) == len(made.alive())
            assert {one for one in running if one.since <= before} <= set(ran) <= running
    living = [one for one in plain.values() if one.alive]
    assert set(made.unread()) == {one for one in living if one.read is None or one.read < one.since}
    moments = [one.read for one in made.alive() if one.read is not None and one.read > 0]
    assert moments == sorted(moments)


def test_those_that_run_for_a_while_are_listed_anew_only_when_one_joins_or_leaves() -> None:
    """A question to Slurm about some of tens of thousands does not look at all of them."""
    made = Table(lambda _uid: None)
    for job_id in (1, 2):
        made.put(placeholder(job_id, "a", "RUNNING"))
    _, settled = made.divided(1e9)
    made.put(placeholder(3, "b"))
    made.put(placeholder(2, "a", "RUNNING", read=5.0))
    assert made.divided(1e9)[1] is settled
    assert made.alive_among((JobId(2), JobId(4))) == [placeholder(2, "a", "RUNNING", read=5.0)]
    made.drop(JobId(1))
    assert made.divided(1e9)[1] == (2,)


def test_who_owns_a_placeholder_is_told_of_every_change() -> None:
    """Unless whoever writes says that nobody has to be told."""
    told: list[str] = []
    made = Table(told.append)
    made.put(placeholder(1, "a"))
    made.put(placeholder(1, "a", "RUNNING"))
    made.put(placeholder(2, "b"), tell=False)
    assert told == [owner("a").key] * 2


def test_an_id_that_goes_to_another_workload_wakes_the_one_that_had_it() -> None:
    """After a crash Slurm gives ids out again."""
    told: list[str] = []
    made = Table(told.append)
    made.put(placeholder(1, "a"), tell=False)
    made.put(placeholder(1, "b"))
    assert told == [owner("a").key, owner("b").key]
    assert made.of(owner("a").key) == ()


def test_placeholders_of_a_workload_come_in_the_order_of_attempts() -> None:
    """Ids say nothing about age: they are chosen."""
    made = Table(lambda _uid: None)
    for job_id, attempt in ((7, 1), (9, 0), (8, 2)):
        made.put(placeholder(job_id, attempt=attempt))
    assert [one.owner.attempt for one in made.of(owner("u").key)] == [0, 1, 2]


def test_the_attempts_of_a_group_go_on_when_its_jobs_were_dropped() -> None:
    """Each daemon that has seen a job of it asks for the same attempt next, whichever of them submitted the job."""
    made = Table(lambda _uid: None)
    for job_id, attempt in ((7, 1), (9, 0)):
        made.put(placeholder(job_id, owner=group(attempt=attempt)))
    assert made.next_attempt(group().key) == 0
    for one in made.all():
        made.drop(one.job_id)
    assert made.next_attempt(group().key) == 2


@pytest.mark.parametrize("certainty", [Certainty.MAYBE, Certainty.GONE])
def test_an_attempt_that_slurm_does_not_know_is_asked_for_again_after_it_was_dropped(certainty: Certainty) -> None:
    """As before: a submit that was never answered may still arrive, and the taken id tells."""
    made = Table(lambda _uid: None)
    known = placeholder(8, owner=group(attempt=5), certainty=certainty)
    made.put(known)
    made.drop(known.job_id)
    assert made.next_attempt(group().key) == known.next_attempt == 5


def test_attempts_of_the_latest_groups_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many groups, those of which a job was dropped last; of pods none, for they do not start anew."""
    monkeypatch.setattr(table, "MOST_ATTEMPTS", 2)
    made = Table(lambda _uid: None)
    for number, uid in enumerate("abac"):
        made.put(placeholder(owner=group(uid, attempt=number)))
        made.drop(JobId(1))
    made.put(placeholder(attempt=3))
    made.drop(JobId(1))
    assert [made.next_attempt(group(uid).key) for uid in "abc"] == [3, 0, 4]
    assert made.next_attempt(owner().key) == 0


def test_vanished_counts_only_jobs_that_have_held_nodes() -> None:
    """A job that waited is no evidence about jobs that ran; one that ended properly is none either."""
    made = Table(lambda _uid: None)
    for one in (
        gone(1, started=True),
        gone(2),
        placeholder(3, words="RUNNING", started=True),
        placeholder(4, words="CANCELLED", started=True),
        placeholder(5),
    ):
        made.put(one)
    assert made.vanished() == (1, 2)


OLD, NEW = placeholder(5, attempt=0), placeholder(6, attempt=1)


@pytest.mark.parametrize(
    ("known", "kept"),
    [
        ((), None),
        ((OLD, NEW), OLD),
        ((placeholder(5, words="CANCELLED"), NEW), NEW),
        ((maybe(5), NEW), NEW),
        ((maybe(5), gone(6)), maybe(5)),
        ((placeholder(5, words="FAILED"), gone(6, attempt=1)), gone(6, attempt=1)),
    ],
)
def test_the_one_that_counts(known: tuple[Placeholder, ...], kept: Placeholder | None) -> None:
    """The oldest that surely lives, else one that may live, else the latest that ended."""
    assert table.current(known) == kept


def test_surplus_is_what_surely_lives_beside_the_one_that_is_kept() -> None:
    """What may exist is looked up first; what has ended needs nothing; without one to keep nothing goes."""
    third = placeholder(7, words="RUNNING", attempt=2)
    every = (OLD, NEW, third, maybe(8), gone(9), placeholder(10, words="CANCELLED"))
    assert table.surplus(every, OLD) == (NEW, third)
    assert table.surplus(every, None) == ()


@given(st.lists(placeholders, max_size=6, unique_by=lambda one: one.job_id))
def test_every_daemon_keeps_the_same_one(known: list[Placeholder]) -> None:
    """What counts does not depend on how one came to know, once the attempts are in order."""
    ordered = sorted(known, key=lambda one: (one.owner.attempt, one.job_id))
    kept = table.current(ordered)
    assert (kept is None) == (not known)
    assert kept is None or kept.alive or not any(one.alive for one in known)
    assert kept not in table.surplus(ordered, kept)


@pytest.mark.parametrize(
    ("vanished", "bound", "doubted"),
    [(0, 0, False), (9, 9, False), (10, 10, True), (10, 20, True), (10, 21, False), (500, 1000, True)],
)
def test_the_breaker_opens_when_many_and_most_have_vanished(vanished: int, bound: int, doubted: bool) -> None:
    """Few are believed whatever their share; many are believed as long as they are not most."""
    assert Breaker(minimum=10, fraction=0.5).open(vanished, bound) is doubted
