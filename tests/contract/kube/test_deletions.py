"""Deleting and evicting: preconditions, grace, finalizers, budgets, dependents."""

import kubetalk
import pytest

ROOM = kubetalk.Room


def test_another_incarnation_is_not_deleted(room: ROOM) -> None:
    """409, and the pod stays."""
    pod = room.pod()
    path = room.pods(pod.body["metadata"]["name"])
    answer = room.talk.ask("DELETE", path, {"preconditions": {"uid": "another"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert f"the UID in the precondition (another) does not match the UID in record ({pod.uid})" in answer.message
    assert room.talk.ask("DELETE", path, {"preconditions": {"uid": pod.uid}}).status == 200
    assert room.talk.ask("GET", path).status == 404


def test_another_version_is_not_deleted(room: ROOM) -> None:
    """The resourceVersion is a precondition as well."""
    path = room.pods(room.pod().body["metadata"]["name"])
    answer = room.talk.ask("DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    assert (answer.status, answer.reason) == (409, "Conflict")


def test_an_unbound_pod_goes_at_once(room: ROOM) -> None:
    """Whatever its grace; the answer is the pod itself."""
    path = room.pods(room.pod().body["metadata"]["name"])
    answer = room.talk.ask("DELETE", path)
    assert (answer.status, answer.body["kind"]) == (200, "Pod")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert room.talk.ask("GET", path).status == 404


def test_a_bound_pod_waits_for_its_kubelet(room: ROOM) -> None:
    """It is marked; without a kubelet it stays until it is deleted with a grace period of 0."""
    name = room.pod(spec={"terminationGracePeriodSeconds": 45}).body["metadata"]["name"]
    room.bind(name)
    marked = room.talk.ask("DELETE", room.pods(name)).body["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 45
    assert room.talk.ask("GET", room.pods(name)).body["metadata"]["deletionTimestamp"] == marked["deletionTimestamp"]
    sooner = room.talk.ask("DELETE", room.pods(name), {"gracePeriodSeconds": 5}).body["metadata"]
    assert sooner["deletionGracePeriodSeconds"] == 5
    room.talk.ask("DELETE", room.pods(name), {"gracePeriodSeconds": 0})
    assert room.talk.ask("GET", room.pods(name)).status == 404


def test_a_finished_pod_goes_at_once(room: ROOM) -> None:
    """There is nothing to stop."""
    name = room.pod().body["metadata"]["name"]
    room.bind(name)
    room.merge(room.pods(name, "status"), {"status": {"phase": "Succeeded"}})
    room.talk.ask("DELETE", room.pods(name))
    assert room.talk.ask("GET", room.pods(name)).status == 404


def test_a_finalizer_holds_an_object(room: ROOM) -> None:
    """No finalizer can be added then. Removing the last one deletes it; that answer still has the old version."""
    name = room.pod(finalizers=["example.com/hold"]).body["metadata"]["name"]
    held = room.talk.ask("DELETE", room.pods(name))
    assert held.body["metadata"]["finalizers"] == ["example.com/hold"]
    more = room.merge(room.pods(name), {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    assert more.status == 422
    assert "no new finalizers can be added if the object is being deleted" in more.message
    freed = room.merge(room.pods(name), {"metadata": {"finalizers": None}})
    assert (freed.status, freed.version) == (200, held.version)
    assert room.talk.ask("GET", room.pods(name)).status == 404


def test_most_deletions_are_answered_with_a_status(room: ROOM) -> None:
    """With the uid of what went."""
    path = room.path("coordination.k8s.io/v1", "leases")
    made = room.talk.ask("POST", path, {"metadata": {"name": "short"}, "spec": {}})
    answer = room.talk.ask("DELETE", f"{path}/short")
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"]["uid"] == made.uid


def evict(room: ROOM, name: str, **options: object) -> kubetalk.Answer:
    """Ask for an eviction."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return room.talk.ask(
        "POST", room.pods(name, "eviction"), {**body, **({"deleteOptions": options} if options else {})}
    )


def running(room: ROOM, **labels: str) -> str:
    """A pod that claims to run and to be ready, without a kubelet that could contradict."""
    name = room.pod(labels=labels).body["metadata"]["name"]
    room.bind(name)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert room.merge(room.pods(name, "status"), {"status": ready}).status == 200
    return name


class TestEviction:
    def test_an_eviction_leaves_its_reason(self, room: ROOM) -> None:
        """DisruptionTarget, then a deletion with the pod's grace."""
        name = running(room)
        answer = evict(room, name)
        assert (answer.status, answer.body["status"]) == (201, "Success")
        body = room.talk.ask("GET", room.pods(name)).body
        reasons = {line["type"]: line.get("reason") for line in body["status"]["conditions"]}
        assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
        assert body["metadata"]["deletionGracePeriodSeconds"] == 30

    def test_a_budget_forbids(self, room: ROOM) -> None:
        """429 without Retry-After; the cause names the budget. A stale uid is not checked before that."""
        name = running(room, guarded="yes")
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}}
        path = room.path("policy/v1", "poddisruptionbudgets")
        room.talk.ask("POST", path, {"metadata": {"name": "guard"}, "spec": budget})
        kubetalk.wait_for(
            lambda: room.talk.ask("GET", f"{path}/guard").body.get("status", {}).get("currentHealthy") == 1,
            "the budget to be counted",
        )
        for answer in (evict(room, name), evict(room, name, preconditions={"uid": "another"})):
            assert (answer.status, answer.reason) == (429, "TooManyRequests")
            assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
            assert answer.body["details"]["causes"] == [
                {
                    "reason": "DisruptionBudget",
                    "message": "The disruption budget guard needs 1 healthy pods and has 1 currently",
                }
            ]
            assert "Retry-After" not in answer.headers

    def test_a_pod_that_does_not_run_has_no_budget(self, room: ROOM) -> None:
        """It goes, although the budget allows nothing."""
        name = room.pod(labels={"lonely": "yes"}).body["metadata"]["name"]
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"lonely": "yes"}}}
        path = room.path("policy/v1", "poddisruptionbudgets")
        room.talk.ask("POST", path, {"metadata": {"name": "lonely"}, "spec": budget})
        assert evict(room, name).status == 201
        assert room.talk.ask("GET", room.pods(name)).status == 404

    def test_another_incarnation_is_not_evicted(self, room: ROOM) -> None:
        """409, as for a deletion."""
        name = running(room)
        answer = evict(room, name, preconditions={"uid": "another"})
        assert (answer.status, answer.reason) == (409, "Conflict")

    def test_a_missing_pod_is_not_found(self, room: ROOM) -> None:
        """And the names must agree."""
        assert evict(room, "missing").status == 404
        body = {"metadata": {"name": "other"}}
        assert room.talk.ask("POST", room.pods("missing", "eviction"), body).status == 400


class TestJobs:
    @pytest.fixture
    def job(self, room: ROOM) -> tuple[str, list[str]]:
        """A Job and its two pods."""
        path = room.path("batch/v1", "jobs")
        name = kubetalk.fresh("job")
        template = {"spec": {**kubetalk.pod()["spec"], "restartPolicy": "Never"}}
        body = {"metadata": {"name": name}, "spec": {"parallelism": 2, "template": template}}
        assert room.talk.ask("POST", path, body).status == 201
        pods = kubetalk.wait_for(lambda: found if len(found := members(room, name)) == 2 else None, "two pods")
        return f"{path}/{name}", pods

    def test_its_pods_say_whose_they_are(self, room: ROOM, job: tuple[str, list[str]]) -> None:
        """By label, by owner, and held by a finalizer until they are counted."""
        path, pods = job
        uid = room.talk.ask("GET", path).uid
        metadata = room.talk.ask("GET", room.pods(pods[0])).body["metadata"]
        assert metadata["labels"]["batch.kubernetes.io/controller-uid"] == uid
        assert [(owner["kind"], owner["uid"], owner["controller"]) for owner in metadata["ownerReferences"]] == [
            ("Job", uid, True)
        ]
        assert metadata["finalizers"] == ["batch.kubernetes.io/job-tracking"]

    def test_in_the_background_its_pods_go(self, room: ROOM, job: tuple[str, list[str]]) -> None:
        """The Job first, its pods soon after."""
        path, pods = job
        answer = room.talk.ask("DELETE", path, {"propagationPolicy": "Background"})
        assert answer.body["kind"] == "Status"
        assert room.talk.ask("GET", path).status == 404
        kubetalk.wait_for(lambda: room.talk.ask("GET", room.pods(pods[0])).status == 404, "the pods to go")

    def test_without_a_propagation_policy_its_pods_stay(self, room: ROOM, job: tuple[str, list[str]]) -> None:
        """They are orphaned, for batch/v1 over the API; kubectl sends Background."""
        path, pods = job
        assert room.talk.ask("DELETE", path).body["metadata"]["finalizers"] == ["orphan"]
        kubetalk.wait_for(lambda: room.talk.ask("GET", path).status == 404, "the job to go")
        for pod in pods:
            assert "ownerReferences" not in room.talk.ask("GET", room.pods(pod)).body["metadata"]

    def test_a_deleted_pod_counts_as_failed(self, room: ROOM, job: tuple[str, list[str]]) -> None:
        """The Job tries again, whatever deleted the pod."""
        path, pods = job
        room.talk.ask("DELETE", room.pods(pods[0]))
        status = kubetalk.wait_for(
            lambda: (s := room.talk.ask("GET", path).body["status"]).get("failed") and s, "the failure to be counted"
        )
        assert status["failed"] == 1


def members(room: ROOM, job: str) -> list[str]:
    """The names of a Job's pods."""
    return room.talk.ask("GET", room.pods(), labelSelector=f"batch.kubernetes.io/job-name={job}").names


def test_a_namespace_takes_everything_with_it(room: ROOM) -> None:
    """It is Terminating first and accepts no new objects, and then it is gone."""
    name = kubetalk.fresh("doomed")
    path = f"/api/v1/namespaces/{name}"
    talk = room.talk
    talk.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases"
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}, "spec": {}}
    talk.ask("POST", leases, held)
    assert talk.ask("DELETE", path).body["status"]["phase"] == "Terminating"
    late = talk.ask("POST", leases, {"metadata": {"name": "late"}, "spec": {}})
    assert (late.status, late.reason) == (403, "Forbidden")
    assert late.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    talk.ask("PATCH", f"{leases}/held", {"metadata": {"finalizers": None}}, media=kubetalk.MERGE)
    kubetalk.wait_for(lambda: talk.ask("GET", path).status == 404, "the namespace to go")
