"""What installed packages offer by their entry points."""

import functools
import importlib.metadata
import types
from collections.abc import Mapping


@functools.cache
def offered(group: str) -> Mapping[str, importlib.metadata.EntryPoint]:
    """By name; looked for once, which costs as much as all else in a chain: packages come with a new process."""
    return types.MappingProxyType({found.name: found for found in importlib.metadata.entry_points(group=group)})
