"""Controllers of LeaderWorkerSets for the pocket Kubernetes: they make, end and remake pods as the real ones do.

StatefulSets       names with numbers, all at once; what failed or finished is deleted and made again
LeaderWorkerSets   a StatefulSet of leaders, and one of workers owned by each leader; a member that is lost takes its
                   leader with it (RecreateGroupOnPodRestart), and with the leader go its workers, before it itself

Labels are those of LeaderWorkerSet 0.8.
"""

import collections
import copy
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.model import kinds
from slurm_bridge.sim.kube import resources
from slurm_bridge.sim.kube.followers import Tail
from slurm_bridge.sim.kube.objects import Deletion, Objects, ObjectTarget
from slurm_bridge.sim.kube.resources import Resource
from slurm_bridge.sim.kube.store import Manifest, StoredObject

PODS = resources.PODS
STATEFULSETS, LEADERWORKERSETS = resources.of(kinds.STATEFULSETS), resources.of(kinds.LEADERWORKERSETS)

LWS = "leaderworkerset.sigs.k8s.io/"
OVER = ("Succeeded", "Failed")


class Follower:
    """Looks at every object of one resource whenever anything changes that concerns it."""

    def __init__(self, objects: Objects, resource: Resource, *others: Resource) -> None:
        self._objects = objects
        self._resource = resource
        self._tails = [Tail(objects.store, each) for each in (resource, *others)]

    def next_due(self) -> float | None:
        return None

    def settle(self) -> bool:
        news = [tail.news() for tail in self._tails]
        if not any(news):
            return False
        before = self._objects.store.version
        for stored in sorted(self._objects.store.all(self._resource), key=lambda one: one.key):
            manifest = stored.manifest()
            if not leaving(manifest):
                self.reconcile(manifest)
        return self._objects.store.version != before

    def reconcile(self, manifest: Manifest) -> None:
        """Make the world what this object says."""
        raise NotImplementedError

    def find(self, resource: Resource, namespace: str, name: str) -> Manifest | None:
        stored = self._objects.store.get(resource, namespace, name)
        return stored.manifest() if stored else None

    def owned(self, resource: Resource, owner: Manifest) -> list[Manifest]:
        uid = owner["metadata"]["uid"]
        everything: Iterable[StoredObject] = self._objects.store.all(resource, owner["metadata"]["namespace"])
        marked = sorted((one for one in everything if uid.encode() in one.body), key=lambda one: one.name)
        found = []
        for manifest in (stored.manifest() for stored in marked):
            owners = manifest["metadata"].get("ownerReferences") or ()
            controller = next((one for one in owners if one.get("controller")), {})
            if controller.get("uid") == uid:
                found.append(manifest)
        return found

    def create(self, resource: Resource, owner: tuple[str, Manifest], manifest: Manifest) -> None:
        api_version, parent = owner
        metadata = parent["metadata"]
        reference = {"apiVersion": api_version, "kind": _KINDS[api_version], "name": metadata["name"]}
        reference |= {"uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}
        manifest["metadata"]["ownerReferences"] = [reference]
        self._objects.create(resource, metadata["namespace"], manifest)

    def delete(self, resource: Resource, manifest: Manifest, propagation: str = "Background") -> None:
        if not leaving(manifest):
            deletion = Deletion(uid=manifest["metadata"]["uid"], propagation=propagation)
            self._objects.delete(target(resource, manifest), deletion)


class StatefulSets(Follower):
    """podManagementPolicy Parallel, as LeaderWorkerSet asks for."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects, STATEFULSETS, PODS)

    def reconcile(self, manifest: Manifest) -> None:
        """A pod for every number; one that is over makes room for the next one of that name."""
        spec, metadata = manifest["spec"], manifest["metadata"]
        start = spec.get("ordinals", {}).get("start", 0)
        wanted = {f"{metadata['name']}-{number}": number for number in range(start, start + spec["replicas"])}
        for pod in self.owned(PODS, manifest):
            if pod["metadata"]["name"] not in wanted or pod["status"].get("phase") in OVER:
                self.delete(PODS, pod)
        for name, number in wanted.items():
            if self.find(PODS, metadata["namespace"], name) is None:
                self.create(PODS, ("apps/v1", manifest), _numbered(manifest, name, number))


def _numbered(manifest: Manifest, name: str, number: int) -> Manifest:
    """A pod of a StatefulSet, with what LeaderWorkerSet's admission webhook adds to those of its sets."""
    template = copy.deepcopy(manifest["spec"]["template"])
    metadata = template.get("metadata") or {}
    labels = {**metadata.get("labels", {}), "statefulset.kubernetes.io/pod-name": name}
    labels["apps.kubernetes.io/pod-index"] = str(number)
    if LWS + "name" in labels:
        leads = labels.get(LWS + "worker-index") == "0"
        labels |= {LWS + "group-index": str(number)} if leads else {LWS + "worker-index": str(number)}
    metadata = {"name": name, "labels": labels, "annotations": metadata.get("annotations", {})}
    return {"metadata": metadata, "spec": template["spec"]}


class LeaderWorkerSets(Follower):
    """Groups of a leader and its workers."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects, LEADERWORKERSETS, PODS, STATEFULSETS)
        #: The members that each leader has had.
        self._had: dict[str, set[str]] = collections.defaultdict(set)
        self._counted: set[str] = set()

    def reconcile(self, manifest: Manifest) -> None:
        """The leaders' set first; then, leader by leader, its group."""
        metadata, spec = manifest["metadata"], manifest["spec"]
        replicas = spec.get("replicas", 1)
        leaders = self.find(STATEFULSETS, metadata["namespace"], metadata["name"])
        if leaders is None:
            owner = ("leaderworkerset.x-k8s.io/v1", manifest)
            self.create(STATEFULSETS, owner, _set_of_leaders(manifest, replicas))
            return
        if leaders["spec"]["replicas"] != replicas:
            self._objects.change(target(STATEFULSETS, leaders), functools.partial(_with_replicas, replicas))
        members = self._members(metadata)
        for leader in self.owned(PODS, leaders):
            group = leader["metadata"]["labels"][LWS + "group-index"]
            self._reconcile_group(manifest, leader, members.get(group, []))

    def _members(self, metadata: Mapping[str, Any]) -> dict[str, list[Manifest]]:
        found: dict[str, list[Manifest]] = {}
        for stored in self._objects.store.all(PODS, metadata["namespace"]):
            if stored.labels.get(LWS + "name") == metadata["name"]:
                found.setdefault(stored.labels[LWS + "group-index"], []).append(stored.manifest())
        return found

    def _loses(self, leader: Manifest, members: list[Manifest]) -> bool:
        """Whether a member was lost; each loss counts once, or a slow end would take one leader after the other."""
        had, there = self._had[leader["metadata"]["uid"]], {member["metadata"]["uid"] for member in members}
        had |= there
        missed = (had - there) | {member["metadata"]["uid"] for member in members if lost(member)}
        news = missed - self._counted
        self._counted |= missed
        return bool(news)

    def _reconcile_group(self, manifest: Manifest, leader: Manifest, members: list[Manifest]) -> None:
        template = manifest["spec"]["leaderWorkerTemplate"]
        if leaving(leader):
            return
        restarts = template.get("restartPolicy", "RecreateGroupOnPodRestart") == "RecreateGroupOnPodRestart"
        if restarts and self._loses(leader, members):
            self.delete(PODS, leader, "Foreground")
            return
        late = manifest["spec"].get("startupPolicy") == "LeaderReady" and not ready(leader)
        name = leader["metadata"]["name"]
        if (
            template["size"] > 1
            and not late
            and self.find(STATEFULSETS, manifest["metadata"]["namespace"], name) is None
        ):
            self.create(STATEFULSETS, ("v1", leader), _set_of_workers(manifest, leader))


def _set_of_leaders(manifest: Manifest, replicas: int) -> Manifest:
    template = manifest["spec"]["leaderWorkerTemplate"]
    pod = copy.deepcopy(template.get("leaderTemplate") or template["workerTemplate"])
    name = manifest["metadata"]["name"]
    mark(pod, {LWS + "name": name, LWS + "worker-index": "0"}, {LWS + "size": str(template["size"])})
    labels = {LWS + "name": name}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"replicas": replicas, "template": pod}}


def _set_of_workers(manifest: Manifest, leader: Manifest) -> Manifest:
    template = manifest["spec"]["leaderWorkerTemplate"]
    pod, name = copy.deepcopy(template["workerTemplate"]), leader["metadata"]["name"]
    labels = {key: leader["metadata"]["labels"][key] for key in (LWS + "name", LWS + "group-index")}
    mark(pod, labels, {LWS + "size": str(template["size"]), LWS + "leader-name": name})
    spec = {"replicas": template["size"] - 1, "ordinals": {"start": 1}, "template": pod}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


# -- what objects say ------------------------------------------------------------------------------------------------

_KINDS = {
    "v1": "Pod",
    "apps/v1": "StatefulSet",
    "jobset.x-k8s.io/v1alpha2": "JobSet",
    "leaderworkerset.x-k8s.io/v1": "LeaderWorkerSet",
}


def mark(template: Manifest, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    """Add to what an object, or the template of one, carries."""
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), **labels}
    metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}


def _with_replicas(replicas: int, manifest: Manifest) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], "replicas": replicas}}


def target(resource: Resource, manifest: Manifest, subresource: str = "") -> ObjectTarget:
    """An object as its store knows it."""
    metadata = manifest["metadata"]
    return ObjectTarget(
        resource=resource, namespace=metadata["namespace"], name=metadata["name"], subresource=subresource
    )


def leaving(manifest: Manifest) -> bool:
    """Its deletion was asked for."""
    return "deletionTimestamp" in manifest["metadata"]


def lost(pod: Manifest) -> bool:
    """Going, gone wrong, or started anew in its place."""
    restarted = any(one.get("restartCount") for one in pod["status"].get("containerStatuses") or ())
    return restarted or leaving(pod) or pod["status"].get("phase") == "Failed"


def ready(pod: Manifest) -> bool:
    """Its kubelet says so."""
    lines = pod["status"].get("conditions") or ()
    return any(line["type"] == "Ready" and line["status"] == "True" for line in lines)
