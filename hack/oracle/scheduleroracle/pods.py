"""Random pods: what they request, tolerate, wish for and forbid. Few words, so that pods and nodes meet often."""

from collections.abc import Sequence

from scheduleroracle import storage
from scheduleroracle.draws import Draws, Json

#: The scheduler that is asked.
SCHEDULER = "oracle"
NAMESPACES = ("alpha", "beta")
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("east", "north", "west")
DISKS = ("ssd", "hdd")
GPU = "example.com/gpu"
IMAGES = tuple(f"registry.example/{name}:v1" for name in ("tiny", "small", "middle", "large", "huge"))
DIGEST = f"sha256:{'0' * 64}"
#: What some pods belong to.
OWNERS = {"ReplicaSet": "set", "StatefulSet": "stateful"}
CLASSES = {"low": -10, "high": 1000}
#: Adds an overhead to the pod.
RUNTIME = "boxed"

TAINTS: Sequence[Json] = (
    {"key": "dedicated", "value": "team", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "other", "effect": "NoSchedule"},
    {"key": "flaky", "effect": "PreferNoSchedule"},
    {"key": "old", "value": "yes", "effect": "PreferNoSchedule"},
    {"key": "spot", "value": "yes", "effect": "NoExecute"},
)
_TOLERATIONS: Sequence[Json] = (
    {"key": "dedicated", "operator": "Exists"},
    {"key": "dedicated", "value": "team", "effect": "NoSchedule"},
    {"key": "flaky", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 60},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"operator": "Exists"},
    {"operator": "Exists", "effect": "PreferNoSchedule"},
)
_APPS, _TIERS = ("web", "db", "cache"), ("front", "back")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TOPOLOGIES = (HOST, ZONE, "disk")


def pod(draws: Draws, name: str, nodes: Sequence[str]) -> Json:
    """A pod without a node. Most have no more than one or two rules: with more, nothing fits."""
    namespace = draws.weighed({NAMESPACES[0]: 75, NAMESPACES[1]: 25})
    labels = {
        **draws.maybe(85, "app", lambda: draws.one(_APPS)),
        **draws.maybe(60, "tier", lambda: draws.one(_TIERS)),
        **draws.maybe(30, "version", lambda: draws.one(("1", "2"))),
    }
    metadata: Json = {"name": name, "namespace": namespace, "labels": labels}
    if draws.chance(25):
        kind = draws.one([*OWNERS])
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": OWNERS[kind], "uid": "of-the-set", "controller": True}
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec(draws, nodes, namespace)}


def without_empty_selectors(manifest: Json) -> None:
    """Of topology spread: kube-scheduler counts no pods for these, except those that are promised a node."""
    for constraint in manifest["spec"].get("topologySpreadConstraints", ()):
        if constraint.get("labelSelector") == {}:
            constraint["labelSelector"] = {"matchLabels": {"app": _APPS[0]}}


def _spec(draws: Draws, nodes: Sequence[str], namespace: str) -> Json:
    affinity = {
        **draws.maybe(35, "nodeAffinity", lambda: _node_affinity(draws, nodes)),
        **draws.maybe(draws.often("near", 24), "podAffinity", lambda: _pod_affinity(draws)),
        **draws.maybe(draws.often("near", 24), "podAntiAffinity", lambda: _pod_affinity(draws)),
    }
    return {
        **_containers(draws),
        **draws.maybe(15, "nodeSelector", lambda: {"disk": draws.one(DISKS)}),
        **({"affinity": affinity} if affinity else {}),
        **draws.maybe(40, "tolerations", lambda: draws.some(_TOLERATIONS, 1, 2)),
        **draws.maybe(draws.often("spread", 30), "topologySpreadConstraints", lambda: _spread(draws)),
        **draws.maybe(20, "priorityClassName", lambda: draws.one([*CLASSES])),
        **draws.maybe(5, "runtimeClassName", lambda: RUNTIME),
        **draws.maybe(4, "hostNetwork", lambda: True),
        **draws.maybe(draws.often("volumes", 24), "volumes", lambda: storage.volumes(draws, namespace)),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 3600,
        "restartPolicy": "Never",
    }


def _containers(draws: Draws) -> Json:
    """Also requests of the whole pod, which are at least those of its containers."""
    if draws.chance(4):
        return {"containers": [_container(draws)], "resources": {"requests": {"cpu": "2", "memory": "2500Mi"}}}
    return {
        "containers": [_container(draws), *([_without_ports(draws)] if draws.chance(20) else [])],
        **draws.maybe(
            15, "initContainers", lambda: [_init_container(draws), *([_without_ports(draws)] * draws.chance(40))]
        ),
    }


def _container(draws: Draws) -> Json:
    number = draws.number(1, 10**9)
    requests = {
        **draws.maybe(75, "cpu", lambda: draws.one(("100m", "250m", "0.333", "500m", "1", "1.5", "0"))),
        **draws.maybe(65, "memory", lambda: draws.one(("64Mi", "200M", "123456789", "512Mi", "1Gi", "1.5Gi", "0"))),
        **draws.maybe(10, "ephemeral-storage", lambda: draws.one(("1Gi", "6Gi"))),
    }
    limits = draws.maybe(12, GPU, lambda: draws.one(("1", "2")))
    return {
        "name": f"c-{number}",
        "image": draws.one((*IMAGES, "registry.example/tiny", "unknown", f"registry.example/large@{DIGEST}")),
        "resources": {"requests": {**requests, **limits}, "limits": limits},
        **draws.maybe(draws.often("ports", 15), "ports", lambda: [_port(draws)]),
    }


def _without_ports(draws: Draws) -> Json:
    """No two containers of a pod may claim one port."""
    made = _container(draws)
    made.pop("ports", None)
    return made


def _init_container(draws: Draws) -> Json:
    """Some stay beside the others, with ports of their own."""
    if draws.chance(60):
        return _without_ports(draws)
    ports = draws.maybe(12, "ports", lambda: [{"containerPort": 8082, "hostPort": 8082}])
    return {**_without_ports(draws), "restartPolicy": "Always", **ports}


def _port(draws: Draws) -> Json:
    number = draws.one((8080, 8081))
    return {
        "containerPort": number,
        "hostPort": number,
        **draws.maybe(25, "protocol", lambda: draws.one(("TCP", "UDP"))),
        **draws.maybe(30, "hostIP", lambda: draws.one(("127.0.0.1", "0.0.0.0", "10.0.0.1"))),  # noqa: S104 - a wish
    }


def _node_affinity(draws: Draws, nodes: Sequence[str]) -> Json:
    def preference() -> Json:
        return {"weight": draws.number(1, 100), "preference": _term(draws, nodes)}

    terms = draws.maybe(65, _REQUIRED, lambda: {"nodeSelectorTerms": draws.several(2, lambda: _term(draws, nodes))})
    return {**terms, **draws.maybe(60, _PREFERRED, lambda: draws.several(3, preference))}


def _term(draws: Draws, nodes: Sequence[str]) -> Json:
    if draws.chance(12):
        names = draws.some([*nodes, "gone"], 1, 1)
        return {"matchFields": [{"key": "metadata.name", "operator": draws.one(("In", "NotIn")), "values": names}]}
    return {"matchExpressions": draws.several(2, lambda: _expression(draws))}


def _expression(draws: Draws) -> Json:
    kind = draws.weighed({"In": 5, "NotIn": 3, "Exists": 2, "DoesNotExist": 1, "Gt": 1, "Lt": 1})
    if kind in ("Gt", "Lt"):
        return {"key": "gen", "operator": kind, "values": [draws.one(("1", "2", "3"))]}
    key, values = draws.one(((ZONE, ZONES), ("disk", DISKS), ("gen", ("1", "2", "04"))))
    if kind in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": kind}
    return {"key": key, "operator": kind, "values": draws.some(values, 1, 2)}


def _pod_affinity(draws: Draws) -> Json:
    def preference() -> Json:
        return {"weight": draws.number(1, 100), "podAffinityTerm": _neighbours(draws)}

    terms = draws.maybe(60, _REQUIRED, lambda: draws.several(2, lambda: _neighbours(draws)))
    return {**terms, **draws.maybe(60, _PREFERRED, lambda: draws.several(2, preference))}


def _neighbours(draws: Draws) -> Json:
    keys = draws.maybe(12, draws.one(("matchLabelKeys", "mismatchLabelKeys")), lambda: ["version"])
    found = {"topologyKey": draws.one(_TOPOLOGIES), **keys}
    if keys or draws.chance(92):
        found["labelSelector"] = _selector(draws)
    kind = draws.weighed({"own": 70, "named": 15, "selected": 10, "all": 5})
    return {
        **found,
        **({"namespaces": draws.some(NAMESPACES, 1)} if kind == "named" else {}),
        **({"namespaceSelector": {"matchLabels": {"kind": "work"}}} if kind == "selected" else {}),
        **({"namespaceSelector": {}} if kind == "all" else {}),
    }


def _selector(draws: Draws) -> Json:
    match draws.weighed({"app": 60, "tier": 20, "set": 15, "any": 5}):
        case "app":
            return {"matchLabels": {"app": draws.one(_APPS)}}
        case "tier":
            return {"matchLabels": {"tier": draws.one(_TIERS)}}
        case "set":
            operator = draws.one(("In", "NotIn", "Exists", "DoesNotExist"))
            values = {"values": draws.some(_APPS, 1, 2)} if operator.endswith("In") else {}
            return {"matchExpressions": [{"key": "app", "operator": operator, **values}]}
    return {}


def _spread(draws: Draws) -> list[Json]:
    kinds = [(key, when) for key in _TOPOLOGIES for when in ("DoNotSchedule", "ScheduleAnyway")]
    return [_constraint(draws, key, when) for key, when in draws.some(kinds, 1, 2)]


def _constraint(draws: Draws, key: str, when: str) -> Json:
    selects = draws.chance(94)
    return {
        "maxSkew": draws.one((1, 1, 2, 3)),
        "topologyKey": key,
        "whenUnsatisfiable": when,
        **({"labelSelector": _selector(draws)} if selects else {}),
        **(draws.maybe(25, "minDomains", lambda: draws.number(1, 4)) if when == "DoNotSchedule" else {}),
        **draws.maybe(15, "nodeAffinityPolicy", lambda: draws.one(("Honor", "Ignore"))),
        **draws.maybe(25, "nodeTaintsPolicy", lambda: draws.one(("Honor", "Ignore"))),
        **(draws.maybe(12, "matchLabelKeys", lambda: ["version"]) if selects else {}),
    }
