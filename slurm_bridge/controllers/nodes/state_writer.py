"""Writes on Kubernetes nodes what Slurm says of them: one look at all of them, and a write only for what differs."""

from collections.abc import Callable
from typing import Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.controllers.nodes import availability, node_events
from slurm_bridge.controllers.nodes.availability import OutOfService, Writes
from slurm_bridge.controllers.nodes.marks import DrainReasons
from slurm_bridge.controllers.nodes.options import NodeOptions
from slurm_bridge.controllers.nodes.views import Views
from slurm_bridge.model import kinds, texts
from slurm_bridge.model.node import Node

#: The pause after the API server has refused a write: rights are missing, or an admission policy forbids it.
REFUSED_SECONDS: Final = 60.0
#: So many nodes are written in one pass. The others follow in the next one.
MOST: Final = 200
#: So many writes without an answer in a row end the pass.
SILENT: Final = 3


class StateWriter:
    """Of one daemon. What it remembers is bounded by the number of nodes."""

    def __init__(
        self, options: NodeOptions, cluster: ports.Cluster, clock: ports.Clock, note: Callable[[ports.Note], None]
    ) -> None:
        self._options, self._cluster, self._clock, self._note = options, cluster, clock, note
        self._reasons = DrainReasons(options.cluster_id)
        #: The version of each node on which a write rests: nothing is known of it until the informer has another one.
        self._written: dict[str, str] = {}
        #: When a node is tried again of which a write was refused, or not answered.
        self._paused: dict[str, float] = {}

    def step(self, seen: Views) -> bool:
        """Write what differs; whether anything did. Raises TryLater where the API server does not answer."""
        marking = self._options.marking
        if marking is None:
            return False
        clock = self._clock.now()
        self._paused = {name: until for name, until in self._paused.items() if until > clock and name in seen.nodes}
        self._written = {name: version for name, version in self._written.items() if _version(seen, name) == version}
        now = texts.timestamp(self._clock.wall())
        differing = []
        for node in seen.nodes.values():
            state, busy = self._state(node, seen)
            wanted = availability.writes(node, state, marking, now, by=self._options.cluster_id, busy=busy)
            waits = node.metadata.name in self._written or node.metadata.name in self._paused
            if wanted and not waits and not seen.doubts(node.slurm_name):
                differing.append((node, state, wanted))
        silent = 0
        for node, state, wanted in differing[:MOST]:
            try:
                self._write(node, state, wanted)
                silent = 0
            except errors.TryLater as problem:
                silent += 1
                if silent == SILENT or isinstance(problem, errors.NotLeading):
                    raise
                self._pause(node, problem)
        return bool(differing)

    def _state(self, node: Node, seen: Views) -> tuple[OutOfService | None, bool]:
        """Why Slurm gives it no jobs, and whether jobs run there. A node that is not looked after has neither."""
        slurm = seen.slurm.get(node.slurm_name)
        if slurm is None or not seen.looks_after(node, self._options.managed):
            return None, False
        state = availability.unavailable(slurm, self._reasons.prefix, seen.reserved.get(slurm.name, ""))
        return state, not slurm.vacant

    def _write(self, node: Node, state: OutOfService | None, wanted: Writes) -> None:
        """What another client has changed meanwhile is decided again when the informer has heard of it."""
        try:
            if wanted.node:
                self._cluster.patch(kinds.NODES, node, wanted.node)
            if wanted.status:
                self._cluster.patch(kinds.NODES, node, wanted.status, "status")
                self._tell(node, state)
        except (errors.NotFound, errors.Conflict):
            pass
        except (errors.OperatorMustAct, errors.Invalid) as problem:
            self._pause(node, problem)
        else:
            self._written[node.metadata.name] = node.metadata.resource_version

    def _pause(self, node: Node, problem: errors.BridgeError) -> None:
        self._paused[node.metadata.name] = self._clock.now() + REFUSED_SECONDS
        logger.warning("Slurm's state of node {} cannot be written: {}", node.metadata.name, problem)

    def _tell(self, node: Node, state: OutOfService | None) -> None:
        reason = "SlurmNodeUnavailable" if state else "SlurmNodeInService"
        message = state.message if state else "Slurm starts jobs on the node again"
        self._note(node_events.about(node, reason, message, action="Following", warning=state is not None))


def _version(seen: Views, name: str) -> str:
    node = seen.nodes.get(name)
    return node.metadata.resource_version if node is not None else ""
