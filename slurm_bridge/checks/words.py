"""Short node names and amounts for messages."""

from collections.abc import Iterable

from slurm_bridge.model import hostlist

_MOST = 120


def nodes(names: Iterable[str]) -> str:
    """In Slurm's notation, cut to a readable length."""
    found = sorted(names)
    text = hostlist.compress(found)
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(found)} nodes)"


def count(number: int, word: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {word}{'' if number == 1 else 's'}"
