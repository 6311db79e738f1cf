"""Keys of foreign code in one order, whatever they are."""

from typing import Any


class Orderly:
    """A key that can be compared with any other: one that cannot be compared must not stop the queue.

    Keys that do not fit each other stand in the order of their types and texts.
    """

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Orderly):
            return NotImplemented
        try:
            return self.key is other.key or bool(self.key == other.key)
        except Exception:  # noqa: BLE001 - foreign code
            return self._text == other._text

    def __lt__(self, other: "Orderly") -> bool:
        try:
            return bool(self.key < other.key)
        except Exception:  # noqa: BLE001 - foreign code
            return self._text < other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def _text(self) -> tuple[str, str]:
        return type(self.key).__name__, repr(self.key)

    def __repr__(self) -> str:
        return f"Orderly({self.key!r})"
