"""Random nodes, and the pods, services and replica sets that are there before a pod comes."""

import dataclasses

from scheduleroracle import pods, storage
from scheduleroracle.draws import Draws, Json
from scheduleroracle.pods import HOST, ZONE

#: Large clusters take longer and show no more: rules compare nodes of a few domains.
MOST_NODES = 9
_IMAGE_MIB = (5, 40, 300, 900, 2500)
_MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Manifests in the order in which they are created; `ending`: names of pods that are being deleted."""

    objects: tuple[Json, ...]
    ending: tuple[tuple[str, str], ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(one["metadata"]["name"] for one in self.objects if one["kind"] == "Node")

    @property
    def promises(self) -> bool:
        """Some pod is promised a node."""
        return any("nominatedNodeName" in one.get("status", ()) for one in self.objects)


def cluster(draws: Draws) -> Cluster:
    """All that a pod meets."""
    names = [f"n-{number}" for number in range(draws.number(1, MOST_NODES))]
    nodes = [_node(draws, name) for name in names]
    running = [_running(draws, f"there-{number}", names) for number in range(draws.number(0, 3 * len(names)))]
    # What has ended already is deleted at once.
    ending = [one["metadata"] for one in running if draws.chance(6) and "status" not in one]
    promised = [_promised(draws, f"promised-{number}", names) for number in range(2) if draws.chance(25)]
    return Cluster(
        objects=(*_owners(draws), *storage.objects(draws, names), *nodes, *running, *promised),
        ending=tuple((one["namespace"], one["name"]) for one in ending),
    )


def _node(draws: Draws, name: str) -> Json:
    labels = {
        **draws.maybe(95, HOST, lambda: name),
        **draws.maybe(85, ZONE, lambda: draws.one(pods.ZONES)),
        **draws.maybe(30, storage.OLD_ZONE, lambda: draws.one(pods.ZONES)),
        **draws.maybe(70, "disk", lambda: draws.one(pods.DISKS)),
        **draws.maybe(70, "gen", lambda: draws.one(("1", "2", "3", "04", "x"))),
    }
    cordoned = draws.chance(8)
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}] * (cordoned and draws.chance(60))
    # Unique by key and effect.
    taints += {(one["key"], one["effect"]): one for one in draws.some(pods.TAINTS, 0, 3 * draws.chance(30))}.values()
    small = draws.theme == "room"
    amounts = {
        "cpu": draws.one(("1", "2", "3500m", "4", "8") if small else ("7500m", "16")),
        "memory": draws.one(("1Gi", "2Gi", "4000Mi", "8Gi", "16000000Ki") if small else ("16000000Ki", "32Gi")),
        "pods": draws.one(("2", "5", "20", "110") if small else ("20", "110")),
        **draws.maybe(75, "ephemeral-storage", lambda: draws.one(("5Gi", "20Gi"))),
        **draws.maybe(35, pods.GPU, lambda: draws.one(("1", "2", "4"))),
    }
    conditions = [
        {"type": "Ready", "status": draws.weighed({"True": 92, "False": 5, "Unknown": 3})},
        {"type": "MemoryPressure", "status": draws.weighed({"False": 92, "True": 8})},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, **({"unschedulable": True} if cordoned else {})},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "images": [_image(draws, one) for one in draws.some(pods.IMAGES)],
        },
    }


def _image(draws: Draws, name: str) -> Json:
    size = _IMAGE_MIB[pods.IMAGES.index(name) % len(_IMAGE_MIB)] * _MIB
    names = [name, f"{name.rpartition(':')[0]}@{pods.DIGEST}"] if draws.chance(50) else [name]
    return {"names": names, "sizeBytes": size}


def _running(draws: Draws, name: str, nodes: list[str]) -> Json:
    """A pod that has its node already: nothing has asked whether it fits there."""
    manifest = pods.pod(draws, name, nodes)
    manifest["spec"]["nodeName"] = draws.one(nodes)
    if draws.chance(6):
        manifest["status"] = {"phase": draws.one(("Succeeded", "Failed"))}
        # kube-scheduler forgets a port that another pod on the node has as well, which only happens here.
        _drop_ports(manifest["spec"])
    return manifest


def _drop_ports(spec: Json) -> None:
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container.pop("ports", None)


def _promised(draws: Draws, name: str, nodes: list[str]) -> Json:
    """A pod that is nominated for a node, and is not tried itself: a gate keeps it from that.

    Without anti-affinity and volumes: kube-scheduler overlooks these rules of a promised pod, unless a running one has
    the like.
    """
    manifest = pods.pod(draws, name, nodes)
    manifest["spec"].get("affinity", {}).pop("podAntiAffinity", None)
    manifest["spec"].pop("volumes", None)
    manifest["spec"] |= {"schedulerName": pods.SCHEDULER, "schedulingGates": [{"name": "example.com/later"}]}
    manifest["status"] = {"nominatedNodeName": draws.one(nodes)}
    return manifest


def _owners(draws: Draws) -> list[Json]:
    """Services and replica sets, which say how pods without constraints of their own are spread."""
    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"service-{number}", "namespace": draws.one(pods.NAMESPACES)},
            "spec": {
                "selector": draws.one(({"app": "web"}, {"app": "db"}, {"tier": "front"}, {})),
                "clusterIP": "None",
            },
        }
        for number in range(draws.number(0, 2))
    ]
    return [*services, *(_owner(draws, kind) for kind in pods.OWNERS if draws.chance(50))]


def _owner(draws: Draws, kind: str) -> Json:
    selector = draws.one(({"app": "web"}, {"app": "db", "tier": "back"}))
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": pods.OWNERS[kind], "namespace": pods.NAMESPACES[0]},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": {"containers": [{"name": "main", "image": "a"}]}},
        },
    }
