"""deploy/admission on the real API server: what the daemon's account may touch, and what users may not write.

The policies are those of the files, under other names and for one namespace of users:
other modules run beside this one.
"""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from slurm_bridge.model.devices import FINALIZER
from slurm_bridge.model.storage import BOUND_BY_CONTROLLER, NO_PROVISIONER, SELECTED_NODE, WAIT_FOR_FIRST_CONSUMER
from tests import wait
from tests.e2e import support_families, support_servers

POLICIES = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
DEVICES = {"devices": {"requests": [{"name": "gpus", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
NO_DEVICES = {"allocation": None, "reservedFor": None}
FILES = ("account", "claims", "marks", "volumes")
ACCOUNT = "system:serviceaccount:slurm-bridge-system:slurm-bridge"
SYSTEM = "kube-system"
CLASSES, VOLUMES = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
#: The daemon's account has this right only where a component for evictions is applied.
EVICTIONS = PROJECT / "deploy" / "preemption" / "rbac.yaml"

SIZE = {"storage": "1Gi"}
ELSEWHERE = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}

Json = dict[str, Any]
Pods = Callable[..., str]


@pytest.fixture(scope="module")
def bridge(kube: support_servers.Kubernetes) -> Iterator[support_servers.Kubernetes]:
    """The API server as the daemon's account asks it."""
    acting = kube.acting_for(ACCOUNT)
    yield acting
    acting.close()


@pytest.fixture(scope="module")
def namespace(kube: support_servers.Kubernetes, bridge: support_servers.Kubernetes) -> Iterator[str]:
    """Of this module alone, with the policies in force."""
    name = f"admission-{secrets.token_hex(3)}"
    kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    kube.apply(PROJECT / "deploy" / "rbac.yaml", EVICTIONS)
    made = [_applied(kube, one, name) for file in FILES for one in _documents(file)]
    kube.create(
        CLASSES,
        {"metadata": {"name": name}, "provisioner": NO_PROVISIONER, "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER},
    )
    made.append(f"{CLASSES}/{name}")
    wait.until(lambda: _in_force(kube, bridge, name), "the policies in force")
    yield name
    for path in made:
        kube.delete(path)
    kube.delete(f"/api/v1/namespaces/{name}")


def _documents(file: str) -> list[Json]:
    text = (PROJECT / "deploy" / "admission" / f"{file}.yaml").read_text()
    return [one for one in yaml.safe_load_all(text) if one]


def _applied(kube: support_servers.Kubernetes, manifest: Json, namespace: str) -> str:
    """The path of the copy."""
    manifest["metadata"]["name"] += f"-{namespace}"
    if "policyName" in manifest["spec"]:
        manifest["spec"]["policyName"] += f"-{namespace}"
        values = [namespace, SYSTEM] if "account" in manifest["metadata"]["name"] else [namespace]
        chosen = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": values}
        manifest["spec"]["matchResources"] = {"namespaceSelector": {"matchExpressions": [chosen]}}
        if "volumes" in manifest["metadata"]["name"]:
            # Volumes are in no namespace.
            manifest["spec"]["matchResources"] = {"objectSelector": {"matchLabels": {"of": namespace}}}
    path = f"{POLICIES}/{PLURALS[manifest['kind']]}"
    kube.create(path, manifest)
    return f"{path}/{manifest['metadata']['name']}"


def _in_force(kube: support_servers.Kubernetes, bridge: support_servers.Kubernetes, namespace: str) -> bool:
    """The API server takes a moment to learn of its policies."""
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    marked = _pod("probe", names.SCHEDULER_NAME, annotations={names.ANNOTATION_PARKED: "{}"})
    return _refused(lambda: kube.create(path, marked)) and _refused(
        lambda: bridge.create(f"/api/v1/namespaces/{SYSTEM}/pods/probe/binding", binding("probe", **MARKS))
    )


def _refused(call: Callable[[], object]) -> bool:
    """By a policy; the pod of the binding is not there."""
    try:
        call()
    except support_servers.Refused as refusal:
        return "ValidatingAdmissionPolicy" in str(refusal)
    return False


def _pod(name: str, scheduler: str, spec: Json | None = None, **head: Any) -> Json:
    containers = [{"name": "main", "image": "none"}]
    return {
        "metadata": {"name": name, **head},
        "spec": {"schedulerName": scheduler, "containers": containers, **(spec or {})},
    }


@pytest.fixture
def pods(kube: support_servers.Kubernetes, namespace: str) -> Pods:
    """Creates a pod as a user does; its path."""

    def create(scheduler: str = names.SCHEDULER_NAME, spec: Json | None = None, **head: Any) -> str:
        path, name = f"/api/v1/namespaces/{namespace}/pods", f"p-{secrets.token_hex(4)}"
        kube.create(path, _pod(name, scheduler, spec, **head))
        return f"{path}/{name}"

    return create


def binding(path: str, **head: Any) -> Json:
    """Of the pod with this path."""
    name = path.rpartition("/")[2]
    target = {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **head}, "target": target}


NOTES = {names.ANNOTATION_SLURM_NODE: "n", names.ANNOTATION_COUNTED: "cpu=1000m,memory=1"}
MARKS = {"labels": {names.LABEL_JOB_ID: "7"}, "annotations": NOTES}


@pytest.mark.real
def test_the_account_does_its_work(bridge: support_servers.Kubernetes, pods: Pods) -> None:
    """It remembers things on pods of its scheduler and takes them back, says why they wait, binds and deletes them."""
    path = pods()
    condition = {"type": "PodScheduled", "status": "False", "reason": "SlurmJobPending"}
    note = {"metadata": {"annotations": {names.ANNOTATION_PARKED: "{}"}}, "status": {"conditions": [condition]}}
    assert bridge.merge(f"{path}/status", note)["metadata"]["annotations"] == {names.ANNOTATION_PARKED: "{}"}
    gone = bridge.merge(f"{path}/status", {"metadata": {"annotations": {names.ANNOTATION_PARKED: None}}})
    assert "annotations" not in gone["metadata"]
    bridge.create(f"{path}/binding", binding(path, **MARKS))
    bound = bridge.get(path)
    assert (bound["spec"]["nodeName"], bound["metadata"]["labels"]) == ("nowhere", MARKS["labels"])
    bridge.delete(f"{path}?gracePeriodSeconds=0")


@pytest.mark.real
@pytest.mark.security("rights")
def test_a_pod_of_another_scheduler_is_out_of_reach(bridge: support_servers.Kubernetes, pods: Pods) -> None:
    """With deploy/admission the daemon's account cannot delete or write on a pod of another scheduler."""
    path = pods("other")
    with pytest.raises(support_servers.Refused, match=r"may only touch pods of slurm-bridge-scheduler: .* is other"):
        bridge.delete(path)
    with pytest.raises(support_servers.Refused, match="may only touch pods of"):
        bridge.merge(f"{path}/status", {"metadata": {"annotations": {names.ANNOTATION_PARKED: "{}"}}})
    with pytest.raises(support_servers.Refused, match='cannot patch resource "pods"'):
        bridge.merge(path, {"spec": {"containers": [{"name": "main", "image": "theirs"}]}})


@pytest.mark.real
@pytest.mark.parametrize(
    "head",
    [
        {"labels": {"app": "db"}},
        {"annotations": {"example.com/theirs": "x"}},
        {"annotations": {names.JOB_PREFIX + "account": "x"}},
    ],
)
def test_the_account_writes_only_what_is_the_bridges(
    bridge: support_servers.Kubernetes, pods: Pods, head: Json
) -> None:
    """Labels select pods for services and budgets, and annotations of others are instructions."""
    path = pods()
    with pytest.raises(support_servers.Refused, match="may only write its own annotations"):
        bridge.merge(f"{path}/status", {"metadata": head})
    with pytest.raises(support_servers.Refused, match="write no other marks than"):
        bridge.create(f"{path}/binding", binding(path, **head))


@pytest.mark.real
@pytest.mark.security("rights")
def test_the_namespaces_of_the_cluster_are_closed(bridge: support_servers.Kubernetes, namespace: str) -> None:
    """With deploy/admission the daemon's account binds and evicts no pod in kube-system."""
    assert namespace, "the policies are in force"
    path = f"/api/v1/namespaces/{SYSTEM}/pods/any"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "any"}}
    with pytest.raises(support_servers.Refused, match=f"may not bind or evict pods in namespace {SYSTEM}"):
        bridge.create(f"{path}/binding", binding(path, **MARKS))
    with pytest.raises(support_servers.Refused, match=f"may not bind or evict pods in namespace {SYSTEM}"):
        bridge.create(f"{path}/eviction", eviction)


@pytest.mark.real
@pytest.mark.security("rights")
@pytest.mark.parametrize(
    "head",
    [
        {"labels": {names.LABEL_JOB_ID: "7"}},
        {"annotations": {names.ANNOTATION_SLURM_NODE: "n"}},
        {"annotations": {names.ANNOTATION_COUNTED: "cpu=1m,memory=1"}},
        {"annotations": {names.ANNOTATION_PARKED: "{}"}},
        {"annotations": {names.ANNOTATION_ROOM: "[]"}},
        {"annotations": {names.ANNOTATION_MAKES_ROOM: "x"}},
    ],
)
def test_users_cannot_write_the_bridges_marks(kube: support_servers.Kubernetes, pods: Pods, head: Json) -> None:
    """With deploy/admission no user writes a job id, a Slurm node or a note of the daemon on a pod."""
    with pytest.raises(support_servers.Refused, match="only slurm-bridge may write"):
        pods(**head)
    path = pods()
    for door in (path, f"{path}/status"):
        with pytest.raises(support_servers.Refused, match="only slurm-bridge may write"):
            kube.merge(door, {"metadata": head})
    with pytest.raises(support_servers.Refused, match="only slurm-bridge may write"):
        kube.create(f"{path}/binding", binding(path, **head))


@pytest.mark.real
def test_users_still_write_what_is_theirs(
    kube: support_servers.Kubernetes, bridge: support_servers.Kubernetes, pods: Pods
) -> None:
    """Also on a pod that carries marks: those may stay, a note may be removed, and the job id may not."""
    path = pods(annotations={names.JOB_PREFIX + "timelimit": "5"}, labels={"app": "web"})
    bridge.merge(f"{path}/status", {"metadata": {"annotations": {names.ANNOTATION_PARKED: "{}"}}})
    kube.merge(path, {"metadata": {"annotations": {names.ANNOTATION_RETRY: "1"}}})
    kube.merge(path, {"metadata": {"annotations": {names.ANNOTATION_PARKED: None}}})
    bridge.create(f"{path}/binding", binding(path, **MARKS))
    kube.merge(path, {"metadata": {"labels": {"app": "shop"}}})
    with pytest.raises(support_servers.Refused, match=f"only slurm-bridge may remove {names.LABEL_JOB_ID}"):
        kube.merge(path, {"metadata": {"labels": {names.LABEL_JOB_ID: None}}})
    kube.merge(f"{path}/status", {"status": {"phase": "Running"}})
    kube.delete(f"{path}?gracePeriodSeconds=0")


@pytest.mark.real
@pytest.mark.security("rights")
def test_users_choose_no_node_beside_our_scheduler(kube: support_servers.Kubernetes, pods: Pods) -> None:
    """With deploy/admission a user cannot set the node of a pod of our scheduler."""
    with pytest.raises(support_servers.Refused, match=r"spec\.nodeName cannot be set beside schedulerName"):
        pods(spec={"nodeName": "nowhere"})
    path = pods("other", spec={"nodeName": "nowhere"})
    kube.delete(f"{path}?gracePeriodSeconds=0")


@pytest.mark.real
def test_owner_references_without_end_are_refused(pods: Pods) -> None:
    """Sixteen are more than any controller writes."""
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{one}", "uid": f"u{one}"} for one in range(17)]
    with pytest.raises(support_servers.Refused, match="at most 16 owner references"):
        pods(ownerReferences=owners)
    pods(ownerReferences=owners[:16])


class TestVolumes:
    """What binds a claim, and nothing else; claims wait for a class without a provisioner."""

    @pytest.fixture
    def claim(self, kube: support_servers.Kubernetes, namespace: str) -> Iterator[str]:
        """The path of a claim."""
        path, name = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", f"c-{secrets.token_hex(4)}"
        spec = {"storageClassName": namespace, "accessModes": ["ReadWriteOnce"], "resources": {"requests": SIZE}}
        kube.create(path, {"metadata": {"name": name, "labels": {"of": namespace}}, "spec": spec})
        yield f"{path}/{name}"
        kube.delete(f"{path}/{name}")

    @pytest.fixture
    def volume(self, kube: support_servers.Kubernetes, namespace: str) -> Iterator[str]:
        """The path of a volume."""
        name = f"v-{secrets.token_hex(4)}"
        spec = {"storageClassName": namespace, "accessModes": ["ReadWriteOnce"], "capacity": SIZE}
        spec |= {"hostPath": {"path": "/nowhere"}, "persistentVolumeReclaimPolicy": "Retain"}
        kube.create(VOLUMES, {"metadata": {"name": name, "labels": {"of": namespace}}, "spec": spec})
        yield f"{VOLUMES}/{name}"
        kube.delete(f"{VOLUMES}/{name}")

    @pytest.mark.real
    def test_the_account_binds_claims(self, bridge: support_servers.Kubernetes, claim: str, volume: str) -> None:
        """It selects a node and takes it back, and keeps a volume that is kept for no claim."""
        marks = {SELECTED_NODE: "n", names.ANNOTATION_SELECTED_BY: "here/7/n"}
        bridge.merge(claim, {"metadata": {"annotations": marks}})
        bridge.merge(claim, {"metadata": {"annotations": dict.fromkeys(marks)}})
        bridge.merge(volume, kept("team", "data", "uid-1"))

    @pytest.mark.real
    @pytest.mark.security("rights")
    def test_no_volume_changes_hands(self, bridge: support_servers.Kubernetes, volume: str) -> None:
        """With deploy/admission the daemon's account cannot give the volume of a claim to another one."""
        bridge.merge(volume, kept("team", "data", "uid-1"))
        for changes in (kept("team", "other", "uid-1"), kept("team", "data", "uid-2"), {"spec": {"claimRef": None}}):
            with pytest.raises(support_servers.Refused, match="may not take a PersistentVolume from the claim"):
                bridge.merge(volume, changes)
        with pytest.raises(support_servers.Refused, match=r"may only change spec\.claimRef"):
            bridge.merge(volume, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})

    @pytest.mark.real
    @pytest.mark.security("rights")
    def test_no_claim_or_volume_gets_an_owner_that_takes_it_along(
        self, bridge: support_servers.Kubernetes, claim: str, volume: str
    ) -> None:
        """With deploy/admission the daemon's account cannot change owners or finalizers of a claim or a volume."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}
        heads: list[Json] = [{"ownerReferences": [owner]}, {"finalizers": ["example.com/held"]}, {"finalizers": None}]
        for path in (claim, volume):
            for head in heads:
                with pytest.raises(support_servers.Refused, match="may not change owners or finalizers of a claim"):
                    bridge.merge(path, {"metadata": head})

    @pytest.mark.real
    @pytest.mark.security("rights")
    @pytest.mark.parametrize(
        "changes",
        [
            {"mountOptions": ["exec"]},
            {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [ELSEWHERE]}]}}},
        ],
    )
    def test_a_volume_stays_where_and_what_it_is(
        self, bridge: support_servers.Kubernetes, volume: str, changes: Json
    ) -> None:
        """With deploy/admission the daemon's account cannot change how a volume is mounted, or where."""
        with pytest.raises(support_servers.Refused, match=r"may only change spec\.claimRef"):
            bridge.merge(volume, {"spec": changes})

    @pytest.mark.real
    def test_the_rest_of_a_claim_is_its_users(self, bridge: support_servers.Kubernetes, claim: str) -> None:
        """Labels, annotations of others, and what it asks for."""
        for head in ({"labels": {"app": "db"}}, {"annotations": {"example.com/theirs": "x"}}):
            with pytest.raises(support_servers.Refused, match="may only write its own annotations on a claim"):
                bridge.merge(claim, {"metadata": head})
        with pytest.raises(support_servers.Refused, match="may not change spec of a PersistentVolumeClaim"):
            bridge.merge(claim, {"spec": {"volumeName": "any"}})


class TestClaims:
    """Devices for a claim that has none; and what is another's stays as it is."""

    @pytest.fixture
    def claim(self, kube: support_servers.Kubernetes, namespace: str) -> Iterator[str]:
        """The path of a claim, while the account has the rights of the component."""
        path, name = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims", f"c-{secrets.token_hex(4)}"
        with support_families.granted(kube, "device-claims"):
            kube.create(path, {"metadata": {"name": name}, "spec": DEVICES})
            yield f"{path}/{name}"
            kube.merge(f"{path}/{name}/status", {"status": NO_DEVICES})
            kube.merge(f"{path}/{name}", {"metadata": {"finalizers": None}})
            kube.delete(f"{path}/{name}")

    @pytest.mark.real
    def test_the_account_gives_devices_to_a_claim(self, bridge: support_servers.Kubernetes, claim: str) -> None:
        """The finalizer first; and it takes them back."""
        bridge.merge(claim, {"metadata": {"finalizers": [FINALIZER]}})
        bridge.merge(f"{claim}/status", {"status": devices("gpu-0")})
        bridge.merge(f"{claim}/status", {"status": NO_DEVICES})

    @pytest.mark.real
    @pytest.mark.security("rights")
    def test_no_devices_are_exchanged(self, bridge: support_servers.Kubernetes, claim: str) -> None:
        """The daemon's account cannot give a claim other devices than it has: the API server itself refuses it."""
        bridge.merge(claim, {"metadata": {"finalizers": [FINALIZER]}})
        bridge.merge(f"{claim}/status", {"status": devices("gpu-0")})
        with pytest.raises(support_servers.Refused, match=r"status\.allocation: Invalid value"):
            bridge.merge(f"{claim}/status", {"status": devices("gpu-1")})

    @pytest.mark.real
    @pytest.mark.security("rights")
    def test_the_account_makes_and_deletes_no_claims_of_users(
        self, bridge: support_servers.Kubernetes, claim: str
    ) -> None:
        """With deploy/admission the daemon's account makes and deletes claims for extended resources only."""
        path = claim.rpartition("/")[0]
        for call in (
            lambda: bridge.create(path, {"metadata": {"name": "x"}, "spec": DEVICES}),
            lambda: bridge.delete(claim),
        ):
            with pytest.raises(support_servers.Refused):
                call()

    @pytest.mark.real
    @pytest.mark.security("rights")
    def test_the_rest_of_a_claim_of_devices_is_its_users(self, bridge: support_servers.Kubernetes, claim: str) -> None:
        """With deploy/admission the daemon's account can neither mark nor delete a claim, nor give it an owner."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}
        for head in ({"labels": {"app": "db"}}, {"annotations": {"a": "b"}}, {"ownerReferences": [owner]}):
            with pytest.raises(support_servers.Refused, match="may not change labels, annotations or owners"):
                bridge.merge(claim, {"metadata": head})
        with pytest.raises(support_servers.Refused, match="may only add the finalizer"):
            bridge.merge(claim, {"metadata": {"finalizers": ["example.com/held"]}})
        assert not _refused(lambda: bridge.merge(claim, {"metadata": {"finalizers": [FINALIZER]}}))


def devices(name: str) -> Json:
    """A claim has this one, for no pod yet: from pods that do not exist Kubernetes takes devices back at once."""
    given = [{"request": "gpus", "driver": "gpu.example.com", "pool": "n", "device": name}]
    return {"allocation": {"devices": {"results": given}}}


def kept(namespace: str, name: str, uid: str) -> Json:
    """A volume is for this claim."""
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": name, "uid": uid}
    return {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}, "spec": {"claimRef": claim}}
