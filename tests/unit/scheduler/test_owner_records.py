"""Owner records as the scheduler writes them, attempts, and places."""

import pytest

from slurm_bridge.model import marks
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.placement.place import first_node
from tests.unit.mirror.watching import gone, maybe, owner, placeholder

ROOT = Root(kind="Pod", namespace="team", name="u", uid="u")


def test_a_record_speaks_of_its_workload() -> None:
    """Everything that tells one incarnation from another is in it."""
    record = records.owner_of(ROOT, "here")
    assert Root(kind=record.kind, namespace=record.namespace, name=record.name, uid=record.uid) == ROOT
    assert record == owner()


def test_an_attempt_says_what_was_asked_for_and_how() -> None:
    """A restart sees what has changed since."""
    made = records.for_attempt(owner(), 3, request="abc:d:e", plan="0:0:17")
    assert (made.attempt, made.request, made.plan) == (3, "abc:d:e", "0:0:17")
    assert made.same_workload(owner())


def test_a_last_word_stays_short_whatever_was_said() -> None:
    """The record has to fit, with the longest names that there are."""
    long = marks.Owner(
        cluster="c" * 63, kind="Pod", namespace="n" * 63, name="p" * 253, uid="u" * 36, request="r" * 31, plan="p" * 40
    )
    assert len(marks.write(records.with_note(long, "ü" * 5000)).encode()) <= marks.MOST_BYTES


def test_a_job_that_we_cancelled_is_over_at_once() -> None:
    """Slurm needs no time for it; its note keeps it from being taken for somebody else's deed."""
    ended = records.over(placeholder(words="RUNNING", started=True), "replaced", 5.0)
    assert not ended.alive
    assert (ended.owner.note, ended.since, ended.started) == ("replaced", 5.0, True)


@pytest.mark.parametrize(
    ("known", "attempt"),
    [
        (placeholder(words="CANCELLED", attempt=2), 3),
        (maybe(attempt=2), 2),
        (gone(attempt=2), 2),
    ],
)
def test_the_next_attempt_goes_on_only_from_what_is_known(known: Placeholder, attempt: int) -> None:
    """An id that Slurm does not know is asked for again: if the job turns up after all, the taken id tells."""
    assert known.next_attempt == attempt


def pod(uid: str) -> Pod:
    """One of a workload."""
    return Pod(metadata=ObjectMeta(name=uid, namespace="team", uid=uid))


def test_a_single_pod_takes_the_first_node() -> None:
    """Always the same one, however often it is asked."""
    assert first_node((pod("a"),), ("n2", "n1")) == {"a": "n2"}


def test_an_allocation_without_nodes_is_refused() -> None:
    """It says that it runs, and holds nothing."""
    assert isinstance(first_node((pod("a"),), ()), Reject)


@pytest.mark.parametrize(
    ("written", "places", "starters"), [("", 1, 1), ("3:ab", 3, 3), ("4/3:ab", 4, 3), ("?:ab", 1, 1)]
)
def test_a_record_says_for_how_many_pods_the_job_is(written: str, places: int, starters: int) -> None:
    """How many were asked for, and how many there were when it started; a record of another form is a single pod's."""
    record = marks.Owner(cluster="c", kind="Job", namespace="n", name="j", uid="u", members=written)
    assert (records.places_of(record), records.starters_of(record)) == (places, starters)


def test_a_job_stands_for_just_its_pods_however_many_places_it_has() -> None:
    """In any order; one more, one less or another one is another start."""
    pods = (pod("a"), pod("b"))
    for places in (None, 2, 5):
        written = records.members_of(pods, places)
        record = marks.Owner(cluster="c", kind="Job", namespace="n", name="j", uid="u", members=written)
        assert records.stands_for(record, pods[::-1])
        assert not records.stands_for(record, pods[:1])
        assert not records.stands_for(record, (*pods, pod("c")))
        assert not records.stands_for(record, (pod("a"), pod("c")))
