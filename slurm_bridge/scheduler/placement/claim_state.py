"""Claims one by one, before any device is chosen: which alternative counts, and whether what they have is right."""

import dataclasses
from collections.abc import Collection, Sequence

from slurm_bridge.cluster.rules import cpus
from slurm_bridge.model.devices import DeviceId, ResourceClaim
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claim_writes import ReserveClaim, TakeBack
from slurm_bridge.scheduler.placement.node_claims import (
    NOTHING,
    ClaimUse,
    DevicesFound,
    NodeClaims,
    being_written,
    called,
    joined,
    waits,
)
from slurm_bridge.translate import device_claims
from slurm_bridge.translate.device_claims import AskedDevices, Option


def chosen(there: NodeClaims, spot: Spot, found: Sequence[Option]) -> Option:
    """Of the alternatives that Slurm was asked for, those that the claims have, else the first of the node."""
    same = device_claims.meant(found, there.asked.get(spot.pod.uid))
    if len(same) == 1:
        return same[0]
    kept = [one for one in same if all(each.claim.status.allocation is None or each.served for each in one)] or same
    return next((one for one in kept if not there.lacking(device_claims.wish(one))), kept[0])


def unsettled(there: NodeClaims, use: ClaimUse, kept: Collection[DeviceId]) -> DevicesFound:
    """What has to happen to a claim before its devices are chosen, or kept; `kept` are those of other claims."""
    claim = use.claim.claim
    first = being_written(there, claim)
    if first.waiting:
        return first
    unknown = next((one for one in (_unknown(there, asked) for asked in use.claim.asked) if one.waiting), NOTHING)
    if unknown.waiting or claim.status.allocation is None:
        return unknown
    users = {user.uid for user in claim.status.reserved_for}
    # Kubernetes' controller adds pods that have ended now and then, and takes them out again.
    doubted = claim.uid in there.holders.doubted
    twice = not there.units.of(*kept).isdisjoint(there.units.of(*claim.held))
    if not doubted and not twice and _right(there, use):
        if use.uids <= users:
            return NOTHING
        if users.intersection(there.mates) and users <= use.uids.union(there.mates):
            late = tuple(spot.pod for spot in use.spots if spot.pod.uid not in users)
            write = ReserveClaim(claim=claim, pods=late)
            return waits(there, f"{called(claim)} to be there for all its pods", write)
    return joined([taken_back(there, claim, use.uids), DevicesFound(soon=doubted)])


def taken_back(there: NodeClaims, claim: ResourceClaim, pods: Collection[str]) -> DevicesFound:
    """Its pods have no node: what it has is of an earlier allocation. What it gets instead is looked at afterwards."""
    users = {user.uid for user in claim.status.reserved_for}
    if users and users <= set(pods):
        return waits(there, f"{called(claim)} to give back devices of an earlier allocation", TakeBack(claim))
    return dataclasses.replace(waits(there, f"{called(claim)}, which has devices for others"), others=(claim.key,))


def allowed(there: NodeClaims, asked: AskedDevices) -> frozenset[int] | str | None:
    """By index; None where Slurm gives no indices, in words where it cannot be told which CPUs it gives."""
    if asked.row.cpus:
        return cpus.given(there.given.cores, asked.row, there.sight.on(there.node))
    return there.given.of(asked)


def _unknown(there: NodeClaims, asked: AskedDevices) -> DevicesFound:
    """A driver that is started anew publishes its devices again: what is unknown is not gone."""
    row = asked.row
    if there.sight.device_class(row.device_class) is None:
        return waits(there, f"DeviceClass {row.device_class}")
    if not any(one.id.driver == row.driver for one in there.sight.on(there.node)):
        return waits(there, f"driver {row.driver} to publish its devices of node {there.node}")
    return NOTHING


def _right(there: NodeClaims, use: ClaimUse) -> bool:
    """Whether a claim has what it would get now."""
    one = use.claim
    known = {device.id: device for device in there.sight.on(there.node)}
    for asked in one.asked:
        found = one.claim.held_for(asked.request)
        indices = allowed(there, asked)
        if isinstance(indices, str) or (indices is None and not asked.row.chosen):
            return False
        if len(found) != asked.count or not all(
            device in known and (indices is None or known[device].index(asked.row) in indices) for device in found
        ):
            return False
    return sum(asked.count for asked in one.asked) == len(one.claim.held)
