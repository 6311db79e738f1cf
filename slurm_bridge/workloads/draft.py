"""What a controller will make of an object, as far as that can be told beforehand: for objects that do not exist yet.

Where a name gets a random end it is written `xxxxx`, or `xxxx` with a number where there are several.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurm_bridge import errors
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object

#: So many pods and other objects are drawn at most.
MOST: Final = 10_000
_RANDOM: Final = "xxxxx"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChildDraft:
    """One object or pod that a controller will make from a template, with the labels and annotations that it adds.

    `role` is what users call it within the object that they create. `makes` is what becomes of it in turn; None: what
    becomes of any object of its kind.
    """

    kind: Kind[Any]
    name: str
    template: Manifest = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    role: str = ""
    makes: "Iterable[ChildDraft] | None" = None


def numbers(kind: Kind[Any], found: Object, field: str, count: object) -> range:
    """From 0 up to the count that a user wrote in this field; BadConfiguration if it is none, or too many to draw."""
    if isinstance(count, int) and count <= MOST:
        return range(count)
    problem = f"is more than {MOST}, the most that is drawn" if isinstance(count, int) else "is no number"
    raise errors.BadConfiguration(f"{kind.kind} {'/'.join(found.key)}: {field} {problem}")


def random_name(parent: str, number: int = 0, count: int = 1) -> str:
    """The name of one of several objects whose names end randomly."""
    return f"{parent}-{_RANDOM}" if count == 1 else f"{parent}-{number:x>{len(_RANDOM)}}"


def marked(manifest: Manifest, name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Manifest:
    """The same under this name, with more labels and annotations."""
    metadata = manifest.get("metadata") or {}
    return {
        **manifest,
        "metadata": {
            **metadata,
            "name": name,
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**(metadata.get("annotations") or {}), **annotations},
        },
    }


def spec_of(manifest: Manifest) -> Manifest:
    """What a user wrote as spec."""
    spec: Manifest = manifest.get("spec") or {}
    return spec
