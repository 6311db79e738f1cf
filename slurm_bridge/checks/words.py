"""Node names and amounts in messages that stay short on a large cluster."""

from collections.abc import Iterable

from slurm_bridge.model import hostlist

_MOST = 120


def nodes(names: Iterable[str]) -> str:
    """As Slurm would write them, cut where nobody would read on."""
    found = sorted(names)
    text = hostlist.compress(found)
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(found)} nodes)"


def count(number: int, word: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {word}{'' if number == 1 else 's'}"
