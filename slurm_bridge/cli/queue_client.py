"""Reads the queues of a running daemon over HTTP, and checks a file that configures queues."""

import http
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from slurm_bridge import errors
from slurm_bridge.cli import pages
from slurm_bridge.daemon import queue_view
from slurm_bridge.families.yunikorn import files, node_sorts
from slurm_bridge.families.yunikorn.queues.config import parser, validation
from slurm_bridge.model import texts
from slurm_bridge.web.administration import CheckedConfiguration

URL = "http://127.0.0.1:8080"
_SECONDS = 10.0
_MOST_BYTES = 64 * 1024 * 1024


def ask(url: str, ca: pathlib.Path | None = None) -> Mapping[str, Any]:
    """The page of the queues. Raises Unavailable without an answer, NotFound if the daemon has no queues."""
    status, body = pages.ask("GET", url, queue_view.PATH, ca=ca, seconds=_SECONDS, most_bytes=_MOST_BYTES)
    if status == http.HTTPStatus.NOT_FOUND:
        raise errors.NotFound(f"{url}{queue_view.PATH}: {body.decode(errors='replace').strip()}")
    if status == http.HTTPStatus.SERVICE_UNAVAILABLE:
        raise errors.Unavailable(f"{url}{queue_view.PATH}: {texts.bounded(body.decode(errors='replace').strip())}")
    try:
        found = json.loads(body) if status == http.HTTPStatus.OK else None
    except ValueError as error:
        raise errors.BadAnswer(f"{url}{queue_view.PATH}: {error}") from error
    if not isinstance(found, dict):
        raise errors.BadAnswer(f"{url}{queue_view.PATH}: answered {status}")
    return found


def check(file: pathlib.Path, *, one_place: bool = True) -> CheckedConfiguration:
    """The errors in a file that configures queues, by the same rules as in the daemon with this option."""
    try:
        parsed = parser.parse(files.read(str(file)))
    except errors.BadConfiguration as error:
        return CheckedConfiguration(problems=(str(error),))
    # Which of the installed orders of nodes the hook may use is for its options to say.
    parsed = validation.registered(parsed, node_sorts.installed())
    found = validation.problems(parsed, one_place=one_place)
    return CheckedConfiguration(problems=tuple(map(str, found)), warnings=tuple(map(str, parsed.document.warnings)))
