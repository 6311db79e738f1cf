"""Label selectors: as manifests write them, and in the one-line notation of command lines and settings."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

Labels = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one key."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Labels) -> bool:
        """An unknown operator never holds."""
        rule = OPERATORS.get(self.operator)
        return rule is not None and rule(labels.get(self.key), self.values)


def _number(text: str | None) -> int | None:
    """Kubernetes compares labels as decimal integers; other values compare with nothing."""
    return int(text) if text is not None and re.fullmatch(r"[+-]?[0-9]{1,19}", text) else None


def compare(found: str | None, wanted: tuple[str, ...], *, greater: bool) -> bool:
    """Whether a label's number lies above (or below) the one wanted."""
    low, high = _number(wanted[0] if len(wanted) == 1 else None), _number(found)
    if low is None or high is None:
        return False
    return high > low if greater else high < low


#: What each operator of a requirement says about a label's value, None where the key is absent.
OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda found, values: found is not None and found in values,
    "NotIn": lambda found, values: found is None or found not in values,
    "Exists": lambda found, _: found is not None,
    "DoesNotExist": lambda found, _: found is None,
    "Gt": lambda found, values: compare(found, values, greater=True),
    "Lt": lambda found, values: compare(found, values, greater=False),
}

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_SET = re.compile(rf"({_NAME})\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = re.compile(rf"({_NAME})\s*(==|=|!=)\s*((?:{_NAME})?)")
_PRESENT = re.compile(rf"(!?)\s*({_NAME})")
_WORDS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", "": "Exists", "!": "DoesNotExist"}


def parse(text: str) -> tuple[Requirement, ...]:
    """`a=b,c in (d,e),!f` → its requirements; raises ValueError naming the part that is no requirement."""
    requirements: list[Requirement] = []
    for part in map(str.strip, re.split(r",(?![^()]*\))", text) if text.strip() else ()):
        if found := _SET.fullmatch(part) or _EQUAL.fullmatch(part):
            values = tuple(value.strip() for value in found[3].split(","))
            requirements.append(Requirement(found[1], _WORDS[found[2]], values))
        elif found := _PRESENT.fullmatch(part):
            requirements.append(Requirement(found[2], _WORDS[found[1]]))
        else:
            wanted = "a label requirement such as `key=value`, `key in (a,b)`, `key` or `!key`"
            raise ValueError(f"{part!r} is not {wanted}")
    return tuple(requirements)


def all_hold(requirements: tuple[Requirement, ...], labels: Labels) -> bool:
    """Every one of them; without any, everything matches."""
    return all(requirement.holds(labels) for requirement in requirements)


def read(selector: object) -> tuple[Requirement, ...] | None:
    """A manifest's label selector (matchLabels, matchExpressions). None selects nothing, an empty one everything.

    A selector with values of other types selects nothing: it may be compared with the pods of all other users.
    """
    if not isinstance(selector, Mapping):
        return None
    equal, rows = selector.get("matchLabels") or {}, selector.get("matchExpressions")
    if rows is None:
        rows = ()
    if not isinstance(equal, Mapping) or not isinstance(rows, list | tuple):
        return None
    found: list[Requirement] = []
    for key, value in equal.items():
        if not isinstance(value, str):
            return None
        found.append(Requirement(key, "In", (value,)))
    for row in rows:
        if not isinstance(row, Mapping):
            return None
        key, operator, values = row.get("key", ""), row.get("operator", ""), words(row.get("values"))
        if not isinstance(key, str) or not isinstance(operator, str) or values is None:
            return None
        found.append(Requirement(key, operator, values))
    return tuple(found)


def selects(selector: object, labels: Labels) -> bool:
    """Whether a manifest's label selector selects an object with these labels."""
    requirements = read(selector)
    return requirements is not None and all_hold(requirements, labels)


def words(written: object) -> tuple[str, ...] | None:
    """A manifest's list of words, empty where it is missing; None where the value has another type."""
    if written is None:
        return ()
    if not isinstance(written, list | tuple) or not all(isinstance(one, str) for one in written):
        return None
    return tuple(written)


def requirement(row: Mapping[str, Any]) -> Requirement:
    """One row of a manifest: key, operator, values."""
    return Requirement(row.get("key", ""), row.get("operator", ""), tuple(row.get("values") or ()))
