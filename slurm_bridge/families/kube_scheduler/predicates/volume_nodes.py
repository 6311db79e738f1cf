"""CheckVolumeBinding and NoVolumeZoneConflict: the pod's volumes can be reached, or made, from the node."""

import collections
import functools
from collections.abc import Iterable, Iterator

import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.cluster.rules import claims, volumes
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures, failing
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.selectors import Requirement
from slurm_bridge.model.storage import Claim, Volume

#: Labels by which a volume says where it is, and a node too; a volume can be in several zones. A node that has not the
#: older label of a volume is compared by the newer one.
NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONES = (*NEWER.values(), *NEWER)
_BETWEEN_ZONES = "__"


def volume_binding(scene: Scene) -> Failures:
    """Volumes that are there are in reach; those that wait for their first pod can be found or made."""
    if not volumes.claimed(scene.pod):
        return PASSED
    found = claims.sort(scene.pod, scene.lookup.storage)
    everywhere = scene.columns.present
    if found.missing:
        return failing(everywhere, reasons.VOLUME_BIND)
    if found.immediate:
        return failing(everywhere, reasons.UNBOUND)
    return (
        *failing(
            everywhere & ~_all(scene.columns, (selection.reaching(scene.columns, one) for one in found.bound)),
            reasons.VOLUME_NODE,
        ),
        *failing(everywhere & ~_all(scene.columns, _found_or_made(scene, found.waiting)), reasons.VOLUME_BIND),
    )


def volume_zone(scene: Scene) -> Failures:
    """Where a volume names its zone, nodes that name theirs have to be in it."""
    if not volumes.claimed(scene.pod):
        return PASSED
    columns = scene.columns
    wanted = list(_zones(claims.sort(scene.pod, scene.lookup.storage).bound))
    if not wanted:
        return PASSED
    somewhere = functools.reduce(
        np.logical_or,
        (selection.meets(columns.label(key), columns.present, Requirement(key, "Exists")) for key in ZONES),
    )
    return failing(somewhere & ~_all(columns, (_within(columns, one) for one in wanted)), reasons.VOLUME_ZONE)


def _within(columns: NodeColumns, wanted: Requirement) -> Mask:
    met = selection.meets(columns.label(wanted.key), columns.present, wanted)
    newer = NEWER.get(wanted.key)
    if newer is None:
        return met
    unlabelled = columns.label(wanted.key).among((None,))
    return met | (unlabelled & selection.meets(columns.label(newer), columns.present, wanted))


def _zones(bound: Iterable[Volume]) -> Iterator[Requirement]:
    for volume in bound:
        for key in ZONES:
            zones = volume.metadata.labels.get(key)
            if zones is not None:
                yield Requirement(key, "In", tuple(zones.split(_BETWEEN_ZONES)))


def _all(columns: NodeColumns, masks: Iterable[Mask]) -> Mask:
    """Where all of them hold; everywhere when there is none."""
    return functools.reduce(np.logical_and, masks, columns.present)


def _found_or_made(scene: Scene, waiting: tuple[Claim, ...]) -> Iterator[Mask]:
    """Of claims that could take the same volumes, the one that asks for most chooses first."""
    ordered = sorted(waiting, key=claims.size, reverse=True)
    before: collections.Counter[str] = collections.Counter()
    for claim in ordered:
        free = claims.choice(claim, scene.lookup.storage.every_volume())
        if any(claims.kept_for(claim, volume) for volume in free):
            # The controller binds it to that volume: neither another one nor a new one will do.
            yield _reaching(scene.columns, free) > 0
            continue
        name = claim.spec.storage_class_name or ""
        before[name] += 1
        found = _reaching(scene.columns, free) >= before[name]
        tied = claims.tied(claim)
        yield (found | _made(scene, claim)) & (scene.columns.mask((tied,)) if tied else scene.columns.present)


def _reaching(columns: NodeColumns, free: Iterable[Volume]) -> Whole:
    """How many of these volumes each node reaches. Those of one node each are looked up by its label, all at once."""
    count = np.zeros(len(columns), np.int64)
    local: dict[str, collections.Counter[str | None]] = {}
    for volume in free:
        place = claims.place(volume)
        if place is None:
            count += selection.reaching(columns, volume)
        else:
            local.setdefault(place.key, collections.Counter()).update(set(place.values))
    for key, often in local.items():
        count += columns.label(key).whole(often.__getitem__)
    return count


def _made(scene: Scene, claim: Claim) -> Mask:
    """Where a volume for the claim would be made."""
    allowed = claims.topologies(claim, scene.lookup.storage)
    if allowed is None:
        return np.zeros(len(scene.columns), np.bool_)
    masks = [selection.all_met(scene.columns, one) for one in allowed]
    return functools.reduce(np.logical_or, masks) if masks else scene.columns.present
