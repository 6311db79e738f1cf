"""Reads everything that the judges look at. A part that cannot be read does not stop the others."""

import random
from collections.abc import Callable
from typing import TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.checks import probing, rights
from slurm_bridge.checks.facts import Expectations, Facts
from slurm_bridge.model import kinds
from slurm_bridge.model.slurmconf import SlurmConf
from slurm_bridge.model.slurmnode import Partition, SlurmNode

T = TypeVar("T")


def gather(
    slurm: ports.Slurm,
    cluster: ports.Cluster,
    *,
    clock: ports.Clock,
    dice: random.Random,
    wanted: Expectations,
    conf: Callable[[], SlurmConf | None],
) -> Facts:
    """Some reads, questions about our rights, and one placeholder, which is gone again afterwards."""
    unread: dict[str, str] = {}

    def attempt(name: str, read: Callable[[], T], instead: T) -> T:
        try:
            return read()
        except errors.BridgeError as problem:
            unread[name] = str(problem)
            return instead

    slurm_nodes: tuple[SlurmNode, ...] = attempt("slurm_nodes", lambda: tuple(slurm.nodes()), ())
    partitions: tuple[Partition, ...] = attempt("partitions", lambda: tuple(slurm.partitions()), ())
    probe = None
    if unread:
        # Where Slurm cannot even be read, nothing is ordered: a lost answer would leave a job behind.
        unread["probe"] = "Slurm could not be read"
    else:
        probe = probing.probe(slurm, clock, dice, wanted)
    return Facts(
        slurm_nodes=slurm_nodes,
        partitions=partitions,
        conf=attempt("conf", conf, None),
        heterogeneous=attempt("heterogeneous", slurm.heterogeneous, instead=False),
        rights=attempt("rights", lambda: rights.ask(cluster), ()),
        reviews=attempt("reviews", lambda: rights.may_review_tokens(cluster) if wanted.reviews else None, None),
        nodes=attempt("nodes", lambda: cluster.list(kinds.NODES).items, ()),
        probe=probe,
        unread=unread,
    )
