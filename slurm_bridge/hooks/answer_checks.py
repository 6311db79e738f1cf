"""Whether an answer holds what its record promises: Python checks neither fields nor what is in them.

An answer that does not is the failure of the hook that gave it, and not of the code that reads it later.
"""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.cluster.columns import Numbers, Reasons
from slurm_bridge.cluster.outside import Outside
from slurm_bridge.hooks import base
from slurm_bridge.model.verdict import Reject, Wait

#: Fields of a request that are no texts.
_TYPES: Mapping[str, type] = {"priority": int, "nice": int, "time_limit_minutes": int, "exclusive": bool}


def check(answer: object, allowed: tuple[type, ...]) -> None:
    """Raises TypeError where the answer is of none of these types, or naming the field that is not of its own."""
    kind = answer.__class__
    if kind not in allowed and not isinstance(answer, allowed):
        words = " or ".join(kind.__name__ for kind in allowed)
        raise TypeError(f"answered with {type(answer).__name__}, not with {words}")
    if kind in _RULES:
        _RULES[kind](answer)


def _admit(answer: base.Admit) -> None:
    if answer.note.__class__ is not str:
        _is(answer.note, str, "Admit.note")


def _wait(answer: Wait) -> None:
    _is(answer.reason, str, "Wait.reason")
    _is(answer.message, str, "Wait.message")
    _number(answer.retry_after, "Wait.retry_after")


def _reject(answer: Reject) -> None:
    _is(answer.reason, str, "Reject.reason")
    _is(answer.message, str, "Reject.message")


def _sample(answer: base.Sample) -> None:
    _set(answer.nodes, "Sample.nodes")
    _number(answer.retry_after, "Sample.retry_after")
    _is(answer.given_up, str, "Sample.given_up")


def _denied(answer: base.Denied) -> None:
    if not isinstance(answer.nodes, Reasons | Outside):
        _is(answer.nodes, Mapping, "Denied.nodes")
        _all(answer.nodes.values(), _reasons, "Denied.nodes", "reasons, each a text")


def _scores(answer: base.Scores) -> None:
    if answer.nodes.__class__ is dict and not answer.nodes:
        pass
    elif not isinstance(answer.nodes, Numbers):
        _is(answer.nodes, Mapping, "Scores.nodes")
        _all(answer.nodes.values(), _finite, "Scores.nodes", "numbers")
    if answer.tiers is not None:
        tiers = answer.tiers
        _is(tiers, base.Tiers, "Scores.tiers")
        first = 1 if tiers.first is None else tiers.first
        if not (_positive(tiers.count) and _positive(first) and _finite(tiers.widen_after)):
            raise TypeError(
                f"Scores.tiers is {tiers!r}; count and first are whole numbers from 1, widen_after is a number"
            )


def _subsets(answer: base.Subsets) -> None:
    if answer.sets.__class__ is not tuple:
        _is(answer.sets, Sequence, "Subsets.sets")
    for one in answer.sets:
        _is(one, base.NodeSet, "Subsets.sets")
        _set(one.nodes, "NodeSet.nodes")
        _is(one.name, str, "NodeSet.name")
        _number(one.seconds, "NodeSet.seconds")
        _is(one.again, int, "NodeSet.again")
        if one.each is not None and not _positive(one.each):
            raise TypeError(f"NodeSet.each is {one.each!r}, not a whole number from 1")


def _fields(answer: base.Fields) -> None:
    for name, value in answer.given().items():
        _is(value, _TYPES.get(name, str), f"Fields.{name}")


def _deny(answer: base.Deny) -> None:
    _set(answer.nodes, "Deny.nodes")
    _is(answer.message, str, "Deny.message")


def _rank(answer: base.Rank) -> None:
    if answer.nice is not None:
        _is(answer.nice, int, "Rank.nice")


_RULES: Mapping[type, Callable[[Any], None]] = {
    base.Admit: _admit,
    Wait: _wait,
    Reject: _reject,
    base.Sample: _sample,
    base.Denied: _denied,
    base.Scores: _scores,
    base.Subsets: _subsets,
    base.Fields: _fields,
    base.Deny: _deny,
    base.Rank: _rank,
}


def _is(value: object, kind: type, field: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{field} is {type(value).__name__}, not {kind.__name__}")


def _set(value: object, field: str) -> None:
    """No view of something else, which would change with it."""
    if not isinstance(value, frozenset | set):
        raise TypeError(f"{field} is {type(value).__name__}, not a set of names")


def _number(value: object, field: str) -> None:
    if value is not None and not _finite(value):
        raise TypeError(f"{field} is {value!r}, not a number")


def _all(values: Iterable[object], sound: Callable[[object], bool], field: str, wanted: str) -> None:
    """Most of many values are one and the same object."""
    for value in {id(value): value for value in values}.values():
        if not sound(value):
            raise TypeError(f"{field} has {value!r} among its values, which have to be {wanted}")


def _reasons(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(reason, str) for reason in value)


def _positive(value: object) -> bool:
    return isinstance(value, int) and value >= 1


def _finite(value: object) -> bool:
    return isinstance(value, float | int | numbers.Real) and math.isfinite(value)
