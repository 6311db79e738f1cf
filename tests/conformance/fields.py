"""The strict reader with which an adapter looks into a case.

Whatever a case says and nobody looked at is an error: a field that is ignored would pass without being tested.
Every error names the file, the case and the path of the field.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tests.conformance.comparing import differences

#: A default that nobody can have written.
REQUIRED: Any = object()

T = TypeVar("T")
D = TypeVar("D")

_KINDS: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a map",
}


class Malformed(Exception):
    """A file or a case that nobody can read as it is written."""


class Fields:
    """One record of a case, each field taken by name and with its type; `where` says which record it is.

    A field that may be left out is taken with a default. `null` is no value: it is only allowed where the default is
    None, and whoever has to tell it from a field that is left out asks `has` and `null`.
    """

    def __init__(self, record: Mapping[Any, Any], where: str) -> None:
        self.where = where
        self._record = record
        self._taken: set[str] = set()
        self._inner: dict[str, Fields] = {}
        odd = [key for key in record if not isinstance(key, str)]
        if odd:
            raise Malformed(f"{where}: the key {odd[0]!r} is not a text; YAML takes it for {kind_of(odd[0])}")

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are there, in the order in which they are written."""
        return tuple(self._record)

    def has(self, key: str) -> bool:
        """The field is written, if only as null."""
        return key in self._record

    def null(self, key: str) -> bool:
        """The field is written, and null."""
        self._taken.add(key)
        return key in self._record and self._record[key] is None

    def text(self, key: str, default: D = REQUIRED) -> str | D:
        """A text."""
        return self._take(key, default, str)

    def whole(self, key: str, default: D = REQUIRED) -> int | D:
        """A whole number."""
        return self._take(key, default, int)

    def number(self, key: str, default: D = REQUIRED) -> float | D:
        """Any number."""
        return self._take(key, default, float)

    def flag(self, key: str, default: D = REQUIRED) -> bool | D:
        """True or false."""
        return self._take(key, default, bool)

    def choice(self, key: str, table: Mapping[str, T]) -> T:
        """What a table has for this text: the way to tell operations apart."""
        name = self.text(key)
        if name not in table:
            raise Malformed(f"{self.where}.{key}: {name!r} is not known here; these are {', '.join(sorted(table))}")
        return table[name]

    def list(self, key: str, default: D = REQUIRED) -> tuple[Any, ...] | D:
        """Values without fields of their own, such as `[node, score]` pairs."""
        taken = self._listed(key, default)
        if taken is None:
            return default
        self._flat(key, taken)
        return tuple(taken)

    def texts(self, key: str, default: D = REQUIRED) -> tuple[str, ...] | D:
        """A list of texts."""
        return self._each(key, default, str)

    def wholes(self, key: str, default: D = REQUIRED) -> tuple[int, ...] | D:
        """A list of whole numbers."""
        return self._each(key, default, int)

    def numbers(self, key: str, default: D = REQUIRED) -> tuple[float, ...] | D:
        """A list of any numbers."""
        return self._each(key, default, float)

    def mapping(self, key: str, default: D = REQUIRED) -> dict[str, Any] | D:
        """Names that are data (labels, amounts, scores by node) with their values, which have no fields."""
        taken: Any = self._take(key, default, dict)
        if not self._there(key):
            return default
        self._flat(key, taken.values())
        return dict(taken)

    def raw(self, key: str) -> dict[str, Any]:
        """A map with all that is in it; whoever takes it answers for every field."""
        return self._take(key, REQUIRED, dict)

    def fields(self, key: str, default: D = REQUIRED) -> "Fields | D":
        """A record within this one."""
        taken = self._take(key, default, dict)
        return self._child(taken, f".{key}") if self._there(key) else default

    def records(self, key: str, default: D = REQUIRED) -> "tuple[Fields, ...] | D":
        """A list of records."""
        taken = self._listed(key, default)
        if taken is None:
            return default
        return tuple(self._child(one, f".{key}[{place}]") for place, one in enumerate(taken))

    def named(self, key: str, default: D = REQUIRED) -> "dict[str, Fields] | D":
        """Names that are data, with a record each."""
        inner = self.fields(key, default)
        if not isinstance(inner, Fields):
            return inner
        return {name: inner.fields(name) for name in inner.names}

    def compare(self, result: Mapping[str, Any]) -> None:
        """Take this record, which says what is expected, as a whole: every key of it is in the result, and equal."""
        self._taken.update(self._record)
        found = differences(result, self._record, self.where)
        assert not found, "\n".join(found)

    def unread(self) -> Iterator[str]:
        """The paths of all fields, here and within, that nobody has taken."""
        yield from (f"{self.where}.{key}" for key in self._record if key not in self._taken)
        for inner in self._inner.values():
            yield from inner.unread()

    def _child(self, record: object, path: str) -> "Fields":
        if not isinstance(record, dict):
            raise Malformed(f"{self.where}{path}: is {kind_of(record)}, not a map")
        return self._inner.setdefault(path, Fields(record, self.where + path))

    def _take(self, key: str, default: D, kind: type[T]) -> T | D:
        self._taken.add(key)
        value = self._record.get(key)
        if key not in self._record or (value is None and default is None):
            if default is REQUIRED:
                raise Malformed(f"{self.where}.{key}: is missing")
            return default
        return _checked(value, kind, f"{self.where}.{key}")

    def _there(self, key: str) -> bool:
        """Not replaced by its default."""
        return self._record.get(key) is not None

    def _listed(self, key: str, default: object) -> Sequence[Any] | None:
        """None where the default takes the place of the list."""
        taken: Any = self._take(key, default, list)
        return taken if self._there(key) else None

    def _each(self, key: str, default: D, kind: type[T]) -> tuple[T, ...] | D:
        taken = self._listed(key, default)
        if taken is None:
            return default
        return tuple(_checked(one, kind, f"{self.where}.{key}[{place}]") for place, one in enumerate(taken))

    def _flat(self, key: str, values: Iterable[Any]) -> None:
        for inner in _maps(values):
            raise Malformed(f"{self.where}.{key}: {inner!r} has fields of its own, which would be read by nobody")


def finish(*records: Fields) -> None:
    """The case is over: raises Malformed with every field of these records that nobody has taken."""
    unread = [path for record in records for path in record.unread()]
    if unread:
        raise Malformed("\n".join(f"{path}: is not a field that anything reads" for path in unread))


def kind_of(value: object) -> str:
    """What a value is, in the words of messages."""
    return _KINDS.get(type(value), "nothing" if value is None else f"a {type(value).__name__}")


def _checked(value: Any, kind: type[T], where: str) -> T:
    """The value; every whole number is a number, but true is not 1."""
    fits = isinstance(value, (int, float) if kind is float else kind)
    if fits and isinstance(value, bool) == (kind is bool):
        checked: T = value
        return checked
    raise Malformed(f"{where}: is {value!r}, not {_KINDS[kind]}")


def _maps(values: Iterable[Any]) -> Iterator[dict[Any, Any]]:
    for value in values:
        if isinstance(value, dict):
            yield value
        elif isinstance(value, list):
            yield from _maps(value)
