"""Lists of slurmrestd in which one row cannot be read: that row is left out and named, all others count.

slurmrestd writes the bytes of a job's name, its comment or a node's reason as they are, so any Slurm user can put bytes
into a list that are no UTF-8. They are replaced. The whole list is decoded at once first; it is only decoded row by row
when that fails.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from slurm_bridge.runtime import json_decoder
from slurm_bridge.slurm import shapes

T = TypeVar("T", bound=shapes.Envelope)
R = TypeVar("R")
M = TypeVar("M")

#: A row's own values can be beyond what its conversion takes: numbers without end, thousands of digits, depth.
ODD: Final = (ValueError, ArithmeticError, RecursionError)

#: Enough of what is wrong with a row.
_MOST_WORDS: Final = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRow:
    """A row that cannot be read. `ids` are its own id and its leader's, as far as they can be."""

    kind: str
    why: str
    name: str = ""
    ids: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name or 'without a readable name'}: {self.why}"


class _Family(shapes.WireShape, frozen=True, gc=False):
    """What names a job, and the whole that it may be a part of."""

    job_id: int
    het_job_id: shapes.MaybeNumber = None


class _Alone(shapes.WireShape, frozen=True, gc=False):
    """The least that names a job."""

    job_id: int


class _Name(shapes.WireShape, frozen=True, gc=False):
    """What names anything else."""

    name: str


def decode(body: bytes | bytearray, shape: type[T]) -> tuple[T, tuple[UnreadableRow, ...]] | None:
    """The body in this shape without the rows that cannot be read; None when it is something else altogether."""
    try:
        return json_decoder.decoder(shape).decode(body), ()
    except (msgspec.DecodeError, *ODD):
        return _leniently(body, shape)


def anyhow(body: bytes | bytearray | msgspec.Raw, shape: type[M]) -> M:
    """The body in this shape; bytes that are no UTF-8 are replaced."""
    try:
        return json_decoder.decoder(shape).decode(body)
    except UnicodeDecodeError:
        return json_decoder.decoder(shape).decode(bytes(body).decode("utf-8", "replace"))


def _leniently(body: bytes | bytearray, shape: type[T]) -> tuple[T, tuple[UnreadableRow, ...]] | None:
    field = shapes.LISTS.get(shape)
    try:
        if field is None:
            return anyhow(body, shape), ()
        listed = anyhow(body, _raw(shape, field.name))
    except (msgspec.DecodeError, *ODD):
        return None
    odd: list[UnreadableRow] = []
    kept: list[Any] = list(each(getattr(listed, field.name), field.row, field.kind, odd))
    around = {name: getattr(listed, name) for name in listed.__struct_fields__}
    return shape(**{**around, field.name: kept}), tuple(odd)


def each(raws: Iterable[msgspec.Raw], shape: type[M], kind: str, odd: list[UnreadableRow]) -> Iterator[M]:
    """One row after the other, decoded when its turn comes; those that cannot be read are added to `odd`."""
    met: set[bytes] = set()
    for raw in raws:
        # Rows that are equal to the byte are the same thing: a list that is full of one of them costs one look at it.
        if met and bytes(raw) in met:
            continue
        try:
            row = anyhow(raw, shape)
        except (msgspec.DecodeError, *ODD) as error:
            met.add(bytes(raw))
            odd.append(named(raw, kind, error))
        else:
            yield row


def made(rows: Iterable[R], make: Callable[[R], M], kind: str) -> tuple[list[M], tuple[UnreadableRow, ...]]:
    """Each row made into something else; a row whose values cannot be is left out and named likewise."""
    kept, odd = [], []
    for row in rows:
        try:
            kept.append(make(row))
        except ODD as error:
            odd.append(named(msgspec.json.encode(row), kind, error))
    return kept, tuple(odd)


def named(raw: bytes | msgspec.Raw, kind: str, error: Exception) -> UnreadableRow:
    """As much of a name as can be read."""
    family = _maybe(raw, _Family)
    alone = family or _maybe(raw, _Alone)
    called = _maybe(raw, _Name)
    ids = dict.fromkeys(one for one in (alone and alone.job_id, family and shapes.number(family.het_job_id)) if one)
    name = str(alone.job_id) if alone else called.name[:_MOST_WORDS] if called else ""
    return UnreadableRow(kind=kind, why=str(error)[:_MOST_WORDS], name=name, ids=tuple(ids))


def _maybe(raw: bytes | msgspec.Raw, shape: type[M]) -> M | None:
    try:
        return anyhow(raw, shape)
    except (msgspec.DecodeError, *ODD):
        return None


@functools.cache
def _raw(shape: type[shapes.Envelope], field: str) -> Any:
    """The same list with its rows as they came."""
    with json_decoder.MAKING:
        rows = (field, list[msgspec.Raw])
        made: Any = msgspec.defstruct(f"Raw{shape.__name__}", [rows], bases=(shape,), kw_only=True, frozen=True)
        return made
