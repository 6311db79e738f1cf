"""The part that every Kubernetes object shares, and the base of all records read from its API.

These records are read straight from JSON: their fields carry Kubernetes' own names (camelCase on the wire), what is
not named here is skipped while reading and never kept, managedFields above all.
"""

from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A frozen piece of a Kubernetes object."""


class OwnerReference(Record, frozen=True, kw_only=True):
    """An object that owns this one."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class ObjectMeta(Record, frozen=True, kw_only=True):
    """Name, identity, labels and annotations of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Record, frozen=True, kw_only=True):
    """One line of an object's status."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    observed_generation: int | None = None


class Object(Record, frozen=True, kw_only=True):
    """Any object of which only the metadata matters; also the base of the others."""

    metadata: ObjectMeta

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name: unique at one moment."""
        return self.metadata.namespace, self.metadata.name

    @property
    def uid(self) -> str:
        """Unique for ever."""
        return self.metadata.uid


#: A manifest or patch on its way out: built by us, so plain JSON values are enough.
Manifest = dict[str, Any]
