"""The record that SchedMD's bridge writes into `admin_comment`: the pods of the job, by namespace and name."""

import re
from collections.abc import Iterable

import msgspec

#: A longer text is none of its records: it would name tens of thousands of pods.
MOST_LETTERS = 1 << 20

_PART = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_POD = re.compile(f"{_PART}/{_PART}")


class OtherRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Its only field."""

    pods: tuple[str, ...]


_records = msgspec.json.Decoder(OtherRecord)


def read(text: str) -> tuple[str, ...] | None:
    """The pods, None where the text is not exactly such a record."""
    if len(text) > MOST_LETTERS:
        return None
    try:
        pods = _records.decode(text).pods
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    exact = pods and len(set(pods)) == len(pods) and all(_POD.fullmatch(one) for one in pods)
    return pods if exact else None


def resembles(text: str) -> bool:
    """The text is JSON about pods: that bridge would take it for a record of its own."""
    if len(text) > MOST_LETTERS:
        return False
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "pods" in found


def write(pods: Iterable[str]) -> str:
    """The record of these pods."""
    return msgspec.json.encode(OtherRecord(pods=tuple(pods))).decode()
