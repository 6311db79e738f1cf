"""Leases, groups and events; which requests are allowed; which APIs are served."""

import kubetalk
import pytest

ROOM = kubetalk.Room


class TestLeases:
    @pytest.fixture
    def lease(self, room: ROOM) -> tuple[str, kubetalk.Answer]:
        """A lease held by a."""
        path = room.path("coordination.k8s.io/v1", "leases")
        made = room.talk.ask("POST", path, self.manifest(kubetalk.fresh("lease")))
        assert made.status == 201
        return f"{path}/{made.body['metadata']['name']}", made

    @staticmethod
    def manifest(name: str, holder: str = "a", **metadata: str) -> kubetalk.Body:
        """A lease as it is sent."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }

    def test_only_one_of_two_wins(self, room: ROOM, lease: tuple[str, kubetalk.Answer]) -> None:
        """Both replace the version that they read; the second is refused."""
        path, made = lease
        name = made.body["metadata"]["name"]
        first = room.talk.ask("PUT", path, self.manifest(name, "b", resourceVersion=made.version))
        second = room.talk.ask("PUT", path, self.manifest(name, "c", resourceVersion=made.version))
        assert (first.status, second.status, second.reason) == (200, 409, "Conflict")
        assert room.talk.ask("GET", path).body["spec"]["holderIdentity"] == "b"

    def test_a_replacement_must_say_what_it_replaces(self, room: ROOM, lease: tuple[str, kubetalk.Answer]) -> None:
        """422, in words that name the resource and not the kind."""
        path, made = lease
        name = made.body["metadata"]["name"]
        answer = room.talk.ask("PUT", path, self.manifest(name))
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert answer.message.startswith(f'leases.coordination.k8s.io "{name}" is invalid: metadata.resourceVersion')

    def test_another_incarnation_is_not_replaced(self, room: ROOM, lease: tuple[str, kubetalk.Answer]) -> None:
        """409 in the words of the storage."""
        path, made = lease
        wish = self.manifest(made.body["metadata"]["name"], resourceVersion=made.version, uid="another")
        answer = room.talk.ask("PUT", path, wish)
        assert (answer.status, answer.reason) == (409, "Conflict")
        assert "Precondition failed: UID in precondition: another" in answer.message

    def test_replacing_what_was_deleted_creates_it(self, room: ROOM, lease: tuple[str, kubetalk.Answer]) -> None:
        """201, whatever version is named: only a uid would have refused."""
        path, made = lease
        room.talk.ask("DELETE", path)
        answer = room.talk.ask("PUT", path, self.manifest(made.body["metadata"]["name"], resourceVersion=made.version))
        assert answer.status == 201
        assert answer.uid != made.uid


class TestBuiltinGroups:
    def test_one_version_is_served(self, room: ROOM) -> None:
        """Which one has to be discovered; others are not found."""
        group = room.talk.ask("GET", "/apis/scheduling.k8s.io").body
        assert "v1alpha2" in [version["version"] for version in group["versions"]]
        resources = room.talk.ask("GET", "/apis/scheduling.k8s.io/v1alpha2").body["resources"]
        assert {"podgroups", "podgroups/status", "workloads"} <= {line["name"] for line in resources}
        assert room.talk.ask("GET", "/apis/scheduling.k8s.io/v1beta1").status == 404

    def test_its_policy_never_changes(self, room: ROOM) -> None:
        """The gang's size is fixed."""
        path = room.path("scheduling.k8s.io/v1alpha2", "podgroups")
        made = room.talk.ask("POST", path, self.group("fixed"))
        assert made.status == 201
        answer = room.merge(f"{path}/fixed", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert "field is immutable" in answer.message

    def test_it_needs_a_policy(self, room: ROOM) -> None:
        """One of two."""
        path = room.path("scheduling.k8s.io/v1alpha2", "podgroups")
        answer = room.talk.ask("POST", path, {"metadata": {"name": "vague"}, "spec": {}})
        assert answer.status == 422
        assert "spec.schedulingPolicy" in answer.message

    def test_it_is_protected_for_a_moment(self, room: ROOM) -> None:
        """A controller lets go of it when no pod needs it."""
        path = room.path("scheduling.k8s.io/v1alpha2", "podgroups")
        made = room.talk.ask("POST", path, self.group("protected")).body["metadata"]
        assert made["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        room.talk.ask("DELETE", f"{path}/protected")
        kubetalk.wait_for(lambda: room.talk.ask("GET", f"{path}/protected").status == 404, "the group to go")

    def test_its_status_has_conditions(self, room: ROOM) -> None:
        """And no phase."""
        path = room.path("scheduling.k8s.io/v1alpha2", "podgroups")
        room.talk.ask("POST", path, self.group("told"))
        line = {
            "type": "PodGroupScheduled",
            "status": "True",
            "reason": "Scheduled",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        body = room.merge(f"{path}/told/status", {"status": {"conditions": [line]}}).body
        assert body["status"]["conditions"] == [line]

    @staticmethod
    def group(name: str) -> kubetalk.Body:
        """A gang of two."""
        return {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}


def test_an_event_can_be_read_in_both_apis(room: ROOM) -> None:
    """The same object under two kinds of names."""
    path = room.path("events.k8s.io/v1", "events")
    event = {
        "metadata": {"name": "told"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reason": "Waiting",
        "action": "Scheduling",
        "type": "Warning",
        "note": "because",
        "reportingController": "example.com/us",
        "reportingInstance": "us-1",
        "regarding": {"kind": "Pod", "namespace": room.namespace, "name": "p", "uid": "u"},
    }
    assert room.talk.ask("POST", path, event).status == 201
    old = room.talk.ask("GET", room.path("v1", "events", "told")).body
    assert (old["message"], old["involvedObject"]["name"], old["reportingComponent"]) == (
        "because",
        "p",
        "example.com/us",
    )


class TestAccess:
    def test_a_wrong_token_is_unauthorized(self, room: ROOM) -> None:
        """401."""
        answer = room.talk.as_token("no-such-token").ask("GET", "/api/v1/pods")
        assert (answer.status, answer.reason, answer.message) == (401, "Unauthorized", "Unauthorized")

    def test_a_request_without_a_token_is_forbidden(self, room: ROOM) -> None:
        """403; the message names verb and resource."""
        answer = room.talk.as_token("").ask("GET", "/api/v1/pods")
        assert (answer.status, answer.reason) == (403, "Forbidden")
        assert answer.message.startswith('pods is forbidden: User "system:anonymous" cannot list resource "pods" in ')
        assert answer.message.endswith('API group "" at the cluster scope')

    def test_a_subresource_is_a_right_of_its_own(self, room: ROOM) -> None:
        """Binding is a right of its own."""
        nobody = room.talk.as_token("")
        answer = nobody.ask("POST", room.pods("some", "binding"), {"metadata": {"name": "some"}})
        assert answer.status == 403
        assert answer.message == (
            f'pods "some" is forbidden: User "system:anonymous" cannot create resource "pods/binding" in API group "" '
            f'in the namespace "{room.namespace}"'
        )


class TestServed:
    @pytest.mark.parametrize(
        ("path", "names"),
        [
            ("/api/v1", {"pods", "pods/status", "pods/binding", "pods/eviction", "nodes", "namespaces", "events"}),
            ("/apis/events.k8s.io/v1", {"events"}),
            ("/apis/coordination.k8s.io/v1", {"leases"}),
            ("/apis/batch/v1", {"jobs", "jobs/status"}),
            ("/apis/apps/v1", {"replicasets", "statefulsets"}),
            ("/apis/jobset.x-k8s.io/v1alpha2", {"jobsets", "jobsets/status"}),
            ("/apis/leaderworkerset.x-k8s.io/v1", {"leaderworkersets"}),
            ("/apis/scheduling.x-k8s.io/v1alpha1", {"podgroups", "podgroups/status"}),
            ("/apis/policy/v1", {"poddisruptionbudgets"}),
        ],
    )
    def test_every_resource_can_be_discovered(self, room: ROOM, path: str, names: set[str]) -> None:
        """By name, group and version."""
        answer = room.talk.ask("GET", path)
        assert answer.body["kind"] == "APIResourceList"
        assert names <= {line["name"] for line in answer.body["resources"]}

    def test_the_version_is_told(self, room: ROOM) -> None:
        """1.36 on both servers."""
        body = room.talk.ask("GET", "/version").body
        assert (body["major"], body["minor"]) == ("1", "36")

    def test_what_is_not_served_is_not_found(self, room: ROOM) -> None:
        """404 NotFound without a name."""
        answer = room.talk.ask("GET", "/api/v1/nonsense")
        assert (answer.status, answer.reason) == (404, "NotFound")
        assert answer.message == "the server could not find the requested resource"
