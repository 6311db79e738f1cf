"""Watches: the changes since a version, as they happen, filtered by the query."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from slurm_bridge import ports
from slurm_bridge.sim import http
from slurm_bridge.sim.kube import lists, refusals
from slurm_bridge.sim.kube.lists import Query
from slurm_bridge.sim.kube.store import Compacted, Event, ObjectStore, StoredObject

#: Used if the client gives no timeout.
_LONGEST = 1800

#: A bookmark at this interval, and one shortly before the end, so that the next watch starts there.
_BOOKMARK_EVERY = 60.0
_BOOKMARK_BEFORE_END = 2.0

#: Real seconds between two looks at the clock and at the client.
_LOOK = 0.1

_INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


class WatchStream:
    """One watch, from its request to its end."""

    def __init__(self, store: ObjectStore, clock: ports.Clock, asked: Query, request: http.Request) -> None:
        self._store = store
        self._clock = clock
        self._asked = asked
        self._bookmarks = request.asked("allowWatchBookmarks") in ("true", "1")
        self._streamed_list = request.asked("sendInitialEvents") in ("true", "1")
        if self._streamed_list and request.asked("resourceVersionMatch") != "NotOlderThan":
            raise lists.initial_events_refused()
        # A version from the future is not refused: the watch is silent until the server gets there.
        self._since = lists.version_of(request)
        self._seconds = lists.number("timeoutSeconds", request) or _LONGEST
        self._patient = request.patient

    def pieces(self) -> Iterator[bytes]:
        """The lines of the stream; an empty one means that nothing has happened."""
        end = self._clock.now() + self._seconds
        if not self._since or self._streamed_list:
            yield from self._present()
        bookmark_due = self._next_bookmark(end)
        while self._clock.now() < end:
            try:
                yield from self._news()
            except Compacted as compacted:
                refusal = refusals.expired(f"too old resource version: {self._since} ({compacted.oldest})")
                yield msgspec.json.encode({"type": "ERROR", "object": refusal.status()}) + b"\n"
                return
            if bookmark_due <= self._clock.now() < end:
                bookmark_due = self._next_bookmark(end)
                yield self._bookmark()
            if not self._patient:
                yield from (self._bookmark(),) if self._bookmarks else ()
                return

    def _next_bookmark(self, end: float) -> float:
        now, last = self._clock.now(), end - _BOOKMARK_BEFORE_END
        return min(now + _BOOKMARK_EVERY, last) if self._bookmarks and now < last else math.inf

    def _present(self) -> Iterator[bytes]:
        snapshot = self._store.snapshot(self._asked.view.resource)
        self._since = snapshot.version
        for item in snapshot.items:
            if self._asked.accepts(item):
                yield self._line("ADDED", item)
        if self._streamed_list and self._bookmarks:
            yield self._bookmark(_INITIAL_EVENTS_END)

    def _news(self) -> Iterator[bytes]:
        resource = self._asked.view.resource
        with self._store.changed:
            events = self._store.events(resource, self._since)
            if not events and self._patient:
                self._store.changed.wait(_LOOK)
                events = self._store.events(resource, self._since)
            reached = self._store.version
        if not events:
            yield b""
        for event in events:
            yield from self._told(event)
        self._since = max(self._since, reached)

    def _told(self, event: Event) -> Iterator[bytes]:
        """An object that no longer matches is DELETED for this watch; one that begins to match is ADDED."""
        before = event.old is not None and self._asked.accepts(event.old)
        after = not event.gone and self._asked.accepts(event.new)
        if after:
            yield self._line("MODIFIED" if before else "ADDED", event.new)
        elif before and event.old is not None:
            last = event.new
            if not event.gone:
                # The last state that matched, at the version at which it stopped matching.
                manifest = event.old.manifest()
                manifest["metadata"]["resourceVersion"] = str(event.version)
                last = dataclasses.replace(event.old, version=event.version, body=msgspec.json.encode(manifest))
            yield self._line("DELETED", last)

    def _line(self, what: str, stored: StoredObject) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (what.encode(), self._asked.view.show(stored))

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(self._since), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        view = self._asked.view
        shape = {"kind": view.resource.kind, "apiVersion": view.api_version, "metadata": metadata}
        return msgspec.json.encode({"type": "BOOKMARK", "object": shape}) + b"\n"
