"""Random claims with and without volumes, and what nodes can attach. Classes are the same for all clusters."""

from collections.abc import Mapping, Sequence

from scheduleroracle.draws import Draws, Json

DRIVER = "csi.example"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_ZONE = "topology.kubernetes.io/zone"
_ZONES = ("east", "north", "west")
_NAMESPACES = ("alpha", "beta")
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
_SIZES = ("1Gi", "2Gi", "5Gi")

#: Claims of every namespace: with a volume, waiting for their first pod, waiting for a provisioner.
CLAIMS = ("disk-1", "disk-2", "disk-3", "disk-4", "sole", "lost", "late", "late-zone", "local-1", "local-2", "early")

_LATE = {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
_ALLOWED = {"allowedTopologies": [{"matchLabelExpressions": [{"key": _ZONE, "values": ["east", "west"]}]}]}
_KINDS: Mapping[str, Json] = {
    "early": {"provisioner": DRIVER, "volumeBindingMode": "Immediate"},
    "late": _LATE,
    "late-zone": {**_LATE, **_ALLOWED},
    "local": {**_LATE, "provisioner": "kubernetes.io/no-provisioner"},
}
CLASSES: Sequence[Json] = tuple(
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **kind}
    for name, kind in _KINDS.items()
)


def volumes(draws: Draws, namespace: str) -> list[Json]:
    """Of a pod: claims mostly, and disks that pods name themselves."""
    kind = draws.weighed({"claims": 74, "none": 6, "disk": 10, "missing": 4, "image": 6})
    match kind:
        case "claims":
            return [_claimed(f"{namespace}-{one}") for one in draws.some(CLAIMS, 1, 3)]
        case "disk":
            disk = {"pdName": draws.one(("one", "two")), **draws.maybe(40, "readOnly", lambda: True)}
            return [{"name": "disk", "gcePersistentDisk": disk}]
        case "image":
            return [{"name": "mounted", "image": {"reference": "registry.example/huge:v1"}}]
        case "missing":
            return [_claimed("missing")]
    return [{"name": "scratch", "emptyDir": {}}]


def _claimed(claim: str) -> Json:
    return {"name": f"v-{claim}", "persistentVolumeClaim": {"claimName": claim}}


def objects(draws: Draws, nodes: Sequence[str]) -> list[Json]:
    """Claims first: a volume names the claim that has it."""
    found: list[Json] = []
    for namespace in _NAMESPACES:
        for name in CLAIMS:
            found += _claim(draws, namespace, name, nodes)
    free = [_volume(draws, f"free-{number}", nodes, "local") for number in range(draws.number(0, 4))]
    return [*found, *free, *(_csi_node(draws, name) for name in nodes if draws.chance(60))]


def _claim(draws: Draws, namespace: str, name: str, nodes: Sequence[str]) -> list[Json]:
    """The claim, and its volume if it has one."""
    of = name.partition("-")[0] if name != "late-zone" else name
    has_volume = of in ("disk", "sole", "lost")
    mode = "ReadWriteOncePod" if of == "sole" else draws.one(("ReadWriteOnce", "ReadWriteMany"))
    volume = f"{namespace}-{name}"
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{namespace}-{name}", "namespace": namespace},
        "spec": {
            "storageClassName": "early" if has_volume else of,
            "accessModes": [mode],
            "resources": {"requests": {"storage": draws.one(_SIZES)}},
        },
        "status": {"phase": "Pending"},
    }
    if not has_volume:
        return [claim]
    claim["metadata"]["annotations"] = _BOUND
    claim["spec"]["volumeName"] = volume
    claim["status"] = {"phase": "Bound", "accessModes": [mode], "capacity": {"storage": "5Gi"}}
    if of == "lost":
        return [claim]
    made = _volume(draws, volume, nodes, "early", mode)
    made["spec"]["claimRef"] = {"namespace": namespace, "name": claim["metadata"]["name"]}
    made["status"] = {"phase": "Bound"}
    return [claim, made]


def _volume(draws: Draws, name: str, nodes: Sequence[str], of: str, mode: str = "") -> Json:
    labels = {
        **draws.maybe(25, _ZONE, lambda: draws.one((*_ZONES, "east__west"))),
        **draws.maybe(10, OLD_ZONE, lambda: draws.one(_ZONES)),
    }
    local = of == "local"
    expression = (
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [draws.one(nodes)]}
        if local or draws.chance(40)
        else {"key": _ZONE, "operator": draws.one(("In", "NotIn")), "values": draws.some(_ZONES, 1, 2)}
    )
    near = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "capacity": {"storage": draws.one(_SIZES)},
            "accessModes": [mode] if mode else draws.some(("ReadWriteOnce", "ReadWriteMany"), 1),
            "storageClassName": of,
            **({"local": {"path": f"/{name}"}} if local else {"csi": {"driver": DRIVER, "volumeHandle": name}}),
            **(near if local or draws.chance(45) else {}),
        },
        "status": {"phase": "Available"},
    }


def _csi_node(draws: Draws, name: str) -> Json:
    drivers = [{"name": DRIVER, "nodeID": name, "topologyKeys": None, **_count(draws)}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def _count(draws: Draws) -> Json:
    return draws.maybe(80, "allocatable", lambda: {"count": draws.number(1, 4)})
