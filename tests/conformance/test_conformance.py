"""Every case of every file, checked by the adapter of its form: `family/file.yaml::id` says which one failed."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import adapters, loading
from tests.conformance.loading import Case, Fields, Malformed


def _found(root: Path) -> Iterator[tuple[str, Case | Malformed]]:
    """Every case with its name; a file or folder that cannot be read is an item of its own, and fails."""
    try:
        paths = loading.files(root)
    except Malformed as malformed:
        yield str(root), malformed
        return
    for path in paths:
        name = f"{path.parent.name}/{path.name}"
        try:
            yield from ((f"{name}::{case.id}", case) for case in loading.cases(path))
        except Malformed as malformed:
            yield name, malformed


def _marks(item: Case | Malformed) -> list[pytest.MarkDecorator]:
    if isinstance(item, Case) and adapters.FAMILIES.get(item.family) == ():
        return [pytest.mark.skip(reason=f"no adapter for the family {item.family} yet")]
    if isinstance(item, Case) and not item.binding:
        return [pytest.mark.xfail(reason=item.reason, raises=AssertionError, strict=False)]
    return []


def _parameters() -> list[Any]:
    """All of all folders; where folders share a name each says whose it is."""
    items = [(root, name, item) for root in loading.roots() for name, item in _found(root)]
    often = Counter(name for _, name, _ in items)
    ids = [name if often[name] == 1 else f"{root}/{name}" for root, name, _ in items]
    return [pytest.param(item, id=name, marks=_marks(item)) for name, (_, _, item) in zip(ids, items, strict=True)]


@pytest.mark.parametrize("item", _parameters())
def test_conformance(item: Case | Malformed) -> None:
    """The hooks do what the case says, and nothing that the case says is left unread."""
    if isinstance(item, Malformed):
        raise item
    given, expect = Fields(item.given, f"{item.where}: given"), Fields(item.expect, f"{item.where}: expect")
    adapters.check(item.family, item.file)(given, expect)
    loading.finish(given, expect)
