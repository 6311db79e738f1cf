"""What went wrong with a workload on which node, so that the next attempt goes elsewhere, and how often in a row.

A node is avoided for a while only: it may be repaired, and the memory is bounded. It is filed under the controller,
because a pod that a kubelet refused is replaced by another of the same kind. A reason that can be seen counts no longer
than that: until the node is uncordoned, or has room again. Earlier pods on a node count as long as they are there. A
hook that goes on denying a node may have a reason that nothing shows: then the node is avoided as any other, or the
workload would never wait for another one.
"""

import math
from collections.abc import Callable, Mapping

from slurm_bridge.cluster.snapshot import NodeFacts
from slurm_bridge.model.meta import Object
from slurm_bridge.model.names import WorkloadKey, workload_key
from slurm_bridge.scheduler.state import AvoidedNodes, Bad, Held, Roll, Stumbles, WorkloadStore
from slurm_bridge.workloads.kind_table import WATCHED

#: Whether the reason is still to be seen of a node.
NodeTest = Callable[[NodeFacts | None], bool]

#: So often in a row a node is avoided for a short time only.
MOST_SHORT = 2

#: A node that goes on being no good is avoided for longer each time, up to so many times as long: of two such nodes one
#: would else be tried again and again while the other one is avoided, and no third node ever.
MOST_LONGER = 8


def _always(_node: NodeFacts | None) -> bool:
    """The reason has nothing to do with what can be seen of the node."""
    return True


class Avoided:
    """Nodes by the key of a workload or its controller."""

    def __init__(self, states: WorkloadStore, *, seconds: float = 600.0, most: int = 10_000) -> None:
        self.seconds, self._most = seconds, most
        self._states, self._unlucky, self._stumbling = states, Roll(), Roll()

    def add(
        self,
        key: WorkloadKey,
        node: str,
        why: str,
        now: float,
        *,
        holds: NodeTest = _always,
        seconds: float | None = None,
    ) -> None:
        """This node was no good for this workload, and will not be while this holds; for so many seconds at most."""
        with self._states.lock:
            known = self._open(key)
            before = known.nodes.get(node)
            times = 1 + (before.times if before is not None and now < before.until + self.seconds else 0)
            if seconds is None or times > MOST_SHORT:
                holds, seconds = holds if seconds is None else _always, self.seconds
            longer = min(max(times - MOST_SHORT, 1), MOST_LONGER)
            bad = Bad(why, now + min(seconds, self.seconds) * longer, holds, times)
            if before is not None and before.holds is _always and before.until > bad.until:
                bad = before
            known.nodes = {name: one for name, one in known.nodes.items() if now < one.until + self.seconds}
            known.nodes[node] = bad
            self._forget_first()

    def until(self, key: WorkloadKey, node: str, why: str, now: float, holds: NodeTest) -> None:
        """This node is no good for this workload as long as this holds, however long that is."""
        with self._states.lock:
            known = self._open(key)
            before = known.nodes.get(node)
            if before is None or before.holds is not _always or before.until <= now:
                known.nodes[node] = Bad(why, math.inf, holds, before.times if before is not None else 0)
            self._forget_first()

    def waits_for(self, key: WorkloadKey, node: str, now: NodeFacts | None) -> bool:
        """An event ends for how long the workload avoids this node, and has not come yet."""
        state = self._states.find(key)
        bad = state.avoided.nodes.get(node) if state is not None and state.avoided is not None else None
        return bad is not None and bad.until == math.inf and bad.holds(now)

    def _open(self, key: WorkloadKey) -> AvoidedNodes:
        state = self._states.open(key)
        known = state.avoided
        number = self._unlucky.enter(key, known.number if known is not None else None)
        if known is None:
            known = state.avoided = AvoidedNodes(number=number)
        known.number = number
        return known

    def _forget_first(self) -> None:
        for first in self._unlucky.beyond(self._most):
            self._states.open(first).avoided = None
            self._states.close(first)

    def stumble(self, key: WorkloadKey) -> int:
        """Something went wrong; how often it did before, since the last success."""
        with self._states.lock:
            state = self._states.open(key)
            known = state.stumbles
            number = self._stumbling.enter(key, known.number if known is not None else None)
            before = known.count if known is not None else 0
            state.stumbles = Stumbles(number=number, count=before + 1)
            for first in self._stumbling.beyond(self._most):
                self._states.open(first).stumbles = None
                self._states.close(first)
            return before

    def success(self, key: WorkloadKey) -> None:
        """The count starts again; what is known of the nodes stays until it is old."""
        with self._states.lock:
            state = self._states.find(key)
            if state is not None and state.stumbles is not None:
                self._stumbling.leave(state.stumbles.number)
                state.stumbles = None
                self._states.close(key)

    def tries(self, key: WorkloadKey) -> int:
        """How many bad experiences in a row."""
        state = self._states.find(key)
        known = state.stumbles if state is not None else None
        return known.count if known is not None else 0

    def nodes(
        self, keys: tuple[WorkloadKey, ...], now: float, look: Callable[[str], NodeFacts | None]
    ) -> Mapping[str, Bad]:
        """The nodes that pods with one of these keys avoid; `look` finds a node as it is now."""
        with self._states.lock:
            states = map(self._states.find, keys)
            known = [state.avoided.nodes for state in states if state is not None and state.avoided is not None]
            bad = {node: one for nodes in known for node, one in nodes.items() if one.until > now}
        return {node: one for node, one in bad.items() if one.holds(look(node))}


class Holds:
    """The objects whose pods are not to get another job by themselves, and why: as long as the object is there."""

    def __init__(self, states: WorkloadStore, *, most: int = 10_000) -> None:
        self._states, self._most = states, most
        self._roll = Roll()

    def __len__(self) -> int:
        return len(self._roll)

    def put(self, key: WorkloadKey, why: str) -> None:
        """From now on; of too many those that were not asked about for longest are forgotten."""
        with self._states.lock:
            state = self._states.open(key)
            before = state.held.number if state.held is not None else None
            state.held = Held(number=self._roll.enter(key, before), why=why)
            for first in self._roll.beyond(self._most):
                self._states.open(first).held = None
                self._states.close(first)

    def get(self, key: WorkloadKey) -> str | None:
        """Why it is held, None when it is not."""
        state = self._states.find(key)
        if state is None or state.held is None:
            return None
        with self._states.lock:
            held = state.held
            if held is None:
                return None
            held.number = self._roll.enter(key, held.number)
            return held.why

    def deleted(self, gone: Object) -> None:
        """Its pods are held no longer."""
        meta = gone.metadata
        with self._states.lock:
            for kind in WATCHED if len(self._roll) else ():
                key = workload_key(kind.kind, meta.namespace, meta.name, meta.uid)
                state = self._states.find(key)
                if state is not None and state.held is not None:
                    self._roll.leave(state.held.number)
                    state.held = None
                    self._states.close(key)
