"""Which viewers get what from the pages of the live view."""

import json

import pytest

from slurm_bridge import errors
from slurm_bridge.view import feed, rights
from slurm_bridge.web.routes import Request
from tests.unit.view.viewing import Callers, Delta, Office, read

DATA = ("/ui/stream", "/ui/snapshot", "/ui/workload", "/ui/node", "/ui/explain")


def rich() -> Callers:
    """A user of everything, and one of a single namespace."""
    return Callers(ann={"*"}, eve={"a"}, poor=set())


@pytest.mark.security("identity")
def test_no_data_is_given_without_a_token() -> None:
    """Off loopback the live view gives no data to a caller without a token that the API server accepts."""
    office = Office(rich())
    assert [office.status(path) for path in DATA] == [401] * len(DATA)
    assert [office.status(path, "made-up") for path in DATA] == [401] * len(DATA)
    assert office.feed.viewers == 0


def test_the_page_itself_needs_no_token() -> None:
    """It has no data: the token is asked for by it."""
    office = Office(rich())
    for path in ("/ui", "/ui/app.js", "/ui/rows.js", "/ui/style.css", "/ui/icon.svg"):
        assert office.status(path) == 200


@pytest.mark.security("rights")
def test_a_page_runs_nothing_that_it_does_not_bring() -> None:
    """The page of the live view loads nothing from elsewhere, and runs no inline script."""
    office = Office()
    for path in ("/ui", "/ui/snapshot"):
        policy = office.ask(path).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
    page = office.ask("/ui").body.decode()
    assert "<style" not in page
    assert "//" not in page.replace("<!doctype html>", "")
    assert all("src=" in tag for tag in page.split("<script")[1:])
    for path in ("/ui/app.js", "/ui/rows.js"):
        script = office.ask(path).body.decode()
        assert not [
            word for word in ("innerHTML", "outerHTML", "insertAdjacent", "eval(", "document.write") if word in script
        ]


@pytest.mark.security("identity")
def test_on_loopback_the_request_has_to_name_this_machine() -> None:
    """A page of elsewhere whose name leads to loopback reads nothing from the live view."""
    office = Office()
    for host in ("127.0.0.1:8080", "localhost", "localhost:1", "[::1]:8080", "[::1]"):
        assert office.ask("/ui/snapshot", host=host).status == 200
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "10.0.0.1:8080"):
        assert office.ask("/ui/snapshot", host=host).status == 403


def test_a_page_of_elsewhere_takes_no_place_of_viewers() -> None:
    """A browser says that the question comes from another site: it could not read the answer, and holds nothing."""
    office = Office()
    headers = {"host": "127.0.0.1:8080", "sec-fetch-site": "cross-site"}
    request = Request(method="GET", path="/ui/stream", headers=headers)
    assert office.table.answer(request).status == 403
    assert office.feed.viewers == 0


def test_each_viewer_gets_the_namespaces_of_its_rights() -> None:
    """And the totals only with the right to list nodes."""
    office = Office(rich(), most=3)
    seen = {}
    for name in ("ann", "eve"):
        begin, full, ready = read(office.ask("/ui/stream", name), 3)
        about = json.loads(begin.split("data: ")[1])
        seen[name] = (about["all_namespaces"], about["totals"], full)
        assert ready.startswith("event: ready")
    assert seen == {
        "ann": (True, True, 'data: {"full":"all"}\n\n'),
        "eve": (False, False, 'data: {"full":"a"}\n\n'),
    }


def test_a_viewer_asks_for_each_namespace_once() -> None:
    """Rights count for a minute; a namespace that is new is asked about when it comes."""
    callers = rich()
    office = Office(callers)
    stream = office.ask("/ui/stream", "eve")
    read(stream, 3)
    assert callers.asked == ["list pods", "list nodes", "list pods a", "list pods b"]
    office.model.namespaces |= {"c"}
    office.model.next = [Delta("one"), Delta("two"), Delta("three")]
    read(stream, 3)
    assert callers.asked[4:] == ["list pods c"]


def test_a_right_that_is_taken_back_ends_within_a_minute() -> None:
    """The stream begins anew with what is left; without a good token it ends."""
    callers = rich()
    office = Office(callers)
    stream = office.ask("/ui/stream", "eve")
    read(stream, 3)
    callers.rights["eve"] = {"b"}
    office.clock.advance(61)
    assert 'data: {"full":"b"}\n\n' in read(stream, 3)
    del callers.rights["eve"]
    office.clock.advance(61)
    assert read(stream, 2) == ['event: end\ndata: {"why":"token"}\n\n']
    assert (office.ended, office.feed.viewers) == (["token"], 0)


def test_a_viewer_whose_rights_cannot_be_asked_for_gets_nothing() -> None:
    """The API server does not answer: no request is answered as if it had."""
    callers = rich()
    office = Office(callers)
    stream = office.ask("/ui/stream", "ann")
    read(stream, 3)
    callers.error = errors.Unavailable("away")
    assert office.status("/ui/stream", "ann") == 503
    office.clock.advance(61)
    assert read(stream, 1) == ['event: end\ndata: {"why":"rights"}\n\n']


def test_what_a_caller_may_not_see_looks_like_what_is_not_there() -> None:
    """The same status and the same words."""
    office = Office(rich())
    there = {"kind": "Pod", "namespace": "a", "name": "train", "uid": "u"}
    assert office.status("/ui/workload", "eve", **there) == 200
    hidden = office.ask("/ui/workload", "poor", **there)
    absent = office.ask("/ui/workload", "eve", **{**there, "name": "other"})
    assert (hidden.status, hidden.body) == (absent.status, absent.body)
    assert office.status("/ui/explain", "eve", namespace="b", pod="x") == 404
    assert office.status("/ui/node", "eve", name="n1") == 404


def test_the_pods_of_a_node_are_those_of_the_callers_namespaces() -> None:
    """A caller may list nodes and not pods."""
    callers = rich()
    callers.rights["ann"] = {"*"}
    office = Office(callers)
    assert json.loads(office.ask("/ui/node", "ann", name="n1").body) == {"pods": ["a", "b"]}


def test_only_a_caller_that_may_see_everything_gets_a_whole_explanation() -> None:
    """It names nodes and other pods."""
    office = Office(rich())
    office.ask("/ui/explain", "ann", namespace="a", pod="x")
    office.ask("/ui/explain", "eve", namespace="a", pod="x")
    assert office.explained == [("a", "x", True), ("a", "x", False)]
    assert office.status("/ui/explain", "ann", namespace="a", pod="gone") == 404


def test_explanations_and_requests_have_a_rate() -> None:
    """With the seconds after which another try makes sense."""
    office = Office()
    office.slow = 3.0
    late = office.ask("/ui/explain", namespace="a", pod="x")
    assert (late.status, late.headers["Retry-After"]) == (429, "3")
    office.busy = 2.0
    assert office.status("/ui/snapshot") == 429


def test_only_the_leader_has_a_view() -> None:
    """Streams of a leader that is one no more end, so that viewers find the next one."""
    office = Office()
    stream = office.ask("/ui/stream")
    read(stream, 3)
    office.away = "this replica is not the leader"
    assert office.status("/ui/stream") == 503
    assert read(stream, 1) == ['event: end\ndata: {"why":"leader"}\n\n']


def test_no_more_viewers_than_allowed() -> None:
    """The next one is told; a place that was left is free."""
    office = Office(most=2)
    streams = [office.ask("/ui/stream") for _ in range(2)]
    assert office.status("/ui/stream") == 503
    assert office.status("/ui/snapshot") == 200
    assert streams[0].stream is not None
    streams[0].stream.close()
    assert office.status("/ui/stream") == 200


@pytest.mark.security("rights")
def test_a_caller_without_rights_takes_no_place() -> None:
    """A caller with no right to list pods or nodes gets no stream of the live view, and takes no place of a viewer."""
    office = Office(rich(), most=1)
    assert [office.status(path, "poor") for path in ("/ui/stream", "/ui/snapshot")] == [403, 403]
    assert office.feed.viewers == 0
    assert office.status("/ui/stream", "eve", namespace="a") == 200


@pytest.mark.security("fairness")
def test_one_caller_takes_a_quarter_of_the_places() -> None:
    """One caller has at most a quarter of the places of viewers of the live view; others find one."""
    office = Office(rich(), most=8)
    streams = [office.ask("/ui/stream", "eve") for _ in range(3)]
    assert [int(one.status) for one in streams] == [200, 200, 503]
    neighbour = office.ask("/ui/stream", "ann")
    assert neighbour.status == 200
    assert streams[0].stream is not None
    streams[0].stream.close()
    assert office.status("/ui/stream", "eve") == 200


def test_requests_that_cannot_be_answered_take_nothing_of_the_pace() -> None:
    """A page of elsewhere and a request without a token are refused before the pace of all is asked."""
    local, remote = Office(), Office(rich())
    local.busy = remote.busy = 2.0
    assert local.ask("/ui/snapshot", host="evil.example").status == 403
    assert (remote.status("/ui/snapshot"), remote.status("/ui/snapshot", "made-up")) == (401, 429)


def test_a_stream_that_was_never_sent_gives_its_place_back() -> None:
    """The client left before the answer began."""
    office = Office()
    reply = office.ask("/ui/stream")
    assert office.feed.viewers == 1
    assert reply.stream is not None
    reply.stream.close()
    assert (office.feed.viewers, office.ended) == (0, ["left"])


def test_a_stream_ends_after_its_time_and_after_its_bytes() -> None:
    """The viewer connects again."""
    short = Office(seconds=10.0)
    stream = short.ask("/ui/stream")
    read(stream, 3)
    short.clock.advance(11)
    assert read(stream, 1) == ['event: end\ndata: {"why":"time"}\n\n']
    small = Office(most_bytes=10)
    assert read(small.ask("/ui/stream"), 9)[-1] == 'event: end\ndata: {"why":"size"}\n\n'
    assert small.ended == ["size"]


def test_a_viewer_that_misses_steps_is_dropped() -> None:
    """Its neighbour gets every step."""
    office = Office()
    slow, quick = office.ask("/ui/stream"), office.ask("/ui/stream")
    read(slow, 3)
    read(quick, 3)
    for number in range(feed.KEPT + 2):
        office.model.next = [Delta(f"step{number}")]
        office.clock.advance(1.0)
        assert read(quick, 1) == [f'data: {{"step{number}":"all"}}\n\n']
    assert read(slow, 2) == ['event: end\ndata: {"why":"slow"}\n\n']
    assert office.feed.viewers == 1


def test_a_quiet_stream_says_that_it_is_alive() -> None:
    """A proxy between closes connections that are silent."""
    office = Office()
    stream = office.ask("/ui/stream")
    read(stream, 3)
    assert read(stream, 1) == [": \n\n"]


def test_one_namespace_may_be_asked_for() -> None:
    """Then no other is asked about, and no other is shown."""
    callers = rich()
    office = Office(callers)
    assert read(office.ask("/ui/stream", "eve", namespace="a"), 2)[1] == 'data: {"full":"a"}\n\n'
    assert office.status("/ui/stream", "eve", namespace="b") == 403
    assert "list pods a" in callers.asked


def test_namespaces_beyond_the_bound_are_not_asked_about() -> None:
    """A viewer with few rights in a cluster of thousands of namespaces costs a bounded number of questions."""
    callers = Callers(eve={"n0001"})
    office = Office(callers)
    office.model.namespaces = frozenset(f"n{number:04}" for number in range(2000))
    read(office.ask("/ui/stream", "eve"), 3)
    assert len(callers.asked) == 2 + rights.MOST_NAMESPACES


def test_requests_are_counted_by_page_and_status() -> None:
    """For the metrics."""
    office = Office(rich())
    office.status("/ui/snapshot")
    office.status("/ui/node", "ann", name="n1")
    assert office.counted == [("snapshot", 401), ("node", 200)]
