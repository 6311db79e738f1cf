"""JSON decoders, made one at a time.

msgspec describes a record type the first time it meets it, and marks the description as there before it is whole. A
second thread that decodes the type in that moment reads through a null pointer, and the process dies without a word.
Therefore no type is decoded that no decoder was made for, and decoders are made here, or at import.
"""

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

#: Held while a decoder is made.
MAKING = threading.RLock()

_made: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of this type: the same for all."""
    found = _made.get(shape)
    if found is None:
        with MAKING:
            found = _made.get(shape) or msgspec.json.Decoder(shape)
            _made[shape] = found
    return found
