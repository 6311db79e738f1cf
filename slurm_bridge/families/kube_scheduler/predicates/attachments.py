"""MaxCSIVolumeCount and its kin: no node gets more volumes of a driver than it can attach."""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from slurm_bridge.cluster.columns import Mask, Whole
from slurm_bridge.cluster.rules import attachments, volumes
from slurm_bridge.cluster.rules.attachments import Attachment, ClaimKey
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures, Predicate, failing
from slurm_bridge.families.kube_scheduler.scene import Scene

#: No limit is known.
_ANY = np.iinfo(np.int64).max


def claims(scene: Scene) -> bool:
    """Whether the pod uses any claim; most do not."""
    return volumes.claimed(scene.pod)


def volume_count(drivers: Collection[str] = ()) -> Predicate:
    """The predicate for these drivers; without any, for all."""

    def exceeds(scene: Scene) -> Failures:
        wanted = _by_driver(scene, attachments.claims(scene.pod))
        masks = [_full(scene, driver, new) for driver, new in wanted.items() if not drivers or driver in drivers]
        return failing(np.logical_or.reduce(masks), reasons.VOLUME_COUNT) if masks else PASSED

    return exceeds


def _by_driver(scene: Scene, keys: Iterable[ClaimKey]) -> Mapping[str, frozenset[Attachment]]:
    found = {one for key in keys if (one := attachments.attachment(key, scene.lookup.storage)) is not None}
    drivers = sorted({one.driver for one in found})
    return {driver: frozenset(one for one in found if one.driver == driver) for driver in drivers}


def _full(scene: Scene, driver: str, new: frozenset[Attachment]) -> Mask:
    """Claims on a node are no fewer than volumes there: only nodes that could be full by them are looked at closely."""
    limits = _limits(scene, driver)
    used = attributes.claims(scene.columns.pods)
    there = np.bincount(scene.columns.pods.node_rows, weights=used.whole(len), minlength=len(scene.columns)).astype(
        np.int64
    )
    full = np.zeros(len(scene.columns), np.bool_)
    for row in np.flatnonzero(there + len(new) > limits).tolist():
        facts = scene.columns.facts[row]
        keys = (key for pod in (facts.pods if facts is not None else ()) for key in attachments.claims(pod))
        attached = _by_driver(scene, keys).get(driver, frozenset())
        full[row] = not new <= attached and len(attached | new) > limits[row]
    return full


def _limits(scene: Scene, driver: str) -> Whole:
    """What nodes can attach, by what their CSINode says, or else they themselves."""
    resource = f"{attachments.LIMIT}{driver}"
    said = scene.columns.attribute(f"kube volumes of {driver}", lambda facts: facts.allocatable.get(resource))
    limits = said.whole(lambda limit: _ANY if limit is None else int(limit))
    known = scene.lookup.volume_limits(driver)
    if not known:
        return limits
    limits = limits.copy()
    for name, limit in known.items():
        row = scene.columns.row(name)
        if row is not None:
            limits[row] = limit
    return limits
