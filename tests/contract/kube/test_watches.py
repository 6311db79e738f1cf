"""Watches: what a watcher is told, and when it has to list again."""

import time
from collections.abc import Callable

import kubetalk
import pytest

ROOM = kubetalk.Room
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"


def told(events: list[kubetalk.Body]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_a_watch_resumes_after_the_version_it_names(room: ROOM) -> None:
    """Everything later comes, in order, each with the version of its own change."""
    since = room.now()
    name = room.pod().body["metadata"]["name"]
    changed = room.merge(room.pods(name), {"metadata": {"labels": {"a": "b"}}})
    events = room.talk.watch(room.pods(), 2, resourceVersion=since)
    assert told(events) == [("ADDED", name), ("MODIFIED", name)]
    assert events[1]["object"]["metadata"]["resourceVersion"] == changed.version
    again = room.talk.watch(room.pods(), 1, resourceVersion=events[0]["object"]["metadata"]["resourceVersion"])
    assert told(again) == [("MODIFIED", name)]


def test_an_open_watch_is_told_at_once(room: ROOM) -> None:
    """Changes during a watch arrive without a further request."""
    with room.talk.watching(room.pods(), resourceVersion=room.now()) as events:
        name = room.pod().body["metadata"]["name"]
        begun = time.monotonic()
        assert told([next(events)]) == [("ADDED", name)]
        assert time.monotonic() - begun < kubetalk.WATCHED


def test_a_deletion_is_marked_before_it_is_told(room: ROOM) -> None:
    """A pod is modified (deletionTimestamp) and then deleted, even when both happen in one call."""
    name = room.pod().body["metadata"]["name"]
    since = room.now()
    room.talk.ask("DELETE", room.pods(name))
    marked, gone = room.talk.watch(room.pods(), 2, resourceVersion=since)
    assert told([marked, gone]) == [("MODIFIED", name), ("DELETED", name)]
    assert marked["object"]["metadata"]["deletionTimestamp"]
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(marked["object"]["metadata"]["resourceVersion"])


def test_without_a_version_the_present_comes_first(room: ROOM) -> None:
    """As ADDED events, also for version 0."""
    name = room.pod(labels={"set": "present"}).body["metadata"]["name"]
    for version in ({}, {"resourceVersion": "0"}):
        events = room.talk.watch(room.pods(), 1, labelSelector="set=present", **version)
        assert told(events) == [("ADDED", name)]


def test_entering_and_leaving_a_label_selector(room: ROOM) -> None:
    """An object that stops matching is DELETED to this watcher, in its last matching shape at the new version."""
    since = room.now()
    name = room.pod(labels={"mood": "good"}).body["metadata"]["name"]
    left = room.merge(room.pods(name), {"metadata": {"labels": {"mood": "bad"}}})
    room.merge(room.pods(name), {"metadata": {"labels": {"mood": "good"}}})
    events = room.talk.watch(room.pods(), 3, resourceVersion=since, labelSelector="mood=good")
    assert told(events) == [("ADDED", name), ("DELETED", name), ("ADDED", name)]
    shape = events[1]["object"]["metadata"]
    assert (shape["labels"], shape["resourceVersion"]) == ({"mood": "good"}, left.version)


def test_a_bound_pod_leaves_the_watch_of_unbound_ones(room: ROOM) -> None:
    """Field selectors make the same transitions."""
    since = room.now()
    name = room.pod().body["metadata"]["name"]
    room.bind(name)
    unbound = room.talk.watch(room.pods(), 2, resourceVersion=since, fieldSelector="spec.nodeName=")
    assert told(unbound) == [("ADDED", name), ("DELETED", name)]
    bound = room.talk.watch(room.pods(), 1, resourceVersion=since, fieldSelector="spec.nodeName!=")
    assert told(bound) == [("ADDED", name)]


def test_other_schedulers_pods_are_not_told(room: ROOM) -> None:
    """A watch with a field selector shows only our pods."""
    since = room.now()
    room.pod(spec={"schedulerName": "theirs"})
    name = room.pod(spec={"schedulerName": "ours"}).body["metadata"]["name"]
    assert told(room.talk.watch(room.pods(), 1, resourceVersion=since, fieldSelector="spec.schedulerName=ours")) == [
        ("ADDED", name)
    ]


def test_too_old_a_version_is_told_in_the_stream(room: ROOM, forget_beginnings: Callable[[], None]) -> None:
    """The answer is 200, its only line an ERROR with code 410 Expired."""
    forget_beginnings()
    (event,) = room.talk.watch(JOBSETS, 5, resourceVersion="1")
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 1 (")


def test_a_version_from_the_future_is_silence(room: ROOM) -> None:
    """No error and no event: after the loss of a database such a watch would wait for ever, only a list notices."""
    with room.talk.watching(room.pods(), resourceVersion="999999999", timeoutSeconds="2") as events:
        room.pod()
        assert list(events) == []


def test_a_version_that_is_no_number_is_an_error(room: ROOM) -> None:
    """500 without a reason."""
    answer = room.talk.ask("GET", room.pods(), watch="true", resourceVersion="x")
    assert (answer.status, answer.reason) == (500, "")


def test_a_watch_ends_when_its_time_is_over(room: ROOM) -> None:
    """Cleanly: the stream is complete."""
    begun = time.monotonic()
    with room.talk.watching(room.pods(), resourceVersion=room.now(), timeoutSeconds="1") as events:
        assert list(events) == []
    assert 0.5 < time.monotonic() - begun < kubetalk.WATCHED


def test_a_bookmark_comes_before_the_end(room: ROOM) -> None:
    """So that the next watch starts late enough, although nothing happened here: only a version and no object."""
    query = {"timeoutSeconds": "6", "allowWatchBookmarks": "true", "labelSelector": "set=none"}
    with room.talk.watching(room.pods(), resourceVersion=room.now(), **query) as events:
        elsewhere = room.pod()
        bookmark = next(events)
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "Pod"
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(elsewhere.version)
    assert "name" not in bookmark["object"]["metadata"]


def test_a_streamed_list_ends_with_a_marked_bookmark(room: ROOM) -> None:
    """The list can come through the watch; an annotation says where it ends."""
    name = room.pod(labels={"set": "streamed"}).body["metadata"]["name"]
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    added, end = room.talk.watch(room.pods(), 2, labelSelector="set=streamed", **query)
    assert told([added]) == [("ADDED", name)]
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_streamed_list_must_say_how_fresh(room: ROOM) -> None:
    """Without resourceVersionMatch it is refused."""
    answer = room.talk.ask("GET", room.pods(), watch="true", sendInitialEvents="true")
    assert (answer.status, answer.reason) == (422, "Invalid")


@pytest.mark.parametrize("path", ["/api/v1/pods", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"])
def test_every_namespace_can_be_watched_at_once(room: ROOM, path: str) -> None:
    """Without a namespace in the path."""
    with room.talk.watching(path, resourceVersion=room.now(), timeoutSeconds="1") as events:
        assert [event for event in events if event["type"] == "ERROR"] == []
