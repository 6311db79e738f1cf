"""Evictions between queues that concern a workload, as the annotations on its pods say."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge.explain.subjects import ExplainSubject
from slurm_bridge.scheduler.eviction import notes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueuePreemption:
    """`room_made_by`: workloads that are evicted for this one. `makes_room_for`: the one that this one is evicted for.

    With `unasked` no workload asked for it; `makes_room_for` then names the limit that was exceeded.
    """

    room_made_by: tuple[str, ...] = ()
    makes_room_for: str = ""
    unasked: bool = False
    placed: bool = False


def look(subject: ExplainSubject) -> QueuePreemption | None:
    """None if its pods say nothing, or do not exist yet."""
    pods = subject.members if subject.exists else ()
    waiting = [pod for pod in pods if not pod.bound]
    found = QueuePreemption(
        room_made_by=tuple(sorted(notes.room_made_by(waiting).values())),
        makes_room_for=notes.cause(pods),
        unasked=notes.makes_room_for(pods) == "",
        placed=any(pod.bound for pod in pods),
    )
    return found if found.room_made_by or found.makes_room_for else None


def lines(found: QueuePreemption | None) -> Iterator[str]:
    """The text."""
    if found is None:
        return
    if found.room_made_by:
        *others, last = found.room_made_by
        named = f"{', '.join(others)} and {last}" if others else last
        yield (
            f"workloads are evicted for it, because their queues use more than their guarantees: "
            f"{named}; its queue admits it first when they have ended"
        )
    if found.makes_room_for:
        cause = "" if found.unasked else ": the guarantee of that queue covers what this queue has borrowed"
        yield f"it is evicted for {found.makes_room_for}{cause}"
        yield (
            "its pods are evicted, and end within their grace period"
            if found.placed
            else "it has no node yet: its job is cancelled, and it waits in its queue again"
        )


def machine(found: QueuePreemption | None) -> Mapping[str, Any] | None:
    """The JSON document."""
    if found is None:
        return None
    return {"room_made_by": list(found.room_made_by), "makes_room_for": found.makes_room_for}
