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
    shares = _Shares(there, kept)
    choices: list[tuple[NodeDevice, ...]] = []
    for need in needs:
        found = shares.candidates(need.asked)
        if isinstance(found, DevicesFound):
            return found
        choices.append(found)
    pairs = list(zip(needs, choices, strict=True))
    free = devices.distributed([(need.asked, shares.free(need, found)) for need, found in pairs])
    if free is not None:
        return _allocated(there, needs, free)
    wanted = devices.distributed([(need.asked, found) for need, found in pairs])
    if wanted is None:
        of = called(needs[0].use.claim.claim)
        among = f"among those that Slurm allocated there ({there.given.text or 'no index'})"
        return failed(there, f"node {there.node} has no devices for {of} {among}")
    taken = [
        other
        for need, found in zip(needs, wanted, strict=True)
        for device in found
        for other in shares.others(device, need.key)
    ]
    # What another claim of this job may have by a lost answer, the watch does not tell if it was never written.
    own = {need.key for need in needs}
    soon = any(there.holders.of[device].key in own for device in taken)
    return joined([*_awaited(there, taken), DevicesFound(soon=soon)])


class _Shares:
    """What of the devices of the node each claim has. Many needs are alike: for these it is found out once."""

    def __init__(self, there: NodeClaims, kept: Collection[DeviceId]) -> None:
        self._there, self._mine = there, there.units.of(*kept)
        self._candidates: dict[AskedDevices, tuple[NodeDevice, ...] | DevicesFound] = {}
        self._free: dict[tuple[AskedDevices, ClaimKey], tuple[NodeDevice, ...]] = {}
        self._held: dict[DeviceId, list[DeviceId]] = {}
        for device in there.holders.of:
            for unit in there.units.of(device):
                self._held.setdefault(unit, []).append(device)

    def candidates(self, asked: AskedDevices) -> tuple[NodeDevice, ...] | DevicesFound:
        """Those of the allocation, but for what claims of the same job have; or what is wrong."""
        known = self._candidates.get(asked.nameless)
        if known is None:
            known = _candidates(self._there, asked)
            if not isinstance(known, DevicesFound):
                of = self._there.units.of
                known = tuple(one for one in known if self._mine.isdisjoint(of(one.id)))
            self._candidates[asked.nameless] = known
        return known

    def free(self, need: ClaimNeed, found: Sequence[NodeDevice]) -> tuple[NodeDevice, ...]:
        """Those of which no other claim has anything."""
        key = (need.asked.nameless, need.key)
        if key not in self._free:
            holders, of = self._there.holders.of, self._there.units.of
            taken = {
                unit for unit, held in self._held.items() if any(holders[device].key != need.key for device in held)
            }
            self._free[key] = tuple(one for one in found if taken.isdisjoint(of(one.id)))
        return self._free[key]

    def others(self, device: DeviceId, key: ClaimKey) -> list[DeviceId]:
        """Devices that would be there twice and that a claim has: but for that of the need, it may by a lost answer."""
        held = {one for unit in self._there.units.of(device) for one in self._held.get(unit, ())}
        return [one for one in sorted(held) if self._there.holders.of[one].key != key]


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
