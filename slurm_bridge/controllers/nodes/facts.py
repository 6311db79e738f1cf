"""All that is known of one node of Slurm, as the decision needs it."""

import dataclasses
from collections.abc import Iterator

from slurm_bridge.controllers.nodes import availability, desired_nodes, marks, views
from slurm_bridge.controllers.nodes.desired_nodes import DesiredNode, Unregistrable
from slurm_bridge.controllers.nodes.marks import AddedFeature, DrainReasons, RegistrationRecord
from slurm_bridge.controllers.nodes.options import NodeOptions
from slurm_bridge.controllers.nodes.views import Views
from slurm_bridge.model.node import Node
from slurm_bridge.model.slurmnode import SlurmNode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePair:
    """One name. `node` is the Kubernetes node of this name, if exactly one is; `rivals` are several.

    `draining` and `registering` say which of both the administrator wants at all.

    `asked` is what the node asks for in Slurm, None unless it is to be registered. `record` says that this bridge has
    added the node, `foreign` that another one has. `former` is another node of Slurm that this bridge added for the
    same Kubernetes node, which had another name then.
    """

    name: str
    node: Node | None = None
    rivals: tuple[Node, ...] = ()
    bridged: bool = False
    draining: bool = True
    registering: bool = True
    asked: DesiredNode | Unregistrable | None = None
    slurm: SlurmNode | None = None
    unreadable: bool = False
    record: RegistrationRecord | None = None
    foreign: bool = False
    our_reason: bool = False
    #: The shape with which this bridge has just added the node, as long as it has no record.
    added: str = ""
    former: str = ""

    @property
    def cordoned(self) -> bool:
        """An administrator of Kubernetes has cordoned it: not this bridge, for what Slurm says."""
        return self.node is not None and self.node.spec.unschedulable and not availability.cordoned_here(self.node)

    @property
    def deserted(self) -> bool:
        """It was added for a node that has gone or has another name now; one that claims its name waits for its end."""
        if self.record is None or not self.registering:
            return False
        claimants = (self.node,) if self.node is not None else self.rivals
        return all(node.metadata.name != (self.record.node or self.name) for node in claimants)

    @property
    def changed(self) -> bool:
        """Slurm can only be told by adding the node anew: it is another machine, or has other resources."""
        if self.record is None or self.asked is None:
            return False
        return self.deserted or (
            isinstance(self.asked, DesiredNode) and marks.digest(self.asked.shape) != self.record.shape
        )

    @property
    def outdated(self) -> bool:
        """Slurm can be told while the node is there."""
        if self.record is None or not isinstance(self.asked, DesiredNode):
            return False
        return (self.record.features, self.record.topology) != (self.asked.features, self.asked.topology)


def of_all(seen: Views, options: NodeOptions) -> Iterator[NodePair]:
    """The facts of every node of which anything could follow."""
    reasons, taken = DrainReasons(options.cluster_id), _taken(seen, options)
    for name in seen.names:
        claims, slurm = seen.claims.get(name, ()), seen.slurm.get(name)
        concerned = [node for node in claims if views.bridged(node, options.managed)]
        # Of two nodes of one name the one that was named on purpose counts, unless both were.
        chosen = claims if len(claims) == 1 else tuple(concerned) if len(concerned) == 1 else ()
        node = chosen[0] if chosen else None
        record = marks.read(slurm.comment) if slurm is not None and slurm.external and slurm.dynamic else None
        mine = record is not None and record.cluster == options.cluster_id
        our_reason = slurm is not None and reasons.ours(slurm.reason)
        yield NodePair(
            name=name,
            node=node,
            rivals=() if chosen else claims,
            bridged=bool(concerned),
            draining=options.drain,
            registering=options.register,
            asked=_asked(node, options, seen) if node is not None and options.register else None,
            slurm=slurm,
            unreadable=seen.doubts(name),
            record=record if mine else None,
            foreign=record is not None and not mine,
            our_reason=our_reason,
            added=_added(slurm, options) if slurm is not None and record is None else "",
            former=_former(node, name, taken) if node is not None else "",
        )


def _asked(node: Node, options: NodeOptions, seen: Views) -> DesiredNode | Unregistrable | None:
    if not desired_nodes.registered(node):
        return None
    if not desired_nodes.usable_name(node.slurm_name):
        return Unregistrable(message=f"{node.slurm_name!r} cannot be the name of a node in Slurm")
    if any(node.slurm_name in sets for sets in seen.partitions.values()):
        return Unregistrable(message=f"{node.slurm_name!r} is the name of a NodeSet in Slurm")
    return desired_nodes.of_node(node, options, seen.partitions, seen.devices)


def _added(slurm: SlurmNode, options: NodeOptions) -> str:
    mine = slurm.external and slurm.dynamic
    return AddedFeature(options.cluster_id).shape(slurm.features) if mine else ""


def _taken(seen: Views, options: NodeOptions) -> dict[str, tuple[str, ...]]:
    """Nodes of Slurm that this bridge added, by the Kubernetes node for which."""
    found: dict[str, tuple[str, ...]] = {}
    for slurm in seen.slurm.values():
        record = marks.read(slurm.comment) if slurm.external and slurm.dynamic else None
        if record is not None and record.cluster == options.cluster_id:
            node = record.node or slurm.name
            found[node] = (*found.get(node, ()), slurm.name)
    return found


def _former(node: Node, name: str, taken: dict[str, tuple[str, ...]]) -> str:
    return next((other for other in taken.get(node.metadata.name, ()) if other != name), "")
