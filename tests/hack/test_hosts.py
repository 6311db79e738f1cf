"""The machines of the local cluster."""

import collections
import pathlib

import pytest

from localcluster import hosts
from localcluster.config import Config


def machines(nodes: int) -> tuple[hosts.Host, ...]:
    """The machines of a cluster of this size."""
    return hosts.slurm_nodes(Config(directory=pathlib.Path("/nowhere"), nodes=nodes))


@pytest.mark.parametrize(
    ("nodes", "first", "last"), [(1, "ext001", "ext001"), (20, "ext001", "ext020"), (1000, "ext0001", "ext1000")]
)
def test_names_count_from_one_and_are_equally_long(nodes: int, first: str, last: str) -> None:
    """The names are ext followed by at least three digits, as many as the largest number needs."""
    found = machines(nodes)
    assert (len(found), found[0].slurm_name, found[-1].slurm_name) == (nodes, first, last)
    assert len({len(machine.slurm_name) for machine in found}) == 1


def test_a_default_cluster_has_every_kind() -> None:
    """Twenty machines are enough for all kinds, and every kind has at least two."""
    counts = collections.Counter(machine.features[0] for machine in machines(20))
    assert counts == {"plain": 6, "gpu": 6, "v100": 2, "a100": 2, "smt": 2, "mapped": 2}


def test_kinds_stand_together() -> None:
    """Each kind is one run of neighbours, so that it is one short hostlist."""
    kinds = [machine.features[0] for machine in machines(1000)]
    assert kinds == sorted(kinds, key=["plain", "gpu", "v100", "a100", "smt", "mapped"].index)


def test_only_mapped_machines_have_another_name_in_kubernetes() -> None:
    """The names differ exactly in the partition that exists to show it."""
    for machine in machines(20):
        assert (machine.kube_name != machine.slurm_name) == ("mapped" in machine.partitions)


def test_kubernetes_names_are_unique() -> None:
    """No two machines share a name, mapped or not."""
    assert len({machine.kube_name for machine in machines(1000)}) == 1000


def test_gpu_kinds_say_their_type() -> None:
    """Untyped GPUs have an empty type, the other two kinds their own."""
    types = {machine.features[0]: (machine.gpus, machine.gpu_type) for machine in machines(20)}
    assert types["gpu"] == (8, "")
    assert types["v100"] == (8, "v100")
    assert types["a100"] == (8, "a100")
    assert types["plain"] == (0, "")


def test_the_default_partition_has_no_surprises() -> None:
    """A machine with two threads per core or another name in Kubernetes is not in debug."""
    for machine in machines(20):
        if "debug" in machine.partitions:
            assert machine.threads_per_core == 1
            assert machine.kube_name == machine.slurm_name


def test_the_smallest_cluster_is_one_plain_machine() -> None:
    """A single machine is an ordinary one."""
    assert machines(1)[0].features == ("plain", "rack1", "block1")


@pytest.mark.parametrize(("nodes", "racks", "blocks"), [(20, 4, 5), (1000, 50, 100)])
def test_racks_and_blocks_grow_with_the_cluster(nodes: int, racks: int, blocks: int) -> None:
    """Racks and blocks are of different sizes, and there are several of each."""
    found = machines(nodes)
    assert len({machine.rack for machine in found}) == racks
    assert len({machine.block for machine in found}) == blocks
