"""Gangs of pods that want one rack, and the chains that find it: the hook "kai" beside the framework alone."""

import collections
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from hooksbench.contestants import FRAMEWORK, Contestant
from hooksbench.workloads import Asked
from hooksbench.world import World
from slurm_bridge.cluster.facts import Amounts, NodeFacts
from slurm_bridge.families.kai import wishes
from slurm_bridge.hooks.registry import HookConfig
from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds, Toleration
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Gang, Root, Source, Workload
from slurm_bridge.translate import resources, translator
from slurm_bridge.translate.rules import Rules

_RULES = Rules(cluster_id="bench", partition="main")
_TOPOLOGY = {"name": "racks", "levels": ["block", "rack"]}

#: One rack for all pods, or no node at all.
_ONE_RACK = (Source(kind="Job", name="gang", annotations={wishes.REQUIRED: "rack"}),)

#: No goal is set for gangs: those of workloads with one pod are.
CONTESTANTS: Mapping[str, Contestant] = {
    one.name: one
    for one in (
        FRAMEWORK,
        Contestant(name="kai", hooks=(HookConfig(name="kai", options={"topologies": [_TOPOLOGY]}),), judged=False),
    )
}

#: Pods of a gang.
_SIZES = (8, 16, 32, 64)
#: Of all pods of gangs one for so many nodes stays, and those of the last gang do in any case.
_BUSY = 10
#: So many nodes for each pod are looked at for room where all will do.
_LOOKED_AT = 3

_NOT_IN = "requiredDuringSchedulingIgnoredDuringExecution"


class Full(Exception):
    """The nodes that a gang may have cannot hold it, even without the others of ours; the message says which."""


class Racks(World):
    """A cluster on which gangs run: when the next one comes, old ones end."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._gangs: collections.deque[tuple[str, ...]] = collections.deque()

    def seat(self, pods: Sequence[Pod], among: Collection[str] | None, excluded: Sequence[str]) -> Mapping[str, str]:
        """Nodes as Slurm might give them, each as many as it holds; ours that are in the way have ended by then."""
        lined_up = sorted(among) if among is not None else self._next(_LOOKED_AT * len(pods), set(excluded))
        found = self._filled(pods, lined_up)
        if len(found) < len(pods):
            there = set(lined_up)
            self._end([uid for uid, node in self._placed.items() if node in there])
            found = self._filled(pods, lined_up)
        if len(found) < len(pods):
            raise Full(f"{len(lined_up)} nodes from {lined_up[0]} on have room for {len(found)} of {len(pods)} pods")
        return dict(zip((pod.uid for pod in pods), found, strict=True))

    def settle(self, pods: Sequence[Pod], placement: Mapping[str, str]) -> None:
        """All of them count; the oldest gangs end."""
        requests = resources.requests_of(pods[0])
        for pod in pods:
            self.keeper.assume(pod.uid, placement[pod.uid], requests, pod)
        self._placed.update(placement)
        self._gangs.append(tuple(placement))
        while len(self._gangs) > 1 and len(self._placed) > len(self.names) // _BUSY:
            self._end([uid for uid in self._gangs.popleft() if uid in self._placed])

    def _next(self, count: int, excluded: Collection[str]) -> list[str]:
        turn = itertools.islice(self._turn, len(self.names))
        return list(itertools.islice((name for name in turn if name not in excluded), count))

    def _filled(self, pods: Sequence[Pod], lined_up: Sequence[str]) -> list[str]:
        """Nodes for as many pods as there is room for; all of them ask for the same."""
        nodes, requests = self.keeper.snapshot().nodes, resources.requests_of(pods[0])
        each = (itertools.repeat(name, _room(nodes[name], requests)) for name in lined_up)
        return list(itertools.islice(itertools.chain.from_iterable(each), len(pods)))


def _room(facts: NodeFacts, requests: Amounts) -> int:
    """How many such pods."""
    free = ((facts.allocatable.get(name, 0) - facts.used.get(name, 0)) // one for name, one in requests.items() if one)
    return max(0, min(free))


def equal(first: int, count: int) -> tuple[Asked, ...]:
    """Gangs of four sizes whose pods are all of one template."""
    return tuple(_asked(number, _spec({"cpu": "1", "memory": "2Gi"})) for number in range(first, first + count))


def different(first: int, count: int) -> tuple[Asked, ...]:
    """No two gangs ask for the same amounts, and what else they ask for is mixed."""
    return tuple(_asked(number, _odd(number)) for number in range(first, first + count))


#: Named as tables and drawings call them.
SHAPES: Mapping[str, Callable[[int, int], tuple[Asked, ...]]] = {
    "gangs of equal": equal,
    "gangs of different": different,
}


def _odd(number: int) -> PodSpec:
    # However many turns there are, it fits where nothing else is: only the memory is never the same.
    requests: dict[str, str | int | float] = {
        "cpu": f"{100 + number % 1000 + number % 5 * 400}m",
        "memory": f"{(256 << 10) + number}Ki",
    }
    return _spec(requests, **dict(_wishes(number)))


def _wishes(number: int) -> Iterator[tuple[str, Any]]:
    """One in two keeps away from a node of its own, so that even the set of possible nodes is a new one."""
    if number % 2 == 0:
        without = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [f"node-{number // 2:05}"]}
        yield "affinity", {"nodeAffinity": {_NOT_IN: {"nodeSelectorTerms": [{"matchExpressions": [without]}]}}}
    if number % 4 == 0:
        yield "node_selector", {"disk": ("hdd", "ssd")[number // 4 % 2]}
    if number % 3 == 0:
        yield "tolerations", (Toleration(key="dedicated", value="team"),)


def _spec(requests: Mapping[str, str | int | float], **fields: Any) -> PodSpec:
    needs = ResourceNeeds(requests=dict(requests), limits=dict(requests))
    container = Container(name="main", image="registry.example/image-3:v1", resources=needs)
    return PodSpec(scheduler_name=names.SCHEDULER_NAME, containers=(container,), restart_policy="Never", **fields)


def _asked(number: int, spec: PodSpec) -> Asked:
    name, size = f"gang-{number}", _SIZES[number % len(_SIZES)]
    pods = tuple(Pod(metadata=_metadata(number, f"{name}-{place}"), spec=spec) for place in range(size))
    root = Root(kind="Job", namespace="bench", name=name, uid=f"uid-{name}")
    gang = Gang(minimum=size, size=size)
    workload = Workload(root=root, pods=pods, sources=_ONE_RACK, job_name=name, gang=gang)
    translated = translator.translate(workload, _RULES)
    assert not isinstance(translated, Reject), f"{name}: {translated}"
    return Asked(workload=workload, translated=translated)


def _metadata(number: int, name: str) -> ObjectMeta:
    created = f"2026-02-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return ObjectMeta(name=name, namespace="bench", uid=f"uid-{name}", creation_timestamp=created)
