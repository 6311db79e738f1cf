"""A daemon's queues as somebody outside sees them: asked over HTTP, shown as text, and a configuration checked."""

import http
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge import errors
from slurm_bridge.daemon import pages, queueing
from slurm_bridge.families.yunikorn import files, text
from slurm_bridge.families.yunikorn.queues.config import checking, parsing

URL = "http://127.0.0.1:8080"
_SECONDS = 10.0
_MOST_BYTES = 64 * 1024 * 1024


def ask(url: str, ca: pathlib.Path | None = None) -> Mapping[str, Any]:
    """What the door shows; Unavailable where nobody answers, NotFound where there are no queues."""
    status, body = pages.ask("GET", url, queueing.PATH, ca=ca, seconds=_SECONDS, most_bytes=_MOST_BYTES)
    if status == http.HTTPStatus.NOT_FOUND:
        raise errors.NotFound(f"{url}{queueing.PATH}: {body.decode(errors='replace').strip()}")
    try:
        found = json.loads(body) if status == http.HTTPStatus.OK else None
    except ValueError as error:
        raise errors.BadAnswer(f"{url}{queueing.PATH}: {error}") from error
    if not isinstance(found, dict):
        raise errors.BadAnswer(f"{url}{queueing.PATH}: answered {status}")
    return found


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """For people."""
    return text.lines(found)


def problems(file: pathlib.Path) -> list[str]:
    """What is wrong with a configuration of queues in a file, by the rules that the daemon has."""
    try:
        parsed = parsing.parse(files.read(str(file)))
    except errors.BadConfiguration as error:
        return [str(error)]
    return [str(one) for one in checking.problems(parsed)]
