"""ResourceClaims: those of templates are made for pods, and what a claim holds is given back after its last pod.

As kube-controller-manager has it: a pod that has ended, is gone, or is deleted before it had a node, is taken out of
`reservedFor`; with the last one the allocation goes, if the claim has the finalizer of the structured allocation. The
claim that was made for a pod is deleted when the pod has ended.
"""

from collections.abc import Mapping
from typing import Any

from slurm_bridge.model.devices import FINALIZER
from slurm_bridge.sim.kube import followers
from slurm_bridge.sim.kube.followers import Tail
from slurm_bridge.sim.kube.objects import Deletion, Objects, ObjectTarget
from slurm_bridge.sim.kube.resources import CLAIM_TEMPLATES, PODS, RESOURCECLAIMS
from slurm_bridge.sim.kube.store import Manifest, StoredObject

_OVER = ("Succeeded", "Failed")


class ResourceClaims:
    """Follows pods, templates and claims."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pods, self._templates = Tail(objects.store, PODS), Tail(objects.store, CLAIM_TEMPLATES)
        self._claims = Tail(objects.store, RESOURCECLAIMS)

    def next_due(self) -> float | None:
        return None

    def settle(self) -> bool:
        store, pods, claims = self._objects.store, self._pods.news(), self._claims.news()
        touched = [event.new for event in pods if not event.gone]
        if self._templates.news():
            touched = store.all(PODS)
        made = followers.each(store, self._make, touched)
        return followers.each(store, self._sync, store.all(RESOURCECLAIMS) if pods or claims else []) or made

    def _make(self, seen: StoredObject) -> bool:
        stored = self._objects.store.get(PODS, *seen.key)
        if stored is None:
            return False
        pod = stored.manifest()
        entries = pod["spec"].get("resourceClaims") or ()
        known = {one["name"]: one for one in pod["status"].get("resourceClaimStatuses") or ()}
        missing = [one for one in entries if one["name"] not in known and one.get("resourceClaimTemplateName")]
        if not missing or "deletionTimestamp" in pod["metadata"]:
            return False
        for entry in missing:
            template = self._objects.store.get(CLAIM_TEMPLATES, stored.namespace, entry["resourceClaimTemplateName"])
            if template is not None:
                name = self._create(pod, entry["name"], template.manifest())
                known[entry["name"]] = {"name": entry["name"], "resourceClaimName": name}
        target = ObjectTarget(resource=PODS, namespace=stored.namespace, name=stored.name, subresource="status")
        status = {"resourceClaimStatuses": list(known.values())} if known else {}
        after = self._objects.change(target, lambda old: {**old, "status": {**old["status"], **status}})
        return after.version != stored.version

    def _create(self, pod: Mapping[str, Any], entry: str, template: Manifest) -> str:
        meta = pod["metadata"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
        made = {
            "metadata": {
                "generateName": f"{meta['name']}-{entry}-",
                "ownerReferences": [owner],
                "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
            },
            "spec": template["spec"]["spec"],
        }
        return self._objects.create(RESOURCECLAIMS, meta["namespace"], made).name

    def _sync(self, seen: StoredObject) -> bool:
        stored = self._objects.store.get(RESOURCECLAIMS, *seen.key)
        if stored is None:
            return False
        claim = stored.manifest()
        users = claim.get("status", {}).get("reservedFor") or []
        remaining = [one for one in users if one.get("resource") != "pods" or self._needs(claim, one)]
        leaving = "deletionTimestamp" in claim["metadata"] and FINALIZER in (claim["metadata"].get("finalizers") or ())
        if len(remaining) < len(users) or (leaving and not remaining):
            self._release(stored, remaining)
            return True
        return not remaining and self._abandoned(claim) and self._remove(stored)

    def _needs(self, claim: Manifest, user: Mapping[str, Any]) -> bool:
        pod = self._objects.store.get(PODS, claim["metadata"]["namespace"], user["name"])
        return pod is not None and pod.uid == user["uid"] and not _done(pod.manifest())

    def _release(self, stored: StoredObject, remaining: list[Any]) -> None:
        target = ObjectTarget(resource=RESOURCECLAIMS, namespace=stored.namespace, name=stored.name)
        by_scheduler = FINALIZER in (stored.manifest()["metadata"].get("finalizers") or ())

        def released(old: Manifest) -> Manifest:
            status = {**old.get("status", {}), "reservedFor": remaining}
            if not remaining:
                status.pop("reservedFor")
                if by_scheduler:
                    status.pop("allocation", None)
            return {**old, "status": status}

        self._objects.change(
            ObjectTarget(resource=RESOURCECLAIMS, namespace=stored.namespace, name=stored.name, subresource="status"),
            released,
        )
        if by_scheduler and not remaining:
            self._objects.change(target, _without_finalizer)

    def _abandoned(self, claim: Manifest) -> bool:
        """It was made for a pod that has ended."""
        for owner in claim["metadata"].get("ownerReferences") or ():
            pod = self._objects.store.get(PODS, claim["metadata"]["namespace"], owner["name"])
            if owner["kind"] == "Pod" and pod is not None and pod.uid == owner["uid"] and _done(pod.manifest()):
                return "deletionTimestamp" not in claim["metadata"]
        return False

    def _remove(self, stored: StoredObject) -> bool:
        target = ObjectTarget(resource=RESOURCECLAIMS, namespace=stored.namespace, name=stored.name)
        self._objects.delete(target, Deletion(propagation="Background"))
        return True


def _done(pod: Manifest) -> bool:
    if pod["status"].get("phase") in _OVER:
        return True
    return "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName")


def _without_finalizer(old: Manifest) -> Manifest:
    kept = [one for one in old["metadata"].get("finalizers") or () if one != FINALIZER]
    return {**old, "metadata": {**old["metadata"], "finalizers": kept}}
