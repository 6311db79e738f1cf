"""What of an object is kept in memory. A pod may carry 256 KiB of annotations, and the bridge reads a few words.

    prefixes that the bridge and its families read, and keys that a hook declares     up to 64 KiB
    all others                                                                        up to 4 KiB, the shortest first

A value of ours that is longer than 16 KiB is cut to a beginning that no form accepts, so that its user is told of it.
Only the record of pods that are evicted for a pod may be longer, because a restart has to know all of them.

The API server adds a volume with the token of the service account to nearly every pod, under another name in each. It
matters nowhere, and equal pods would differ by it: it is left out where it is the last volume, as it nearly always is,
and otherwise has the same name in all pods.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from slurm_bridge.kube.shared_parts import SharedParts
from slurm_bridge.model import names
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod, PodTerm
from slurm_bridge.workloads import kind_table

#: Characters of keys and values together.
MOST_OTHERS: Final = 4 << 10
MOST_OURS: Final = 64 << 10
MOST_VALUE: Final = 16 << 10

#: So many annotations that are no longer than this cannot be too much: almost every object is like that.
_FEW: Final = 7
_SHORT: Final = 256

_CUT: Final = 64
#: What stands before the slash of a key.
_DOMAINS: Final = frozenset(
    {
        *(prefix.rstrip("/") for prefix in (names.JOB_PREFIX, names.SCHEDULER_PREFIX, names.NODE_PREFIX)),
        names.ANNOTATION_NODE_TOPOLOGY.partition("/")[0],
        *kind_table.PREFIXES,
        "scheduler.alpha.kubernetes.io",
        "kubernetes.io",
        "kai.scheduler",
        "yunikorn.apache.org",
    }
)


_MOUNT_NAME: Final = "kube-api-access-"
_MOUNT_KEYS: Final = frozenset({"name", "projected"})
#: In place of a volume with the token of a service account that stands before others.
TOKEN_MOUNT: Final[PodTerm] = {"name": "kube-api-access", "projected": {}}


class KeptFields:
    """One for each client; hooks declare what they read before anything is listed."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._declared = frozenset(declared)
        self._shared = SharedParts()

    def declare(self, keys: Iterable[str]) -> None:
        """From now on these are kept, too."""
        self._declared |= frozenset(keys)

    def trim(self, one: Object) -> None:
        """Drop what is not kept of an object; it was just decoded, and nothing else refers to it."""
        if one.metadata.annotations:
            self._prune(one.metadata.annotations)
        if isinstance(one, Pod):
            self._shared.take(one)
            if any(map(_is_mount, one.spec.volumes)):
                *before, last = (TOKEN_MOUNT if _is_mount(volume) else volume for volume in one.spec.volumes)
                volumes = tuple(before) if last is TOKEN_MOUNT else (*before, last)
                msgspec.structs.force_setattr(one.spec, "volumes", volumes)

    def _prune(self, annotations: dict[str, str]) -> None:
        if len(annotations) <= _FEW and max(map(len, annotations.values())) <= _SHORT:
            return
        ours = {key for key in annotations if key in self._declared or key.partition("/")[0] in _DOMAINS}
        for key in ours:
            most = names.MOST_OF_ROOM if key == names.ANNOTATION_ROOM else MOST_VALUE
            if len(annotations[key]) > most and key not in self._declared:
                annotations[key] = f"{annotations[key][:_CUT]}…"
        others = sorted(annotations.keys() - ours, key=lambda key: (len(annotations[key]), key))
        # Jobs' own keys first: what is wrong among them is told.
        first = sorted(ours, key=lambda key: (not key.startswith(names.JOB_PREFIX), key))
        kept = {*_within(first, annotations, MOST_OURS), *_within(others, annotations, MOST_OTHERS)}
        for key in annotations.keys() - kept - self._declared:
            del annotations[key]


def _is_mount(volume: PodTerm) -> bool:
    name = volume.get("name")
    return volume.keys() == _MOUNT_KEYS and isinstance(name, str) and name.startswith(_MOUNT_NAME)


def _within(keys: Iterable[str], annotations: dict[str, str], most: int) -> Iterable[str]:
    for key in keys:
        most -= len(key) + len(annotations[key])
        if most < 0:
            return
        yield key
