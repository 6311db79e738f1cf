"""Devices one by one: which of those that Slurm has given the claims without devices get."""

from collections.abc import Collection, Iterable, Sequence

from slurm_bridge.cluster.rules import devices
from slurm_bridge.cluster.rules.devices import NodeDevice
from slurm_bridge.model.devices import DeviceId
from slurm_bridge.scheduler.placement import claim_state, claim_writes
from slurm_bridge.scheduler.placement.claim_writes import Allocate, TakeBack
from slurm_bridge.scheduler.placement.node_claims import (
    ClaimNeed,
    DevicesFound,
    NodeClaims,
    being_written,
    called,
    failed,
    joined,
    waits,
)
from slurm_bridge.translate.device_claims import AskedDevices, ClaimKey


def serve(there: NodeClaims, needs: Sequence[ClaimNeed], kept: Collection[DeviceId]) -> DevicesFound:
    """A device for each need: of those that nothing has, else of those that something has still.

    `kept` are those of claims of the same job that have theirs.
    """
    mine = frozenset(kept)
    choices: list[Sequence[NodeDevice]] = []
    for need in needs:
        found = _candidates(there, need.asked)
        if isinstance(found, DevicesFound):
            return found
        choices.append([one for one in found if not _overlapping(there, one) & mine])
    pairs = list(zip(needs, choices, strict=True))
    free = devices.distributed(
        [(need.asked, [one for one in found if not _others(there, one, need)]) for need, found in pairs]
    )
    if free is not None:
        return _allocated(there, needs, free)
    wanted = devices.distributed([(need.asked, found) for need, found in pairs])
    if wanted is None:
        of = called(needs[0].use.claim.claim)
        among = f"among those that Slurm allocated there ({there.given.text or 'no index'})"
        return failed(there, f"node {there.node} has no devices for {of} {among}")
    known = {one.id: one for _, found in pairs for one in found}
    taken = [
        other
        for need, found in zip(needs, wanted, strict=True)
        for device in found
        for other in _others(there, known[device], need)
    ]
    # What another claim of this job may have by a lost answer, the watch does not tell if it was never written.
    own = {need.key for need in needs}
    soon = any(there.holders.of[device].key in own for device in taken)
    return joined([*_awaited(there, taken), DevicesFound(soon=soon)])


def _candidates(there: NodeClaims, asked: AskedDevices) -> tuple[NodeDevice, ...] | DevicesFound:
    indices, row = claim_state.allowed(there, asked), asked.row
    if asked.every and not there.sight.has_all(asked, there.node):
        return failed(there, f"node {there.node} has not all of the devices that request {asked.request} is for")
    if isinstance(indices, str):
        return failed(there, f"node {there.node}: {indices}")
    if indices is None and not row.chosen:
        text = (
            f"Slurm gave no indices of gres {row.gres.name} on node {there.node}, and DeviceClass {row.device_class} "
        )
        return failed(there, f"{text}needs them (without_index: refuse)")
    found = there.sight.fitting(asked, there.sight.on(there.node))
    return found if indices is None else tuple(one for one in found if one.index(row) in indices)


def _others(there: NodeClaims, one: NodeDevice, need: ClaimNeed) -> list[DeviceId]:
    """Devices that would be there twice and that a claim has: but for that of the need, it may by a lost answer."""
    holders = there.holders.of
    return [
        device for device in sorted(_overlapping(there, one)) if device in holders and holders[device].key != need.key
    ]


def _overlapping(there: NodeClaims, one: NodeDevice) -> frozenset[DeviceId]:
    """The device, and all that share counters with it."""
    if not one.device.consumes_counters:
        return frozenset({one.id})
    sets, pool = one.device.counter_sets, one.id[:2]
    return frozenset(
        other.id
        for other in there.sight.all_on(there.node)
        if other.id[:2] == pool and not sets.isdisjoint(other.device.counter_sets)
    )


def _allocated(there: NodeClaims, needs: Sequence[ClaimNeed], found: Sequence[tuple[DeviceId, ...]]) -> DevicesFound:
    by_claim: dict[ClaimKey, list[tuple[ClaimNeed, DeviceId]]] = {}
    for need, given in zip(needs, found, strict=True):
        by_claim.setdefault(need.key, []).extend((need, device) for device in given)
    return joined(_gets(there, pairs) for pairs in by_claim.values())


def _gets(there: NodeClaims, pairs: Sequence[tuple[ClaimNeed, DeviceId]]) -> DevicesFound:
    """One claim, all its devices."""
    use = pairs[0][0].use
    write = Allocate(
        claim=use.claim.claim,
        pods=tuple(spot.pod for spot in use.spots),
        node=there.node,
        devices=tuple((need.asked, device) for need, device in pairs),
        configs=tuple(claim_writes.configs(use.claim, there.sight)),
    )
    return waits(there, f"{called(use.claim.claim)} to get its devices", write)


def _awaited(there: NodeClaims, taken: Iterable[DeviceId]) -> Iterable[DevicesFound]:
    """Devices that other claims still have."""
    holding = {there.holders.of[device].key: (there.holders.of[device], device) for device in taken}
    for key, (claim, device) in holding.items():
        words = f"device {device} of node {there.node}, which {called(claim)} still has"
        yield DevicesFound(waiting={words: there.node}, others=(key,))
        written = being_written(there, claim)
        if written.waiting:
            yield written
        elif there.holders.left(claim):
            yield DevicesFound(writes=(TakeBack(claim),))
