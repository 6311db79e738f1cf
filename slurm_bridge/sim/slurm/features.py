"""Feature expressions: `a100&rack1`, `rack1|rack2`, `[rack1|rack2]`: read, checked and answered.

A bracket around alternatives means that all nodes of a job have the same one; without it each node may have its own.
"""

import re
from collections.abc import Callable, Collection

Test = Callable[[Collection[str]], bool]

_NAME = re.compile(r"[A-Za-z0-9_.+/:=-]+")

_COUNT = re.compile(r"\*\d+")


class Unreadable(ValueError):
    """This is not an expression of features."""


def names(expression: str) -> set[str]:
    """All features that an expression speaks of."""
    return set(_NAME.findall(_COUNT.sub("", expression)))


def alternatives(expression: str) -> tuple[str, ...]:
    """The expressions of which one has to hold for all nodes together."""
    text = expression.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return (text,)
    if "*" in text:  # how many nodes of each: here only that every node has one of them
        return (_COUNT.sub("", text[1:-1]).replace("&", "|"),)
    return tuple(text[1:-1].split("|"))


def parse(expression: str) -> Test:
    """Whether a node with these features will do; the empty expression always holds."""
    if not expression:
        return lambda _: True
    test, rest = _either(expression.replace(" ", ""))
    if rest:
        raise Unreadable(expression)
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
            raise Unreadable(text)
        return test, rest[1:]
    found = _NAME.match(text)
    if found is None:
        raise Unreadable(text)
    return (lambda features: found[0] in features), text[found.end() :]
