"""What a workload's plan remembers of its node sets: which ones in which order, whatever is free meanwhile.

    <wish>-2-0-<domain><domain><domain>-00.p0001.p0002

The wish, how many sets had room when they were ordered, the round, each domain once, and for each set its domains by
their numbers: the one around it first, `p` before sets with one for each part. Wish and domains are digests of 64 bits:
no two of a cluster are alike. It is in the owner record, so that a restart goes through the same sets. It is no secret
and no evidence: a text that is none, such as the record of an earlier version, is planned anew.
"""

import base64
import dataclasses
import hashlib
import re
from collections.abc import Sequence

_DIGEST = r"[A-Za-z0-9_.]{11}"
_SET = r"p?(?:[0-9a-f]{2})+"
_MEMO = re.compile(rf"({_DIGEST})-([0-9]{{1,3}})-([0-9]{{1,6}})-((?:{_DIGEST})*)-((?:{_SET}(?:\.{_SET})*)?)")
_WIDTH = 11
#: The record that it is part of is bounded: sets beyond that are forgotten, and so not tried.
MOST_LETTERS = 640


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One set: the digest of the domain around it, then of its own; of one for each part where it is `apart`."""

    keys: tuple[str, ...]
    apart: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WishMemo:
    """`tag` is of the wish, `roomy` of the sets had room, `turn` counts how often they were ordered anew."""

    tag: str
    ways: tuple[Way, ...]
    roomy: int = 0
    turn: int = 0

    @property
    def text(self) -> str:
        """For the record."""
        keys = list(dict.fromkeys(key for way in self.ways for key in way.keys))
        ways = (f"{'p' * way.apart}{''.join(f'{keys.index(key):02x}' for key in way.keys)}" for way in self.ways)
        return f"{self.tag}-{self.roomy}-{self.turn}-{''.join(keys)}-{'.'.join(ways)}"

    @property
    def bounded(self) -> "WishMemo":
        """With as many of its sets as there is room for in the record, the first ones."""
        kept = self
        while len(kept.text) > MOST_LETTERS:
            ways = kept.ways[:-1]
            kept = dataclasses.replace(kept, ways=ways, roomy=min(kept.roomy, len(ways)))
        return kept

    @classmethod
    def parse(cls, text: str, tag: str) -> "WishMemo | None":
        """What `text` wrote for this wish; None for anything else."""
        found = _MEMO.fullmatch(text)
        if found is None or found[1] != tag:
            return None
        keys = [found[4][start : start + _WIDTH] for start in range(0, len(found[4]), _WIDTH)]
        ways = []
        for said in filter(None, found[5].split(".")):
            places = [int(pair, 16) for pair in re.findall("..", said.removeprefix("p"))]
            if max(places) >= len(keys):
                return None
            ways.append(Way(keys=tuple(keys[place] for place in places), apart=said.startswith("p")))
        return cls(tag=tag, ways=tuple(ways), roomy=int(found[2]), turn=int(found[3]))


def key(words: Sequence[str]) -> str:
    """A digest of some words: of a domain, or of all that is asked for."""
    digest = hashlib.blake2s("\0".join(words).encode(), digest_size=8).digest()
    return base64.b64encode(digest, b"_.").decode().rstrip("=")
