"""Claims that are being written, and devices that they get by it, until the watch of claims has told of it."""

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge.model.devices import DeviceId, ResourceClaim

#: A write of which the watch has not told for so many seconds has not happened.
FORGOTTEN = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Written:
    """`versions` are those of the claim before it is written: a claim with another one has moved on since.

    `over` is when the calls ended, None while they are under way: then the watch may tell of a version that the caller
    does not know yet. `stands`: an answer says that it is written; `failed`: that it is not. `earlier`: what was tried
    before may be written.
    """

    claim: ResourceClaim
    versions: frozenset[str]
    devices: frozenset[DeviceId]
    takes: bool
    earlier: bool = False
    over: float | None = None
    stands: bool = False
    failed: bool = False

    @property
    def busy(self) -> bool:
        return self.over is None or self.stands


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PendingWrites:
    """Of which the watch has not told yet: by device the claims that have it, or may have it; and claims by uid.

    No other write of those that are `busy` is begun. Whether those that are `doubted` have lost their devices is not
    known, and only another write tells.
    """

    devices: Mapping[DeviceId, ResourceClaim]
    busy: frozenset[str] = frozenset()
    doubted: frozenset[str] = frozenset()


class DeviceWrites:
    """By the uid of the claim; any thread. Empty after a start: the first list of claims has all that was written."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: dict[str, _Written] = {}

    def begin(self, claim: ResourceClaim, devices: Iterable[DeviceId] = ()) -> None:
        """The claim is about to get these, or to lose what it has. What may have been written before counts still."""
        wanted, versions = frozenset(devices), frozenset({claim.metadata.resource_version})
        with self._lock:
            known = self._written.get(claim.uid)
            takes = not wanted or (known is not None and known.takes)
            if known is not None:
                versions, wanted = versions | known.versions, wanted | known.devices
            self._written[claim.uid] = _Written(claim, versions, wanted, takes, earlier=known is not None)

    def protected(self, claim: ResourceClaim) -> None:
        """It was changed before it gets them; this is the version now."""
        with self._lock:
            known = self._written.get(claim.uid)
            versions = known.versions if known is not None else frozenset[str]()
        self._learn(claim, versions=versions | {claim.metadata.resource_version})

    def stands(self, claim: ResourceClaim) -> None:
        """It is written: nothing else is to be done until the watch tells."""
        self._learn(claim, stands=True)

    def over(self, claim: ResourceClaim, now: float) -> None:
        """No call is under way any more. Where it is written, or no answer says that it is not, the watch will tell."""
        self._learn(claim, over=now)
        with self._lock:
            known = self._written.get(claim.uid)
            if known is not None and known.failed and not known.earlier:
                del self._written[claim.uid]

    def failed(self, claim: ResourceClaim) -> None:
        """It is not written. What was tried before may be."""
        self._learn(claim, failed=True)

    def _learn(self, claim: ResourceClaim, **news: Any) -> None:
        with self._lock:
            known = self._written.get(claim.uid)
            if known is not None:
                self._written[claim.uid] = dataclasses.replace(known, **news)

    def pending(self, claim_of: Callable[[str, str], ResourceClaim | None], now: float) -> PendingWrites:
        """To be read before the claims themselves: a write of which the watch tells in between is in either."""
        with self._lock:
            for uid, one in list(self._written.items()):
                if one.over is not None and (_told(one, claim_of(*one.claim.key)) or now - one.over > FORGOTTEN):
                    del self._written[uid]
            left = dict(self._written)
        return PendingWrites(
            devices={device: one.claim for one in left.values() for device in one.devices},
            busy=frozenset(uid for uid, one in left.items() if one.busy),
            doubted=frozenset(uid for uid, one in left.items() if one.takes and not one.busy),
        )


def _told(one: _Written, seen: ResourceClaim | None) -> bool:
    """The claim is gone, or another one, or in a later version than those before the write."""
    return seen is None or seen.uid != one.claim.uid or seen.metadata.resource_version not in one.versions
