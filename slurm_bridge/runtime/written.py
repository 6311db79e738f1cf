"""Texts that users can write and that are read back: bounded, of one shape, and nothing but that shape.

Users with the right to write an object can put anything into its annotations. A text that is too long, too deep or of
another shape says nothing: the reader gets `NotReadable` and no exception.
"""

import dataclasses
from typing import Final, TypeVar

import msgspec

from slurm_bridge.runtime import json_decoder

T = TypeVar("T")

#: Bytes of an annotation that we have written: it names a job and says why in a sentence.
MOST: Final = 4096
#: Enough of what is wrong with it.
_MOST_WORDS: Final = 200


@dataclasses.dataclass(frozen=True, slots=True)
class NotReadable:
    """Why a text cannot be read."""

    why: str


def read(text: str, shape: type[T], *, most: int = MOST) -> T | NotReadable:
    """The record that this JSON holds."""
    if len(text) > most:
        return NotReadable(f"it has {len(text)} letters, {most} at most are read")
    try:
        return json_decoder.decoder(shape).decode(text)
    except RecursionError:
        return NotReadable("it is nested too deeply")
    except (msgspec.DecodeError, ValueError) as error:
        return NotReadable(str(error)[:_MOST_WORDS])
