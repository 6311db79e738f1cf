"""Texts that users can influence: bounded where they are kept, compared or shown.

What is shown is on one line, without anything that a terminal obeys.
"""

import datetime as dt
import hashlib
from collections.abc import Iterable
from typing import Final

#: As much as an event may say. Users read the first lines; a longer text only makes every watcher of the object slower.
MOST: Final = 1024
#: Enough of a value to recognise it.
_MOST_SHOWN: Final = 60
#: Of a name, and how many names, in a list for people.
_MOST_OF_NAME: Final = 64
_MOST_NAMES: Final = 8


def plain(text: str) -> str:
    """The same with a question mark for every character that cannot be printed, line breaks among them."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def bounded(text: str, most: int = MOST) -> str:
    """The text, or the beginning of it, as it may be shown."""
    return plain(text if len(text) <= most else text[: most - 1] + "…")


def shown(text: str) -> str:
    """A value that is quoted in a message: enough of it to recognise it."""
    return plain(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


def timestamp(wall: float) -> str:
    """A time of the wall clock as Kubernetes writes it."""
    return dt.datetime.fromtimestamp(wall, tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """A length of time."""
    whole = max(0, round(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days}d {hours % 24}h"
    if hours:
        return f"{hours}h {minutes % 60:02}m"
    return f"{minutes}m {whole % 60:02}s" if minutes else f"{whole}s"


def digest(text: str) -> str:
    """A text of bounded length that stands for a text of any length where texts are compared."""
    return (
        text
        if len(text) <= _MOST_OF_NAME
        else hashlib.blake2b(text.encode(errors="replace"), digest_size=16).hexdigest()
    )


def counted(number: int, word: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def listed(names: Iterable[str]) -> str:
    """`a, b and 7 more`."""
    every = list(names)
    more = f" and {len(every) - _MOST_NAMES} more" if len(every) > _MOST_NAMES else ""
    return ", ".join(bounded(name, _MOST_OF_NAME) for name in every[:_MOST_NAMES]) + more
