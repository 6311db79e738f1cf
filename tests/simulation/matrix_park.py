"""The machines of a run of the matrix, drawn by dice: sizes, labels, taints, racks, and a partition that has a few."""

import dataclasses
import random
from collections.abc import Mapping

from slurm_bridge.model import kinds
from slurm_bridge.sim.slurm import state
from tests.simulation import fleet
from tests.simulation.world import World

#: Kubernetes and Slurm call them alike.
NAMES = tuple(f"n{number}" for number in range(1, 8))
FEW = "few"
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
HALLS = {"r1": "east", "r2": "east", "r3": "west"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One of them."""

    cpus: int
    labels: Mapping[str, str]
    tainted: bool = False
    few: bool = False

    @property
    def capacity(self) -> dict[str, str]:
        """What its kubelet says."""
        return {"cpu": str(self.cpus), "memory": "64000Mi", "pods": "110"}

    def record(self, name: str) -> state.Node:
        """What slurmctld knows of it."""
        return state.Node(name=name, cpus=self.cpus, memory_mib=64_000, switch=self.labels["rack"])


#: Large enough for all, and free of everything that keeps workloads away.
SPARE = Machine(cpus=32, labels={"zone": "z1", "rack": "r1", "hall": "east", "disk": "ssd"}, few=True)


def drawn(dice: random.Random) -> dict[str, Machine]:
    """Machines by name."""
    few = dice.sample(NAMES, 3)
    return {name: _machine(dice, few=name in few) for name in NAMES}


def _machine(dice: random.Random, *, few: bool) -> Machine:
    rack = dice.choice(sorted(HALLS))
    disk = {"disk": "ssd"} if dice.random() < 0.4 else {}
    labels = {"zone": dice.choice(("z1", "z2", "z3")), "rack": rack, "hall": HALLS[rack], **disk}
    return Machine(cpus=dice.choice((2, 4, 4, 8)), labels=labels, tainted=dice.random() < 0.25, few=few)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Park(fleet.Fleet):
    """These machines."""

    machines: Mapping[str, Machine] = dataclasses.field(default_factory=dict)

    def machine(self, name: str) -> state.Node:
        return self.machines[name].record(name)

    def capacity(self, name: str) -> dict[str, str]:
        return self.machines[name].capacity


class ParkWorld(World):
    """They are all there is: no other user has jobs or pods, unless the run says so."""

    fleet: Park

    def furnish(self) -> None:
        machines = self.fleet.machines
        names = tuple(name for name, one in machines.items() if one.few)
        self.slurm.world.partitions[FEW] = state.Partition(name=FEW, nodes=names)
        for name, one in machines.items():
            self._join_kubernetes(name, one)
        self.pass_time(1.0)

    def _join_kubernetes(self, name: str, one: Machine) -> None:
        taints = [TAINT] if one.tainted else []
        self.kube.add_nodes(name, capacity=one.capacity, labels=one.labels, taints=taints)

    def join(self, name: str, one: Machine) -> None:
        """One more machine, on both sides."""
        self.weather.note(f"admin adds {name}: {one}")
        self.slurm.control.add_node(one.record(name), "debug", "batch", *([FEW] if one.few else []))
        self._join_kubernetes(name, one)

    def label_all(self, **labels: str) -> None:
        """An administrator of Kubernetes labels all nodes."""
        self.weather.note(f"admin labels all nodes {labels}")
        for node in self.kube.list(kinds.NODES):
            self.kube.merge(kinds.NODES, ("", node["metadata"]["name"]), {"metadata": {"labels": labels}})

    def remove_taints(self) -> None:
        """All of them."""
        self.weather.note("admin removes all taints")
        for node in self.kube.list(kinds.NODES):
            self.kube.merge(kinds.NODES, ("", node["metadata"]["name"]), {"spec": {"taints": None}})
