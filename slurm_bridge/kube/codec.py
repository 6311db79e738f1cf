"""JSON of the API server straight into frozen records: one pass over the bytes, nothing else is ever built.

A watch line is a union tagged by its `type`, and `type` comes first, so the object behind it is decoded in the same
pass, straight into its record; what a record does not name (managedFields above all) is skipped, not built.
"""

import functools
from collections.abc import Iterator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.kube import status
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.runtime import decoding

T = TypeVar("T", bound=Object)


class PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Where a page of a list stands."""

    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A list, or one page of it."""

    metadata: PageMeta
    items: tuple[T, ...] | None = ()


class _Added(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="ADDED"):
    object: T


class _Modified(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="MODIFIED"):
    object: T


class _Deleted(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="DELETED"):
    object: T


class _Bookmark(msgspec.Struct, frozen=True, tag_field="type", tag="BOOKMARK"):
    object: Object


class _Error(msgspec.Struct, frozen=True, tag_field="type", tag="ERROR"):
    object: msgspec.Raw


class APIResource(msgspec.Struct, frozen=True):
    """One line of a group version's table of contents."""

    name: str


class APIResourceList(msgspec.Struct, frozen=True):
    """What a group version serves."""

    resources: tuple[APIResource, ...] | None = ()


_discovery = msgspec.json.Decoder(APIResourceList)


class Codec(Generic[T]):
    """Reads one kind's lists, objects and watch lines."""

    def __init__(self, record: type[T]) -> None:
        # The types are put together at run time, which is beyond what a type checker follows.
        self._page: msgspec.json.Decoder[Page[T]] = msgspec.json.Decoder(_generic(Page, record))
        self._one: msgspec.json.Decoder[T] = msgspec.json.Decoder(record)
        changes = functools.reduce(
            lambda union, variant: union | _generic(variant, record), (_Added, _Modified, _Deleted), _Bookmark | _Error
        )
        self._lines: msgspec.json.Decoder[Any] = msgspec.json.Decoder(changes)

    def page(self, body: bytes) -> Page[T]:
        """A page of a list."""
        try:
            return self._page.decode(body)
        except msgspec.DecodeError as error:
            _unreadable("list", error)

    def one(self, body: bytes) -> T:
        """A single object."""
        try:
            return self._one.decode(body)
        except msgspec.DecodeError as error:
            _unreadable("object", error)

    def changes(self, lines: bytes) -> Iterator[ports.Put[T] | ports.Gone[T] | ports.Bookmark]:
        """The changes in these whole lines; an ERROR among them is raised after those before it."""
        try:
            events = self._lines.decode_lines(lines)
        except msgspec.DecodeError as error:
            _unreadable("watch line", error)
        return map(_change, events)


def codec(kind: Kind[T]) -> Codec[T]:
    """The reader of this kind; decoders are costly to make and free to share."""
    return _made(kind.record)


def _made(record: type[T]) -> Codec[T]:
    """Made by one thread at a time; informers and workers come here together."""
    made: Codec[T] | None = _codecs.get(record)
    if made is None:
        with decoding.MAKING:
            made = _codecs.get(record) or Codec(record)
            _codecs[record] = made
    return made


_codecs: dict[Any, Codec[Any]] = {}


def encode(manifest: Manifest) -> bytes:
    """JSON for the way out."""
    return msgspec.json.encode(manifest)


def resources(body: bytes) -> frozenset[str]:
    """The resources that a group version serves."""
    try:
        return frozenset(resource.name for resource in _discovery.decode(body).resources or ())
    except msgspec.DecodeError as error:
        _unreadable("resource list", error)


def _change(event: Any) -> ports.Put[Any] | ports.Gone[Any] | ports.Bookmark:
    match event:
        case _Added() | _Modified():
            return ports.Put(event.object)
        case _Deleted():
            return ports.Gone(event.object)
        case _Bookmark():
            return ports.Bookmark(event.object.metadata.resource_version)
        case _:
            body = bytes(event.object)
            told = status.read(body)
            raise status.refusal("watch", told.code if told else 0, body)


def _generic(container: Any, record: type[Object]) -> Any:
    """`container[record]`, for types known only at run time."""
    return container[record]


def _unreadable(what: str, error: msgspec.DecodeError) -> NoReturn:
    raise errors.BadAnswer(f"unreadable {what}: {error}") from error
