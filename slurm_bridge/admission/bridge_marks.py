"""Labels and annotations that only the bridge writes, and the record of the creator, which only the webhook writes.

Keys that name the job of a pod cannot be changed. Keys that record a state may be removed, but not written.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurm_bridge.admission.review import part
from slurm_bridge.model import names

FIXED: Final = (
    names.LABEL_JOB_ID,
    names.ANNOTATION_SLURM_NODE,
    names.ANNOTATION_BOUND_BY,
    names.ANNOTATION_COUNTED,
    *names.TASK_ANNOTATIONS,
)
REMOVABLE: Final = (names.ANNOTATION_PARKED, names.ANNOTATION_MAKES_ROOM, names.ANNOTATION_ROOM)

Json = Mapping[str, Any]
_SORTS: Final = ("labels", "annotations")


def written(subject: str, after: Json, before: Json) -> Iterator[str]:
    """What is new in the metadata of a pod (or of its template) although only the bridge writes it."""
    for sort in _SORTS:
        now, then = part(after, "metadata", sort), part(before, "metadata", sort)
        for key in (*FIXED, *REMOVABLE):
            if key in now and now[key] != then.get(key):
                yield f"{subject}: {sort.removesuffix('s')} {key}: only slurm-bridge may write it; leave it out"


def removed(subject: str, after: Json, before: Json) -> Iterator[str]:
    """What is missing in the metadata of a pod although only the bridge removes it."""
    for sort in _SORTS:
        now, then = part(after, "metadata", sort), part(before, "metadata", sort)
        for key in FIXED:
            if key in then and key not in now:
                yield f"{subject}: {sort.removesuffix('s')} {key}: only slurm-bridge may remove it; leave it as it is"


def created_by(manifest: Json | None) -> str | None:
    """The record of the creator as it is in an object, None where there is none."""
    found = part(manifest or {}, "metadata", "annotations").get(names.ANNOTATION_CREATED_BY)
    return None if found is None else str(found)


def controllers(manifest: Json) -> list[tuple[object, ...]]:
    """The controllers that an object names as its owners; the API server admits one."""
    owners = part(manifest, "metadata").get("ownerReferences")
    return [
        tuple(one.get(name) for name in ("apiVersion", "kind", "name", "uid"))
        for one in (owners if isinstance(owners, list) else ())
        if isinstance(one, Mapping) and one.get("controller")
    ]
