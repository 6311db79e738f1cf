"""What a workload's plan remembers of its node sets: which ones in which order, whatever is free meanwhile.

    a1b2-2-0-1f3c9a0e77d1     wish, how many had room when they were ordered, round, a word of four letters for each set

It is in the owner record, so that a restart goes through the same sets. It is no secret and no evidence: what it cannot
be read from is planned anew.
"""

import dataclasses
import hashlib
import re
from collections.abc import Sequence

_MEMO = re.compile(r"([0-9a-f]{4})-([0-9]{1,3})-([0-9]{1,6})-((?:[0-9a-f]{4})*)")
_WIDTH = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WishMemo:
    """`tag` is of the wish, `roomy` of the sets had room, `turn` counts how often they were ordered anew."""

    tag: str
    keys: tuple[str, ...]
    roomy: int = 0
    turn: int = 0

    @property
    def text(self) -> str:
        """For the record."""
        return f"{self.tag}-{self.roomy}-{self.turn}-{''.join(self.keys)}"

    @classmethod
    def parse(cls, text: str, tag: str) -> "WishMemo | None":
        """What `text` wrote for this wish; None for anything else."""
        found = _MEMO.fullmatch(text)
        if found is None or found[1] != tag:
            return None
        keys = tuple(found[4][start : start + _WIDTH] for start in range(0, len(found[4]), _WIDTH))
        return cls(tag=tag, keys=keys, roomy=int(found[2]), turn=int(found[3]))


def key(text: str) -> str:
    """Four letters for a set, by its name."""
    return hashlib.blake2s(text.encode(), digest_size=_WIDTH // 2).hexdigest()


def tag(words: Sequence[str]) -> str:
    """Likewise for all that is asked for."""
    return key("\0".join(words))
