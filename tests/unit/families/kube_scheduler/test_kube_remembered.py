"""What the hook remembers and carries along is what it would say if it had just been made."""

import dataclasses
import random
from typing import Any

import pytest

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.options import STANDARD_PRIORITIES
from slurm_bridge.hooks.chain import Chain, asked
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Pod, Toleration
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.kube_hook_scenes import chained, hooked
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, near, node, pod, term
from tests.unit.hooks.builders import Around, partition, slurm_node, translated, workload

STEPS = 20

#: Snapshots are looked at again by whoever still has them.
LATE = 6


def some_node(dice: random.Random, name: str) -> Node:
    """Whatever predicates and priorities tell apart."""
    labels = {ZONE: dice.choice("xyz")} if dice.random() < 0.8 else {}
    effect = dice.choice(["NoSchedule", "PreferNoSchedule"])
    return node(
        name,
        labels={**labels, "ssd": "1"} if dice.random() < 0.3 else labels,
        conditions={"MemoryPressure": "True"} if dice.random() < 0.15 else {},
        allocatable={"cpu": dice.choice([4, 8, 16])},
        taints=(Taint(key="t", effect=effect),) if dice.random() < 0.2 else (),
        unschedulable=dice.random() < 0.1,
    )


def some_pod(dice: random.Random, name: str, on: str = "") -> Pod:
    """Likewise; some were promised a node."""
    spread = {
        "maxSkew": 1,
        "topologyKey": dice.choice([ZONE, HOST]),
        "whenUnsatisfiable": dice.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    away = near("podAntiAffinity", term(dice.choice([ZONE, HOST]), {"app": dice.choice("ab")}))
    wishes: dict[str, Any] = dice.choice(
        [
            {},
            {"affinity": away},
            {"affinity": near("podAffinity", term(ZONE, {"app": "a"}))},
            {"topology_spread_constraints": (spread,)},
            {"tolerations": (Toleration(key="t", operator="Exists"),)},
            {"node_selector": {"ssd": "1"}},
        ]
    )
    requests = dice.choice([{}, {"cpu": 1}, {"cpu": 3, "memory": 100}])
    promised = f"n{dice.randrange(12)}" if dice.random() < 0.2 else None
    return pod(name, on=on, labels={"app": dice.choice("ab")}, requests=requests, nominated=promised, **wishes)


class Life:
    """Nodes and pods that come, change and go."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._keeper: ClusterCache = scenes.keeper([], [])
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}

    def step(self) -> ClusterSnapshot:
        """Some of it, and what the cluster is then."""
        for _ in range(self._dice.randrange(1, 6)):
            self._dice.choice([self._node, self._node, self._pod, self._pod, self._pod, self._gone])()
        self._keeper.set_slurm(map(slurm_node, self._nodes), [partition("debug", *self._nodes, default=True)])
        return self._keeper.snapshot()

    def _node(self) -> None:
        name = f"n{self._dice.randrange(30)}"
        now = some_node(self._dice, name)
        self._keeper.on_node(self._nodes.get(name), now)
        self._nodes[name] = now

    def _pod(self) -> None:
        name = f"p{self._dice.randrange(40)}"
        now = some_pod(self._dice, name, self._dice.choice([*self._nodes, ""]))
        self._keeper.on_pod(self._pods.get(name), now)
        self._pods[name] = now

    def _gone(self) -> None:
        if self._nodes and self._dice.random() < 0.5:
            self._keeper.on_node(self._nodes.pop(self._dice.choice(list(self._nodes))), None)
        elif self._pods:
            self._keeper.on_pod(self._pods.pop(self._dice.choice(list(self._pods))), None)


def said(chain: Chain, snapshot: ClusterSnapshot, subject: Pod) -> tuple[object, ...]:
    """All that is said of a pod: nodes, reasons, sums, and each priority's scores."""
    ask = asked(workload(subject), translated())
    with chain.session(snapshot, now=1.0) as session:
        left = session.filter_nodes(ask, snapshot.names)
        reasons = {name: why for denied in session.denied for name, why in denied.nodes.items()}
        rated = dict(session.rate_nodes(ask, left).nodes)
        rows = {row.name: dict(row.scores) for matrix in session.matrices.values() for row in matrix.rows}
    return left, reasons, rated, rows


def made(capacity: str) -> Chain:
    """The hook with all standard predicates and priorities."""
    priorities = [{"name": name} for name in (*STANDARD_PRIORITIES, "MostAllocated", "BalancedAllocation")]
    return chained(Around(), hooked(capacity=capacity, priorities=priorities))


@pytest.mark.thorough
@pytest.mark.parametrize("capacity", ["free", "allocatable"])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_remembered_is_what_would_be_said_now(seed: int, capacity: str) -> None:
    """However nodes, pods and promises change, and in whatever order snapshots are looked at."""
    dice = random.Random(seed)
    life, lasting, seen = Life(dice), made(capacity), list[ClusterSnapshot]()
    shapes = [some_pod(dice, f"new{number}") for number in range(12)]
    for _ in range(STEPS):
        seen = [*seen[-LATE:], life.step()]
        snapshot = dice.choice([seen[-1], seen[-1], *seen])
        alone = dataclasses.replace(snapshot)
        for subject in dice.sample(shapes, 4):
            assert said(lasting, snapshot, subject) == said(made(capacity), alone, subject)
