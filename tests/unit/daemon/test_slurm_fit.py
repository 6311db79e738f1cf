"""Requests are fitted to Slurm's nodes under the names that Slurm has for them, and to what Slurm can."""

import dataclasses

from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.daemon import slurm_fit
from slurm_bridge.model.slurmnode import Partition
from slurm_bridge.model.verdict import Wait
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated
from tests.unit.translate import translating

#: Two nodes with four GPUs, which Kubernetes calls otherwise.
NODES = {one.name: one for one in translating.equal_nodes(2, 4)}
BOTH = frozenset({"k1", "k2"})

GROUP = translating.gang(
    (
        *translating.members(1, translating.asking(1, "1Gi", 2)),
        *translating.members(3, translating.asking(1, "1Gi", 1), first=1),
    )
)


def seen(*, heterogeneous: bool = True) -> ClusterSnapshot:
    """Both sides know both nodes."""
    partition = Partition(name="debug", states=frozenset({"UP"}), nodes=tuple(NODES), default=True)
    return dataclasses.replace(
        EMPTY,
        partitions=(partition,),
        slurm_nodes=NODES,
        by_slurm={"n1": "k1", "n2": "k2"},
        heterogeneous=heterogeneous,
    )


def form(fit: slurm_fit.SlurmFit, snapshot: ClusterSnapshot, *eligible: frozenset[str]) -> Form:
    """In which form Slurm is asked for the group."""
    found = fit(GROUP, snapshot, eligible)
    assert isinstance(found, Translated), found
    return found.form


def test_t25_a_gang_is_fitted_to_the_nodes_that_hooks_know_by_kubernetes_names() -> None:
    """A single node is too small for five GPUs; none that is eligible is none at all."""
    two = translating.gang(translating.members(8, translating.asking(1, "1Gi", 1)))
    fit = slurm_fit.SlurmFit()
    assert isinstance(fit(two, seen(), (BOTH,)), Translated)
    assert isinstance(fit(two, seen(), (frozenset({"k1"}),)), Wait)
    assert isinstance(fit(two, seen(), (frozenset({"n1", "n2"}),)), Wait)


def test_slurm_is_asked_for_components_as_long_as_it_takes_them() -> None:
    """What it can may change while its nodes stay the same."""
    fit, able = slurm_fit.SlurmFit(), seen()
    unable = dataclasses.replace(able, heterogeneous=False)
    assert [form(fit, one, BOTH, BOTH) for one in (able, unable, able)] == [Form.HET, Form.BOUND, Form.HET]


def test_whoever_wants_no_components_gets_none() -> None:
    """Though Slurm could."""
    assert form(slurm_fit.SlurmFit(components=False), seen(), BOTH, BOTH) is Form.BOUND
