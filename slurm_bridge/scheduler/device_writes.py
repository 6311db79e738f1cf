"""Devices that are being written into claims, until the watch of claims has told of it."""

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping

from slurm_bridge.model.devices import DeviceId, ResourceClaim

#: A write of which the watch has not told for so many seconds has not happened.
FORGOTTEN = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Written:
    """`versions` are those of the claim before it gets them: a claim with another one has moved on since.

    `over` is when the calls ended, None while they are under way: then the watch may tell of a version that the caller
    does not know yet.
    """

    claim: ResourceClaim
    versions: frozenset[str]
    devices: frozenset[DeviceId]
    over: float | None = None


class DeviceWrites:
    """By the uid of the claim; any thread. Empty after a start: the first list of claims has all that was written."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: dict[str, _Written] = {}

    def begin(self, claim: ResourceClaim, devices: Iterable[DeviceId]) -> None:
        """The claim is about to get these."""
        versions = frozenset({claim.metadata.resource_version})
        with self._lock:
            self._written[claim.uid] = _Written(claim, versions, frozenset(devices))

    def protected(self, claim: ResourceClaim) -> None:
        """It was changed before it gets them; this is the version now."""
        with self._lock:
            known = self._written.get(claim.uid)
            if known is not None:
                versions = known.versions | {claim.metadata.resource_version}
                self._written[claim.uid] = dataclasses.replace(known, versions=versions)

    def over(self, claim: ResourceClaim, now: float) -> None:
        """It has got them, or no answer says so: the watch will tell."""
        with self._lock:
            known = self._written.get(claim.uid)
            if known is not None:
                self._written[claim.uid] = dataclasses.replace(known, over=now)

    def failed(self, claim: ResourceClaim) -> None:
        """It has not got them."""
        with self._lock:
            self._written.pop(claim.uid, None)

    def pending(
        self, claim_of: Callable[[str, str], ResourceClaim | None], now: float
    ) -> Mapping[DeviceId, ResourceClaim]:
        """The claims that have, or may have, these devices, of which the watch has not told yet."""
        with self._lock:
            for uid, one in list(self._written.items()):
                if one.over is not None and (_told(one, claim_of(*one.claim.key)) or now - one.over > FORGOTTEN):
                    del self._written[uid]
            return {device: one.claim for one in self._written.values() for device in one.devices}


def _told(one: _Written, seen: ResourceClaim | None) -> bool:
    """The claim is gone, or another one, or in a later version than those before the write."""
    return seen is None or seen.uid != one.claim.uid or seen.metadata.resource_version not in one.versions
