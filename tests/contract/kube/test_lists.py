"""Lists: pages, selectors, versions."""

import base64
import json
from collections.abc import Callable, Iterator

import kubetalk
import pytest

ROOM = kubetalk.Room


@pytest.fixture(scope="module")
def five(room: ROOM) -> list[str]:
    """Five pods, two of them blue."""
    names = [f"page-{letter}" for letter in "abcde"]
    for name in names:
        room.pod(name=name, labels={"set": "five", "colour": "blue" if name < "page-c" else "red"})
    return names


def pages(room: ROOM, **query: object) -> Iterator[kubetalk.Answer]:
    """Every page of a list."""
    token = ""
    while True:
        page = room.talk.ask("GET", room.pods(), limit=2, **query, **({"continue": token} if token else {}))
        assert page.status == 200, page.body
        yield page
        token = page.body["metadata"].get("continue", "")
        if not token:
            return


def test_pages_show_everything_once(room: ROOM, five: list[str]) -> None:
    """In order of their names, at one and the same version."""
    seen = list(pages(room, labelSelector="set=five"))
    assert [name for page in seen for name in page.names] == five
    assert len({page.version for page in seen}) == 1
    assert [len(page.names) for page in seen] == [2, 2, 1]


def test_the_rest_is_counted_only_without_selectors(room: ROOM, five: list[str]) -> None:
    """With a selector the server does not say how many are left."""
    first = room.talk.ask("GET", room.pods(), limit=2)
    assert first.body["metadata"]["remainingItemCount"] >= len(five) - 2
    chosen = room.talk.ask("GET", room.pods(), limit=2, labelSelector="set=five")
    assert "remainingItemCount" not in chosen.body["metadata"]


def test_pages_show_the_moment_of_the_first(room: ROOM) -> None:
    """What is deleted, created or changed meanwhile does not show in later pages."""
    for letter in "abc":
        room.pod(name=f"moment-{letter}", labels={"set": "moment"})
    walk = pages(room, labelSelector="set=moment")
    first = next(walk)
    room.talk.ask("DELETE", room.pods("moment-c"))
    room.pod(name="moment-d", labels={"set": "moment"})
    assert first.names + next(walk).names == ["moment-a", "moment-b", "moment-c"]


def token(version: int, start: str) -> str:
    """A continue token as the server itself would write it."""
    content = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def test_a_token_that_is_too_old_is_expired(room: ROOM, five: list[str], forget_beginnings: Callable[[], None]) -> None:
    """410 Expired, and a new token with which to go on, inconsistently."""
    forget_beginnings()
    answer = room.talk.ask("GET", room.pods(), limit=2, **{"continue": token(2, "/page-b\0")})
    assert (answer.status, answer.reason) == (410, "Expired")
    assert answer.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    rest = room.talk.ask("GET", room.pods(), limit=3, **{"continue": answer.body["metadata"]["continue"]})
    assert set(five[2:]) <= set(rest.names)


def test_a_version_that_is_too_old_is_expired(room: ROOM, forget_beginnings: Callable[[], None]) -> None:
    """The past can be listed exactly only while it is remembered."""
    forget_beginnings()
    answer = room.talk.ask("GET", room.pods(), resourceVersion="2", resourceVersionMatch="Exact")
    assert (answer.status, answer.reason) == (410, "Expired")


def test_a_version_from_the_future_is_a_timeout(room: ROOM) -> None:
    """504 with a cause and a time to come back; so after the loss of a database lists fail while watches are silent."""
    answer = room.talk.ask("GET", room.pods(), resourceVersion="999999999")
    assert (answer.status, answer.reason) == (504, "Timeout")
    assert answer.message.startswith("Timeout: Too large resource version: 999999999, current: ")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"continue": "nonsense"}, "invalid continue token"),
        ({"limit": "many"}, 'strconv.ParseInt: parsing "many": invalid syntax'),
        ({"fieldSelector": "spec.nonsense=1"}, "field label not supported: spec.nonsense"),
        ({"fieldSelector": "spec.schedulerName in (a,b)"}, "invalid selector: 'spec.schedulerName in (a,b)'"),
        ({"labelSelector": "a in (b"}, "unable to parse requirement"),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(room: ROOM, query: dict[str, str], message: str) -> None:
    """Field selectors have no `in` above all: one watch per scheduler name."""
    answer = room.talk.ask("GET", room.pods(), **query)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert message in answer.message


@pytest.mark.parametrize(
    ("labels", "letters"),
    [
        ("colour=blue", "ab"),
        ("colour==red", "cde"),
        ("colour!=red", "ab"),
        ("colour in (blue, red)", "abcde"),
        ("colour notin (blue)", "cde"),
        ("colour", "abcde"),
        ("!colour", ""),
        ("colour in (blue),set=five", "ab"),
    ],
)
def test_label_selectors(room: ROOM, five: list[str], labels: str, letters: str) -> None:
    """Equality and sets."""
    found = room.talk.ask("GET", room.pods(), labelSelector=f"set=five,{labels}").names
    assert found == [name for name in five if name[-1] in letters]


def test_field_selectors(room: ROOM) -> None:
    """Name, namespace, scheduler, node and phase, with =, == and !=."""
    name = room.pod(spec={"schedulerName": "picky"}).body["metadata"]["name"]
    other = room.pod().body["metadata"]["name"]
    room.bind(other, node="somewhere")

    def found(selector: str) -> list[str]:
        return room.talk.ask(
            "GET", "/api/v1/pods", fieldSelector=f"metadata.namespace={room.namespace},{selector}"
        ).names

    assert found("spec.schedulerName=picky") == [name]
    assert found("spec.nodeName==somewhere") == [other]
    assert other not in found("spec.nodeName=")
    assert other in found("spec.nodeName!=")
    assert {name, other} <= set(found("status.phase=Pending,spec.schedulerName!=default-scheduler"))
    assert found(f"metadata.name={name},status.phase!=Running") == [name]


def test_nodes_can_be_selected_by_unschedulable_only(room: ROOM) -> None:
    """Each resource has its own fields; a boolean that is not set counts as false."""
    talk = room.talk
    assert talk.ask("GET", "/api/v1/nodes", fieldSelector="spec.unschedulable=false").names
    assert talk.ask("GET", "/api/v1/nodes", fieldSelector="status.phase=Running").status == 400


def test_items_of_builtin_lists_do_not_say_what_they_are(room: ROOM, five: list[str]) -> None:
    """Kind and apiVersion stand on the list only; those of custom resources carry both."""
    assert five
    pods = room.talk.ask("GET", room.pods()).body
    assert (pods["kind"], pods["apiVersion"]) == ("PodList", "v1")
    assert not {"kind", "apiVersion"} & pods["items"][0].keys()
    path = room.path("scheduling.x-k8s.io/v1alpha1", "podgroups")
    made = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "listed"}}
    assert room.talk.ask("POST", path, {**made, "spec": {"minMember": 1}}).status == 201
    assert room.talk.ask("GET", path).body["items"][0]["kind"] == "PodGroup"


def test_version_zero_ignores_the_limit(room: ROOM, five: list[str]) -> None:
    """From the cache everything comes at once."""
    answer = room.talk.ask("GET", room.pods(), resourceVersion="0", limit=1, labelSelector="set=five")
    assert answer.names == five
    assert "continue" not in answer.body["metadata"]


def test_a_match_needs_a_version(room: ROOM) -> None:
    """resourceVersionMatch without a resourceVersion is refused."""
    answer = room.talk.ask("GET", room.pods(), resourceVersionMatch="Exact")
    assert (answer.status, answer.reason) == (422, "Invalid")
