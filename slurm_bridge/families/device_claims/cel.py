"""The only door to cel-python: one condition on a device, compiled.

    device.driver                          text
    device.attributes["DOMAIN"].NAME       int, bool, text, or a semantic version; no entry of an unknown domain
    device.capacity["DOMAIN"].NAME         a quantity

Of CEL there are comparisons, `in`, `&&`, `||`, `!`, the choice `? :`, lists, and the functions in `FUNCTIONS`. Not
there: arithmetic, loops over lists, and optional values. They are of little use for a device, and in Python they would
let one text take memory and time without a bound.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

import celpy
import lark
import re2
from celpy import celparser, celtypes

from slurm_bridge.families.device_claims.selectors import Field, UnusableSelector
from slurm_bridge.model import quantity
from slurm_bridge.model.devices import DeviceAttribute, DeviceCapacity

#: Made with the module: with it the library reads its grammar, for which the first condition should not pay.
_ENVIRONMENT: Final = celpy.Environment()

_VERSION: Final = re.compile(
    r"(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})(?:-([0-9A-Za-z.-]{1,64}))?(?:\+[0-9A-Za-z.-]{1,64})?"
)


@functools.total_ordering
class _Version:
    """A semantic version; one before a release is smaller than the release."""

    def __init__(self, text: str) -> None:
        found = _VERSION.fullmatch(text)
        if found is None:
            raise ValueError("no semantic version")
        self.release = tuple(int(one) for one in found.groups()[:3])
        parts = (found[4] or "").split(".") if found[4] else []
        early = tuple((0, int(one), "") if one.isdecimal() else (1, 0, one) for one in parts)
        self._key = (self.release, not early, early)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Version) and self._key == other._key

    def __lt__(self, other: "_Version") -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)


class _Quantity(Fraction):
    """A quantity; an amount in a text of the condition, or of the device."""


def _quantity(text: Any) -> _Quantity:
    return _Quantity(quantity.parse(str(text)))


def _version(text: Any) -> _Version:
    return _Version(str(text))


def _compared(one: Any, other: Any) -> int:
    if type(one) is not type(other) or not isinstance(one, _Quantity | _Version):
        raise TypeError("no such overload")
    return int(one > other) - int(one < other)


def _whole(amount: Any) -> celtypes.IntType:
    if not isinstance(amount, _Quantity) or amount.denominator != 1:
        raise TypeError("no whole number")
    return celtypes.IntType(amount.numerator)


def _part(place: int) -> Callable[[Any], celtypes.IntType]:
    return lambda version: celtypes.IntType(version.release[place])


#: What Kubernetes adds to CEL, as far as it is of use for devices.
_ADDED: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "semver": _version,
    "compareTo": lambda one, other: celtypes.IntType(_compared(one, other)),
    "isGreaterThan": lambda one, other: celtypes.BoolType(_compared(one, other) > 0),
    "isLessThan": lambda one, other: celtypes.BoolType(_compared(one, other) < 0),
    "asInteger": _whole,
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
    "lowerAscii": lambda text: celtypes.StringType(str(text).lower()),
    "upperAscii": lambda text: celtypes.StringType(str(text).upper()),
}

#: Letters of a regular expression, and the memory that it may take.
MOST_PATTERN: Final = 256
_PATTERN_MEMORY: Final = 1 << 20
#: Entries of a list, and arguments of a call.
MOST_ENTRIES: Final = 32

#: What a device has.
_OF_DEVICE: Final = ("attributes", "capacity", "driver")

#: All functions that a condition may call; regular expressions are matched in linear time.
FUNCTIONS: Final = frozenset({*_ADDED, "has", "contains", "startsWith", "endsWith", "matches", "size"})

#: The rules of the grammar that a condition may use.
_RULES: Final = frozenset(
    (
        "expr conditionalor conditionaland relation relation_lt relation_le relation_gt relation_ge relation_eq "
        "relation_ne relation_in addition multiplication unary unary_not unary_neg member member_dot member_dot_arg "
        "member_index primary literal ident ident_arg paren_expr list_lit exprlist"
    ).split()
)

_CALLS: Final = ("ident_arg", "member_dot_arg")
#: device, attributes, domain, name
_FIELD: Final = 4


class _FieldsByDomain(celtypes.MapType):
    """The entries by domain: a domain of which a device has nothing is empty, and no error."""

    def __missing__(self, _domain: object) -> celtypes.MapType:
        return celtypes.MapType()


class CelProgram:
    """One condition; raises UnusableSelector where it is none, or uses what there is not."""

    def __init__(self, text: str) -> None:
        try:
            tree = _ENVIRONMENT.compile(text)
        except (celparser.CELParseError, lark.exceptions.LarkError, RecursionError) as problem:
            raise UnusableSelector(
                "cannot be read as CEL, or uses optional values, which are not supported"
            ) from problem
        _refuse(tree)
        _known(tree)
        patterns = {text: _pattern(text) for text in _patterns(tree)}

        def matches(text: Any, pattern: Any) -> celtypes.BoolType:
            return celtypes.BoolType(patterns[str(pattern)].search(str(text)) is not None)

        self._program = _ENVIRONMENT.program(tree, functions={**_ADDED, "matches": matches})
        found: set[Field] = set()
        self.fields = tuple(sorted(found)) if _seen(tree, found) else None

    def met(self, driver: str, facts: Mapping[Field, Any]) -> bool:
        """Whatever goes wrong with one device is an answer about this device only."""
        try:
            found = self._program.evaluate({"device": _device(driver, facts)})
        except Exception:  # noqa: BLE001 - the library raises whatever the operation of a user's text raised
            return False
        return isinstance(found, celtypes.BoolType) and bool(found)


def _device(driver: str, facts: Mapping[Field, Any]) -> celtypes.MapType:
    parts: dict[str, dict[str, dict[Any, Any]]] = {"attributes": {}, "capacity": {}}
    for (what, domain, name), value in facts.items():
        parts[what].setdefault(domain, {})[celtypes.StringType(name)] = _value(value)
    named: dict[str, Any] = {"driver": celtypes.StringType(driver)}
    for what, domains in parts.items():
        named[what] = _FieldsByDomain(
            {celtypes.StringType(one): celtypes.MapType(entries) for one, entries in domains.items()}
        )
    return celtypes.MapType({celtypes.StringType(name): value for name, value in named.items()})


def _value(said: DeviceAttribute | DeviceCapacity) -> Any:
    if isinstance(said, DeviceCapacity):
        return _quantity(said.value)
    if said.boolean is not None:
        return celtypes.BoolType(said.boolean)
    if said.integer is not None:
        return celtypes.IntType(said.integer)
    return celtypes.StringType(said.string) if said.string is not None else _version(said.version)


def _refuse(tree: lark.Tree[Any]) -> None:
    for node in tree.iter_subtrees():
        if node.data not in _RULES:
            raise UnusableSelector(f"uses {str(node.data).replace('_', ' ')}, which is not supported")
        if node.data in _CALLS:
            name = next(str(one) for one in node.children if isinstance(one, lark.Token))
            if name not in FUNCTIONS:
                raise UnusableSelector(
                    f"calls {name}, which is not supported; there are {', '.join(sorted(FUNCTIONS))}"
                )
        if node.data == "exprlist" and len(node.children) > MOST_ENTRIES:
            raise UnusableSelector(f"has a list of more than {MOST_ENTRIES} entries")


def _known(tree: lark.Tree[Any]) -> None:
    """Kubernetes refuses a name that there is not; a condition with one would never be met."""
    for node in tree.iter_subtrees():
        if node.data == "ident" and node.children[0] != "device":
            raise UnusableSelector(f"names {node.children[0]}, and there is only device")
        if node.data in ("member_dot", "member_index"):
            _of_device(tuple(_path(node)))


def _of_device(path: tuple[str, ...]) -> None:
    if path[:1] == ("device",) and len(path) == len(("device", "attributes")) and path[1] not in _OF_DEVICE:
        raise UnusableSelector(f"uses device.{path[1]}, which is not supported; there are {', '.join(_OF_DEVICE)}")


def _patterns(tree: lark.Tree[Any]) -> Iterator[str]:
    """All regular expressions: they are the last argument of a call."""
    for node in tree.iter_subtrees():
        if node.data in _CALLS and "matches" in node.children:
            arguments = node.children[-1]
            text = _text(arguments.children[-1]) if isinstance(arguments, lark.Tree) else None
            if text is None:
                raise UnusableSelector("calls matches without a regular expression in quotes")
            yield text


def _pattern(text: str) -> Any:
    if len(text) > MOST_PATTERN:
        raise UnusableSelector(f"has a regular expression of more than {MOST_PATTERN} letters")
    options = re2.Options()
    options.log_errors, options.max_mem = False, _PATTERN_MEMORY
    try:
        return re2.compile(text, options)
    except re2.error as problem:
        raise UnusableSelector("has a regular expression that RE2 does not take") from problem


def _seen(tree: lark.Tree[Any], found: set[Field]) -> bool:
    """Collect what is looked at; False where it is more than single attributes and capacities."""
    if tree.data in ("member_dot", "member_index", "ident"):
        path = tuple(_path(tree))
        if path == ("device", "driver"):
            return True
        if len(path) == _FIELD and path[0] == "device" and path[1] in ("attributes", "capacity"):
            found.add((path[1], path[2], path[3]))
            return True
        if path[:1] == ("device",):
            return False
    return all(_seen(one, found) for one in tree.children if isinstance(one, lark.Tree))


def _path(tree: lark.Tree[Any]) -> Iterator[str]:
    """`device.attributes["x"].y` as its four names; the names before a part that is not known beforehand are kept."""
    if tree.data in ("member", "primary"):
        yield from _path(tree.children[0])
    elif tree.data == "ident":
        yield str(tree.children[0])
    elif tree.data == "member_dot":
        yield from _path(tree.children[0])
        yield str(tree.children[1])
    elif tree.data == "member_index":
        yield from _path(tree.children[0])
        text = _text(tree.children[1])
        # What is not known beforehand makes the path too long to be that of one attribute.
        yield from ("?",) * _FIELD if text is None else (text,)


def _text(tree: Any) -> str | None:
    """The text that an expression consists of."""
    while isinstance(tree, lark.Tree) and tree.data != "literal" and len(tree.children) == 1:
        tree = tree.children[0]
    token = tree.children[0] if isinstance(tree, lark.Tree) and tree.data == "literal" else None
    return (
        str(token)[1:-1] if isinstance(token, lark.Token) and token.type == "STRING_LIT" and token[0] in "\"'" else None
    )
