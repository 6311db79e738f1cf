"""Actions of many nodes, in few calls: nodes of which Slurm is told the same are told it in one.

Where an answer is lost, nothing is repeated: the next pass reads what became of it.
"""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from slurm_bridge import ports
from slurm_bridge.controllers.nodes import desired_nodes, marks
from slurm_bridge.controllers.nodes.decide import NodeAction, Verb
from slurm_bridge.controllers.nodes.desired_nodes import DesiredNode
from slurm_bridge.controllers.nodes.facts import NodePair
from slurm_bridge.controllers.nodes.marks import AddedFeature, RegistrationRecord
from slurm_bridge.model.job import Outcome
from slurm_bridge.model.slurmnode import NewNodes, NodeChange, NodeOrder

#: Nodes in one call. With GRES they are as many requests, of which each may take as long as an answer is waited for.
MOST: Final = 200
MOST_WITH_GRES: Final = 5

K = TypeVar("K", bound=Hashable)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One node and what is to be done with it."""

    facts: NodePair
    action: NodeAction
    #: It was refused among others: it is tried alone.
    alone: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeCall:
    """One call to Slurm, for the nodes of these names."""

    verb: Verb
    names: tuple[str, ...]
    send: Callable[[], Outcome]


class _Change(Protocol):
    def __call__(self, step: Step, cluster_id: str) -> NodeChange: ...


def calls(steps: Iterable[Step], slurm: ports.Slurm, cluster_id: str) -> Iterator[NodeCall]:
    """The calls that the steps come down to.

    What an administrator's drain may have overtaken is first. Deletions are before additions, because a table of nodes
    may be full.
    """
    by_verb: dict[Verb, list[Step]] = {}
    for step in steps:
        by_verb.setdefault(step.action.verb, []).append(step)
    for names in _chunks(by_verb.get(Verb.DELETE, ())):
        yield NodeCall(verb=Verb.DELETE, names=names, send=functools.partial(slurm.delete_nodes, names))
    for verb, change in _CHANGES.items():
        yield from _alike(by_verb.get(verb, ()), functools.partial(change, cluster_id=cluster_id), slurm)
    yield from _additions(by_verb.get(Verb.CREATE, ()), slurm, AddedFeature(cluster_id))


def _adopt(step: Step, cluster_id: str) -> NodeChange:
    """The record takes the place of the feature with which the node was added."""
    record = RegistrationRecord(cluster=cluster_id, shape=step.facts.added, node=_other_name(step.facts))
    asked = step.facts.asked
    slurm, added = step.facts.slurm, AddedFeature(cluster_id)
    assert slurm is not None
    features = tuple(one for one in slurm.features if not one.startswith(added.prefix))
    if isinstance(asked, DesiredNode) and marks.digest(asked.shape) == record.shape:
        # What was asked for may have changed since the node was added: the record has what the node has.
        own = tuple(one for one in features if one not in asked.shape.partitions or one in asked.features)
        same = set(own) == set(asked.features)
        asked = dataclasses.replace(asked, features=asked.features if same else own, topology=slurm.topology)
        record = _record(step.facts, asked, cluster_id)
    return NodeChange(comment=marks.write(record), features=features or record.features or (desired_nodes.FEATURE,))


def _update(step: Step, cluster_id: str) -> NodeChange:
    """Features of others stay."""
    record, asked, slurm = step.facts.record, step.facts.asked, step.facts.slurm
    assert record is not None
    assert isinstance(asked, DesiredNode)
    assert slurm is not None
    others = [one for one in slurm.features if one not in (*record.features, *asked.features)]
    return NodeChange(
        features=(*asked.features, *others) if record.features != asked.features else None,
        topology=asked.topology if record.topology != asked.topology else None,
        comment=marks.write(_record(step.facts, asked, cluster_id)),
    )


#: What changes of a node that stays.
_CHANGES: Final[Mapping[Verb, _Change]] = {
    Verb.UNDRAIN: lambda step, cluster_id: NodeChange(order=NodeOrder.UNDRAIN),  # noqa: ARG005
    Verb.DRAIN: lambda step, cluster_id: NodeChange(order=NodeOrder.DRAIN, reason=step.action.words),  # noqa: ARG005
    Verb.CLEAR: lambda step, cluster_id: NodeChange(reason=""),  # noqa: ARG005
    Verb.ADOPT: _adopt,
    Verb.UPDATE: _update,
}


def _record(facts: NodePair, asked: DesiredNode, cluster_id: str) -> RegistrationRecord:
    return RegistrationRecord(
        cluster=cluster_id,
        shape=marks.digest(asked.shape),
        node=_other_name(facts),
        features=asked.features,
        topology=asked.topology,
    )


def _other_name(facts: NodePair) -> str:
    """The Kubernetes name where it is another one: records of nodes without are equal, and written in one call."""
    if facts.node is not None:
        return facts.node.metadata.name if facts.node.metadata.name != facts.name else ""
    return ""


def _alike(steps: Iterable[Step], change: Callable[[Step], NodeChange], slurm: ports.Slurm) -> Iterator[NodeCall]:
    for wanted, group in _groups(steps, change).items():
        for names in _chunks(group):
            send = functools.partial(slurm.change_nodes, names, wanted)
            yield NodeCall(verb=group[0].action.verb, names=names, send=send)


def _additions(steps: Iterable[Step], slurm: ports.Slurm, added: AddedFeature) -> Iterator[NodeCall]:
    def alike(step: Step) -> Hashable:
        asked = _asked(step)
        return asked.shape, asked.features, asked.topology

    for group in _groups(steps, alike).values():
        asked = {step.facts.name: _asked(step) for step in group}
        most = MOST_WITH_GRES if _asked(group[0]).shape.gres else MOST
        for names in _chunks(group, most):
            first = asked[names[0]]
            new = NewNodes(
                addresses={name: asked[name].address for name in names},
                shape=first.shape,
                features=(*first.features, added.of(marks.digest(first.shape))),
                topology=first.topology,
            )
            yield NodeCall(verb=Verb.CREATE, names=names, send=functools.partial(slurm.create_nodes, new))


def _asked(step: Step) -> DesiredNode:
    assert isinstance(step.facts.asked, DesiredNode)
    return step.facts.asked


def _groups(steps: Iterable[Step], key: Callable[[Step], K]) -> dict[K, list[Step]]:
    found: dict[K, list[Step]] = {}
    for step in steps:
        found.setdefault(key(step), []).append(step)
    return found


def _chunks(steps: Sequence[Step], most: int = MOST) -> Iterator[tuple[str, ...]]:
    """Names for one call each."""
    together = [step.facts.name for step in steps if not step.alone]
    for first in range(0, len(together), most):
        yield tuple(together[first : first + most])
    yield from ((step.facts.name,) for step in steps if step.alone)
