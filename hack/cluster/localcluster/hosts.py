"""The machines of the local cluster: one list that both halves (Slurm nodes and Kubernetes nodes) are made from.

Kinds of machines stand in contiguous runs, so that every kind is one short hostlist in slurm.conf:

    plain | gpu (untyped) | v100 | a100 | smt (two threads per core) | mapped (another name in Kubernetes)

Real nodes are a list of their own: they run processes, and are never many.
"""

import dataclasses
from collections.abc import Iterable

from localcluster.config import Config
from localcluster.part import PartError

#: Every ordinary machine is in these: the same machines under different rules.
COMMON = ("debug", "batch", "limited", "exclusive", "closed", "blocks")

#: Up to so many machines racks and blocks are small too.
SMALL = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine as both schedulers know it."""

    slurm_name: str
    kube_name: str
    cpus: int
    memory_mib: int
    gpus: int
    gpu_type: str  # "" = the GPUs have no type
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    rack: str
    block: str
    threads_per_core: int
    slices: tuple[str, ...] = ()  # the profiles of one more GPU's parts
    cards: int = 0  # GPUs of another kind, which claims divide


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A run of equal machines."""

    name: str
    percent: int
    partitions: tuple[str, ...]
    has_gpus: bool = False
    gpu_type: str = ""
    threads_per_core: int = 1
    renamed: bool = False


#: The order is the order of the names; the first kind takes what the others leave. Hyperthreaded and renamed machines
#: stay out of the default partition (a job there would get two CPUs for one, or a node whose name has to be mapped)
#: and come last, so that the others fill whole blocks.
KINDS = (
    Kind(name="plain", percent=0, partitions=COMMON),
    Kind(name="gpu", percent=30, partitions=(*COMMON, "gpu"), has_gpus=True),
    Kind(name="v100", percent=10, partitions=(*COMMON, "gpu"), has_gpus=True, gpu_type="v100"),
    Kind(name="a100", percent=10, partitions=(*COMMON, "gpu"), has_gpus=True, gpu_type="a100"),
    Kind(name="smt", percent=10, partitions=("smt",), threads_per_core=2),
    Kind(name="mapped", percent=10, partitions=("mapped",), renamed=True),
)


def slurm_nodes(config: Config) -> tuple[Host, ...]:
    """All machines in the order of their names."""
    width = max(3, len(str(config.nodes)))
    return tuple(_host(config, kind, number, width) for number, kind in enumerate(_kinds(config.nodes), start=1))


def _kinds(nodes: int) -> Iterable[Kind]:
    """The kind of each machine; a cluster too small for all kinds keeps the plain ones."""
    counts = {kind.name: nodes * kind.percent // 100 for kind in KINDS}
    counts["plain"] = nodes - sum(counts.values())
    return (kind for kind in KINDS for _ in range(counts[kind.name]))


def _host(config: Config, kind: Kind, number: int, width: int) -> Host:
    slurm_name = f"ext{number:0{width}}"
    rack = f"rack{(number - 1) // rack_size(config.nodes) + 1}"
    block = f"block{(number - 1) // block_size(config.nodes) + 1}"
    return Host(
        slurm_name=slurm_name,
        kube_name=f"kube-{number}" if kind.renamed else slurm_name,
        cpus=config.cpus,
        memory_mib=config.memory_mib,
        gpus=config.gpus if kind.has_gpus else 0,
        gpu_type=kind.gpu_type,
        features=(kind.name, rack, block),
        partitions=kind.partitions,
        rack=rack,
        block=block,
        threads_per_core=kind.threads_per_core,
    )


#: The partition of the real nodes, which is their rack as well.
HYBRID = "hybrid"

#: The whole GPUs of a real node, and the profiles of the parts of one more, are types of the same GRES.
WHOLE, SLICES = "pretended", ("1g.10gb", "1g.10gb", "2g.20gb")

#: GPUs that are divided when a claim has a part, and how many parts could be made of each. Slurm counts whole ones.
CARDS, PARTS = 2, 7

#: Each has one of the ports that follow each other, and addresses for its pods.
MOST_REAL_NODES = 7


def real_nodes(config: Config) -> tuple[Host, ...]:
    """The nodes with a kubelet and a slurmd, of a fixed size: both sides are told it, whatever the machine has."""
    if not 0 <= config.real_nodes <= MOST_REAL_NODES:
        raise PartError(f"REAL_NODES={config.real_nodes}: from 0 to {MOST_REAL_NODES} are possible")
    return tuple(_real_host(number) for number in range(1, config.real_nodes + 1))


def _real_host(number: int) -> Host:
    return Host(
        slurm_name=f"real{number}",
        kube_name=f"real{number}",
        cpus=4,
        memory_mib=4096,
        gpus=4,
        gpu_type=WHOLE,
        slices=SLICES,
        cards=CARDS,
        features=("real",),
        partitions=(HYBRID,),
        rack=HYBRID,
        block="",
        threads_per_core=1,
    )


def rack_size(nodes: int) -> int:
    """Machines below one leaf switch: small enough that a default cluster has several racks."""
    return 5 if nodes <= SMALL else 20


def block_size(nodes: int) -> int:
    """Machines in one block of the block topology; deliberately not the racks, so that a mix-up shows."""
    return 4 if nodes <= SMALL else 10
