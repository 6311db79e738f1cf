"""Both sides at one moment, and which node of one is which of the other.

A node is called in Slurm what its label `slinky.slurm.net/slurm-nodename` says, else what it is called in Kubernetes.
"""

import dataclasses
from collections.abc import Iterable, Mapping

from slurm_bridge.controllers.nodes import desired_nodes
from slurm_bridge.controllers.nodes.node_devices import NodeDevices
from slurm_bridge.controllers.nodes.options import Managed
from slurm_bridge.model import names
from slurm_bridge.model.node import Node
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import NodeListing, SlurmNode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """`claims` are the Kubernetes nodes by the name that each has in Slurm: more than one claim is a mistake.

    `partitions` are those of Slurm, with the NodeSets of each; `reserved` are reservations that no bridge has made, by
    the Slurm names of their nodes. `devices` are those of ResourceSlices by the Kubernetes names of their nodes, None
    while nothing is known of them.
    """

    nodes: Mapping[str, Node]
    claims: Mapping[str, tuple[Node, ...]]
    slurm: Mapping[str, SlurmNode]
    unreadable: frozenset[str] = frozenset()
    partitions: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    reserved: Mapping[str, str] = dataclasses.field(default_factory=dict)
    devices: Mapping[str, NodeDevices] | None = None

    @property
    def names(self) -> Iterable[str]:
        """Slurm's names of all nodes of both sides."""
        return dict.fromkeys((*self.claims, *self.slurm))

    def doubts(self, name: str) -> bool:
        """Slurm has a node of this name, perhaps, and what it says of it cannot be read."""
        return bool(self.unreadable & {name, ""})

    def looks_after(self, node: Node, managed: Managed) -> bool:
        """The controller keeps this node in step, and no other one claims its name in Slurm."""
        return bridged(node, managed) and len(self.claims[node.slurm_name]) == 1


def of(
    nodes: Iterable[Node],
    listing: NodeListing,
    partitions: Mapping[str, frozenset[str]],
    reservations: Iterable[Reservation] = (),
    devices: Mapping[str, NodeDevices] | None = None,
) -> Views:
    """The views of these nodes."""
    every = {node.metadata.name: node for node in nodes}
    claims: dict[str, tuple[Node, ...]] = {}
    for node in every.values():
        claims[node.slurm_name] = (*claims.get(node.slurm_name, ()), node)
    return Views(
        nodes=every,
        claims=claims,
        slurm={node.name: node for node in listing.nodes},
        unreadable=listing.unreadable,
        partitions=partitions,
        reserved={
            name: one.name
            for one in reservations
            if not one.name.startswith(names.RESERVATION_PREFIX)
            for name in one.nodes
        },
        devices=devices,
    )


def bridged(node: Node, managed: Managed) -> bool:
    """The controller keeps this node in step."""
    return managed is Managed.ALL or desired_nodes.labelled(node)
