"""What the validating webhook refuses, and what it leaves alone."""

import copy
import dataclasses
from typing import Any

import pytest

from slurm_bridge.admission import gate
from slurm_bridge.admission.review import AdmissionAnswer
from slurm_bridge.model import creator, names
from slurm_bridge.model.features import Feature
from tests import bad_manifests
from tests.bad_manifests import BadManifest, deployment, job, pod
from tests.unit.admission.reviews import (
    ASKED,
    DAEMON,
    JOB_CONTROLLER,
    MANAGED,
    OURS,
    RULES,
    TEAM,
    Asked,
    Json,
    body,
    mutated,
    patched,
    validated,
)

JOB = names.JOB_PREFIX
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
BAD = bad_manifests.manifests(OURS)
SOON = {JOB + "timelimit": "soon"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


def asked(**changes: Any) -> Asked:
    """The usual request with some changes."""
    return dataclasses.replace(ASKED, **changes)


def changed(manifest: Json, **metadata: Any) -> Json:
    """The same with other metadata."""
    return {**copy.deepcopy(manifest), "metadata": {**manifest["metadata"], **metadata}}


@pytest.mark.security("input")
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_t06_a_bad_manifest_is_refused_with_the_words_of_the_scheduler(bad: BadManifest) -> None:
    """With the webhook, a manifest that the bridge cannot schedule is refused when it is applied."""
    answer = validated(bad.manifest)
    assert not answer.allowed
    assert [fragment for fragment in bad.words if fragment not in answer.message] == []


def test_there_are_enough_of_them() -> None:
    """Every key of the table of annotations is among them."""
    assert len(BAD) >= 40


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_the_same_for_another_scheduler_is_allowed(bad: BadManifest) -> None:
    """Objects of others may have any content; a PodGroup tells no scheduler, so its annotations are ours."""
    theirs = {one.name: one for one in bad_manifests.manifests("volcano")}[bad.name]
    assert validated(theirs.manifest).allowed == (bad.name != "podgroup")
    assert validated(theirs.manifest, asked=asked(namespace=MANAGED)).allowed == (bad.name != "podgroup")


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_what_was_bad_before_may_be_updated(bad: BadManifest) -> None:
    """A label, a finalizer or a deletion of an old object with errors is nothing new."""
    for metadata in ({"labels": {**bad.manifest["metadata"].get("labels", {}), "app": "web"}}, {"finalizers": []}):
        assert validated(changed(bad.manifest, **metadata), bad.manifest).allowed


def test_an_update_is_refused_for_what_it_makes_worse() -> None:
    """The message names the new error and not the old one."""
    before = pod("web", OURS, {JOB + "qos": "a b"})
    answer = validated(pod("web", OURS, {JOB + "qos": "a b", **SOON}), before)
    assert not answer.allowed
    assert "timelimit" in answer.message
    assert "qos" not in answer.message


def test_an_object_that_is_being_deleted_may_be_changed() -> None:
    """Its finalizers are removed by controllers that write the object as a whole."""
    before = changed(pod("web", OURS), deletionTimestamp="2026-01-01T00:00:00Z")
    assert validated(changed(before, annotations=SOON), before).allowed


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_deletions_are_allowed(operation: str) -> None:
    """Whatever the object is."""
    given = body(BAD[0].manifest, operation=operation)
    assert gate.answer(given, gate.Webhook.VALIDATE, RULES)[1].allowed


def test_a_kind_that_is_not_known_is_judged_by_its_annotations_and_template() -> None:
    """An administrator may add further kinds to the webhook; nothing is known of their fields."""
    made = deployment("web", OURS, {"annotations": SOON})
    other = {**made, "apiVersion": "example.com/v1", "kind": "Trainer"}
    assert 'Pod team/web-xxxxx: annotation slurmjob.slinky.slurm.net/timelimit="soon"' in validated(other).message
    wrong = {"apiVersion": "example.com/v1", "kind": "Trainer", "metadata": {"name": "web", "annotations": SOON}}
    assert "Trainer team/web: annotation" in validated({**wrong, "spec": {"template": "a text"}}).message
    assert validated({**other, "spec": {"template": {"spec": {"schedulerName": "volcano"}}}}).allowed


def test_good_manifests_are_allowed() -> None:
    """Of each kind."""
    fine = {JOB + "timelimit": "5", JOB + "partition": "debug"}
    gang = {JOB + "min-nodes": "2", JOB + "max-nodes": "2"}
    for manifest in (
        pod("web", OURS, fine),
        job("web", OURS, gang, of_pods={"annotations": fine}),
        deployment("web", OURS, {"annotations": fine}),
    ):
        answer = validated(manifest)
        assert (answer.allowed, answer.message) == (True, "")


def test_pods_of_a_job_that_is_no_gang_cannot_span_nodes() -> None:
    """The annotation belongs on the Job: on its template it asks each pod to span nodes."""
    wrong = job("web", OURS, of_pods={"annotations": {JOB + "min-nodes": "2"}})
    answer = validated(wrong)
    assert "one pod cannot span nodes" in answer.message
    more = job("web", OURS, {JOB + "min-nodes": "3"})
    assert "every node takes at least one of the 2 pods" in validated(more).message


def test_the_message_names_the_hook_unless_the_field_is_ignored() -> None:
    """`unhonoured: ignore` lets the pod through with a warning; a hook that honours it, without one."""
    manifest = pod("web", OURS, topologySpreadConstraints=[SPREAD])
    assert "needs hook kube-scheduler (predicate EvenPodsSpread)" in validated(manifest).message
    ignoring = validated(manifest, asked=asked(rules=dataclasses.replace(RULES, strict=False)))
    assert ignoring.allowed
    assert "is ignored (unhonoured: ignore)" in ignoring.warnings[0]
    honouring = dataclasses.replace(RULES, honoured=frozenset({Feature.TOPOLOGY_SPREAD}))
    answer = validated(manifest, asked=asked(rules=honouring))
    assert (answer.allowed, answer.warnings) == (True, ())


def test_claims_of_devices_are_never_ignored() -> None:
    """No kubelet starts such a pod."""
    manifest = pod("web", OURS, resourceClaims=[{"name": "gpu"}])
    assert not validated(manifest, asked=asked(rules=dataclasses.replace(RULES, strict=False))).allowed


class TestMarks:
    """Labels and annotations that only the bridge writes."""

    @pytest.mark.security("rights")
    @pytest.mark.parametrize("key", [names.ANNOTATION_SLURM_NODE, names.ANNOTATION_PARKED, names.ANNOTATION_COUNTED])
    def test_t61_users_write_none(self, key: str) -> None:
        """With the webhook no user writes a mark of the bridge on a pod, neither new nor later."""
        plain, marked = pod("web", OURS), pod("web", OURS, {key: "x"})
        assert "only slurm-bridge may write it" in validated(marked).message
        for sub in ("", "status"):
            assert "only slurm-bridge may write it" in validated(marked, plain, asked(sub_resource=sub)).message
        for trusted in ("", "status"):
            assert validated(marked, plain, asked(user=DAEMON, sub_resource=trusted)).allowed

    def test_marks_that_name_the_job_stay_and_notes_may_go(self) -> None:
        """A user may remove the note that a pod is parked, and not the job's node."""
        fixed, note = (
            pod("web", OURS, {names.ANNOTATION_SLURM_NODE: "n"}),
            pod("web", OURS, {names.ANNOTATION_PARKED: "x"}),
        )
        plain = pod("web", OURS)
        assert "only slurm-bridge may remove it" in validated(plain, fixed).message
        assert validated(plain, note).allowed
        assert validated(changed(fixed, labels={"app": "x"}), fixed).allowed

    def test_a_pod_of_another_bridge_carries_its_own(self) -> None:
        """Another bridge writes the same keys on pods of its scheduler."""
        assert validated(pod("web", "other", {names.ANNOTATION_SLURM_NODE: "n"})).allowed


class TestResize:
    """Other amounts for a pod that exists."""

    @pytest.fixture
    def larger(self) -> Json:
        """The usual pod with two cpus."""
        container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "2", "memory": "64Mi"}}}
        return pod("web", OURS, containers=[container])

    def test_t61_a_resize_is_refused(self, larger: Json) -> None:
        """Slurm counts what the pod asked for when it started."""
        answer = validated(larger, pod("web", OURS), asked(sub_resource="resize"))
        assert "resources cannot be changed while it exists" in answer.message

    def test_a_resize_to_the_same_is_allowed(self, larger: Json) -> None:
        """Nothing changes."""
        assert validated(changed(larger, labels={"a": "b"}), larger, asked(sub_resource="resize")).allowed

    def test_pods_of_others_are_resized(self, larger: Json) -> None:
        """Also in a managed namespace."""
        theirs = {**larger, "spec": {**larger["spec"], "schedulerName": "default-scheduler"}}
        request = asked(sub_resource="resize", namespace=MANAGED)
        assert validated(theirs, pod("web", "default-scheduler"), request).allowed


class TestCreator:
    """The record of the user that created an object."""

    ALICE = creator.write("alice", ("physics",))

    @pytest.mark.security("rights")
    def test_no_user_names_another_one(self) -> None:
        """With the webhook no user records another user as the creator of a workload, on no path."""
        forged = {names.ANNOTATION_CREATED_BY: creator.write("bob", ())}
        own = {names.ANNOTATION_CREATED_BY: self.ALICE}
        for make in (lambda notes: pod("web", OURS, notes), lambda notes: job("web", OURS, notes)):
            assert "only the admission webhook" in validated(make(forged)).message
            assert validated(make(own)).allowed
            for sub in ("", "status"):
                assert (
                    "only the admission webhook" in validated(make(forged), make(own), asked(sub_resource=sub)).message
                )
            assert "only the admission webhook" in validated(make({}), make(own)).message
            assert validated(make(forged), asked=asked(user=DAEMON)).allowed

    def test_templates_carry_none(self) -> None:
        """A controller would copy it to what it makes."""
        forged = {"annotations": {names.ANNOTATION_CREATED_BY: self.ALICE}}
        manifest = job("web", OURS, of_pods=forged)
        assert "only the admission webhook" in validated(manifest).message
        cron = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "web"},
            "spec": {"jobTemplate": {"metadata": forged, "spec": job("x", OURS)["spec"]}},
        }
        assert "only the admission webhook" in validated(cron).message

    def test_pods_of_controllers_carry_none(self) -> None:
        """They belong to the creator of their owner; a ReplicaSet may have a copy of what its Deployment has."""
        forged = pod("web", OURS, {names.ANNOTATION_CREATED_BY: self.ALICE})
        assert not validated(forged, asked=asked(user=JOB_CONTROLLER)).allowed
        copied = {**deployment("web", OURS, {}), "kind": "ReplicaSet"}
        copied["metadata"]["annotations"] = {names.ANNOTATION_CREATED_BY: self.ALICE}
        assert validated(copied, asked=asked(user=JOB_CONTROLLER)).allowed

    @pytest.mark.parametrize("user", ["alice", JOB_CONTROLLER, DAEMON])
    @pytest.mark.parametrize("forged", [True, False])
    def test_what_the_webhook_made_of_an_object_is_allowed(self, user: str, *, forged: bool) -> None:
        """The two webhooks agree."""
        notes = {names.ANNOTATION_CREATED_BY: creator.write("bob", ())} if forged else {}
        for manifest in (pod("web", OURS, notes), job("web", OURS, notes)):
            made = mutated(manifest, asked=asked(user=user))
            assert validated(made, asked=asked(user=user)).allowed
            later = mutated(changed(made, annotations={}), made, asked(user="bob"))
            assert validated(later, made, asked(user="bob")).allowed


class TestForgedCreator:
    """Records and owners on objects that become the bridge's, or that own what is the bridge's."""

    OWN = {names.ANNOTATION_CREATED_BY: creator.write("alice", ("physics",))}  # noqa: RUF012
    BOB = {names.ANNOTATION_CREATED_BY: creator.write("bob", ())}  # noqa: RUF012
    DEFAULT = "default-scheduler"

    @pytest.mark.security("rights")
    @pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
    def test_no_object_of_others_carries_a_forged_record(self, kind: str) -> None:
        """With the webhook no user records another user on an object of another scheduler, neither new nor later."""
        plain, forged, own = (self.made(self.DEFAULT, notes, kind) for notes in ({}, self.BOB, self.OWN))
        assert "only the admission webhook" in validated(forged).message
        for sub in ("", "status"):
            assert "only the admission webhook" in validated(forged, plain, asked(sub_resource=sub)).message
        leaving = changed(plain, deletionTimestamp="2026-01-01T00:00:00Z")
        assert "only the admission webhook" in validated(changed(leaving, annotations=self.BOB), leaving).message
        assert validated(own).allowed
        assert validated(own, plain).allowed
        assert validated(changed(forged, labels={"a": "b"}), forged).allowed
        assert validated(forged, asked=asked(user=DAEMON)).allowed

    def test_templates_of_others_give_no_record_to_jobs(self) -> None:
        """Their controllers copy it, and a pod of the bridge could name such a Job as its owner."""
        made = job("web", self.DEFAULT, self.BOB)
        assert not validated(made, asked=asked(user=JOB_CONTROLLER)).allowed

    @pytest.mark.security("rights")
    def test_an_object_that_becomes_the_bridges_belongs_to_no_other_user(self) -> None:
        """With the webhook no user gives the bridge an object with the record of another user."""
        for namespace, scheduler in ((TEAM, self.DEFAULT), (MANAGED, "volcano")):
            before = self.made(scheduler, self.BOB)
            answer = validated(self.made(OURS, self.BOB), before, asked(namespace=namespace))
            assert "names another user than the one that gives this object to slurm-bridge" in answer.message
            assert validated(self.made(OURS, self.OWN), before, asked(namespace=namespace)).allowed
            assert validated(self.made(OURS, {}), before, asked(namespace=namespace)).allowed
            assert validated(mutated(self.made(OURS, self.BOB), before), before).allowed

    @pytest.mark.security("rights")
    def test_no_user_changes_the_controller_of_a_pod_without_a_record(self) -> None:
        """With the webhook no user gives a pod of a controller to the creator of another object."""
        before, after = self.owned("mine"), self.owned("theirs")
        assert "only controllers may change the controller" in validated(after, before).message
        assert "only controllers may change the controller" in validated(pod("web", OURS), before).message
        assert "only controllers may change the controller" in validated(before, pod("web", OURS)).message
        for user in (JOB_CONTROLLER, COLLECTOR, DAEMON):
            assert validated(after, before, asked(user=user)).allowed
        assert validated(changed(before, labels={"a": "b"}), before).allowed
        assert validated({**after, "spec": pod("web", "volcano")["spec"]}, pod("web", "volcano")).allowed

    @pytest.mark.security("rights")
    def test_an_object_that_leaves_the_bridge_keeps_its_owner(self) -> None:
        """With the webhook no user gives the owner of pods to another user while it names another scheduler."""
        owner = self.owned("mine")["metadata"]["ownerReferences"]
        for notes in ({}, self.OWN):
            before = changed(self.made(OURS, notes, "StatefulSet"), ownerReferences=owner)
            after = changed(self.made("volcano", {}, "StatefulSet"), ownerReferences=owner)
            assert not validated(after, before).allowed
            assert validated(after, before, asked(user=JOB_CONTROLLER)).allowed
        left = self.made("volcano", self.OWN)
        assert validated(left, self.made(OURS, self.OWN)).allowed
        assert "only the admission webhook" in validated(self.made("volcano", {}), left).message
        assert validated(self.made("volcano", {}), self.made(OURS, {})).allowed

    def test_objects_that_group_pods_may_have_controllers(self) -> None:
        """They have no record, and own no pods."""
        owner = self.owned("mine")["metadata"]["ownerReferences"]
        metadata = {"name": "web", "annotations": {JOB + "timelimit": "5"}, "ownerReferences": owner}
        group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata, "spec": {}}
        assert validated(group).allowed
        assert validated(changed(group, annotations={}), group).allowed

    @pytest.mark.security("rights")
    def test_what_names_a_controller_has_a_record(self) -> None:
        """With the webhook no user creates an object without a record below an object of another user."""
        below = self.owned("theirs")
        assert "has recorded no user" in validated(below).message
        assert "has recorded no user" in validated(below, pod("web", "volcano")).message
        assert validated(mutated(below)).allowed
        assert (
            "has recorded no user"
            in validated(mutated(below, asked=asked(user="a\nb")), asked=asked(user="a\nb")).message
        )
        assert validated(below, asked=asked(user=JOB_CONTROLLER)).allowed
        assert validated(pod("web", OURS)).allowed

    @staticmethod
    def made(scheduler: str, notes: Json, kind: str = "Deployment") -> Json:
        """An object with a template, and with these annotations."""
        return {**deployment("web", scheduler, {}), "kind": kind, "metadata": {"name": "web", "annotations": notes}}

    @staticmethod
    def owned(name: str) -> Json:
        """A pod of the bridge that a Job controls."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"u-{name}", "controller": True}
        return changed(pod("web", OURS), ownerReferences=[owner])


@pytest.mark.security("rights")
def test_controllers_are_accounts_and_not_namespaces() -> None:
    """An account beside a controller is no controller."""
    for user, controls in (
        (JOB_CONTROLLER, True),
        (COLLECTOR, True),
        ("system:serviceaccount:jobset-system:jobset-controller-manager", True),
        ("system:serviceaccount:lws-system:lws-controller-manager", True),
        ("system:serviceaccount:jobset-system:default", False),
        ("system:serviceaccount:lws-system:default", False),
        ("system:serviceaccount:kube-system:default", False),
    ):
        assert RULES.controls(user) is controls


def test_a_deployment_of_pods_for_every_node_is_left_alone() -> None:
    """Pods of a DaemonSet in a managed namespace keep their scheduler, so its template is not judged."""
    wrong = {**deployment("web", "", {"annotations": SOON}), "kind": "DaemonSet"}
    assert validated(wrong, asked=asked(namespace=MANAGED)).allowed
    assert not validated({**wrong, "kind": "Deployment"}, asked=asked(namespace=MANAGED)).allowed
    assert validated({**wrong, "kind": "Deployment"}).allowed


def test_patched_is_what_the_api_server_does() -> None:
    """The builder of these tests leaves its argument as it is."""
    given = {"a": {"b/c": 1}, "l": [1]}
    patch = ({"op": "remove", "path": "/a/b~1c"}, {"op": "add", "path": "/l/-", "value": 2})
    assert patched(given, AdmissionAnswer(uid="u", patch=patch)) == {"a": {}, "l": [1, 2]}
    assert given == {"a": {"b/c": 1}, "l": [1]}
