"""Objects of the API server that are not quite as they should be: read as far as they can be, or named and left out.

Bytes that are no UTF-8 are replaced; what lies deeper than any record of ours looks is cut off. What still cannot be
read is unknown: it is reported by its name, and must not be taken for absent.
"""

import contextlib
import dataclasses
import re
from typing import Any, Final, Protocol, TypeVar

import msgspec

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: What a decoder raises: of these only the first is its own.
ODD: Final = (msgspec.DecodeError, ValueError, RecursionError)

#: Levels that are kept; no record of ours looks deeper.
_DEEPEST: Final = 100
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_STEPS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
#: Enough of what is wrong with it.
_MOST_WORDS: Final = 200


class Decoder(Protocol[T_co]):
    """One of msgspec's."""

    def decode(self, body: Any, /) -> T_co: ...


@dataclasses.dataclass(frozen=True, slots=True)
class UnreadableObject:
    """An object that cannot be read: its namespace and name as far as they can be, and why."""

    key: tuple[str, str]
    why: str
    version: str = ""
    deleted: bool = False


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: _Named


_named: Final = msgspec.json.Decoder(_Named)
_line: Final = msgspec.json.Decoder(_Line)


def decode(decoder: Decoder[T], body: Any) -> T:
    """Decode it anyhow; one of ODD when it cannot be."""
    with contextlib.suppress(UnicodeDecodeError, RecursionError):
        return decoder.decode(body)
    return decoder.decode(shallow(bytes(body)).decode("utf-8", "replace"))


def shallow(body: bytes) -> bytes:
    """The same JSON with null for whatever lies too deep."""
    kept: list[bytes] = []
    depth = at = 0
    for token in _TOKEN.finditer(body):
        step = _STEPS.get(token[0], 0)
        depth += step
        if step > 0 and depth == _DEEPEST + 1:
            kept += [body[at : token.start()], b"null"]
        elif step < 0 and depth == _DEEPEST:
            at = token.end()
    return b"".join([*kept, body[at:] if depth <= _DEEPEST else b""])


def item(body: Any, error: Exception) -> UnreadableObject:
    """One object of a list."""
    try:
        meta = decode(_named, body).metadata
    except ODD:
        meta = _Meta()
    return UnreadableObject((meta.namespace, meta.name), str(error)[:_MOST_WORDS])


def line(body: bytes, error: Exception) -> UnreadableObject | None:
    """One line of a watch; None where it does not even tell how far the watch has come."""
    try:
        found = decode(_line, body)
    except ODD:
        return None
    meta, deleted = found.object.metadata, found.type == "DELETED"
    if found.type not in ("ADDED", "MODIFIED", "DELETED") or not (meta.name and meta.resource_version):
        return None
    return UnreadableObject((meta.namespace, meta.name), str(error)[:_MOST_WORDS], meta.resource_version, deleted)
