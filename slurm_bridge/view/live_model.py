"""The rows of all workloads and nodes, kept current: what a step costs follows what has changed since the last one.

    created   the records report changes from now on, and every workload is looked at in the first step
    step      rows of what has changed, compared with those that viewers have, and written as JSON once for all viewers
    close     the records report nothing any more

Called by one thread at a time; changes are reported by any thread.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.mirror import table
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.view import node_rows, queue_rows, workload_rows
from slurm_bridge.view.decisions import MOST_DECISIONS, DecisionLog
from slurm_bridge.view.node_rows import NativeShare
from slurm_bridge.view.rows import LiveDecision, LiveNode, LiveWorkload
from slurm_bridge.view.workload_rows import Told, ViewRecords

#: The picture of the queues is taken at most so often, in seconds: it costs as much as there are queues.
QUEUES_EVERY: Final = 5.0
#: So many rows are in one piece of a stream, so that a viewer can draw the first ones at once.
PIECE: Final = 500

_encode: Final = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True, slots=True)
class ViewScope:
    """What one viewer may see: workloads of these namespaces (None: of all), and totals of nodes and queues or not."""

    namespaces: frozenset[str] | None
    totals: bool

    def __bool__(self) -> bool:
        """Whether anything may be shown."""
        return self.totals or self.namespaces is None or bool(self.namespaces)

    def sees(self, namespace: str) -> bool:
        """Whether workloads of this namespace may be shown."""
        return self.namespaces is None or namespace in self.namespaces


EVERYTHING: Final = ViewScope(None, totals=True)


class Pictures(Protocol):
    """Where the model reads what only some daemons have: the queues, and which resources are devices."""

    def queues(self) -> Mapping[str, Any] | None: ...

    def devices(self) -> Collection[str]: ...


Row = TypeVar("Row", LiveWorkload, LiveNode, LiveDecision)


@dataclasses.dataclass(slots=True)
class _WrittenRow(Generic[Row]):
    """A row as it was sent last."""

    row: Row
    text: bytes
    namespace: str = ""


class ViewDelta:
    """What has changed in one step; it is written once for each scope, whatever the number of viewers."""

    def __init__(self) -> None:
        self.workloads: list[_WrittenRow[LiveWorkload]] = []
        self.gone: list[tuple[str, int]] = []
        self.nodes: list[_WrittenRow[LiveNode]] = []
        self.nodes_gone: list[str] = []
        self.decisions: list[_WrittenRow[LiveDecision]] = []
        self.queues: bytes | None = None
        self.left_out: int | None = None
        self._texts: dict[ViewScope, bytes] = {}

    def __bool__(self) -> bool:
        lists = (self.workloads, self.gone, self.nodes, self.nodes_gone, self.decisions)
        return any(lists) or self.queues is not None or self.left_out is not None

    def text(self, scope: ViewScope) -> bytes:
        """The JSON object for viewers of this scope; empty if nothing of it is for them."""
        found = self._texts.get(scope)
        if found is None:
            found = self._texts[scope] = self._written(scope)
        return found

    def _written(self, scope: ViewScope) -> bytes:
        parts = [
            _part(b"workloads", [one.text for one in self.workloads if scope.sees(one.namespace)]),
            _part(b"gone", [str(number).encode() for namespace, number in self.gone if scope.sees(namespace)]),
            _part(b"decisions", [one.text for one in self.decisions if scope.sees(one.namespace)]),
        ]
        if scope.totals:
            parts += [
                _part(b"nodes", [one.text for one in self.nodes]),
                _part(b"nodes_gone", [_encode(name) for name in self.nodes_gone]),
                b'"queues":' + self.queues if self.queues is not None else b"",
            ]
        if self.left_out is not None and scope.namespaces is None:
            # Of the other namespaces a viewer learns no number either.
            parts.append(b'"left_out":%d' % self.left_out)
        found = b",".join(part for part in parts if part)
        return b"{%b}" % found if found else b""


def _part(name: bytes, texts: Sequence[bytes]) -> bytes:
    return b'"%b":[%b]' % (name, b",".join(texts)) if texts else b""


def _written_decision(row: LiveDecision) -> _WrittenRow[LiveDecision]:
    return _WrittenRow(row, _encode(row), row.namespace)


class LiveModel:
    """From its creation until `close` the records report changes to it.

    `most` bounds the workloads that are shown; of all others only the number is. `heard` is called with each change.
    """

    def __init__(self, context: SchedulerContext, pictures: Pictures, *, most: int, heard: Callable[[], None]) -> None:
        self._context, self._pictures, self._most, self._tell = context, pictures, most, heard
        self._changed: dict[WorkloadKey, None] = {}
        self._workloads: dict[WorkloadKey, _WrittenRow[LiveWorkload]] = {}
        self._nodes: dict[str, _WrittenRow[LiveNode]] = {}
        self._facts: dict[str, NodeFacts] = {}
        self._native: dict[str, NativeShare] = {}
        self._snapshot: ClusterSnapshot = EMPTY
        self._namespaces: collections.Counter[str] = collections.Counter()
        self._decisions: collections.deque[_WrittenRow[LiveDecision]] = collections.deque(maxlen=MOST_DECISIONS)
        self._heard = 0
        self._queues = b"null"
        self._queues_due = float("-inf")
        self._beyond: set[WorkloadKey] = set()
        self._number = 0
        self._log = DecisionLog(context.status, context.pod_index, context.clock.wall, self._note)
        context.table.changed = self._note
        context.status = self._log
        # What changes from now on is reported: between the two nothing can come that would never be looked at.
        self._changed.update(dict.fromkeys(context.pod_index.roots()))

    def close(self) -> None:
        """The records report nothing any more."""
        self._context.table.changed = table.unobserved
        self._context.status = self._log.inner

    def _note(self, key: WorkloadKey) -> None:
        """A record of this workload has changed; called by any thread."""
        self._changed[key] = None
        self._tell()

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the workloads that are shown."""
        return frozenset(self._namespaces)

    @property
    def told(self) -> Told:
        """What workloads were told last."""
        return self._log.told

    def step(self) -> ViewDelta:
        """What has changed since the last step."""
        delta = ViewDelta()
        self._snapshot, before = self._context.keeper.snapshot(), self._snapshot
        devices = self._pictures.devices()
        self._step_workloads(delta, devices)
        if self._snapshot is not before:
            self._step_nodes(delta, devices)
        self._heard, heard = self._log.since(self._heard)
        guard = self._context.guard
        for row in heard:
            name = f"{row.namespace}/{row.name}"
            written = guard.always("view of decisions", name, functools.partial(_written_decision, row))
            if written is not None:
                delta.decisions.append(written)
        self._decisions.extend(delta.decisions)
        now = self._context.clock.now()
        if now >= self._queues_due:
            self._queues_due = now + QUEUES_EVERY
            queues = guard.always("view of queues", "", self._written_queues)
            if queues is not None and queues != self._queues:
                delta.queues = self._queues = queues
        return delta

    def _written_queues(self) -> bytes:
        return _encode(queue_rows.trees(self._pictures.queues()))

    def _step_workloads(self, delta: ViewDelta, devices: Collection[str]) -> None:
        records, beyond = self.records(self._snapshot, devices), len(self._beyond)
        # All that have changed until now; what changes meanwhile is of the next step.
        for key in tuple(self._changed):
            self._changed.pop(key, None)
            known = self._workloads.get(key)
            if known is None and len(self._workloads) >= self._most:
                self._count_beyond(key)
                continue
            number = known.row.number if known is not None else self._number
            self._context.guard.one("view", key, functools.partial(self._look, delta, records, key, number))
        if len(self._beyond) != beyond:
            delta.left_out = len(self._beyond)

    def _count_beyond(self, key: WorkloadKey) -> None:
        there = self._context.pod_index.workload(key)
        if there:
            self._beyond.add(key)
        else:
            self._beyond.discard(key)

    def _look(self, delta: ViewDelta, records: ViewRecords, key: WorkloadKey, number: int) -> None:
        """Bring the row of one workload up to date."""
        row, known = workload_rows.row(records, key, number), self._workloads.get(key)
        if row is not None and (known is None or row != known.row):
            self._workloads[key] = written = _WrittenRow(row, _encode(row), row.namespace)
            delta.workloads.append(written)
            if known is None:
                self._beyond.discard(key)
                self._number += 1
                self._namespaces[row.namespace] += 1
        elif row is None and known is not None:
            del self._workloads[key]
            delta.gone.append((known.namespace, number))
            self._namespaces -= collections.Counter((known.namespace,))
            self._admit()

    def _admit(self) -> None:
        """There is room for one of those that are not shown: it is looked at in the next step."""
        if self._beyond:
            self._changed[self._beyond.pop()] = None

    def _step_nodes(self, delta: ViewDelta, devices: Collection[str]) -> None:
        """Facts of nodes are frozen, so that those that are the same object are as they were."""
        for name, facts in self._snapshot.nodes.items():
            if self._facts.get(name) is facts:
                continue
            self._facts[name] = facts
            self._context.guard.one("view of nodes", name, functools.partial(self._look_at_node, delta, facts, devices))
        for name in [name for name in self._facts if name not in self._snapshot.names]:
            del self._facts[name]
            self._native.pop(name, None)
            if self._nodes.pop(name, None) is not None:
                delta.nodes_gone.append(name)

    def _look_at_node(self, delta: ViewDelta, facts: NodeFacts, devices: Collection[str]) -> None:
        share = node_rows.native(facts, self._native.get(facts.name), devices)
        if share is not None:
            self._native[facts.name] = share
        row, known = node_rows.row(facts, share, devices), self._nodes.get(facts.name)
        if known is None or row != known.row:
            self._nodes[facts.name] = written = _WrittenRow(row, _encode(row))
            delta.nodes.append(written)

    def records(self, snapshot: ClusterSnapshot, devices: Collection[str]) -> ViewRecords:
        """The records that rows and details are made of."""
        context = self._context
        return ViewRecords(
            pod_index=context.pod_index, table=context.table, snapshot=snapshot, told=self.told, devices=devices
        )

    def full(self, scope: ViewScope) -> Iterator[bytes]:
        """All there is, as JSON objects of the same form as a step's, in pieces; as of the last step."""
        seen = [one for one in self._workloads.values() if scope.sees(one.namespace)]
        for first in range(0, max(1, len(seen)), PIECE):
            piece = ViewDelta()
            piece.workloads = seen[first : first + PIECE]
            if not first:
                piece.nodes, piece.decisions = list(self._nodes.values()), list(self._decisions)
                piece.queues, piece.left_out = self._queues, len(self._beyond)
            yield piece.text(scope)
