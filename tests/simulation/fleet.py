"""The machines of a world: how each side calls them, and what they have."""

import dataclasses
from collections.abc import Mapping

from slurm_bridge.sim.slurm import state


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Equal machines, of which some have GPUs. `nodes` gives Kubernetes' name of each, and Slurm's.

    `indexed`: Slurm says which GPUs a job has, and DRA drivers publish them.

    `native`: Slurm's names of those with a slurmd; the others are external.

    `apart`: each of the two partitions of Slurm has half of them, else both have all.
    """

    nodes: Mapping[str, str]
    cpus: int = 4
    memory_mib: int = 8000
    gpus: Mapping[str, int] = dataclasses.field(default_factory=dict)
    gpu_type: str = ""
    indexed: bool = False
    native: frozenset[str] = frozenset()
    apart: bool = False

    def machine(self, name: str) -> state.Node:
        """One of them, by Slurm's name."""
        count = self.gpus.get(name, 0)
        gres = (state.Gres(name="gpu", type=self.gpu_type, count=count),) if count else ()
        external = name not in self.native
        return state.Node(
            name=name,
            cpus=self.cpus,
            memory_mib=self.memory_mib,
            gres=gres,
            indexed=self.indexed,
            external=external,
        )

    def partitions(self) -> tuple[state.Partition, ...]:
        """Those of Slurm; the first is its default."""
        every = tuple(self.nodes.values())
        first, second = (every[::2], every[1::2]) if self.apart else (every, every)
        return state.Partition(name="debug", nodes=first, default=True), state.Partition(name="batch", nodes=second)

    def capacity(self, name: str) -> dict[str, str]:
        """What its kubelet says, by Slurm's name."""
        plugged = name in self.gpus and not self.indexed
        gpus = {"nvidia.com/gpu": str(self.gpus[name])} if plugged else {}
        return {"cpu": str(self.cpus), "memory": f"{self.memory_mib}Mi", "pods": "110", **gpus}


#: Where single pods live: little room, and one machine that has two names.
SMALL = Fleet(nodes={"n1": "n1", "n2": "n2", "n3": "n3", "n4": "s4"})

#: Where there is something to prefer: twice as much of it.
WIDE = Fleet(nodes={f"n{number}": f"n{number}" for number in range(1, 8)} | {"n8": "s8"})

#: The same for each of two partitions of Slurm.
APART = Fleet(nodes={f"n{number}": f"n{number}" for number in range(1, 16)} | {"n16": "s16"}, apart=True)

#: Hybrid nodes: a slurmd and a kubelet on each, and GPUs of which both know the index.
HYBRID = Fleet(
    nodes={"n1": "n1", "n2": "n2", "n3": "n3", "n4": "s4"},
    cpus=8,
    gpus={"n1": 4, "n2": 4, "s4": 2},
    indexed=True,
    native=frozenset({"n1", "n2", "n3", "s4"}),
)

#: GPUs of which a device plugin chooses: on the first node native jobs may have some, on the others are only pods.
PLUGGED = Fleet(
    nodes={"n1": "n1", "n2": "n2", "n3": "n3", "n4": "s4"}, gpus={"n1": 4, "n2": 4}, native=frozenset({"n1"})
)


def hall(machines: int, *, gpu_type: str = "") -> Fleet:
    """Where troupes play: every other machine has GPUs, and the last one has two names."""
    nodes = {f"n{number:02}": f"n{number:02}" for number in range(1, machines + 1)}
    nodes[f"n{machines:02}"] = f"s{machines:02}"
    gpus = {name: 4 for number, name in enumerate(nodes.values()) if number % 2 == 0}
    return Fleet(nodes=nodes, cpus=10, memory_mib=16_000, gpus=gpus, gpu_type=gpu_type)
