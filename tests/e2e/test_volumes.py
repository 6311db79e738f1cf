"""Volumes on real servers: claims that wait for a node, provisioners that give up, and claims for one pod alone.

The test plays the provisioner: it makes a volume for the node that was selected on a claim, or takes the choice away.
"""

import contextlib
import functools
import threading
from collections.abc import Iterator, Mapping

import pytest
import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from slurm_bridge.model.storage import NO_PROVISIONER, SELECTED_NODE
from tests import wait
from tests.e2e import support_daemon, support_families, support_farm, support_servers, support_world
from tests.e2e.support_families import pod, pods
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CLASSES, VOLUMES = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
NODES, SIZE = 4, {"storage": "1Gi"}
HOOKS = [{"name": "kube-scheduler", "options": {"priorities": []}}]
FAILED = "VolumeBindingFailed"
SOLE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Machines of our own in two zones."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=4) as made:
        for node, zone in zip(made.nodes, ("a", "b", "a", "a"), strict=True):
            support_families.label(kube, node, {ZONE: zone})
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """A daemon with the hook, and the shipped rights."""
    assert farm.nodes
    with granted(kube):
        yield open_world("volumes", hooks=HOOKS)


@contextlib.contextmanager
def granted(kube: support_servers.Kubernetes) -> Iterator[None]:
    """What `deploy/rbac.yaml` grants for claims, also on a cluster that was set up by an earlier version."""
    documents = [one for one in yaml.safe_load_all((PROJECT / "deploy" / "rbac.yaml").read_text()) if one]
    (role,) = [one for one in documents if one["kind"] == "ClusterRole"]
    (binding,) = [one for one in documents if one["kind"] == "ClusterRoleBinding"]
    name = support_daemon.fresh_name("e2e-volumes")
    role = {**role, "metadata": {"name": name}}
    binding = {**binding, "metadata": {"name": name}, "roleRef": {**binding["roleRef"], "name": name}}
    try:
        kube.create(f"{RIGHTS}/clusterroles", role)
        kube.create(f"{RIGHTS}/clusterrolebindings", binding)
        yield
    finally:
        kube.delete(f"{RIGHTS}/clusterrolebindings/{name}")
        kube.delete(f"{RIGHTS}/clusterroles/{name}")


class Storage:
    """Classes and claims of one world, and the provisioner of one of the classes; `refuses` are nodes without room."""

    def __init__(self, world: World) -> None:
        self.world, self.kube = world, world.kube
        self.made, self.local = f"{world.namespace}-made", f"{world.namespace}-local"
        self.claims = f"/api/v1/namespaces/{world.namespace}/persistentvolumeclaims"
        self.refuses: set[str] = set()
        self.refused: list[str] = []
        self._volumes: list[str] = []
        self._over = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator["Storage"]:
        """The classes exist, and the provisioner works, for as long as this lasts."""
        provisioner = threading.Thread(target=self._provision, daemon=True)
        try:
            for name, by in ((self.made, "test.example/disk"), (self.local, NO_PROVISIONER)):
                mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": by}
                self.kube.create(CLASSES, {"metadata": {"name": name}, **mode})
            provisioner.start()
            yield self
        finally:
            self._over.set()
            provisioner.join()
            for name in (self.made, self.local):
                self.kube.delete(f"{CLASSES}/{name}")
            for claim in self.kube.items(self.claims):
                self.kube.delete(f"{self.claims}/{claim['metadata']['name']}")
            for name in self._volumes:
                self.kube.delete(f"{VOLUMES}/{name}")

    def claim(self, name: str, of: str, *, mode: str = "ReadWriteOnce") -> Json:
        """A claim, and the spec of pods that use it."""
        spec = {"storageClassName": of, "accessModes": [mode], "resources": {"requests": SIZE}}
        self.kube.create(self.claims, {"metadata": {"name": name}, "spec": spec})
        return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}

    def volume(self, name: str, of: str, *nodes: str, labels: Mapping[str, str] | None = None, **spec: object) -> None:
        """A volume that some nodes reach."""
        row = {"key": HOST, "operator": "In", "values": list(nodes)}
        reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [row]}]}}
        where = {"nodeAffinity": reach, "local": {"path": "/nowhere"}, "capacity": SIZE}
        usual = {"accessModes": ["ReadWriteOnce"], "storageClassName": of, **where}
        usual["persistentVolumeReclaimPolicy"] = "Retain"
        self._volumes.append(name)
        self.kube.create(VOLUMES, {"metadata": {"name": name, "labels": dict(labels or {})}, "spec": {**usual, **spec}})

    def read(self, name: str) -> Json:
        """A claim as it is."""
        return self.kube.get(f"{self.claims}/{name}")

    def bound(self, name: str) -> bool:
        """Whether a claim has its volume."""
        return bool(self.read(name)["status"].get("phase") == "Bound")

    def _provision(self) -> None:
        while not self._over.wait(0.2):
            for claim in self.kube.items(self.claims):
                node = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
                waits = claim["spec"]["storageClassName"] == self.made and not claim["spec"].get("volumeName")
                if node and waits:
                    self._answer(claim, node)

    def _answer(self, claim: Json, node: str) -> None:
        """As external provisioners do: they take the choice away where they cannot make the volume."""
        meta = claim["metadata"]
        if node in self.refuses:
            self.refused.append(node)
            self.kube.merge(f"{self.claims}/{meta['name']}", {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return
        name = f"pv-{meta['uid']}"
        if name not in self._volumes:
            kept = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta["namespace"]}
            kept |= {"name": meta["name"], "uid": meta["uid"]}
            self.volume(name, self.made, node, claimRef=kept, accessModes=claim["spec"]["accessModes"])


@pytest.fixture(scope="module")
def storage(world: World) -> Iterator[Storage]:
    """Of this module."""
    with Storage(world).running() as made:
        yield made


@pytest.mark.real
def test_a_pod_starts_on_the_node_for_which_its_volume_was_made(world: World, farm: Farm, storage: Storage) -> None:
    """The node that Slurm allocated is selected on the claim, and the job stays the same."""
    spec = storage.claim("fresh", storage.made)
    with pods(world, pod(world, farm, "fresh", **spec)):
        bound = world.await_pod("fresh", "a node", support_world.is_bound)
        marks = storage.read("fresh")["metadata"]["annotations"]
        assert storage.bound("fresh")
        assert bound["spec"]["nodeName"] == marks[SELECTED_NODE]
        assert f"/{support_world.job_id(bound)}/" in marks[names.ANNOTATION_SELECTED_BY]
        assert len(world.placeholders(bound["metadata"]["uid"])) == 1


@pytest.mark.real
def test_a_provisioner_that_gives_up_leads_to_another_node(world: World, farm: Farm, storage: Storage) -> None:
    """It takes the choice away; the nodes without room are given back one after the other, each once."""
    storage.refuses = set(farm.nodes[:-1])
    spec = storage.claim("picky", storage.made)
    try:
        with pods(world, pod(world, farm, "picky", **spec)) as (made,):
            bound = world.await_pod("picky", "a node", support_world.is_bound, 60)
            assert bound["spec"]["nodeName"] == farm.nodes[-1]
            assert len(storage.refused) == len(set(storage.refused))
            told = [one["message"] for one in world.events(made["metadata"]["uid"]) if one["reason"] == FAILED]
            assert any("its provisioner gave up node" in one for one in told) or not storage.refused
    finally:
        storage.refuses = set()


@pytest.mark.real
def test_a_volume_that_is_available_is_kept_for_the_claim(world: World, farm: Farm, storage: Storage) -> None:
    """The pod goes where the volume is, and the volume controller binds the two."""
    storage.volume(f"{world.namespace}-disk", storage.local, farm.nodes[2])
    spec = storage.claim("disk", storage.local)
    with pods(world, pod(world, farm, "disk", **spec)):
        bound = world.await_pod("disk", "a node", support_world.is_bound)
        assert bound["spec"]["nodeName"] == farm.nodes[2]
        assert storage.read("disk")["spec"]["volumeName"] == f"{world.namespace}-disk"


@pytest.mark.real
def test_a_claim_for_one_pod_holds_a_second_one(world: World, farm: Farm, storage: Storage) -> None:
    """ReadWriteOncePod: it says why it waits, without a job, and starts when the first pod has gone."""
    spec = storage.claim("alone", storage.made, mode="ReadWriteOncePod")
    with pods(world, pod(world, farm, "first", **spec)):
        world.await_pod("first", "a node", support_world.is_bound)
        (second,) = world.create(pod(world, farm, "second", **spec))
        waiting = world.await_pod("second", "its reason", support_world.waits_for("Unschedulable"))
        assert SOLE in support_families.message(waiting)
        assert world.placeholders(second["metadata"]["uid"]) == []
    world.await_pod("second", "a node", support_world.is_bound)
    world.delete("second")
    world.await_gone("second")


@pytest.mark.real
def test_the_zones_of_a_volume_are_the_nodes_of_its_pods(world: World, farm: Farm, storage: Storage) -> None:
    """Slurm is offered no other node, although the volume itself names more."""
    labels = {ZONE: "b__elsewhere"}
    storage.volume(f"{world.namespace}-zoned", storage.local, *farm.nodes, labels=labels)
    spec = storage.claim("zoned", storage.local)
    storage.kube.merge(f"{storage.claims}/zoned", {"spec": {"volumeName": f"{world.namespace}-zoned"}})
    wait.until(functools.partial(storage.bound, "zoned"), "bound claim")
    with (
        support_families.taken(world.slurm, farm, farm.nodes[1], cpus=4),
        pods(world, pod(world, farm, "zoned", **spec)),
    ):
        made = world.pod("zoned")
        assert made is not None
        job = world.await_placeholder(made["metadata"]["uid"])
        assert support_families.offered(job, farm) <= {farm.nodes[1]}
        assert set(support_servers.expanded(job.text["excluded_nodes"])) >= set(farm.nodes) - {farm.nodes[1]}
