"""The default pocket cluster: the same machines as the real local cluster, so that suites run on both.

plain | smt (two threads per core) | gpu (untyped) | v100 | a100 | mapped (another name in Kubernetes)
"""

import dataclasses
from collections.abc import Sequence

from slurm_bridge.sim.slurm import state


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _NodeKind:
    """A group of equal machines."""

    name: str
    percent: int
    gpu_type: str | None = None
    threads_per_core: int = 1


#: The first kind gets the rest.
_KINDS = (
    _NodeKind(name="plain", percent=0),
    _NodeKind(name="gpu", percent=30, gpu_type=""),
    _NodeKind(name="v100", percent=10, gpu_type="v100"),
    _NodeKind(name="a100", percent=10, gpu_type="a100"),
    _NodeKind(name="smt", percent=10, threads_per_core=2),
    _NodeKind(name="mapped", percent=10),
)


def nodes(count: int = 20, *, cpus: int = 64, memory_mib: int = 256_000, gpus: int = 8) -> tuple[state.Node, ...]:
    """Machines ext001, ext002, … in racks and blocks."""
    width = max(3, len(str(count)))
    counts = {kind.name: count * kind.percent // 100 for kind in _KINDS}
    counts["plain"] = count - sum(counts.values())
    kinds = (kind for kind in _KINDS for _ in range(counts[kind.name]))
    rack, block = (5, 4) if count <= 100 else (20, 10)  # noqa: PLR2004 - as in the local cluster
    return tuple(
        state.Node(
            name=f"ext{number:0{width}}",
            cpus=cpus,
            threads_per_core=kind.threads_per_core,
            memory_mib=memory_mib,
            gres=() if kind.gpu_type is None else (state.Gres(name="gpu", type=kind.gpu_type, count=gpus),),
            features=(kind.name, f"rack{(number - 1) // rack + 1}", f"block{(number - 1) // block + 1}"),
            switch=f"rack{(number - 1) // rack + 1}",
            block=f"block{(number - 1) // block + 1}",
        )
        for number, kind in enumerate(kinds, start=1)
    )


def partitions(machines: Sequence[state.Node]) -> tuple[state.Partition, ...]:
    """The partitions of the local cluster over these machines; a partition without machines is left out."""
    common = tuple(node.name for node in machines if not {"smt", "mapped"} & set(node.features))
    gpu = tuple(node.name for node in machines if node.gres)
    rules = (
        state.Partition(name="debug", nodes=common, default=True),
        state.Partition(name="batch", nodes=common),
        state.Partition(name="limited", nodes=common, default_minutes=5, maximum_minutes=10),
        state.Partition(name="exclusive", nodes=common, exclusive=True),
        state.Partition(name="closed", nodes=common, state="DOWN"),
        state.Partition(name="blocks", nodes=common, topology="blocks"),
        state.Partition(name="gpu", nodes=gpu),
        state.Partition(name="smt", nodes=_with_feature(machines, "smt")),
        state.Partition(name="mapped", nodes=_with_feature(machines, "mapped")),
        state.Partition(name="dynamic", nodes=(), feature="dynamic"),
    )
    return tuple(rule for rule in rules if rule.nodes or rule.feature)


def reservations(machines: Sequence[state.Node]) -> tuple[state.Reservation, ...]:
    """One reservation of the last plain machine, for alice and the bridge; it neither kills nor holds jobs."""
    plain = _with_feature(machines, "plain")[-1:]
    users = ("alice", "slurm-bridge")
    return (state.Reservation(name="held", nodes=plain, users=users, flags=("IGNORE_JOBS", "FLEX")),) if plain else ()


def _with_feature(machines: Sequence[state.Node], feature: str) -> tuple[str, ...]:
    return tuple(node.name for node in machines if feature in node.features)
