"""How names and regular expressions of the configuration may look."""

import re

WILDCARD = "*"

#: The characters of a queue's name, in words.
IN_QUEUES = "letters, digits and _ : # / @ -"

QUEUE = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
USER = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?")
GROUP = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")
RULE = re.compile(r"[_a-zA-Z][a-zA-Z0-9_]*")

#: What makes of a filter's single entry a regular expression.
_EXPRESSIVE = frozenset("^$*+?()[{}|")


def expression(text: str) -> re.Pattern[str] | None:
    """The entry of a filter as a regular expression; None when it has none of its characters or is none."""
    if not _EXPRESSIVE.intersection(text):
        return None
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return None
