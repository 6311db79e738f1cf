"""Reads everything that the checks need. A part that cannot be read does not stop the others."""

import random
from collections.abc import Callable
from typing import TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.checks import placeholder_probe, rights
from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.model import kinds
from slurm_bridge.model.slurmconf import SlurmConf
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.model.slurmtoken import TokenLife
from slurm_bridge.runtime import progress
from slurm_bridge.runtime.progress import Progress

T = TypeVar("T")

#: Eight reads, and a placeholder job.
_STEPS = 10


def gather(  # noqa: PLR0913 - both servers, and what a run of the command has
    slurm: ports.Slurm,
    cluster: ports.Cluster,
    *,
    clock: ports.Clock,
    dice: random.Random,
    wanted: Expectations,
    conf: Callable[[], SlurmConf | None],
    token: Callable[[], TokenLife | None],
    told: Progress = progress.silent,
) -> CheckFacts:
    """Read both servers, ask about our rights, and submit one placeholder, which is cancelled again."""
    unread: dict[str, str] = {}
    numbers = iter(range(_STEPS))

    def attempt(name: str, read: Callable[[], T], instead: T) -> T:
        told(next(numbers), _STEPS, name.replace("_", " "))
        try:
            return read()
        except errors.BridgeError as problem:
            unread[name] = str(problem)
            return instead

    slurm_nodes: tuple[SlurmNode, ...] = attempt("slurm_nodes", lambda: tuple(slurm.nodes()), ())
    partitions: tuple[Partition, ...] = attempt("partitions", lambda: tuple(slurm.partitions()), ())
    probe = None
    if unread:
        # If Slurm cannot be read, nothing is submitted: a lost answer would leave a job behind.
        unread["probe"] = "Slurm could not be read"
    else:
        told(next(numbers), _STEPS, "a placeholder job")
        probe = placeholder_probe.probe(slurm, clock, dice, wanted)
    return CheckFacts(
        slurm_nodes=slurm_nodes,
        partitions=partitions,
        conf=attempt("conf", conf, None),
        token=token(),
        read_at=clock.wall(),
        heterogeneous=attempt("heterogeneous", slurm.heterogeneous, instead=False),
        rights=attempt("rights", lambda: rights.ask(cluster), ()),
        reviews=attempt("reviews", lambda: rights.may_review_tokens(cluster) if wanted.reviews else None, None),
        node_rights=attempt(
            "node_rights", lambda: rights.on_nodes(cluster, wanted) if wanted.node_controller else (), ()
        ),
        lead_rights=attempt("lead_rights", lambda: rights.on_leases(cluster, wanted), ()),
        nodes=attempt("nodes", lambda: cluster.list(kinds.NODES).items, ()),
        probe=probe,
        unread=unread,
    )
