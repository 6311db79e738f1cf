"""The pass over all nodes.

    1 read      Slurm's nodes, if they have changed, and Kubernetes' nodes, which an informer keeps
    2 decide    one action for each node of which anything follows
    3 confirm   what cannot be undone is decided again, by what both servers say at that moment
    4 act       in few calls
    5 show      what Slurm says of its nodes, on the Kubernetes nodes
    6 tell      what hinders a node, as an event on it, once

Nothing is asked about single nodes, and nothing is sent while nothing changes. What a restart loses is `_Memory`.
"""

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.controllers.nodes import desired_nodes, effects, facts, taints, views
from slurm_bridge.controllers.nodes.decide import NodeAction, Verb, decide
from slurm_bridge.controllers.nodes.effects import NodeCall, Step
from slurm_bridge.controllers.nodes.facts import NodePair
from slurm_bridge.controllers.nodes.marks import DrainReasons
from slurm_bridge.controllers.nodes.options import NodeOptions
from slurm_bridge.controllers.nodes.state_writer import StateWriter
from slurm_bridge.controllers.nodes.views import Views
from slurm_bridge.model import kinds
from slurm_bridge.model.job import Done, Refusal, Refused
from slurm_bridge.model.node import Node
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import NodeListing

#: The pause of a node after a refusal, and after an answer that was lost: slurmctld may still act on that call.
REFUSED_SECONDS: Final = 60.0
LOST_SECONDS: Final = 30.0
#: The pause until the next pass when this one has changed something.
SOON_SECONDS: Final = 0.5
#: A reading takes at most this part of the time: passes are this many times as far apart as a reading takes, up to a
#: minute.
SHARE: Final = 30
LONGEST_SECONDS: Final = 60.0
#: Up to so many nodes are looked up one by one, where it has to be certain that they are gone.
FEW: Final = 20

#: What cannot be undone, or is done to many on the word of a cache.
_CONFIRMED: Final = frozenset({Verb.CREATE, Verb.DELETE})
_IDLE: Final = frozenset({Verb.NOTHING, Verb.WAIT, Verb.TELL})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """What the controller uses. `nodes` are all Kubernetes nodes as last heard."""

    cluster: ports.Cluster
    slurm: ports.Slurm
    clock: ports.Clock
    nodes: Callable[[], Sequence[Node]]
    note: Callable[[ports.Note], None]
    count: Callable[[str, str, int], None] = lambda _verb, _outcome, _nodes: None
    #: Called when Slurm has more nodes or fewer.
    changed: Callable[[], None] = lambda: None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """What is remembered of one node of Slurm: what its Kubernetes node was told last, and until when it rests.

    `changed` is the moment at which its resources were first seen to be other ones.
    """

    told: str = ""
    until: float = -math.inf
    alone: bool = False
    changed: float | None = None


class NodeController:
    """Of one daemon; `step` is one pass. `woken` may be called by any thread, everything else by one."""

    def __init__(self, options: NodeOptions, given: NodePorts) -> None:
        self._options, self._given, self._reasons = options, given, DrainReasons(options.cluster_id)
        self._states = StateWriter(options, given.cluster, given.clock, given.note)
        self._listing: NodeListing | None = None
        self._memory: dict[str, _Memory] = {}
        self._woken = threading.Event()
        self._next = self._earliest = -math.inf
        self._reading_seconds = 0.0
        self._partitions: Mapping[str, frozenset[str]] = {}
        self._reservations: tuple[Reservation, ...] = ()

    def woken(self, old: Node | None, new: Node | None) -> None:
        """A Kubernetes node has changed."""
        if old is None or new is None or _meaning(old) != _meaning(new):
            self._woken.set()

    @property
    def due(self) -> bool:
        """A pass is to be made now."""
        now = self._given.clock.now()
        return now >= self._next or (self._woken.is_set() and now >= self._earliest)

    def step(self) -> None:
        """One pass; a server that does not answer is asked again later."""
        self._woken.clear()
        try:
            acted = self._pass()
        except errors.BridgeError as problem:
            logger.warning("nodes are not kept in step, next try in {} s: {}", self._options.poll_seconds, problem)
            acted = False
        now = self._given.clock.now()
        self._earliest = now + min(SHARE * self._reading_seconds, LONGEST_SECONDS)
        self._next = max(self._earliest, now + (SOON_SECONDS if acted else self._options.poll_seconds))

    def _pass(self) -> bool:
        seen = self._seen(fresh=False)
        steps = self._confirmed(self._decided(seen))
        calls = tuple(effects.calls(steps.values(), self._given.slurm, self._options.cluster_id))
        for call in calls:
            self._carry_out(call, steps)
        self._taint(seen)
        shown = self._states.step(seen)
        return bool(calls) or shown

    def _taint(self, seen: Views) -> None:
        """A node that another client has changed meanwhile comes again with that change."""
        for node in seen.nodes.values():
            managed = views.bridged(node, self._options.managed) and len(seen.claims[node.slurm_name]) == 1
            wanted = self._options.taint if managed and node.slurm_name in seen.slurm else None
            patch = taints.changes(node, wanted, self._options.cluster_id)
            if patch is not None:
                try:
                    self._given.cluster.patch(kinds.NODES, node, patch)
                except errors.Disagreement as problem:
                    logger.info("taints of node {} are not changed yet: {}", node.metadata.name, problem)

    def _seen(self, *, fresh: bool) -> Views:
        begun = self._given.clock.now()
        listing = self._given.slurm.node_listing(None if fresh else self._listing)
        self._reading_seconds = self._given.clock.now() - begun
        nodes = self._given.nodes()
        if listing is not self._listing:
            self._partitions = {one.name: one.node_sets for one in self._given.slurm.partitions()}
            reserved = self._options.marking and any("RESERVED" in node.states for node in listing.nodes)
            self._reservations = tuple(self._given.slurm.reservations()) if reserved else ()
        self._listing = listing
        return views.of(nodes, listing, self._partitions, self._reservations)

    def _decided(self, seen: Views) -> dict[str, Step]:
        """The steps that are due, by name. A node that needs nothing is forgotten."""
        now, steps, kept = self._given.clock.now(), dict[str, Step](), dict[str, _Memory]()
        for one in facts.of_all(seen, self._options):
            action, memory = decide(one, self._reasons), self._memory.get(one.name, _Memory())
            since = (now if memory.changed is None else memory.changed) if one.changed else None
            memory = dataclasses.replace(memory, changed=since) if since != memory.changed else memory
            settled = since is None or now >= since + self._options.settle_seconds
            if action.verb is Verb.TELL:
                memory = self._tell(one, action, memory)
            elif action.verb not in _IDLE and now >= memory.until and settled:
                steps[one.name] = Step(facts=one, action=action, alone=memory.alone)
            if action.verb is not Verb.NOTHING:
                kept[one.name] = memory
        self._memory = kept
        return steps

    def _confirmed(self, steps: dict[str, Step]) -> dict[str, Step]:
        """The same, without what both servers do not confirm when they are asked now."""
        if not any(step.action.verb in _CONFIRMED or _leaves(step.facts) for step in steps.values()):
            return steps
        again = self._decided(self._seen(fresh=True))
        gone = self._gone([step.facts for step in again.values() if _leaves(step.facts)])
        return {name: step for name, step in again.items() if not _leaves(step.facts) or name in gone}

    def _gone(self, leaving: Sequence[NodePair]) -> frozenset[str]:
        """Those that the API server, too, does not know as registered."""
        names = {one.name: _kubernetes_name(one) for one in leaving}
        if len(names) > FEW:
            listing = self._given.cluster.list(kinds.NODES)
            present = {node.metadata.name: node for node in listing.items}
            doubtful = {name for _, name in listing.unreadable}
        else:
            found = {name: self._given.cluster.get(kinds.NODES, "", name) for name in names.values()}
            present, doubtful = {name: node for name, node in found.items() if node is not None}, set()
        return frozenset(
            name
            for name, node in names.items()
            if not doubtful & {node, ""} and not _registered(present.get(node), name)
        )

    def _carry_out(self, call: NodeCall, steps: Mapping[str, Step]) -> None:
        outcome = call.send()
        ended = "ok" if isinstance(outcome, Done) else "unknown"
        if isinstance(outcome, Refused):
            ended = outcome.why.name.lower()
        self._given.count(call.verb.value, ended, len(call.names))
        logger.info("{} of {} nodes of Slurm: {}", call.verb.value, len(call.names), ended)
        if isinstance(outcome, Done):
            for name in call.names:
                # What was refused before is over; how long its resources have been other ones is not.
                self._memory[name] = _Memory(changed=self._memory.get(name, _Memory()).changed)
            if call.verb in _CONFIRMED:
                self._given.changed()
            return
        refused = isinstance(outcome, Refused) and outcome.why not in (Refusal.BUSY, Refusal.UNKNOWN_NODE)
        for name in call.names:
            before = self._memory.get(name, _Memory())
            if refused and len(call.names) > 1:
                self._memory[name] = dataclasses.replace(before, alone=True)
                continue
            pause = REFUSED_SECONDS if refused else LOST_SECONDS
            memory = dataclasses.replace(before, until=self._given.clock.now() + pause)
            words = f"Slurm did not {call.verb.value} node {name}: {outcome.message}"
            action = NodeAction(verb=Verb.TELL, event="SlurmRefused", words=words)
            self._memory[name] = self._tell(steps[name].facts, action, memory) if refused else memory

    def _tell(self, one: NodePair, action: NodeAction, memory: _Memory) -> _Memory:
        """The Kubernetes nodes of this name get an event, unless it was the last that they got."""
        if memory.told == action.words:
            return memory
        for node in (one.node,) if one.node is not None else one.rivals:
            if node is not None:
                self._given.note(
                    ports.Note(
                        kind="Node",
                        api_version="v1",
                        namespace="",
                        name=node.metadata.name,
                        uid=node.uid,
                        reason=action.event,
                        message=action.words,
                        action="Registering",
                        warning=True,
                    )
                )
        return dataclasses.replace(memory, told=action.words)


def _leaves(one: NodePair) -> bool:
    return one.record is not None and one.registering and one.asked is None


def _kubernetes_name(one: NodePair) -> str:
    return one.record.node or one.name if one.record is not None else one.name


def _registered(node: Node | None, name: str) -> bool:
    return node is not None and desired_nodes.registered(node) and node.slurm_name == name


def _meaning(node: Node) -> Iterable[object]:
    """All of a node but its heartbeat."""
    meta, status = node.metadata, node.status
    return (meta.labels, meta.annotations, meta.deletion_timestamp, node.spec, status.allocatable, status.addresses)
