"""A running watch: bytes as they arrive, cut into whole lines, decoded many at a time."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.kube import codec
from slurm_bridge.model.meta import Object
from slurm_bridge.runtime.http.client import Stream

T = TypeVar("T", bound=Object)

#: etcd holds no object above a few MiB; a longer line is not a line.
MOST_LINE = 64 << 20


class Watch(Generic[T]):
    """Implements ports.Changes."""

    def __init__(self, stream: Stream, reader: codec.Codec[T], odd: codec.Met | None = None) -> None:
        self._stream = stream
        self._odd = odd
        self._reader = reader

    def __iter__(self) -> Iterator[ports.Put[T] | ports.Gone[T] | ports.Bookmark]:
        try:
            for lines in whole_lines(self._stream):
                yield from self._reader.changes(lines, self._odd)
        except errors.Unanswered as silence:
            # Half open, or asked for a version that a server which lost its state has not reached yet: to that one
            # it says nothing, not even bookmarks. Only a new list tells these two apart.
            raise errors.Expired(f"silent, so nothing is known: {silence}") from silence

    def close(self) -> None:
        self._stream.close()


def whole_lines(pieces: Iterable[bytes], *, most: int = MOST_LINE) -> Iterator[bytes]:
    """Regroup pieces so that each ends with a line; a line is copied once, however many pieces it came in."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join((*held, piece[:cut])) if held else piece[:cut]
            held, size, piece = [], 0, piece[cut:]  # noqa: PLW2901 - what is left of it
        if piece:
            held.append(piece)
            size += len(piece)
        if size > most:
            raise errors.BadAnswer(f"a watch line of more than {most} bytes")
    if held:
        raise errors.BadAnswer("the watch ended within a line")
