"""JSON of the API server straight into frozen records: one pass over the bytes, nothing else is ever built.

A watch line is a union tagged by its `type`, and `type` comes first, so the object behind it is decoded in the same
pass, straight into its record; what a record does not name (managedFields above all) is skipped, not built.
"""

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.kube import leniency, status
from slurm_bridge.kube.kept import KeptFields
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object, ObjectMeta
from slurm_bridge.runtime import json_decoder
from slurm_bridge.runtime.http.messages import HttpAnswer

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


#: Told of each object that cannot be read.
Met = Callable[[leniency.UnreadableObject], None]


class _RawPage(msgspec.Struct, frozen=True):
    metadata: PageMeta
    items: tuple[msgspec.Raw, ...] | None = ()


_raw_page = msgspec.json.Decoder(_RawPage)
_discovery = msgspec.json.Decoder(APIResourceList)


class Codec(Generic[T]):
    """Reads one kind's lists, objects and watch lines; of annotations and volumes only what is `kept`."""

    def __init__(self, record: type[T]) -> None:
        self._kept = KeptFields()
        # The types are put together at run time, which is beyond what a type checker follows.
        self._page: msgspec.json.Decoder[Page[T]] = msgspec.json.Decoder(_generic(Page, record))
        self._one: msgspec.json.Decoder[T] = msgspec.json.Decoder(record)
        changes = functools.reduce(
            lambda union, variant: union | _generic(variant, record), (_Added, _Modified, _Deleted), _Bookmark | _Error
        )
        self._lines: msgspec.json.Decoder[Any] = msgspec.json.Decoder(changes)
        self._record = record

    def keeping(self, kept: KeptFields) -> "Codec[T]":
        """The same decoders, which keep this of annotations."""
        other = copy.copy(self)
        other._kept = kept  # noqa: SLF001 - its own class
        return other

    def page(self, body: bytes, odd: Met | None = None) -> Page[T]:
        """A page of a list. With `odd`, which is told of them, items that cannot be read are left out."""
        try:
            page = self._page.decode(body)
        except leniency.ODD as error:
            if odd is None:
                _unreadable("list", error)
            page = self._leniently(body, odd)
        for one in page.items or ():
            self._kept.trim(one)
        return page

    def _leniently(self, body: bytes, odd: Met) -> Page[T]:
        try:
            raw = leniency.decode(_raw_page, body)
        except leniency.ODD as error:
            _unreadable("list", error)
        items = []
        for one in raw.items or ():
            try:
                items.append(leniency.decode(self._one, one))
            except leniency.ODD as error:
                odd(leniency.item(one, error))
        return Page(metadata=raw.metadata, items=tuple(items))

    def one(self, body: bytes) -> T:
        """A single object."""
        try:
            one = leniency.decode(self._one, body)
        except leniency.ODD as error:
            raise errors.Unreadable(f"unreadable object: {error}") from error
        self._kept.trim(one)
        return one

    def changes(self, lines: bytes, odd: Met | None = None) -> Iterator[ports.Put[T] | ports.Gone[T] | ports.Bookmark]:
        """The changes in these whole lines; an ERROR among them is raised after those before it.

        With `odd`, which is told of them, objects that cannot be read stay as they were known until they are deleted.
        """
        try:
            events = self._lines.decode_lines(lines)
        except leniency.ODD as error:
            if odd is None:
                _unreadable("watch line", error)
            return self._one_by_one(lines, odd)
        return map(functools.partial(_change, self._kept), events)

    def _one_by_one(self, lines: bytes, odd: Met) -> Iterator[ports.Put[T] | ports.Gone[T] | ports.Bookmark]:
        for line in filter(None, lines.split(b"\n")):
            try:
                event = leniency.decode(self._lines, line)
            except leniency.ODD as error:
                met = leniency.line(line, error)
                if met is None:
                    _unreadable("watch line", error)
                odd(met)
                namespace, name = met.key
                # What cannot be read any more is no reason to forget what it was; that it is gone is one.
                if met.deleted:
                    metadata = ObjectMeta(namespace=namespace, name=name, resource_version=met.version)
                    yield ports.Gone(self._record(metadata=metadata))
                else:
                    yield ports.Bookmark(met.version)
            else:
                yield _change(self._kept, event)


def codec(kind: Kind[T], kept: KeptFields | None = None) -> Codec[T]:
    """The reader of this kind; decoders are costly to make and free to share."""
    made: Codec[T] | None = _codecs.get(kind.record)
    if made is None:
        # Made by one thread at a time; informers and workers come here together.
        with json_decoder.MAKING:
            made = _codecs.get(kind.record) or Codec(kind.record)
            _codecs[kind.record] = made
    return made if kept is None else made.keeping(kept)


_codecs: dict[Any, Codec[Any]] = {}


def encode(manifest: Manifest) -> bytes:
    """JSON for the way out."""
    return msgspec.json.encode(manifest)


def resources(body: bytes) -> frozenset[str]:
    """The resources that a group version serves."""
    try:
        return frozenset(resource.name for resource in _discovery.decode(body).resources or ())
    except leniency.ODD as error:
        _unreadable("resource list", error)


def _change(kept: KeptFields, event: Any) -> ports.Put[Any] | ports.Gone[Any] | ports.Bookmark:
    match event:
        case _Added() | _Modified():
            kept.trim(event.object)
            return ports.Put(event.object)
        case _Deleted():
            return ports.Gone(event.object)
        case _Bookmark():
            return ports.Bookmark(event.object.metadata.resource_version)
        case _:
            body = bytes(event.object)
            told = status.read(body)
            raise status.refusal("watch", HttpAnswer(status=told.code if told else 0, body=body))


def _generic(container: Any, record: type[Object]) -> Any:
    """`container[record]`, for types known only at run time."""
    return container[record]


def _unreadable(what: str, error: Exception) -> NoReturn:
    raise errors.BadAnswer(f"unreadable {what}: {error}") from error
