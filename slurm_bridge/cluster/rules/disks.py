"""Disks that pods name directly, without a claim, and which of them cannot be on one node together."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from slurm_bridge.model.pod import Pod

Source = Mapping[str, Any]


class Disk(NamedTuple):
    """One disk. `shared`: read only, so that it can stand beside itself."""

    kind: str
    ids: tuple[frozenset[str], ...]
    shared: bool


def of(pod: Pod) -> frozenset[Disk]:
    """The disks that a pod names; most pods name none."""
    return frozenset(_disks(pod))


def clash(some: frozenset[Disk], others: frozenset[Disk]) -> bool:
    """Whether one disk is among both, and not just read by both."""
    for one, other in itertools.product(some, others):
        if one.kind != other.kind or (one.shared and other.shared):
            continue
        # Of some kinds a disk has several names: one in common, for each part of its identity, is enough.
        if all(mine & theirs for mine, theirs in zip(one.ids, other.ids, strict=True)):
            return True
    return False


def _disks(pod: Pod) -> Iterator[Disk]:
    for volume in pod.spec.volumes:
        for kind, identify in _KINDS.items():
            source = volume.get(kind)
            if isinstance(source, Mapping):
                # Amazon attaches a disk to one node at a time, whatever it is used for.
                shared = bool(source.get("readOnly")) and kind != "awsElasticBlockStore"
                yield Disk(kind, identify(source), shared)


def _names(*keys: str) -> Callable[[Source], tuple[frozenset[str], ...]]:
    return lambda source: tuple(frozenset({str(source.get(key, ""))}) for key in keys)


def _ceph(source: Source) -> tuple[frozenset[str], ...]:
    monitors = frozenset(map(str, source.get("monitors") or ()))
    return (monitors, *_names("pool", "image")({"pool": "rbd", **source}))


#: What makes a disk the same disk, for each kind that cannot be mounted twice.
_KINDS: Mapping[str, Callable[[Source], tuple[frozenset[str], ...]]] = {
    "gcePersistentDisk": _names("pdName"),
    "awsElasticBlockStore": _names("volumeID"),
    "rbd": _ceph,
    "iscsi": _names("iqn"),
}
