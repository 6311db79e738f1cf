"""Evictions as they are shown: each asker with its victims, then victims of queues that are over a maximum."""

import collections
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.families.yunikorn.evictions import Evictions
from slurm_bridge.families.yunikorn.members import QueueMember
from slurm_bridge.hooks.evictions import Recall
from slurm_bridge.model.names import WorkloadKey

#: How far a victim has come.
GOES, GONE = "goes", "gone"

Members = Mapping[WorkloadKey, QueueMember]


def shown(evictions: Evictions, members: Members, now: float) -> list[dict[str, Any]]:
    """Plain values, the longest under way first. `for` is "" without an asker, and `why` says what was too much."""
    since, recalls = evictions.since(), evictions.recalls()
    found = [
        {
            "for": members[uid].demand.title,
            "queue": room.where,
            "why": "",
            **_age(since.get(uid, now), now),
            "victims": [_victim(one, name, members, recalls) for one, name in room.victims.items()],
        }
        for uid, room in evictions.rooms().items()
        if uid in members
    ]
    return sorted((*found, *_unasked(recalls, members, since, now)), key=lambda one: one["since"])


def _unasked(
    recalls: Mapping[WorkloadKey, Recall], members: Members, since: Mapping[WorkloadKey, float], now: float
) -> Iterable[dict[str, Any]]:
    """The same for victims without an asker, by the reason."""
    by_reason: dict[str, list[Recall]] = collections.defaultdict(list)
    for one in recalls.values():
        if not one.asker:
            by_reason[one.cause].append(one)
    for why, those in by_reason.items():
        names = {one.victim: members[one.victim].demand.title for one in those if one.victim in members}
        yield {
            "for": "",
            "queue": "",
            "why": why,
            **_age(min(since.get(one.victim, now) for one in those), now),
            "victims": [_victim(uid, name, members, recalls) for uid, name in names.items()],
        }


def _age(since: float, now: float) -> dict[str, float]:
    return {"since": since, "seconds": round(max(0.0, now - since))}


def _victim(key: WorkloadKey, name: str, members: Members, recalls: Mapping[WorkloadKey, Recall]) -> dict[str, str]:
    goes = key in recalls
    return {
        "workload": name,
        "queue": members[key].queue if goes and key in members else "",
        "state": GOES if goes else GONE,
    }
