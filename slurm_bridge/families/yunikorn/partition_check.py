"""How partitions of queues and partitions of Slurm fit together: each has its own nodes, and both have one name."""

from collections.abc import Mapping, Sequence

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.yunikorn import whole_nodes
from slurm_bridge.families.yunikorn.setup import Setup
from slurm_bridge.model.slurmnode import Partition

_OVERLAP = "each node belongs to the queues of one partition: take it out of one of the two, or use `partitions: one`"


class PartitionCheck:
    """Of one configuration. What partitions share is worked out once for each change of these."""

    def __init__(self, setups: Mapping[str, Setup]) -> None:
        self.setups = setups
        self._last: tuple[Sequence[Partition], Mapping[str, str]] = ((), {})

    def asked(self, text: str | None, snapshot: ClusterSnapshot) -> Sequence[str]:
        """The partitions that a request names, Slurm's default where it names none."""
        if text:
            return tuple(dict.fromkeys(text.split(",")))
        return [one.name for one in whole_nodes.named(text, snapshot.partitions)]

    def overlaps(self, snapshot: ClusterSnapshot) -> Mapping[str, str]:
        """Partitions that share nodes with another one that has queues: which, and an example."""
        partitions = snapshot.partitions
        if self._last[0] is not partitions:
            self._last = partitions, overlaps([one for one in partitions if one.name in self.setups])
        return self._last[1]

    def missing(self, snapshot: ClusterSnapshot) -> tuple[str, ...]:
        """Partitions that Slurm does not have; nothing before Slurm has named its partitions."""
        there = sorted(one.name for one in snapshot.partitions)
        lost = [name for name in self.setups if name not in there] if there else []
        return tuple(
            f"partition {name}: Slurm has no partition of this name, and no workload enters its queues; "
            f"there are {', '.join(there)}"
            for name in lost
        )

    def problems(self, snapshot: ClusterSnapshot) -> tuple[str, ...]:
        """All that does not fit together."""
        return (*dict.fromkeys(self.overlaps(snapshot).values()), *self.missing(snapshot))


def overlaps(partitions: Sequence[Partition]) -> Mapping[str, str]:
    """For each partition that shares nodes with an earlier one, and for that one, words that name both and a node."""
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for one in partitions:
        shared = sorted({node for node in one.nodes if first.setdefault(node, one.name) != one.name})
        if shared:
            other = first[shared[0]]
            more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
            words = f"Slurm partitions {other} and {one.name} share node {shared[0]}{more}: {_OVERLAP}"
            found.update(dict.fromkeys({other, one.name, *(first[node] for node in shared)}, words))
    return found
