"""Creating, replacing, patching: what a write may change, and under which conditions."""

import kubetalk
import pytest

ROOM = kubetalk.Room


class TestCreate:
    def test_a_new_object_gets_its_identity(self, room: ROOM) -> None:
        """An uid, a version, a time; a status of the server's own."""
        body = room.pod(spec={"containers": [{"name": "c", "image": "i"}]}).body
        assert body["metadata"]["namespace"] == room.namespace
        assert {"uid", "resourceVersion", "creationTimestamp"} <= body["metadata"].keys()
        assert body["status"]["phase"] == "Pending"
        assert body["spec"]["restartPolicy"] == "Always"
        assert body["spec"]["terminationGracePeriodSeconds"] == 30
        assert body["spec"]["schedulerName"] == kubetalk.NOBODY

    def test_each_pod_gets_the_token_of_its_account(self, room: ROOM) -> None:
        """A volume with a name of its own, behind those that the user asks for, unless the pod wants none."""
        given = {"name": "mine", "emptyDir": {}}
        first, second = (room.pod(spec={"volumes": [given]}).body["spec"] for _ in range(2))
        (mine, token), (_, other) = first["volumes"], second["volumes"]
        assert mine == given
        assert token["name"].startswith("kube-api-access-")
        assert token.keys() == {"name", "projected"}
        assert token["name"] != other["name"]
        assert token["projected"] == other["projected"]
        assert first["containers"][0]["volumeMounts"][-1]["name"] == token["name"]
        assert "volumes" not in room.pod(spec={"automountServiceAccountToken": False}).body["spec"]

    def test_a_null_is_as_good_as_nothing(self, room: ROOM) -> None:
        """As `kubectl create --dry-run` writes it."""
        body = room.pod(labels=None, creationTimestamp=None, spec={"nodeSelector": None, "affinity": None}).body
        assert "labels" not in body["metadata"]
        assert body["metadata"]["creationTimestamp"]
        assert not {"nodeSelector", "affinity"} & body["spec"].keys()

    def test_a_name_can_be_generated(self, room: ROOM) -> None:
        """Five letters behind the stem."""
        manifest = kubetalk.pod()
        manifest["metadata"] = {"generateName": "made-"}
        name = room.talk.ask("POST", room.pods(), manifest).body["metadata"]["name"]
        assert name.startswith("made-")
        assert len(name) == len("made-") + 5

    def test_a_name_is_taken_once(self, room: ROOM) -> None:
        """AlreadyExists, not Conflict, though both are 409."""
        name = room.pod().body["metadata"]["name"]
        answer = room.talk.ask("POST", room.pods(), kubetalk.pod(name=name))
        assert (answer.status, answer.reason) == (409, "AlreadyExists")
        assert answer.message == f'pods "{name}" already exists'
        assert answer.body["details"] == {"name": name, "kind": "pods"}

    @pytest.mark.parametrize(
        ("metadata", "status", "message"),
        [
            ({}, 422, "metadata.name: Required value: name or generateName is required"),
            ({"name": "Bad_Name"}, 422, "a lowercase RFC 1123 subdomain must consist of"),
            ({"name": "a", "resourceVersion": "5"}, 500, "resourceVersion should not be set on objects to be created"),
            ({"name": "a", "namespace": "other"}, 400, "the namespace of the provided object does not match"),
        ],
    )
    def test_metadata_is_checked(self, room: ROOM, metadata: kubetalk.Body, status: int, message: str) -> None:
        """Each with a status of its own."""
        answer = room.talk.ask("POST", room.pods(), {**kubetalk.pod(), "metadata": metadata})
        assert answer.status == status
        assert message in answer.message

    def test_a_pod_needs_containers(self, room: ROOM) -> None:
        """The cause names the field."""
        answer = room.talk.ask("POST", room.pods(), {"metadata": {"name": "empty"}, "spec": {}})
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert answer.body["details"]["causes"][0] == {
            "reason": "FieldValueRequired",
            "message": "Required value",
            "field": "spec.containers",
        }

    def test_a_namespace_must_exist(self, room: ROOM) -> None:
        """What is not found is the namespace."""
        answer = room.talk.ask("POST", "/api/v1/namespaces/no-such-place/pods", kubetalk.pod())
        assert (answer.status, answer.reason) == (404, "NotFound")
        assert answer.message == 'namespaces "no-such-place" not found'

    def test_another_kind_is_refused(self, room: ROOM) -> None:
        """A body that is not JSON is refused, too."""
        wrong = {"apiVersion": "batch/v1", "kind": "Job", **kubetalk.pod()}
        assert room.talk.ask("POST", room.pods(), wrong).status == 400
        assert room.talk.ask("POST", room.pods(), b"{nonsense").status == 400

    def test_gates_show_in_the_status(self, room: ROOM) -> None:
        """PodScheduled is False with the reason SchedulingGated."""
        body = room.pod(spec={"schedulingGates": [{"name": "example.com/wait"}]}).body
        assert [(line["type"], line["status"], line["reason"]) for line in body["status"]["conditions"]] == [
            ("PodScheduled", "False", "SchedulingGated")
        ]

    def test_a_missing_group_is_no_obstacle(self, room: ROOM) -> None:
        """A pod may name a PodGroup that does not exist, and can never name another one."""
        pod = room.pod(spec={"schedulingGroup": {"podGroupName": "missing"}}).body
        change = {"spec": {"schedulingGroup": {"podGroupName": "other"}}}
        assert room.merge(room.pods(pod["metadata"]["name"]), change).status == 422


class TestMergePatch:
    def test_null_deletes(self, room: ROOM) -> None:
        """Everything else merges."""
        name = room.pod(labels={"a": "1", "b": "2"}).body["metadata"]["name"]
        answer = room.merge(room.pods(name), {"metadata": {"labels": {"a": None, "c": "3"}}})
        assert answer.body["metadata"]["labels"] == {"b": "2", "c": "3"}

    def test_another_incarnation_is_invalid(self, room: ROOM) -> None:
        """The uid in a patch is a precondition in effect: 422, it is immutable; also through the status subresource."""
        name = room.pod().body["metadata"]["name"]
        changes = {"metadata": {"uid": "another", "labels": {"x": "y"}}, "status": {"phase": "Failed"}}
        for path in (room.pods(name), room.pods(name, "status")):
            answer = room.merge(path, changes)
            assert (answer.status, answer.reason) == (422, "Invalid")
            assert 'metadata.uid: Invalid value: "another": field is immutable' in answer.message
        assert room.talk.ask("GET", room.pods(name)).body["status"]["phase"] == "Pending"

    def test_another_version_is_a_conflict(self, room: ROOM) -> None:
        """The resourceVersion in a patch is a precondition."""
        pod = room.pod()
        path = room.pods(pod.body["metadata"]["name"])
        room.merge(path, {"metadata": {"labels": {"a": "1"}}})
        answer = room.merge(path, {"metadata": {"resourceVersion": pod.version, "labels": {"a": "2"}}})
        assert (answer.status, answer.reason) == (409, "Conflict")
        assert answer.message.endswith("please apply your changes to the latest version and try again")

    def test_nothing_changed_is_nothing_written(self, room: ROOM) -> None:
        """The version stays."""
        pod = room.pod(labels={"a": "1"})
        answer = room.merge(room.pods(pod.body["metadata"]["name"]), {"metadata": {"labels": {"a": "1"}}})
        assert (answer.status, answer.version) == (200, pod.version)

    def test_a_name_does_not_change(self, room: ROOM) -> None:
        """It is in the path."""
        name = room.pod().body["metadata"]["name"]
        answer = room.merge(room.pods(name), {"metadata": {"name": "other"}})
        assert (answer.status, answer.reason) == (400, "BadRequest")

    def test_what_is_missing_cannot_be_patched(self, room: ROOM) -> None:
        """404 with the name in the details."""
        answer = room.merge(room.pods("missing"), {})
        assert (answer.status, answer.body["details"]) == (404, {"name": "missing", "kind": "pods"})


class TestPodSpec:
    @pytest.mark.parametrize(
        "change", [{"nodeName": "n"}, {"schedulerName": "other"}, {"nodeSelector": {"a": "b"}}, {"priority": 5}]
    )
    def test_most_of_it_never_changes(self, room: ROOM, change: kubetalk.Body) -> None:
        """The node above all: only a binding sets it."""
        name = room.pod().body["metadata"]["name"]
        answer = room.merge(room.pods(name), {"spec": change})
        assert answer.status in (403, 422)
        assert "orbidden" in answer.message

    def test_some_of_it_changes_while_a_pod_waits(self, room: ROOM) -> None:
        """Tolerations and a deadline: so a bind has to carry the version that was looked at."""
        name = room.pod().body["metadata"]["name"]
        more = {"activeDeadlineSeconds": 50, "tolerations": [{"key": "a", "operator": "Exists"}]}
        answer = room.merge(room.pods(name), {"spec": more})
        assert answer.status == 200
        assert answer.body["metadata"]["generation"] == 2
        keys = {line["key"] for line in answer.body["spec"]["tolerations"]}
        assert keys == {"a", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}

    def test_gates_only_disappear(self, room: ROOM) -> None:
        """None can be added; a gated pod can still be narrowed to nodes."""
        name = room.pod(spec={"schedulingGates": [{"name": "example.com/a"}]}).body["metadata"]["name"]
        path = room.pods(name)
        more = room.merge(path, {"spec": {"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/b"}]}})
        assert more.status == 422
        assert "only deletion is allowed, but found new scheduling gate 'example.com/b'" in more.message
        assert room.merge(path, {"spec": {"nodeSelector": {"zone": "a"}}}).status == 200
        assert "schedulingGates" not in room.merge(path, {"spec": {"schedulingGates": None}}).body["spec"]


class TestStatusDoor:
    def test_a_plain_write_does_not_change_the_status(self, room: ROOM) -> None:
        """The write succeeds and the status stays."""
        name = room.pod().body["metadata"]["name"]
        answer = room.merge(room.pods(name), {"status": {"phase": "Running"}})
        assert (answer.status, answer.body["status"]["phase"]) == (200, "Pending")

    def test_the_status_subresource_changes_the_status_and_a_pods_marks(self, room: ROOM) -> None:
        """Never the spec, but labels and annotations of built-in kinds pass through it."""
        name = room.pod().body["metadata"]["name"]
        changes = {
            "metadata": {"labels": {"through": "status"}, "annotations": {"too": "yes"}},
            "spec": {"schedulerName": "other"},
            "status": {"phase": "Running"},
        }
        body = room.merge(room.pods(name, "status"), changes).body
        assert body["status"]["phase"] == "Running"
        assert body["spec"]["schedulerName"] == kubetalk.NOBODY
        assert body["metadata"]["labels"] == {"through": "status"}
        assert body["metadata"]["annotations"] == {"too": "yes"}

    def test_the_status_subresource_keeps_images_owners_and_finalizers(self, room: ROOM) -> None:
        """Fields that could run code, or keep a pod from being deleted, stay."""
        before = room.pod().body
        container = {"name": before["spec"]["containers"][0]["name"], "image": "theirs"}
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
        head = {"annotations": {"too": "yes"}, "ownerReferences": [owner]}
        change = {"metadata": head, "spec": {"containers": [container], "nodeName": "n"}}
        after = room.talk.ask(
            "PATCH", room.pods(before["metadata"]["name"], "status"), change, media=kubetalk.STRATEGIC
        ).body
        assert after["metadata"]["annotations"] == {"too": "yes"}
        assert "ownerReferences" not in after["metadata"]
        assert after["spec"] == before["spec"]

    def test_annotations_come_and_go_through_the_status_subresource(self, room: ROOM) -> None:
        """null removes one; a stale version and another uid are refused as in a plain write."""
        made = room.pod()
        path = room.pods(made.body["metadata"]["name"], "status")

        def write(head: kubetalk.Body) -> kubetalk.Answer:
            return room.talk.ask("PATCH", path, {"metadata": head}, media=kubetalk.STRATEGIC)

        written = write({"uid": made.uid, "annotations": {"a": "1", "b": "2"}})
        assert (written.status, written.body["metadata"]["annotations"]) == (200, {"a": "1", "b": "2"})
        gone = write({"uid": made.uid, "resourceVersion": written.version, "annotations": {"a": None}})
        assert (gone.status, gone.body["metadata"]["annotations"]) == (200, {"b": "2"})
        assert write({"resourceVersion": made.version, "annotations": {"c": "3"}}).status == 409
        assert write({"uid": "another", "annotations": {"c": "3"}}).status == 422

    def test_conditions_merge_strategically_only(self, room: ROOM) -> None:
        """A merge patch replaces the whole list; a strategic one merges by type."""
        path = room.pods(room.pod().body["metadata"]["name"], "status")
        one = {"status": {"conditions": [{"type": "example.com/One", "status": "True"}]}}
        two = {"status": {"conditions": [{"type": "example.com/Two", "status": "True"}]}}
        room.merge(path, one)
        merged = room.talk.ask("PATCH", path, two, media=kubetalk.STRATEGIC).body["status"]["conditions"]
        assert {line["type"] for line in merged} == {"example.com/One", "example.com/Two"}
        replaced = room.merge(path, two).body["status"]["conditions"]
        assert [line["type"] for line in replaced] == ["example.com/Two"]

    def test_a_custom_resources_status_subresource_changes_nothing_else(self, room: ROOM) -> None:
        """Labels do not pass; a status in the creation is dropped."""
        path = room.path("scheduling.x-k8s.io/v1alpha1", "podgroups")
        head = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "doors"}}
        made = room.talk.ask("POST", path, {**head, "spec": {"minMember": 3}, "status": {"phase": "Early"}})
        assert "status" not in made.body
        changes = {"metadata": {"labels": {"a": "b"}}, "spec": {"minMember": 9}, "status": {"phase": "Running"}}
        body = room.merge(f"{path}/doors/status", changes).body
        assert (body["spec"]["minMember"], body["status"]["phase"]) == (3, "Running")
        assert "labels" not in body["metadata"]
        assert body["metadata"]["generation"] == 1
        again = room.merge(f"{path}/doors", {"spec": {"minMember": 4}, "status": {"phase": "Failed"}}).body
        assert (again["metadata"]["generation"], again["status"]["phase"]) == (2, "Running")


class TestOtherFormats:
    def test_json_patch(self, room: ROOM) -> None:
        """Operations in order; a test that fails is 422 without causes."""
        name = room.pod(labels={"a": "1"}).body["metadata"]["name"]
        path = room.pods(name)
        operations = [
            {"op": "test", "path": "/metadata/labels/a", "value": "1"},
            {"op": "replace", "path": "/metadata/labels/a", "value": "2"},
            {"op": "add", "path": "/metadata/labels/example.com~1b", "value": "3"},
        ]
        answer = room.talk.ask("PATCH", path, operations, media=kubetalk.JSON_PATCH)
        assert answer.body["metadata"]["labels"] == {"a": "2", "example.com/b": "3"}
        failed = room.talk.ask("PATCH", path, operations, media=kubetalk.JSON_PATCH)
        assert (failed.status, failed.reason) == (422, "Invalid")
        assert failed.message == "the server rejected our request due to an error in our request"

    def test_unknown_formats_are_refused(self, room: ROOM) -> None:
        """415; custom resources know no strategic merge."""
        name = room.pod().body["metadata"]["name"]
        assert room.talk.ask("PATCH", room.pods(name), {}).status == 415
        path = room.path("scheduling.x-k8s.io/v1alpha1", "podgroups")
        head = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "formats"}}
        room.talk.ask("POST", path, {**head, "spec": {"minMember": 3}})
        answer = room.talk.ask("PATCH", f"{path}/formats", {"spec": {}}, media=kubetalk.STRATEGIC)
        assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")

    def test_a_custom_resource_must_say_what_it_is(self, room: ROOM) -> None:
        """Built-in ones need not."""
        path = room.path("scheduling.x-k8s.io/v1alpha1", "podgroups")
        answer = room.talk.ask("POST", path, {"metadata": {"name": "x"}, "spec": {"minMember": 1}})
        assert (answer.status, answer.reason) == (400, "BadRequest")
        assert "Object 'Kind' is missing" in answer.message


class TestApply:
    def test_an_apply_creates(self, room: ROOM) -> None:
        """201 the first time, 200 afterwards; it needs a manager."""
        name = kubetalk.fresh("applied")
        manifest = {"apiVersion": "v1", "kind": "Pod", **kubetalk.pod(name=name, labels={"a": "1"})}
        assert room.apply(room.pods(name), manifest, "one").status == 201
        assert room.apply(room.pods(name), manifest, "one").status == 200
        answer = room.talk.ask("PATCH", room.pods(name), manifest, media=kubetalk.APPLY)
        assert (answer.status, answer.reason) == (422, "Invalid")

    def test_another_managers_field_is_a_conflict(self, room: ROOM) -> None:
        """Unless the value is the same, or force takes it over."""
        name = kubetalk.fresh("owned")
        head = {"apiVersion": "v1", "kind": "Pod"}
        room.apply(room.pods(name), {**head, **kubetalk.pod(name=name, labels={"a": "1"})}, "one")
        wish = {**head, "metadata": {"labels": {"a": "2"}}}
        answer = room.apply(room.pods(name), wish, "two")
        assert (answer.status, answer.reason) == (409, "Conflict")
        assert answer.message == 'Apply failed with 1 conflict: conflict with "one": .metadata.labels.a'
        assert answer.body["details"]["causes"] == [
            {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".metadata.labels.a"}
        ]
        same = {**head, "metadata": {"labels": {"a": "1"}}}
        assert room.apply(room.pods(name), same, "two").status == 200
        assert room.apply(room.pods(name), wish, "two", force="true").body["metadata"]["labels"] == {"a": "2"}

    def test_what_an_apply_no_longer_names_goes(self, room: ROOM) -> None:
        """If no other manager owns it."""
        name = kubetalk.fresh("left")
        head = {"apiVersion": "v1", "kind": "Pod"}
        room.apply(room.pods(name), {**head, **kubetalk.pod(name=name, labels={"a": "1"})}, "one")
        room.apply(room.pods(name), {**head, "metadata": {"labels": {"b": "1", "c": "1"}}}, "two")
        answer = room.apply(room.pods(name), {**head, "metadata": {"labels": {"b": "1"}}}, "two")
        assert answer.body["metadata"]["labels"] == {"a": "1", "b": "1"}

    def test_each_manager_owns_its_own_condition(self, room: ROOM) -> None:
        """Lists that are keyed maps are owned item by item."""
        path = room.pods(room.pod().body["metadata"]["name"], "status")
        for kind in ("One", "Two", "One"):
            line = {"type": f"example.com/{kind}", "status": "True"}
            manifest = {"apiVersion": "v1", "kind": "Pod", "status": {"conditions": [line]}}
            answer = room.apply(path, manifest, f"manager-{kind}")
            assert answer.status == 200, answer.body
        kinds = {line["type"] for line in answer.body["status"]["conditions"]}
        assert {"example.com/One", "example.com/Two"} <= kinds

    def test_a_plain_update_takes_a_field_over(self, room: ROOM) -> None:
        """The next apply conflicts with the manager that patched."""
        name = kubetalk.fresh("patched")
        manifest = {"apiVersion": "v1", "kind": "Pod", **kubetalk.pod(name=name, labels={"a": "1"})}
        room.apply(room.pods(name), manifest, "one")
        room.talk.ask(
            "PATCH", room.pods(name), {"metadata": {"labels": {"a": "2"}}}, media=kubetalk.MERGE, fieldManager="two"
        )
        answer = room.apply(room.pods(name), manifest, "one")
        assert answer.status == 409
        assert 'conflict with "two"' in answer.message

    def test_another_incarnation_is_refused(self, room: ROOM) -> None:
        """422 where it exists, 409 where nothing exists."""
        name = room.pod().body["metadata"]["name"]
        wish = {"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "another"}}
        assert room.apply(room.pods(name), wish, "one").status == 422
        answer = room.apply(room.pods("missing"), wish, "one")
        assert (answer.status, answer.reason) == (409, "Conflict")
        assert "uid mismatch" in answer.message
