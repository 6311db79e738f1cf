"""Workloads of one pod: all of one shape, or no two of the same."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hooksbench import world
from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Container, ContainerPort, Pod, PodSpec, ResourceNeeds, Toleration
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.translate import translator
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.translator import Translated

_RULES = Rules(cluster_id="bench", partition="main")
_ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A workload as it comes to the chain."""

    workload: Workload
    translated: Translated

    @property
    def pod(self) -> Pod:
        """Its only one."""
        return self.workload.pods[0]


def equal(first: int, count: int) -> tuple[Asked, ...]:
    """Pods of one template."""
    spec = _spec({"cpu": "1", "memory": "2Gi"}, affinity={"nodeAffinity": _prefers("disk", "ssd")})
    return tuple(_asked(number, spec, "app-1") for number in range(first, first + count))


def different(first: int, count: int) -> tuple[Asked, ...]:
    """No two ask for the same amounts, and what else they ask for is mixed."""
    return tuple(_asked(number, _odd(number), f"app-{number % world.APPS}") for number in range(first, first + count))


SHAPES: Mapping[str, Callable[[int, int], tuple[Asked, ...]]] = {"equal": equal, "different": different}


def _odd(number: int) -> PodSpec:
    # Only the memory is never the same. The CPUs fit beside what runs already, however many turns there are, or
    # nowhere near: what sampling prefers it may also have.
    requests: dict[str, str | int | float] = {
        "cpu": f"{100 + number % 1000 + number % 9 * 2300}m",
        "memory": f"{(256 << 10) + number}Ki",
    }
    wished = [(key, value) for every, key, value in _wishes(number) if number % every == 0]
    affinity: dict[str, object] = {}
    for key, value in wished:
        if key == "affinity":
            affinity.update(value)
    more = {key: value for key, value in wished if key != "affinity"}
    return _spec(requests, affinity=affinity or None, **more)


def _wishes(number: int) -> Iterator[tuple[int, str, Any]]:
    """One in how many pods has which wish. A node to keep away from makes even the set of possible nodes a new one."""
    zone = f"zone-{number // 5 % world.ZONES}"
    yield 2, "affinity", {"nodeAffinity": _never(f"node-{number // 2:05}")}
    yield 5, "affinity", {"nodeAffinity": _prefers(_ZONE, zone) | (_never(f"node-{number:05}") if number % 2 else {})}
    yield 7, "affinity", {"podAntiAffinity": _apart(f"app-{number % world.APPS}")}
    yield 4, "node_selector", {"disk": ("hdd", "ssd")[number // 4 % 2]}
    yield 3, "tolerations", (Toleration(key="dedicated", value=("team", "other")[number // 3 % 2]),)
    yield 11, "topology_spread_constraints", (_spread(f"app-{number % world.APPS}"),)
    yield 13, "ports", (ContainerPort(host_port=8000 + number % 50),)


def _spec(
    requests: Mapping[str, str | int | float], *, ports: tuple[ContainerPort, ...] = (), **fields: Any
) -> PodSpec:
    needs = ResourceNeeds(requests=dict(requests), limits=dict(requests))
    container = Container(name="main", image=world.IMAGES[3], resources=needs, ports=ports)
    return PodSpec(scheduler_name=names.SCHEDULER_NAME, containers=(container,), restart_policy="Never", **fields)


def _prefers(key: str, value: str) -> dict[str, object]:
    return {_PREFERRED: [{"weight": 10, "preference": _term(key, "In", value)}]}


def _never(name: str) -> dict[str, object]:
    return {_REQUIRED: {"nodeSelectorTerms": [_term(_HOST, "NotIn", name)]}}


def _term(key: str, operator: str, value: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}


def _apart(app: str) -> dict[str, object]:
    return {_REQUIRED: [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": _HOST}]}


def _spread(app: str) -> dict[str, object]:
    return {
        "maxSkew": 5,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _asked(number: int, spec: PodSpec, app: str) -> Asked:
    name = f"pod-{number}"
    created = f"2026-02-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    meta = ObjectMeta(name=name, namespace="bench", uid=f"uid-{name}", labels={"app": app}, creation_timestamp=created)
    pod = Pod(metadata=meta, spec=spec)
    root = Root(kind="Pod", namespace="bench", name=name, uid=pod.uid)
    workload = Workload(root=root, pods=(pod,), sources=(), job_name=name)
    translated = translator.translate(workload, _RULES)
    assert not isinstance(translated, Reject), f"{name}: {translated}"
    return Asked(workload=workload, translated=translated)
