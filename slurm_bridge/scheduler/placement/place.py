"""Which member goes to which of the nodes that Slurm gave: members in rank order onto nodes in Slurm's order.

    1 bound      stay where they are, and use up what they need there
    2 quotas     equal members: as even over the nodes as the shares allow, so that no node that was paid for stays
                 empty; where Slurm counted exactly (one share for each task) the shares alone decide
    3 first fit  the others, in rank order, each onto the first node that has room and quota left for it

Room and quotas only ever shrink, and what is bound counts like what will be. So a node that was passed over stays
passed over, and placing anew after any of the members were bound gives the others just what they were given before.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from slurm_bridge.model.job import Gres, NodeShare
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.translate.shapes import Needs

#: Of how many nodes a message says what they lack.
MOST_NODES_SAID = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One pod: what it needs itself, and the Slurm node that it is bound to already. `name` is for messages."""

    uid: str
    cpus: int
    memory_mib: int
    gres: tuple[Gres, ...] = ()
    node: str | None = None
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One component of a job: its members in rank order, and what it holds of each node, in Slurm's order.

    `slots` is what one task was given, where the request was one of equal tasks: a member takes at least that much.
    Members that are bound outside these nodes take nothing of them.
    """

    members: tuple[Member, ...]
    shares: tuple[NodeShare, ...]
    slots: Needs | None = None


#: `cpus`, `memory`, or a GRES: with its type, and without for all types of its name together.
_Key = tuple[str, str]
#: What one member takes, as sorted pairs: equal members have equal needs.
_Need = tuple[tuple[_Key, int], ...]

_CPUS: _Key = ("", "cpus")
_MEMORY: _Key = ("", "memory")


def place(parts: Sequence[Part], *, per_node: int | None = None) -> dict[str, str] | Reject:
    """Slurm's node for each member by uid, the bound ones included; the same answer whenever it is asked.

    No node is given more than its share; `per_node` is how many members it takes at most. Components of a job never
    share a node, so each part is placed alone.
    """
    placed: dict[str, str] = {}
    for part in parts:
        found = _place(part, per_node)
        if isinstance(found, Reject):
            return found
        placed |= found
    return placed


def first_node(pods: Sequence[Pod], nodes: Sequence[str]) -> dict[str, str] | Reject:
    """Node by pod uid, for a single pod that takes the first node whatever it holds there."""
    return {pod.uid: nodes[0] for pod in pods} if nodes else _EMPTY


_EMPTY = Reject(reason="SlurmAllocationEmpty", message="Slurm reports that the job runs, but it has no nodes")


class _Node:
    """What is left of one node's share. A resource that Slurm did not count is not in `left`, and limits nothing."""

    def __init__(self, share: NodeShare, keys: frozenset[_Key]) -> None:
        self.name = share.node
        self.share = {key: amount for key in keys if (amount := _amount(share, key)) is not None}
        self.left = dict(self.share)
        self.members = 0
        self.quota: int | None = None

    @property
    def open(self) -> bool:
        """One more is allowed, whatever it needs."""
        return self.quota is None or self.members < self.quota

    def lacks(self, need: _Need) -> Iterator[_Key]:
        """What there is too little of for such a member."""
        return (key for key, amount in need if self.left.get(key, amount) < amount)

    def take(self, need: _Need) -> None:
        """A member is there."""
        self.members += 1
        for key, amount in need:
            if key in self.left:
                self.left[key] -= amount

    def slots(self, need: _Need, most: int) -> int:
        """How many such members the whole share is enough for."""
        return min((self.share[key] // amount for key, amount in need if key in self.share), default=most)


def _place(part: Part, per_node: int | None) -> dict[str, str] | Reject:
    if not part.shares:
        return _EMPTY
    needs = [_need(member, part.slots) for member in part.members]
    keys = frozenset(key for need in set(needs) for key, _ in need)
    nodes = [_Node(share, keys) for share in part.shares]
    by_name = {node.name: node for node in nodes}
    for member, need in zip(part.members, needs, strict=True):
        if member.node in by_name:
            by_name[member.node].take(need)
    # Those that are, or are to be, on these nodes.
    members = sum(member.node is None or member.node in by_name for member in part.members)
    most = members if per_node is None else min(members, per_node)
    if len(set(needs)) == 1:
        quotas = _even([min(most, node.slots(needs[0], most)) for node in nodes], members)
        for node, quota in zip(nodes, quotas, strict=True):
            node.quota = quota
    elif per_node is not None:
        for node in nodes:
            node.quota = per_node
    return _fill(part.members, needs, nodes)


def _even(slots: Sequence[int], members: int) -> list[int]:
    """As many as there are members, on no node more than its slots, and as equal as that allows; the first get more."""
    level = _level(slots, members)
    quotas = [min(level, slot) for slot in slots]
    more = members - sum(quotas)
    for number, slot in enumerate(slots):
        if more > 0 and slot > level:
            quotas[number] += 1
            more -= 1
    return quotas


def _level(slots: Sequence[int], members: int) -> int:
    """How high members stand on the nodes that are not full."""
    for full, slot in enumerate(sorted(slots)):
        level = members // (len(slots) - full)
        if slot > level:
            return level
        members -= slot
    return max(slots)


def _fill(members: Sequence[Member], needs: Sequence[_Need], nodes: Sequence[_Node]) -> dict[str, str] | Reject:
    placed: dict[str, str] = {}
    #: Before this node none has room for such a member, and none ever will.
    first: dict[_Need, int] = {}
    for member, need in zip(members, needs, strict=True):
        if member.node is not None:
            placed[member.uid] = member.node
            continue
        number = _first_fit(nodes, need, first.get(need, 0))
        if number is None:
            return _too_small(members, member, need, nodes)
        first[need] = number
        nodes[number].take(need)
        placed[member.uid] = nodes[number].name
    return placed


def _first_fit(nodes: Sequence[_Node], need: _Need, start: int) -> int | None:
    fitting = (
        number
        for number in range(start, len(nodes))
        if nodes[number].open and next(nodes[number].lacks(need), None) is None
    )
    return next(fitting, None)


# -- amounts ---------------------------------------------------------------------------------------------------------


def _need(member: Member, slots: Needs | None) -> _Need:
    """What a member takes: what it asks for, and where tasks are equal at least what one was given."""
    need = _amounts(member.cpus, member.memory_mib, member.gres)
    if slots is not None:
        for key, amount in _amounts(slots.cpus, slots.memory_mib, slots.gres).items():
            need[key] = max(amount, need.get(key, 0))
    return tuple(sorted((key, amount) for key, amount in need.items() if amount > 0))


def _amounts(cpus: int, memory_mib: int, gres: Sequence[Gres]) -> dict[_Key, int]:
    found = {_CPUS: cpus, _MEMORY: memory_mib}
    for one in gres:
        # What is taken of a type is taken of the name, too: both have to suffice.
        for key in {(one.name, ""), (one.name, one.type)}:
            found[key] = found.get(key, 0) + one.count
    return found


def _amount(share: NodeShare, key: _Key) -> int | None:
    """How much there is of it, None where Slurm did not count: no pod is ever given 0 of what it asked for."""
    if key == _CPUS:
        return share.cpus
    if key == _MEMORY:
        return share.memory_mib or None
    name, kind = key
    counted = [one for one in share.gres if one.name == name and one.count]
    return sum(one.count for one in counted if kind in ("", one.type) or not one.type) if counted else None


# -- words -----------------------------------------------------------------------------------------------------------


def _too_small(members: Sequence[Member], member: Member, need: _Need, nodes: Sequence[_Node]) -> Reject:
    rank = members.index(member)
    said = [f"node {node.name} {_why(node, need)}" for node in nodes[:MOST_NODES_SAID]]
    if len(nodes) > MOST_NODES_SAID:
        said.append(f"{len(nodes) - MOST_NODES_SAID} more nodes have no room either")
    text = (
        f"what Slurm gave is too small for member {member.name or member.uid} ({rank + 1} of {len(members)}),"
        f" which needs {_words(dict(need))}: {'; '.join(said)}"
    )
    return Reject(reason="AllocationTooSmall", message=text)


def _why(node: _Node, need: _Need) -> str:
    lacking = dict.fromkeys(node.lacks(need))
    if lacking:
        return "has left " + ", ".join(f"{max(0, node.left[key])} of {node.share[key]} {_word(key)}" for key in lacking)
    return f"holds {node.members} already, all that it may"


def _words(amounts: Mapping[_Key, int]) -> str:
    """Of a typed GRES only the type is said."""
    typed = {name for name, kind in amounts if kind and name}
    return ", ".join(f"{amount} {_word(key)}" for key, amount in amounts.items() if key[1] or key[0] not in typed)


def _word(key: _Key) -> str:
    return "MiB of memory" if key == _MEMORY else ":".join(part for part in key if part)
