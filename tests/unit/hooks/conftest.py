"""What a chain needs beside its hooks, for every test that asks for it."""

import pytest

from tests.unit.hooks.builders import Around


@pytest.fixture
def around() -> Around:
    """The surroundings of a chain."""
    return Around()
