"""The pass over all nodes.

    1 read      Slurm's nodes, if they have changed, and Kubernetes' nodes, which an informer keeps
    2 decide    one action for each node of which anything follows
    3 confirm   what follows is decided again, by what both servers say at that moment
    4 act       in few calls; Slurm is read once more before each that could hit what an administrator has just done
    5 show      what Slurm says of its nodes, on the Kubernetes nodes
    6 tell      what hinders a node, as an event on it, once

A pass ends early where a server does not answer or where it takes long: the next one goes on.
Nothing is asked about single nodes, and nothing is sent while nothing changes. What a restart loses is `_Memory`.
"""

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.controllers.nodes import desired_nodes, effects, facts, node_devices, node_events, views
from slurm_bridge.controllers.nodes.decide import NodeAction, Verb, decide
from slurm_bridge.controllers.nodes.departures import DepartureBrake
from slurm_bridge.controllers.nodes.desired_nodes import DesiredNode, Unregistrable
from slurm_bridge.controllers.nodes.effects import NodeCall, Step
from slurm_bridge.controllers.nodes.facts import NodePair
from slurm_bridge.controllers.nodes.marks import DrainReasons
from slurm_bridge.controllers.nodes.node_devices import NodeDevices
from slurm_bridge.controllers.nodes.options import NodeOptions
from slurm_bridge.controllers.nodes.state_writer import StateWriter
from slurm_bridge.controllers.nodes.taints import TaintWriter
from slurm_bridge.controllers.nodes.views import Views
from slurm_bridge.model import kinds, texts
from slurm_bridge.model.devices import ResourceSlice
from slurm_bridge.model.job import Done, Refusal, Refused
from slurm_bridge.model.node import Node
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import NodeListing, SlurmNode

#: The pause of a node after a refusal, and after an answer that was lost: slurmctld may still act on that call.
REFUSED_SECONDS: Final = 60.0
LOST_SECONDS: Final = 30.0
#: The pause until the next pass when this one has changed something.
SOON_SECONDS: Final = 0.5
#: A reading takes at most this part of the time: passes are this many times as far apart as a reading takes, up to a
#: minute.
SHARE: Final = 30
LONGEST_SECONDS: Final = 60.0
#: Slurm is asked at least so often for all nodes, not only for changes: its clock may step back.
WHOLE_SECONDS: Final = 60.0
#: A pass sends no further call after so long.
PASS_SECONDS: Final = 20.0
#: Up to so many nodes are looked up one by one, where it has to be certain that they are gone.
FEW: Final = 5

#: The log says once that ResourceSlices are not listed if they are not after so long.
UNLISTED_SECONDS: Final = 30.0

#: These change the number of nodes.
_COUNTED: Final = frozenset({Verb.CREATE, Verb.DELETE})
#: These end, replace or lose a drain, were it an administrator's.
_OVERTAKEN: Final = frozenset({Verb.DELETE, Verb.UNDRAIN, Verb.DRAIN, Verb.CLEAR})
_IDLE: Final = frozenset({Verb.NOTHING, Verb.WAIT, Verb.TELL})

#: What a Kubernetes node asks for in Slurm.
Wish = DesiredNode | Unregistrable | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """What the controller uses. `nodes` are all Kubernetes nodes as last heard.

    `slices` are all ResourceSlices, None before the first list of them; the same sequence while nothing has changed.
    """

    cluster: ports.Cluster
    slurm: ports.Slurm
    clock: ports.Clock
    nodes: Callable[[], Sequence[Node]]
    note: Callable[[ports.Note], None]
    count: Callable[[str, str, int], None] = lambda _verb, _outcome, _nodes: None
    #: Called when Slurm has more nodes or fewer.
    changed: Callable[[], None] = lambda: None
    slices: Callable[[], Sequence[ResourceSlice] | None] = lambda: None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """What is remembered of one node of Slurm: what its Kubernetes node was told last, and until when it rests.

    `changed` is the moment at which its resources were first seen to be other ones. `done` is what Slurm said that it
    did, and what the node was like before. `devices` is what was told of its devices.
    """

    told: str = ""
    until: float = -math.inf
    alone: bool = False
    changed: float | None = None
    done: object = None
    devices: str = ""

    def looked_at(self, action: NodeAction, slurm: SlurmNode | None, now: float) -> "_Memory":
        """A node rests where Slurm said that it did this, and nothing is to be seen of it."""
        if self.done is None:
            return self
        until = now + LOST_SECONDS if self.done == (action, _basis(slurm)) else self.until
        return dataclasses.replace(self, until=until, done=None)


class NodeController:
    """Of one daemon; `step` is one pass. Any thread may call `woken` and `slices_changed`, one thread the others."""

    def __init__(self, options: NodeOptions, given: NodePorts) -> None:
        self._options, self._given, self._reasons = options, given, DrainReasons(options.cluster_id)
        self._states = StateWriter(options, given.cluster, given.clock, given.note)
        self._taints = TaintWriter(options, given.cluster, given.clock)
        self._brake = DepartureBrake(given.clock)
        self._listing: NodeListing | None = None
        self._whole = -math.inf
        self._memory: dict[str, _Memory] = {}
        self._woken = threading.Event()
        self._next = self._earliest = -math.inf
        self._reading_seconds = 0.0
        self._partitions: Mapping[str, frozenset[str]] = {}
        self._reservations: tuple[Reservation, ...] = ()
        self._slices: Sequence[ResourceSlice] | None = None
        self._devices: Mapping[str, NodeDevices] | None = None
        self._unlisted: float | None = None

    def woken(self, old: Node | None, new: Node | None) -> None:
        """A Kubernetes node has changed."""
        if old is None or new is None or _meaning(old) != _meaning(new):
            self._woken.set()

    def slices_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """A ResourceSlice has changed; those of other drivers, and of no single node, do not matter."""
        before, after = ([one.spec] if one is not None and one.spec.node_name else [] for one in (old, new))
        if before != after and any(spec.driver in self._options.device_gres for spec in (*before, *after)):
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
        self._reading_seconds, until = 0.0, self._given.clock.now() + PASS_SECONDS
        seen = self._seen(fresh=False)
        steps = self._decided(seen)
        if steps:
            seen, steps = self._confirmed(steps)
        on = self._act(steps, until)
        self._taints.step(seen, self._given.clock.now() + PASS_SECONDS)
        shown = self._states.step(seen)
        return (bool(steps) and on) or shown

    def _act(self, steps: Mapping[str, Step], until: float) -> bool:
        """Whether all that was sent was answered: else the rest waits, for Slurm has something else to do."""
        for call in effects.calls(steps.values(), self._given.slurm, self._options.cluster_id):
            if self._given.clock.now() >= until:
                break
            for current in self._current(call, steps):
                if not self._carry_out(current, steps):
                    return False
        return True

    def _current(self, call: NodeCall, steps: Mapping[str, Step]) -> Iterable[NodeCall]:
        """The call without the nodes that have changed since it was decided."""
        if call.verb not in _OVERTAKEN:
            return (call,)
        now = {node.name: _basis(node) for node in self._read(None).nodes}
        same = {name: steps[name] for name in call.names if now.get(name) == _basis(steps[name].facts.slurm)}
        if len(same) == len(call.names):
            return (call,)
        return effects.calls(same.values(), self._given.slurm, self._options.cluster_id)

    def _seen(self, *, fresh: bool) -> Views:
        whole = fresh or self._given.clock.now() >= self._whole + WHOLE_SECONDS
        self._whole = self._given.clock.now() if whole else self._whole
        listing = self._read(None if whole else self._listing)
        nodes = self._given.nodes()
        if listing is not self._listing:
            self._partitions = {one.name: one.node_sets for one in self._given.slurm.partitions()}
            reserved = self._options.marking and any("RESERVED" in node.states for node in listing.nodes)
            self._reservations = tuple(self._given.slurm.reservations()) if reserved else ()
        self._listing = listing
        self._count_devices()
        return views.of(nodes, listing, self._partitions, self._reservations, self._devices)

    def _count_devices(self) -> None:
        """Once for each change of the ResourceSlices."""
        if not self._options.device_gres:
            return
        slices, now = self._given.slices(), self._given.clock.now()
        if slices is None:
            self._unlisted = now if self._unlisted is None else self._unlisted
            if now >= self._unlisted + UNLISTED_SECONDS:
                self._unlisted = math.inf
                logger.warning(
                    "nodes.device_gres: ResourceSlices (resource.k8s.io/v1) are not listed; until they are, no node is "
                    "added to Slurm, and registered nodes keep their resources. Does the API server serve them, and is "
                    "deploy/nodes applied? Without DRA drivers, remove nodes.device_gres"
                )
        elif slices is not self._slices:
            self._slices, self._devices = slices, node_devices.by_node(slices, self._options.device_gres)

    def _read(self, known: NodeListing | None) -> NodeListing:
        begun = self._given.clock.now()
        listing = self._given.slurm.node_listing(known)
        self._reading_seconds += self._given.clock.now() - begun
        return listing

    def _decided(self, seen: Views) -> dict[str, Step]:
        """The steps that are due, by name. A node that needs nothing is forgotten."""
        now, steps, kept = self._given.clock.now(), dict[str, Step](), dict[str, _Memory]()
        pairs = tuple(facts.of_all(seen, self._options))
        held = self._brake.holds(sum(map(_leaves, pairs)), sum(one.record is not None for one in pairs))
        for one in pairs:
            action = decide(one, self._reasons)
            memory = self._memory.get(one.name, _Memory()).looked_at(action, one.slurm, now)
            since = (now if memory.changed is None else memory.changed) if one.changed else None
            memory = dataclasses.replace(memory, changed=since) if since != memory.changed else memory
            settled = since is None or now >= since + self._options.settle_seconds
            if action.verb is Verb.TELL:
                memory = self._tell(one, action, memory)
            elif action.verb not in _IDLE and now >= memory.until and settled and not (held and _leaves(one)):
                steps[one.name] = Step(facts=one, action=action, alone=memory.alone)
            memory = self._tell_of_devices(one, memory)
            if action.verb is not Verb.NOTHING or memory.devices:
                kept[one.name] = memory
        self._memory = kept
        return steps

    def _confirmed(self, steps: Mapping[str, Step]) -> tuple[Views, dict[str, Step]]:
        """Both sides once more, and the steps without what the two servers do not confirm when they are asked now.

        The API server is asked first: what Slurm says has to be as young as possible.
        """
        confirmed = self._affirmed([step.facts for step in steps.values() if _doubted(step)])
        seen = self._seen(fresh=True)
        again = self._decided(seen)
        sure = {
            name: step for name, step in again.items() if not _doubted(step) or (name, step.facts.asked) in confirmed
        }
        return seen, sure

    def _affirmed(self, pairs: Sequence[NodePair]) -> frozenset[tuple[str, Wish]]:
        """Those of which the API server, too, says that they ask for this, or for nothing."""
        names = {one.name: _kubernetes_name(one) for one in pairs}
        if len(names) > FEW:
            listing = self._given.cluster.list(kinds.NODES)
            present = {node.metadata.name: node for node in listing.items}
            doubtful = {name for _, name in listing.unreadable}
        else:
            found = {name: self._given.cluster.get(kinds.NODES, "", name) for name in names.values()}
            present, doubtful = {name: node for name, node in found.items() if node is not None}, set()
        devices = self._devices_now([names[one.name] for one in pairs if one.changed])
        return frozenset(
            (one.name, one.asked)
            for one in pairs
            if not doubtful & {names[one.name], ""}
            and self._wish(present.get(names[one.name]), one.name, devices) == one.asked
        )

    def _devices_now(self, nodes: Sequence[str]) -> Mapping[str, NodeDevices]:
        """What the API server says of the devices of these nodes."""
        if not (self._options.device_gres and nodes):
            return {}
        scopes = [ports.Scope(fields=f"spec.nodeName={name}") for name in nodes]
        listings = [
            self._given.cluster.list(kinds.RESOURCESLICES, scope)
            for scope in (scopes if len(scopes) <= FEW else (ports.EVERYWHERE,))
        ]
        return node_devices.by_node((one for listing in listings for one in listing.items), self._options.device_gres)

    def _wish(self, node: Node | None, name: str, devices: Mapping[str, NodeDevices]) -> Wish:
        if node is None or not desired_nodes.registered(node) or node.slurm_name != name:
            return None
        return desired_nodes.of_node(node, self._options, self._partitions, devices)

    def _carry_out(self, call: NodeCall, steps: Mapping[str, Step]) -> bool:
        """Whether Slurm answered for good."""
        outcome = call.send()
        ended = "ok" if isinstance(outcome, Done) else "unknown"
        if isinstance(outcome, Refused):
            ended = outcome.why.name.lower()
        self._given.count(call.verb.value, ended, len(call.names))
        logger.info("{} of Slurm's nodes {}: {}", call.verb.value, texts.listed(sorted(call.names)), ended)
        if isinstance(outcome, Done):
            for name in call.names:
                # What was refused before is over; how long its resources have been other ones is not.
                before, step = self._memory.get(name, _Memory()), steps[name]
                done = (step.action, _basis(step.facts.slurm))
                self._memory[name] = _Memory(changed=before.changed, done=done, devices=before.devices)
            self._whole = -math.inf
            if call.verb in _COUNTED:
                self._given.changed()
            return True
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
        return isinstance(outcome, Refused) and outcome.why is not Refusal.BUSY

    def _tell(self, one: NodePair, action: NodeAction, memory: _Memory) -> _Memory:
        """The Kubernetes nodes of this name get an event, unless it was the last that they got."""
        if memory.told == action.words:
            return memory
        for node in (one.node,) if one.node is not None else one.rivals:
            if node is not None:
                self._given.note(
                    node_events.about(node, action.event, action.words, action="Registering", warning=True)
                )
        return dataclasses.replace(memory, told=action.words)

    def _tell_of_devices(self, one: NodePair, memory: _Memory) -> _Memory:
        """A registered node gets an event, once, if it has devices that do not count."""
        if one.node is None or one.asked is None:
            return dataclasses.replace(memory, devices="") if memory.devices else memory
        devices = (self._devices or {}).get(one.node.metadata.name, {})
        shared = ", ".join(sorted(driver for driver, found in devices.items() if found.shared and not found.wrong))
        wrong = ", ".join(sorted(driver for driver, found in devices.items() if found.wrong))
        said = []
        if shared:
            said.append(
                f"devices of {shared} that consume shared counters (partitions, such as MIG, and their whole devices) "
                "do not count as GRES: Slurm would count them several times"
            )
        if wrong:
            said.append(
                f"devices of {wrong} do not count as GRES: the driver publishes a pool whose shared counters are "
                "missing or there twice, and Kubernetes gives away no device of it"
            )
        words = "; ".join(said)
        if not words or memory.devices == words:
            return memory
        self._given.note(node_events.about(one.node, "DevicesNotCounted", words, action="Registering", warning=True))
        return dataclasses.replace(memory, devices=words)


def _leaves(one: NodePair) -> bool:
    return one.record is not None and one.registering and one.asked is None


def _doubted(step: Step) -> bool:
    """It rests on the word of a cache that a node has gone, or is another one, and cannot be undone."""
    return _leaves(step.facts) or (step.action.verb is Verb.DELETE and step.facts.changed)


def _kubernetes_name(one: NodePair) -> str:
    if one.node is not None and one.asked is not None:
        return one.node.metadata.name
    return one.record.node or one.name if one.record is not None else one.name


def _basis(slurm: SlurmNode | None) -> object:
    """What an order rests on, and what one changes."""
    return slurm and (slurm.states, slurm.reason, slurm.comment, slurm.features, slurm.topology)


def _meaning(node: Node) -> Iterable[object]:
    """All of a node but its heartbeat."""
    meta, status = node.metadata, node.status
    return (meta.labels, meta.annotations, meta.deletion_timestamp, node.spec, status.allocatable, status.addresses)
