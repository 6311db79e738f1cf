"""Binding: the one write that gives a pod to a node."""

import kubetalk
import pytest

ROOM = kubetalk.Room


def test_a_binding_merges_annotations_and_labels_and_overwrites(room: ROOM) -> None:
    """Bind and leave our marks in one write; keys that exist are overwritten, others stay."""
    name = room.pod(labels={"a": "old", "b": "stays"}, annotations={"x": "old"}).body["metadata"]["name"]
    assert room.bind(name, annotations={"x": "new", "y": "1"}, labels={"a": "new", "c": "1"}).status == 201
    bound = room.talk.ask("GET", room.pods(name)).body
    assert bound["metadata"]["labels"] == {"a": "new", "b": "stays", "c": "1"}
    assert bound["metadata"]["annotations"] == {"x": "new", "y": "1"}
    assert bound["spec"]["nodeName"] == "no-such-node"


def test_a_node_that_does_not_exist_is_accepted(room: ROOM) -> None:
    """The server does not look whether there is such a node: the caller has to."""
    answer = room.bind(room.pod().body["metadata"]["name"], node=kubetalk.fresh("nowhere"))
    assert (answer.status, answer.body["status"]) == (201, "Success")


def test_a_binding_sets_the_condition_and_not_the_generation(room: ROOM) -> None:
    """PodScheduled turns True; the spec's generation stays although the node is in the spec."""
    pod = room.pod().body
    room.bind(pod["metadata"]["name"])
    bound = room.talk.ask("GET", room.pods(pod["metadata"]["name"])).body
    scheduled = [line for line in bound["status"]["conditions"] if line["type"] == "PodScheduled"]
    assert [line["status"] for line in scheduled] == ["True"]
    assert bound["metadata"]["generation"] == pod["metadata"]["generation"] == 1


def test_an_already_bound_pod_is_refused(room: ROOM) -> None:
    """Even to the same node."""
    name = room.pod().body["metadata"]["name"]
    room.bind(name, node="first")
    answer = room.bind(name, node="first")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        f'Operation cannot be fulfilled on pods/binding "{name}": pod {name} is already assigned to node "first"'
    )


def test_a_gated_pod_is_refused(room: ROOM) -> None:
    """A scheduling gate holds it."""
    name = room.pod(spec={"schedulingGates": [{"name": "example.com/wait"}]}).body["metadata"]["name"]
    answer = room.bind(name)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message.endswith(f"pod {name} has non-empty .spec.schedulingGates")


def test_a_pod_that_is_being_deleted_is_refused(room: ROOM) -> None:
    """It may still be there, held by a finalizer."""
    name = room.pod(finalizers=["example.com/hold"]).body["metadata"]["name"]
    room.talk.ask("DELETE", room.pods(name))
    answer = room.bind(name)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message.endswith(f"pod {name} is being deleted, cannot be assigned to a host")


def test_another_incarnation_is_refused(room: ROOM) -> None:
    """The uid of a binding is a precondition."""
    pod = room.pod()
    name = pod.body["metadata"]["name"]
    answer = room.bind(name, uid="another")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert f"Precondition failed: UID in precondition: another, UID in object meta: {pod.uid}" in answer.message
    assert room.bind(name, uid=pod.uid).status == 201


def test_another_version_is_refused(room: ROOM) -> None:
    """The resourceVersion of a binding is a precondition: a pod that changed meanwhile is not bound."""
    pod = room.pod()
    name = pod.body["metadata"]["name"]
    room.merge(room.pods(name), {"spec": {"activeDeadlineSeconds": 100}})
    answer = room.bind(name, uid=pod.uid, resourceVersion=pod.version)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert f"Precondition failed: ResourceVersion in precondition: {pod.version}" in answer.message
    assert "nodeName" not in room.talk.ask("GET", room.pods(name)).body["spec"]


def test_a_missing_pod_is_not_found(room: ROOM) -> None:
    """With or without preconditions."""
    assert room.bind("missing").status == 404
    assert room.bind("missing", uid="some").reason == "NotFound"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"metadata": {"name": "other"}, "target": {"kind": "Node", "name": "n"}}, 400, "name in URL does not match"),
        ({"metadata": {"name": "this"}, "target": {"kind": "Node", "name": ""}}, 500, "target.name: Required value"),
    ],
)
def test_a_malformed_binding_is_refused(room: ROOM, body: kubetalk.Body, status: int, message: str) -> None:
    """The names must agree; a missing node is an error 500 without a reason."""
    if room.talk.ask("GET", room.pods("this")).status != 200:
        room.pod(name="this")
    answer = room.talk.ask("POST", room.pods("this", "binding"), body)
    assert answer.status == status
    assert message in answer.message
