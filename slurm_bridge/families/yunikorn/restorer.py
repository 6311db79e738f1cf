"""What the core is told when it begins: all that pods and placeholders say, in one request."""

import dataclasses
from collections.abc import Mapping, Sequence

from slurm_bridge.families.yunikorn import core_requests
from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.families.yunikorn.engine import RM
from slurm_bridge.families.yunikorn.members import QueueMember
from slurm_bridge.families.yunikorn.queues.records import Application, AskId, Eviction, NodeReport, Update
from slurm_bridge.hooks.lifecycle import ActiveUsage
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestoredWorkload:
    """A workload that something is known of when the queues begin; as `hooks.lifecycle.ActiveUsage` has it."""

    demand: CoreDemand
    started: bool = True
    makes_room_for: WorkloadKey = NO_WORKLOAD
    leaves: bool = False
    waits: bool = False
    room_made_by: Mapping[WorkloadKey, str] = dataclasses.field(default_factory=dict)


def known(one: ActiveUsage, demand: CoreDemand) -> RestoredWorkload:
    """What the scheduler has found on both sides. Members that are missing count as those that are there."""
    return RestoredWorkload(
        demand=demand.of_members(len(one.ask.workload.pods), one.missing),
        started=one.started,
        makes_room_for=one.makes_room_for,
        leaves=one.leaves,
        waits=one.waits,
        room_made_by=one.room_made_by,
    )


Pairs = Sequence[tuple[RestoredWorkload, QueueMember]]


def kinds(known: Pairs) -> Mapping[str, int]:
    """Every resource that one of them uses or wants."""
    return {kind: 0 for one, _ in known for kind in one.demand.total}


def update(known: Pairs, *, nodes: tuple[NodeReport, ...]) -> Update:
    """Workloads that keep something count whatever the limits say; of the others only those for which room is made."""
    kept = [member for one, member in known if not one.waits]
    waiting = [member for one, member in known if one.waits]
    return Update(
        rm=RM,
        nodes=nodes,
        applications=_applications(kept, waiting),
        standing=tuple(map(core_requests.standing, kept)),
        started=tuple(core_requests.id_of(member) for one, member in known if one.started and not one.waits),
        asks=tuple(map(core_requests.ask, waiting)),
        evicting=_evicting(known),
    )


def _applications(kept: Sequence[QueueMember], waiting: Sequence[QueueMember]) -> tuple[Application, ...]:
    """Each once; those of which something is kept are there whatever the limits say."""
    there = {member.application.name: core_requests.forced(member.application) for member in kept}
    others = {member.application.name: core_requests.application(member.application) for member in waiting}
    return tuple((others | there).values())


def askers(known: Pairs, told: Update) -> Pairs:
    """The workloads for which victims go, or have gone. All else that pods say of that is not true."""
    names = {one.asker.key for one in told.evicting if one.asker is not None}
    return [(one, member) for one, member in known if member.name in names]


def _evicting(known: Pairs) -> tuple[Eviction, ...]:
    """What was under way when the one before ended.

    A victim that has gone is known to its asker only, and the room that it left is the asker's. A victim that is being
    deleted goes. One that stays goes if its own record names the asker: not because others say so.
    """
    pairs = {one.demand.uid: (one, member) for one, member in known}
    found: dict[WorkloadKey, Eviction] = {}
    for asker, member in known:
        # Their names in the core are not known any more: it is enough that they are not there.
        gone = [uid for uid in asker.room_made_by if uid not in pairs or pairs[uid][0].waits]
        there = {uid: _eviction(core_requests.id_of(victim), member) for uid, victim in _victims(asker, pairs).items()}
        found |= there | {uid: _eviction(core_requests.gone(uid), member) for uid in gone}
    left = [(one, member) for one, member in known if one.leaves and one.demand.uid not in found]
    return (*found.values(), *(_eviction(core_requests.id_of(member), None) for _, member in left))


def _victims(
    asker: RestoredWorkload, pairs: Mapping[WorkloadKey, tuple[RestoredWorkload, QueueMember]]
) -> Mapping[WorkloadKey, QueueMember]:
    """Those that are still there. All of a plan say so before the first of them is evicted: else it has not begun."""
    there = {uid: pairs[uid] for uid in asker.room_made_by if uid in pairs and not pairs[uid][0].waits}
    begun = all(one.leaves or one.makes_room_for == asker.demand.uid for one, _ in there.values())
    return {uid: member for uid, (one, member) in there.items() if one.leaves or begun}


def _eviction(victim: AskId, asker: QueueMember | None) -> Eviction:
    message = "preempted as decided before a restart"
    return Eviction(victim=victim, asker=core_requests.id_of(asker) if asker else None, message=message)
