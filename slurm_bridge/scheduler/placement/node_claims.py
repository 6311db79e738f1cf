"""The claims of one allocation on one of its nodes: what is known when they are looked at, and what is found."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from slurm_bridge.cluster.rules.devices import DeviceSight, NodeDevice
from slurm_bridge.model.devices import DeviceId, ResourceClaim
from slurm_bridge.model.job import Gres
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claim_writes import Write
from slurm_bridge.scheduler.placement.job_devices import JobDevices
from slurm_bridge.scheduler.placement.misfit import Misfit, unseen
from slurm_bridge.translate.device_claims import AskedDevices, ClaimKey, PodClaim, Wish

#: The reason why an allocation is given back.
FAILED: Final = "DeviceAllocationFailed"
#: So many are named in a message.
MOST_NAMED: Final = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Which claim has a device, or is about to get it; `left` says of a claim that nothing uses it any more.

    By uid: claims that are `busy` are being written; those that are `doubted` may have lost their devices.
    """

    of: Mapping[DeviceId, ResourceClaim]
    left: Callable[[ResourceClaim], bool]
    busy: frozenset[str] = frozenset()
    doubted: frozenset[str] = frozenset()


class Units:
    """What no two claims may have of the devices of a node: each of them, and the counters that several share."""

    def __init__(self, there: Iterable[NodeDevice]) -> None:
        self._of: dict[DeviceId, frozenset[DeviceId]] = {}
        for one in there:
            if one.device.consumes_counters:
                # No device has such a name.
                sets = (one.id._replace(device=f"/{name}") for name in one.device.counter_sets)
                self._of[one.id] = self._of.get(one.id, frozenset()).union((one.id,), sets)

    def of(self, *devices: DeviceId) -> frozenset[DeviceId]:
        """Of all these devices."""
        if len(devices) == 1:
            return self._of.get(devices[0]) or frozenset(devices)
        return frozenset[DeviceId]().union(*map(self.of, devices))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeClaims:
    """All that the claims on one node are looked at with.

    `given` is what the job has there; `asked` is what Slurm was asked for each pod, by uid. `mates` are the uids of all
    pods of the workload. `lacking` says why the node cannot serve requests, whatever is in use.
    """

    node: str
    sight: DeviceSight
    holders: Holders
    given: JobDevices
    asked: Mapping[str, tuple[Gres, ...]]
    units: Units
    mates: Collection[str]
    lacking: Callable[[Wish], str]


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim, and the pods without a node that use it: several only where these are of one gang."""

    claim: PodClaim
    spots: list[Spot]

    @property
    def uids(self) -> frozenset[str]:
        """Of the pods."""
        return frozenset(spot.pod.uid for spot in self.spots)


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimNeed:
    """One request of one claim."""

    use: ClaimUse
    asked: AskedDevices

    @property
    def key(self) -> ClaimKey:
        """Of the claim."""
        return self.use.claim.claim.key


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DevicesFound:
    """What is to be written, what is waited for (by node), and other claims that have to change; or what is wrong.

    `soon`: some of it may pass without a change of a claim.
    """

    writes: tuple[Write, ...] = ()
    waiting: Mapping[str, str] = dataclasses.field(default_factory=dict)
    others: tuple[ClaimKey, ...] = ()
    soon: bool = False
    misfit: Misfit | None = None

    @property
    def message(self) -> str:
        """For the owner of the pods."""
        named = list(self.waiting)[:MOST_NAMED]
        more = f" and {len(self.waiting) - MOST_NAMED} more" if len(self.waiting) > MOST_NAMED else ""
        return f"waits for {', '.join(named)}{more}"


#: Nothing is to be written, and nothing is waited for.
NOTHING: Final = DevicesFound()


def joined(found: Iterable[DevicesFound]) -> DevicesFound:
    """All of it; what is wrong with one is wrong with all."""
    each = list(found)
    misfit = next((one.misfit for one in each if one.misfit is not None), None)
    if misfit is not None:
        return DevicesFound(misfit=misfit)
    return DevicesFound(
        writes=tuple(write for one in each for write in one.writes),
        waiting={words: node for one in each for words, node in one.waiting.items()},
        others=tuple(other for one in each for other in one.others),
        soon=any(one.soon for one in each),
    )


def waits(there: NodeClaims, words: str, *writes: Write, soon: bool = False) -> DevicesFound:
    """The pods of this node wait for that, which these writes may bring about."""
    return DevicesFound(writes=writes, waiting={words: there.node}, soon=soon)


def failed(there: NodeClaims, text: str) -> DevicesFound:
    """The nodes are given back, and this one is avoided."""
    return DevicesFound(misfit=unseen(FAILED, text, (there.node,)))


def called(claim: ResourceClaim) -> str:
    """In messages."""
    return f"ResourceClaim {'/'.join(claim.key)}"


def being_written(there: NodeClaims, claim: ResourceClaim) -> DevicesFound:
    """What is being written is not looked at: it may be out of date already."""
    if claim.uid not in there.holders.busy:
        return NOTHING
    return waits(there, f"{called(claim)}, which is being written", soon=True)
