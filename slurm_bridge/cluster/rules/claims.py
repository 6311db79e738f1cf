"""Claims by how far they are: bound to a volume, or waiting for their first pod, which volumes they could take then."""

import dataclasses
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from slurm_bridge.cluster.rules import volumes
from slurm_bridge.cluster.rules.volumes import Storage
from slurm_bridge.model import names, quantity, selectors
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement
from slurm_bridge.model.storage import NO_PROVISIONER, SELECTED_NODE, Claim, Volume

_STORAGE = "storage"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """A pod's claims.

    `missing`: one that does not exist, is being deleted, was made for another pod, or has lost its volume.
    `immediate`: one that waits for its volume whatever pods there are.
    """

    bound: tuple[Volume, ...]
    waiting: tuple[Claim, ...]
    missing: bool
    immediate: bool


def sort(pod: Pod, storage: Storage) -> Claims:
    """All claims of a pod."""
    found = [storage.claim(pod.metadata.namespace, name) for name in volumes.claims(pod)]
    there = [claim for claim in found if claim is not None and claim.metadata.deletion_timestamp is None]
    known = [claim for claim in there if not volumes.foreign(pod, claim)]
    named = [claim for claim in known if claim.spec.volume_name]
    behind = [storage.volume(claim.spec.volume_name) for claim in named]
    unbound = [claim for claim in known if not claim.spec.volume_name]
    waiting = tuple(claim for claim in unbound if volumes.waits(claim, storage))
    return Claims(
        bound=tuple(volume for volume in behind if volume is not None),
        waiting=waiting,
        missing=len(known) < len(found) or None in behind,
        immediate=len(waiting) < len(unbound),
    )


def size(claim: Claim) -> Fraction:
    """How much a claim asks for."""
    return quantity.parse(claim.spec.resources.requests.get(_STORAGE, 0))


def takes(claim: Claim, volume: Volume) -> bool:
    """Whether a volume is free and of the kind that the claim asks for."""
    asked, there = claim.spec, volume.spec
    if there.storage_class_name != (asked.storage_class_name or ""):
        return False
    wanted = () if asked.selector is None else selectors.read(asked.selector)
    return (
        _free_for(claim, volume)
        and there.volume_mode == asked.volume_mode
        and (there.volume_attributes_class_name or "") == (asked.volume_attributes_class_name or "")
        and set(asked.access_modes) <= set(there.access_modes)
        and size(claim) <= quantity.parse(there.capacity.get(_STORAGE, 0))
        and wanted is not None
        and selectors.all_hold(wanted, volume.metadata.labels)
    )


def choice(claim: Claim, every: Iterable[Volume]) -> list[Volume]:
    """The volumes that it could take: those that are kept for it, and no other beside them."""
    free = [volume for volume in every if takes(claim, volume)]
    return [volume for volume in free if kept_for(claim, volume)] or free


def place(volume: Volume) -> Requirement | None:
    """The one label by which a volume says from where it is reached, as local volumes do; None: it says more."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    terms = _list(required or {}, "nodeSelectorTerms")
    rows = _list(terms[0], "matchExpressions") if len(terms) == 1 and not terms[0].get("matchFields") else []
    if len(rows) != 1 or rows[0].get("operator") != "In":
        return None
    return selectors.requirement(rows[0])


def topologies(claim: Claim, storage: Storage) -> tuple[tuple[Requirement, ...], ...] | None:
    """Labels of nodes for which a volume can be made, one set of which has to be met; None: it is made nowhere."""
    of = storage.storage_class(claim.spec.storage_class_name or "")
    if of is None or of.provisioner in ("", NO_PROVISIONER):
        return None
    return tuple(
        tuple(Requirement(row["key"], "In", tuple(row["values"])) for row in _list(term, "matchLabelExpressions"))
        for term in of.allowed_topologies
    )


def claim_of(changed: Object) -> str:
    """The namespace and name of the claim that such a change is about; "" for other objects."""
    if isinstance(changed, Claim):
        return "/".join(changed.key)
    kept = changed.spec.claim_ref if isinstance(changed, Volume) else None
    return f"{kept.namespace}/{kept.name}" if kept is not None else ""


def selected(claim: Claim) -> str:
    """The node for which its volume is made, "" where none was chosen."""
    return claim.metadata.annotations.get(SELECTED_NODE, "")


def tied(claim: Claim) -> str:
    """The same where the choice is another scheduler's: other nodes are out of the question. Ours is changed."""
    return "" if names.ANNOTATION_SELECTED_BY in claim.metadata.annotations else selected(claim)


def kept_for(claim: Claim, volume: Volume) -> bool:
    """The volume is for this claim and no other; one that was for an earlier claim of the name is not."""
    kept = volume.spec.claim_ref
    return kept is not None and (kept.namespace, kept.name) == claim.key and kept.uid in ("", claim.uid)


def _free_for(claim: Claim, volume: Volume) -> bool:
    if volume.metadata.deletion_timestamp is not None:
        return False
    if volume.spec.claim_ref is not None:
        return kept_for(claim, volume)
    return volume.status.phase == "Available"


def _list(written: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return list(written.get(key) or ())
