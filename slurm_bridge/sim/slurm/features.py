"""Feature expressions: `a100&rack1`, `rack1|rack2`, `[rack1|rack2]`: parsed, checked and evaluated.

Brackets around alternatives mean that all nodes of a job have the same one; without them each node may have its own.
"""

import re
from collections.abc import Callable, Collection

Test = Callable[[Collection[str]], bool]

_NAME = re.compile(r"[A-Za-z0-9_.+/:=-]+")

_COUNT = re.compile(r"\*\d+")


class BadFeatureExpression(ValueError):
    """The text is no feature expression."""


def names(expression: str) -> set[str]:
    """All features in an expression."""
    return set(_NAME.findall(_COUNT.sub("", expression)))


def alternatives(expression: str) -> tuple[str, ...]:
    """The expressions one of which has to hold for all nodes together."""
    text = expression.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return (text,)
    if "*" in text:  # how many nodes of each: simplified here to one per node
        return (_COUNT.sub("", text[1:-1]).replace("&", "|"),)
    return tuple(text[1:-1].split("|"))


def parse(expression: str) -> Test:
    """Whether a node with these features matches; the empty expression always does."""
    if not expression:
        return lambda _: True
    test, rest = _either(expression.replace(" ", ""))
    if rest:
        raise BadFeatureExpression(expression)
    return test


def _either(text: str) -> tuple[Test, str]:
    tests, rest = _chain(text, "|", _both)
    return (lambda features: any(test(features) for test in tests)), rest


def _both(text: str) -> tuple[Test, str]:
    tests, rest = _chain(text, "&", _one)
    return (lambda features: all(test(features) for test in tests)), rest


def _chain(text: str, between: str, part: Callable[[str], tuple[Test, str]]) -> tuple[list[Test], str]:
    test, rest = part(text)
    tests = [test]
    while rest.startswith((between, "," if between == "&" else between)):
        test, rest = part(rest[1:])
        tests.append(test)
    return tests, rest


def _one(text: str) -> tuple[Test, str]:
    if text.startswith("("):
        test, rest = _either(text[1:])
        if not rest.startswith(")"):
            raise BadFeatureExpression(text)
        return test, rest[1:]
    found = _NAME.match(text)
    if found is None:
        raise BadFeatureExpression(text)
    return (lambda features: found[0] in features), text[found.end() :]
