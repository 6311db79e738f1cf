"""What the pods of a workload say of queues that take back what others have borrowed: and for whom."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge.explain.subjects import Subject
from slurm_bridge.scheduler.eviction import notes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Yielding:
    """`room_made_by`: the names of those who go for it. `makes_room_for`: a name, or what was too much (`unasked`)."""

    room_made_by: tuple[str, ...] = ()
    makes_room_for: str = ""
    unasked: bool = False
    placed: bool = False


def look(subject: Subject) -> Yielding | None:
    """None where its pods say nothing, or there are none yet."""
    pods = subject.members if subject.exists else ()
    waiting = [pod for pod in pods if not pod.bound]
    found = Yielding(
        room_made_by=tuple(sorted(notes.room_made_by(waiting).values())),
        makes_room_for=notes.cause(pods),
        unasked=notes.makes_room_for(pods) == "",
        placed=any(pod.bound for pod in pods),
    )
    return found if found.room_made_by or found.makes_room_for else None


def lines(found: Yielding | None) -> Iterator[str]:
    """For people."""
    if found is None:
        return
    if found.room_made_by:
        yield (
            f"room is made for it in its queue: {_listed(found.room_made_by)} with more than their queues are entitled "
            f"to have to go, or have gone already; its queue lets it in first when they have"
        )
    if found.makes_room_for:
        cause = "" if found.unasked else ", whose queue is entitled to what this one has borrowed"
        yield f"it has to go for {found.makes_room_for}{cause}"
        yield (
            "its pods are evicted, and end within their grace period"
            if found.placed
            else "it has no node yet: its job is taken back, and it waits in its queue again"
        )


def machine(found: Yielding | None) -> Mapping[str, Any] | None:
    """All of it."""
    if found is None:
        return None
    return {"room_made_by": list(found.room_made_by), "makes_room_for": found.makes_room_for}


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
