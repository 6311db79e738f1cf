"""The record of the user that created a workload: written at admission, and read where jobs and queues belong to users.

    {"user":"alice","groups":["physics","system:authenticated"]}

Reading is strict and bounded: a text of any other form names no user.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

#: A longer record is not written, and not read.
MOST_BYTES: Final = 4096
#: A longer name could not be compared or shown; its user is not recorded.
MOST_OF_NAME: Final = 512


class Creator(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A user as the API server knows them."""

    user: str
    groups: tuple[str, ...] = ()


_records = msgspec.json.Decoder(Creator)


def write(user: str, groups: Iterable[str]) -> str:
    """The record; groups that do not fit are left out, the last ones first. "" for a user that cannot be recorded."""
    if not user or len(user) > MOST_OF_NAME or not user.isprintable():
        return ""
    kept: list[str] = []
    room = MOST_BYTES - _size(Creator(user=user)) - len(',"groups":[]')
    for group in groups:
        room -= _size(group) + 1
        if room < 0:
            break
        kept.append(group)
    return msgspec.json.encode(Creator(user=user, groups=tuple(kept))).decode()


def read(text: str | None) -> Creator | None:
    """The user in a record; None where there is none, or where the text is no record."""
    if not text or len(text) > MOST_BYTES:
        return None
    try:
        found = _records.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return found if write(found.user, ()) else None


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))
