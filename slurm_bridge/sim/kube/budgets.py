"""Disruption budgets: how many running pods each selects, and how many of them may be evicted now."""

from slurm_bridge.sim.kube import followers, selectors
from slurm_bridge.sim.kube.objects import Objects, ObjectTarget
from slurm_bridge.sim.kube.resources import BUDGETS, PODS
from slurm_bridge.sim.kube.store import Manifest, StoredObject


class Budgets:
    """Keeps the status of every budget."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._tails = (followers.Tail(objects.store, PODS), followers.Tail(objects.store, BUDGETS))

    def next_due(self) -> float | None:
        return None

    def settle(self) -> bool:
        news = [event for tail in self._tails for event in tail.news()]
        budgets = self._objects.store.all(BUDGETS) if news else []
        return followers.each(self._objects.store, self._count, budgets)

    def _count(self, seen: StoredObject) -> bool:
        budget = self._objects.store.get(BUDGETS, *seen.key)
        if budget is None:
            return False
        manifest = budget.manifest()
        pods = self._objects.store.all(PODS, budget.namespace)
        chosen = [pod for pod in pods if selectors.matches_labels(manifest["spec"].get("selector"), pod.labels)]
        status = _status(manifest, len(chosen), sum(map(_healthy, chosen)))
        target = ObjectTarget(resource=BUDGETS, namespace=budget.namespace, name=budget.name, subresource="status")
        after = self._objects.change(target, lambda old: {**old, "status": {**old.get("status", {}), **status}})
        return after.version != budget.version


def _status(budget: Manifest, expected: int, healthy: int) -> Manifest:
    spec = budget["spec"]
    if "maxUnavailable" in spec:
        desired = expected - _share(spec["maxUnavailable"], expected)
    else:
        desired = _share(spec.get("minAvailable", 0), expected)
    return {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": max(0, healthy - desired),
    }


def _share(wish: int | str, total: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(wish, int):
        return wish
    return -(-total * int(wish.rstrip("%")) // 100)


def _healthy(stored: StoredObject) -> bool:
    if stored.fields["status.phase"] != "Running":
        return False
    pod = stored.manifest()
    lines = pod["status"].get("conditions") or ()
    ready = any(line["type"] == "Ready" and line["status"] == "True" for line in lines)
    return ready and "deletionTimestamp" not in pod["metadata"]
