"""The two subresources that only pods have: binding and eviction."""

from collections.abc import Mapping
from typing import Any

from slurm_bridge.sim.kube import refusals, selectors
from slurm_bridge.sim.kube.objects import Deletion, Objects, ObjectTarget
from slurm_bridge.sim.kube.resources import BUDGETS, PODS
from slurm_bridge.sim.kube.store import Manifest, StoredObject

_NO_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


def bind(objects: Objects, namespace: str, name: str, binding: Mapping[str, Any]) -> None:
    """Bind a pod to a node (which need not exist) and merge the binding's metadata into it, in one write."""
    metadata = binding.get("metadata") or {}
    node = (binding.get("target") or {}).get("name")
    if metadata.get("name") != name:
        raise refusals.bad_request("name in URL does not match name in Binding object")
    if not node:
        raise refusals.plain_error("target.name: Required value")
    with objects.store.changed:
        stored = objects.existing(ObjectTarget(resource=PODS, namespace=namespace, name=name))
        _check_incarnation(stored, metadata)
        pod = stored.manifest()
        _check_bindable(pod)
        pod["spec"]["nodeName"] = node
        pod["status"].pop("nominatedNodeName", None)
        for marks in ("annotations", "labels"):
            if metadata.get(marks):
                pod["metadata"][marks] = {**(pod["metadata"].get(marks) or {}), **metadata[marks]}
        set_condition(pod, {"type": "PodScheduled", "status": "True", "lastTransitionTime": objects.now()})
        objects.store.write(PODS, pod)


def _check_incarnation(stored: StoredObject, metadata: Mapping[str, Any]) -> None:
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != stored.uid:
        raise refusals.precondition(PODS, stored.namespace, stored.name, "UID", (uid, stored.uid))
    if version and version != str(stored.version):
        values = (version, str(stored.version))
        raise refusals.precondition(PODS, stored.namespace, stored.name, "ResourceVersion", values)


def _check_bindable(pod: Manifest) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    why = ""
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise refusals.conflict(PODS, name, why, subresource="/binding")


def set_condition(pod: Manifest, condition: Mapping[str, Any]) -> None:
    """Set a condition in the status; it replaces the one of its type."""
    status = pod.setdefault("status", {})
    lines = status.get("conditions") or []
    status["conditions"] = [*(line for line in lines if line["type"] != condition["type"]), dict(condition)]


def evict(objects: Objects, namespace: str, name: str, eviction: Mapping[str, Any]) -> None:
    """Delete a pod, unless a disruption budget forbids it; budgets do not protect a pod that does not run yet.

    The budget is checked before the preconditions. (The real server retries a stale uid on a pod that does not run for
    ten seconds before it refuses; this one refuses at once.)
    """
    if (eviction.get("metadata") or {}).get("name") != name:
        raise refusals.bad_request("name in URL does not match name in Eviction object")
    target = ObjectTarget(resource=PODS, namespace=namespace, name=name)
    options = deletion(eviction.get("deleteOptions") or {})
    with objects.store.changed:
        stored = objects.existing(target)
        _spend_budgets(objects, stored)
        if options.uid and options.uid != stored.uid:
            raise refusals.delete_precondition(PODS, stored.name, "UID", (options.uid, stored.uid))
        pod = stored.manifest()
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": objects.now(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        set_condition(pod, condition)
        objects.store.write(PODS, pod)
        objects.delete(target, Deletion(uid=options.uid, grace=options.grace, propagation=options.propagation))


def deletion(options: Mapping[str, Any]) -> Deletion:
    """Read DeleteOptions."""
    conditions = options.get("preconditions") or {}
    return Deletion(
        uid=conditions.get("uid", ""),
        version=conditions.get("resourceVersion", ""),
        grace=options.get("gracePeriodSeconds"),
        propagation=options.get("propagationPolicy", ""),
    )


def _spend_budgets(objects: Objects, stored: StoredObject) -> None:
    pod = stored.manifest()
    if pod["status"].get("phase") != "Running" or pod["metadata"].get("deletionTimestamp"):
        return
    for budget in objects.store.all(BUDGETS, stored.namespace):
        manifest = budget.manifest()
        if not selectors.matches_labels(manifest["spec"].get("selector"), stored.labels):
            continue
        status = manifest.setdefault("status", {})
        if status.get("disruptionsAllowed", 0) <= 0:
            desired, current = status.get("desiredHealthy"), status.get("currentHealthy")
            message = f"The disruption budget {budget.name} needs {desired} healthy pods and has {current} currently"
            raise refusals.too_many(_NO_BUDGET, refusals.StatusCause(reason="DisruptionBudget", message=message))
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[stored.name] = objects.now()
        objects.store.write(BUDGETS, manifest)
