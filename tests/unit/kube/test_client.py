import threading
from collections.abc import Callable, Iterator

import msgspec
import pytest

from slurm_bridge import errors, ports
from slurm_bridge.kube import client
from slurm_bridge.model import kinds
from slurm_bridge.model.devices import ResourceClaim
from slurm_bridge.model.groups import JobSet
from slurm_bridge.model.lease import Lease, LeaseSpec
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.sim import http
from tests.unit.kube.conftest import SILENCE, Script, pod, refused

POD = Pod(metadata=ObjectMeta(name="a", namespace="ns", uid="uid-a", resource_version="1"))
PODS = "/api/v1/pods"
ONE = "/api/v1/namespaces/ns/pods/a"


def page(*items: object, version: str = "9", more: str = "") -> dict[str, object]:
    """A page of a list."""
    return {"metadata": {"resourceVersion": version, "continue": more}, "items": items}


def streamed(*events: tuple[str, object]) -> http.Response:
    """A watch that says this and ends."""
    lines = b"".join(msgspec.json.encode({"type": word, "object": value}) + b"\n" for word, value in events)
    return http.Response(body=iter([lines]))


def test_list_of_pages(script: Script, cluster: client.KubeClient) -> None:
    """All pages are one listing, asked for in bounded pieces."""
    script.on("GET", PODS, page(pod("a"), more="next"), page(pod("b")))
    listing = cluster.list(kinds.PODS)
    assert [item.metadata.name for item in listing.items] == ["a", "b"]
    assert listing.resource_version == "9"
    assert [request.asked("limit") for request in script.requests] == ["500", "500"]
    assert script.requests[1].asked("continue") == "next"


def test_list_overtaken(script: Script, cluster: client.KubeClient) -> None:
    """When the continuation expires, the list begins anew and nothing of the first one is kept."""
    script.on("GET", PODS, page(pod("a"), more="next"), refused(410, "Expired"), page(pod("b"), version="12"))
    listing = cluster.list(kinds.PODS)
    assert [item.metadata.name for item in listing.items] == ["b"]


def test_list_always_overtaken(script: Script, cluster: client.KubeClient) -> None:
    """A list that never comes to its end is given up."""
    script.on("GET", PODS, refused(410, "Expired"))
    with pytest.raises(errors.Expired):
        cluster.list(kinds.PODS)
    assert len(script.requests) == 3


def test_scope(script: Script, cluster: client.KubeClient) -> None:
    """A scope becomes a path and selectors."""
    script.on("GET", "/api/v1/namespaces/ns/pods", page())
    cluster.list(kinds.PODS, ports.Scope(namespace="ns", labels="a=b", fields="spec.schedulerName=x"))
    (request,) = script.requests
    assert request.asked("labelSelector") == "a=b"
    assert request.asked("fieldSelector") == "spec.schedulerName=x"


def test_namespace_of_cluster_wide_kinds(script: Script, cluster: client.KubeClient) -> None:
    """A namespace means nothing to kinds that have none."""
    script.on("GET", "/api/v1/nodes", page())
    assert cluster.list(kinds.NODES, ports.Scope(namespace="ns")).items == ()


def test_watch(script: Script, cluster: client.KubeClient) -> None:
    """A watch asks for bookmarks and a limited life, from the version given."""
    script.on("GET", PODS, streamed(("ADDED", pod("a")), ("BOOKMARK", {"metadata": {"resourceVersion": "7"}})))
    put, bookmark = cluster.watch(kinds.PODS, "5")
    assert isinstance(put, ports.Put)
    assert bookmark == ports.Bookmark("7")
    (request,) = script.requests
    assert request.asked("resourceVersion") == "5"
    assert request.asked("allowWatchBookmarks") == "true"
    assert 240 <= int(request.asked("timeoutSeconds")) <= 290


def test_watches_end_at_different_times(script: Script, cluster: client.KubeClient) -> None:
    """The lives of watches differ, so that they do not all come back together."""
    for _ in range(5):
        script.on("GET", PODS, streamed())
        list(cluster.watch(kinds.PODS, "5"))
    assert len({request.asked("timeoutSeconds") for request in script.requests}) > 1


def test_expired_watch(script: Script, cluster: client.KubeClient) -> None:
    """A version that is too old is told when connecting, or in the stream."""
    script.on("GET", PODS, refused(410, "Expired"), streamed(("ERROR", {"kind": "Status", "code": 410})))
    with pytest.raises(errors.Expired):
        cluster.watch(kinds.PODS, "1")
    with pytest.raises(errors.Expired):
        list(cluster.watch(kinds.PODS, "1"))


def test_silent_watch(script: Script, connect: Callable[..., client.KubeClient]) -> None:
    """A watch that says nothing, not even bookmarks, proves nothing: list again."""
    hold = threading.Event()
    script.on("GET", PODS, http.Response(body=_silence(hold)))
    with pytest.raises(errors.Expired, match="silent"):
        list(connect(SILENCE).watch(kinds.PODS, "1"))
    hold.set()


def test_get(script: Script, cluster: client.KubeClient) -> None:
    """An object is read; one that the API server says is absent is None."""
    script.on("GET", ONE, pod("a"), refused(404, "NotFound", name="a"))
    found = cluster.get(kinds.PODS, "ns", "a")
    assert found is not None
    assert found.uid == "uid-a"
    assert cluster.get(kinds.PODS, "ns", "a") is None


@pytest.mark.parametrize(
    "answer", [http.Response(status=404, body=b"404 page not found\n"), refused(404, "NotFound"), http.Response()]
)
def test_get_without_knowing(script: Script, cluster: client.KubeClient, answer: http.Response) -> None:
    """A 404 that names no object, or an empty page, does not mean that the object is gone."""
    script.on("GET", ONE, answer)
    with pytest.raises(errors.BadAnswer):
        cluster.get(kinds.PODS, "ns", "a")


def test_create(script: Script, cluster: client.KubeClient) -> None:
    """Creation posts the manifest and returns what the server made of it."""
    script.on("POST", "/api/v1/namespaces/ns/pods", http.Response(status=201, body=msgspec.json.encode(pod("a"))))
    assert cluster.create(kinds.PODS, "ns", {"metadata": {"name": "a"}}).uid == "uid-a"
    assert script.sent == {"metadata": {"name": "a"}}


def test_create_existing(script: Script, cluster: client.KubeClient) -> None:
    """A taken name is a conflict that says so."""
    script.on("POST", "/api/v1/namespaces/ns/pods", refused(409, "AlreadyExists", name="a"))
    with pytest.raises(errors.Conflict) as caught:
        cluster.create(kinds.PODS, "ns", {})
    assert caught.value.reason == "AlreadyExists"


@pytest.mark.parametrize(
    ("subresource", "path", "format_"), [("", ONE, "merge-patch"), ("status", ONE + "/status", "strategic-merge-patch")]
)
def test_patch(script: Script, cluster: client.KubeClient, subresource: str, path: str, format_: str) -> None:
    """A patch carries the uid of the incarnation that it is meant for; in a status, keyed lists are merged."""
    script.on("PATCH", path, pod("a"))
    cluster.patch(kinds.PODS, POD, {"metadata": {"labels": {"x": None}}}, subresource)
    assert script.sent == {"metadata": {"labels": {"x": None}, "uid": "uid-a"}}
    assert script.requests[-1].headers["content-type"] == f"application/{format_}+json"


def test_patch_the_status_of_a_custom_resource(script: Script, cluster: client.KubeClient) -> None:
    """The server does not know how the lists of custom resources are keyed, and refuses that format."""
    path = "/apis/jobset.x-k8s.io/v1alpha2"
    script.on("GET", path, {"resources": [{"name": "jobsets"}]})
    script.on("PATCH", f"{path}/namespaces/ns/jobsets/a/status", pod("a"))
    cluster.patch(kinds.JOBSETS, JobSet(metadata=POD.metadata), {}, "status")
    assert script.requests[-1].headers["content-type"] == "application/merge-patch+json"


def test_patch_the_status_of_a_claim(script: Script, cluster: client.KubeClient) -> None:
    """Parameters for drivers arrive as users wrote them, whatever looks like an order to the server in them."""
    path = "/apis/resource.k8s.io/v1"
    script.on("GET", path, {"resources": [{"name": "resourceclaims"}]})
    script.on("PATCH", f"{path}/namespaces/ns/resourceclaims/a/status", pod("a"))
    config = [{"opaque": {"parameters": {"$patch": "delete", "x": None}}}]
    changes = {"status": {"allocation": {"devices": {"config": config}}}}
    cluster.patch(kinds.RESOURCECLAIMS, ResourceClaim(metadata=POD.metadata), changes, "status")
    assert script.requests[-1].headers["content-type"] == "application/merge-patch+json"
    assert script.sent["status"] == changes["status"]


def test_patch_another_incarnation(script: Script, cluster: client.KubeClient) -> None:
    """The server's complaint about an immutable uid means that another object stands there."""
    script.on("PATCH", ONE, refused(422, "Invalid", name="a", causes=[{"field": "metadata.uid"}]))
    with pytest.raises(errors.Conflict):
        cluster.patch(kinds.PODS, POD, {})


@pytest.mark.parametrize(("grace", "expected"), [(None, {}), (0, {"gracePeriodSeconds": 0})])
def test_delete(script: Script, cluster: client.KubeClient, grace: int | None, expected: dict[str, int]) -> None:
    """A delete is for one incarnation, in its own time unless told otherwise."""
    script.on("DELETE", ONE, {})
    cluster.delete(kinds.PODS, POD, grace)
    assert script.sent == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "uid-a"},
        **expected,
    }


def test_delete_one_version(script: Script, cluster: client.KubeClient) -> None:
    """A delete may be for what was looked at only."""
    script.on("DELETE", ONE, {})
    cluster.delete(kinds.PODS, POD, version="7")
    assert script.sent["preconditions"] == {"uid": "uid-a", "resourceVersion": "7"}


def test_delete_gone(script: Script, cluster: client.KubeClient) -> None:
    """A delete of what is gone says so."""
    script.on("DELETE", ONE, refused(404, "NotFound", name="a"))
    with pytest.raises(errors.NotFound):
        cluster.delete(kinds.PODS, POD)


def test_evict(script: Script, cluster: client.KubeClient) -> None:
    """An eviction is for one incarnation, and a budget's refusal says when to come back."""
    budget = {"causes": [{"reason": "DisruptionBudget"}], "retryAfterSeconds": 10}
    script.on("POST", ONE + "/eviction", {}, refused(429, "TooManyRequests", **budget))
    cluster.evict("ns", "a", "uid-a")
    assert script.sent["deleteOptions"] == {"preconditions": {"uid": "uid-a"}}
    with pytest.raises(errors.Unavailable) as caught:
        cluster.evict("ns", "a", "uid-a")
    assert caught.value.retry_after == 10


def test_bind(script: Script, cluster: client.KubeClient) -> None:
    """One write binds, marks, and checks that it is still this pod as we saw it."""
    script.on("POST", ONE + "/binding", http.Response(status=201))
    marks = {"annotations": {"x": "y"}, "labels": {"l": "m"}}
    cluster.bind(ports.Binding(namespace="ns", pod="a", uid="u", node="n1", resource_version="5", **marks))
    assert script.sent["metadata"] == {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "5", **marks}
    assert script.sent["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


def test_bind_without_version(script: Script, cluster: client.KubeClient) -> None:
    """What is not asked for is not sent: an empty resourceVersion would match nothing."""
    script.on("POST", ONE + "/binding", http.Response(status=201))
    cluster.bind(ports.Binding(namespace="ns", pod="a", uid="u", node="n1"))
    assert script.sent["metadata"] == {"namespace": "ns", "name": "a", "uid": "u"}


def test_event(script: Script, cluster: client.KubeClient) -> None:
    """A note becomes an Event in the namespace of its object."""
    script.on("POST", "/apis/events.k8s.io/v1/namespaces/ns/events", http.Response(status=201))
    note = ports.Note(kind="Pod", api_version="v1", namespace="ns", name="a", uid="u", reason="Why", message="words")
    cluster.event(note)
    assert script.sent["note"] == "words"


LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"


def a_lease(version: str) -> Lease:
    """A lease that is ours."""
    metadata = ObjectMeta(name="l", namespace="ns", resource_version=version)
    return Lease(metadata=metadata, spec=LeaseSpec(holder_identity="me", lease_duration_seconds=15))


@pytest.mark.parametrize(("version", "method", "path"), [("", "POST", LEASES), ("4", "PUT", LEASES + "/l")])
def test_write_lease(script: Script, cluster: client.KubeClient, version: str, method: str, path: str) -> None:
    """A lease is created, or replaces exactly the version that was read."""
    script.on(method, path, {"metadata": {"name": "l", "namespace": "ns", "resourceVersion": "5"}})
    assert cluster.write_lease(a_lease(version)).metadata.resource_version == "5"
    sent = msgspec.json.decode(script.requests[-1].body)
    assert sent["metadata"].get("resourceVersion", "") == version
    assert sent["spec"] == {"holderIdentity": "me", "leaseDurationSeconds": 15}


def test_lost_lease(script: Script, cluster: client.KubeClient) -> None:
    """Whoever writes second is told."""
    script.on("PUT", LEASES + "/l", refused(409, "Conflict", name="l"))
    with pytest.raises(errors.Conflict):
        cluster.write_lease(a_lease("4"))


def test_lease(script: Script, cluster: client.KubeClient) -> None:
    """A lease nobody has written is None."""
    script.on("GET", LEASES + "/l", refused(404, "NotFound", name="l"))
    assert cluster.lease("ns", "l") is None


GROUPS = "/apis/scheduling.k8s.io/"


def test_served_prefers_the_newest(script: Script, cluster: client.KubeClient) -> None:
    """Of the versions that both sides speak, the first of ours is used, if it has the resource."""
    script.on("GET", GROUPS + "v1beta1", {"resources": [{"name": "workloads"}]})
    script.on("GET", GROUPS + "v1alpha3", http.Response(status=404, body=b"404 page not found\n"))
    script.on("GET", GROUPS + "v1alpha2", {"resources": [{"name": "podgroups"}]})
    assert cluster.served(kinds.PODGROUPS) == "v1alpha2"


def test_served_is_remembered(server: http.Server, cluster: client.KubeClient) -> None:
    """What is served is asked once."""
    assert cluster.served(kinds.PODS) == "v1"
    asked = len(server.faults.journal)
    assert cluster.served(kinds.PODS) == "v1"
    assert len(server.faults.journal) == asked


def test_not_served(script: Script, cluster: client.KubeClient) -> None:
    """A kind that no version serves is None, and no verb of it can be carried out."""
    for version in kinds.PODGROUPS.versions:
        script.on("GET", GROUPS + version, http.Response(status=404, body=b"404 page not found\n"))
    assert cluster.served(kinds.PODGROUPS) is None
    with pytest.raises(errors.Unavailable, match="does not serve podgroups"):
        cluster.list(kinds.PODGROUPS)


def test_served_behind_a_proxy(cluster: client.KubeClient) -> None:
    """A proxy's 404 does not say that a kind is not served."""
    with pytest.raises(errors.BadAnswer):
        cluster.served(kinds.PODGROUPS)


Verb = Callable[[client.KubeClient], object]


@pytest.mark.parametrize(
    "verb",
    [
        lambda cluster: cluster.list(kinds.JOBSETS),
        lambda cluster: cluster.watch(kinds.JOBSETS, "1"),
        lambda cluster: cluster.get(kinds.JOBSETS, "ns", "a"),
    ],
    ids=["list", "watch", "get"],
)
def test_a_version_that_disappears(script: Script, cluster: client.KubeClient, verb: Verb) -> None:
    """After an answer that no longer knows the resource, what is served is asked anew."""
    contents = "/apis/jobset.x-k8s.io/v1alpha2"
    gone = http.Response(status=404, body=b"404 page not found\n")
    script.on("GET", contents, {"resources": [{"name": "jobsets"}]})
    assert cluster.served(kinds.JOBSETS) == "v1alpha2"
    script.on("GET", contents, gone)
    script.on("GET", contents + "/jobsets", gone)
    with pytest.raises(errors.BadAnswer):
        verb(cluster)
    assert cluster.served(kinds.JOBSETS) is None


def test_names_are_quoted(script: Script, cluster: client.KubeClient) -> None:
    """A name never becomes a path."""
    script.on("GET", "/api/v1/namespaces/ns/pods/..%2Fnodes", pod("a"))
    with pytest.raises(errors.BadAnswer):
        cluster.get(kinds.PODS, "ns", "../nodes")
    assert "..%2Fnodes" in script.requests[-1].target


def _silence(hold: threading.Event) -> Iterator[bytes]:
    hold.wait(10)
    yield b""
