"""The one way in which YAML is read: as data that JSON could hold, bounded before anything is built.

A text is looked through event by event first. Nothing of it is built when it is nested too deeply, holds too much, or
holds itself: some hundred bytes of aliases make gigabytes, and thousands of levels end the process. Dates stay text,
and so do numbers of base 60: `2026-02-30` is no error and `1:1:1:...` costs nothing.
"""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

#: Levels of a text; a pod has about a dozen, and each level of queues takes two.
DEEPEST: Final = 100
#: Bytes of a text.
MOST_BYTES: Final = 4 << 20
#: Of one that people write by hand, which is read slowly; no ConfigMap holds more.
MOST_BYTES_BY_HAND: Final = 1 << 20
#: Values of a text, those behind aliases as often as they are meant.
MOST_VALUES: Final = 500_000

#: Digits of a number: longer ones take seconds to read, and mean nothing.
_MOST_DIGITS: Final = 400
_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(
    r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+",
)
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN)",
)


class NotYaml(ValueError):
    """The text cannot be read: `what` is wrong, in this line of it where it is one."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what if line is None else f"line {line}: {what}")
        self.what, self.line = what, line


class _Plain(yaml.constructor.SafeConstructor):
    """Plain values only; whatever cannot be made of a text is an error that names its line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            text = f"{str(node.value)[:40]!r} is no {node.tag.removeprefix(_TAG)}"
            raise yaml.constructor.ConstructorError(None, None, text, node.start_mark) from error

    def number(self, node: yaml.ScalarNode) -> int | float:
        """A number in the spellings that are told by their look; an explicit tag changes nothing about these."""
        text = str(self.construct_scalar(node))
        if len(text) > _MOST_DIGITS or not (_INT.fullmatch(text) or _FLOAT.fullmatch(text)):
            raise ValueError(text)
        plain = node.tag == f"{_TAG}int"
        return self.construct_yaml_int(node) if plain else self.construct_yaml_float(node)


class _Loader(_Plain, yaml.CSafeLoader):
    """Fast."""


class _Teller(_Plain, yaml.SafeLoader):
    """Slow, with better words for mistakes: for files that people write by hand."""


def _refused(_loader: object, node: yaml.Node) -> Any:
    """What JSON does not know."""
    raise ValueError(node.tag)


def _settle(loader: Any) -> None:
    """What is told by its look, and what is made of it."""
    loader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in resolvers if tag.removeprefix(_TAG) not in ("timestamp", "int", "float")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver(f"{_TAG}int", re.compile(f"(?:{_INT.pattern})$"), list("-+0123456789"))
    loader.add_implicit_resolver(f"{_TAG}float", re.compile(f"(?:{_FLOAT.pattern})$"), list("-+0123456789."))
    for name in ("int", "float"):
        loader.add_constructor(f"{_TAG}{name}", loader.number)
    for name in ("timestamp", "set", "omap", "pairs"):
        loader.add_constructor(f"{_TAG}{name}", _refused)


_settle(_Loader)
_settle(_Teller)


def load(text: str | bytes, *, aliases: bool = True) -> Any:
    """The one document of this text, None when it holds none; NotYaml says what is wrong, and where."""
    given = _text(text, MOST_BYTES)
    with _told(given):
        _look_through(given, _Loader, aliases=aliases)
        return _Loader(given).get_single_data()


def composed(text: str) -> list[tuple[yaml.Node, Any]]:
    """All documents that hold something, of a file that people write by hand: nodes, which know lines, and values."""
    given = _text(text, MOST_BYTES_BY_HAND)
    with _told(given):
        _look_through(given, _Teller, aliases=True)
        loader = _Teller(given)
        found = []
        while loader.check_node() and (node := loader.get_node()) is not None:
            found.append((node, loader.construct_document(node)))
        return [(node, value) for node, value in found if value is not None]


def documents(text: str | bytes) -> list[Any]:
    """All documents that hold something."""
    given = _text(text, MOST_BYTES)
    with _told(given):
        _look_through(given, _Loader, aliases=True)
        return [document for document in yaml.load_all(given, _Loader) if document is not None]


@contextlib.contextmanager
def _told(given: str) -> Iterator[None]:
    """Whatever the library says of this text, as an error of ours; the end of the text is on its last line."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else min(mark.line, given.count("\n")) + 1
        raise NotYaml(error.problem or error.context or "", line) from error
    except yaml.YAMLError as error:
        raise NotYaml(type(error).__name__) from error
    except RecursionError as error:
        raise NotYaml("is nested too deeply") from error
    except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise NotYaml(f"holds what cannot be read: {type(error).__name__}") from error


def _text(text: str | bytes, most: int) -> str:
    try:
        given = text.encode() if isinstance(text, str) else text
        if len(given) > most:
            raise NotYaml(f"has {len(given)} bytes; {most} at most are read")
        return given.decode()
    except UnicodeError:
        raise NotYaml("is not UTF-8") from None


def _look_through(given: str, loader: Any, *, aliases: bool) -> None:
    """Every event, before anything is built."""
    look = _Look()
    for event in yaml.parse(given, loader):
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise NotYaml(f"YAML aliases are not taken, write *{event.anchor} out", _line(event))
        look.at(event)


def _line(event: yaml.Event) -> int | None:
    return event.start_mark.line + 1 if event.start_mark is not None else None


@dataclasses.dataclass(slots=True)
class _Nesting:
    """A collection that is open: its anchor, how many values it has come to, and how deep they go."""

    anchor: str | None
    values: int = 1
    height: int = 0


class _Look:
    """Counts what a text would become."""

    def __init__(self) -> None:
        self._open: list[_Nesting] = [_Nesting(None)]
        #: By anchor: values and height of what it names; None while that is still open.
        self._named: dict[str, tuple[int, int] | None] = {}

    def at(self, event: yaml.Event) -> None:
        """The next one."""
        match event:
            case yaml.CollectionStartEvent(anchor=anchor):
                self._open.append(_Nesting(anchor))
                self._name(anchor, None)
                self._check(event, 0)
            case yaml.CollectionEndEvent():
                closed = self._open.pop()
                self._add(event, closed.anchor, closed.values, closed.height + 1)
            case yaml.ScalarEvent(anchor=anchor):
                self._add(event, anchor, 1, 0)
            case yaml.AliasEvent(anchor=anchor):
                meant = self._named.get(anchor or "", (1, 0))
                if meant is None:
                    raise NotYaml(f"*{anchor} holds itself", _line(event))
                self._add(event, None, *meant)

    def _add(self, event: yaml.Event, anchor: str | None, values: int, height: int) -> None:
        self._name(anchor, (values, height))
        level = self._open[-1]
        level.values += values
        level.height = max(level.height, height)
        self._check(event, height)

    def _name(self, anchor: str | None, meant: tuple[int, int] | None) -> None:
        if anchor is not None:
            self._named[anchor] = meant

    def _check(self, event: yaml.Event, height: int) -> None:
        if len(self._open) - 1 + height > DEEPEST:
            raise NotYaml(f"is nested too deeply; at most {DEEPEST} levels are allowed", _line(event))
        if self._open[-1].values > MOST_VALUES:
            raise NotYaml(f"holds more than {MOST_VALUES} values", _line(event))
