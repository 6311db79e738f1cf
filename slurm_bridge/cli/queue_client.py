"""Reads the queues of a running daemon over HTTP, and checks a file that configures queues."""

import http.client
import json
import pathlib
import ssl
import urllib.parse
from collections.abc import Mapping
from typing import Any

from slurm_bridge import errors
from slurm_bridge.daemon import queue_view
from slurm_bridge.families.yunikorn import files
from slurm_bridge.families.yunikorn.queues.config import checking, parsing

URL = "http://127.0.0.1:8080"
_SECONDS = 10.0
_MOST_BYTES = 64 * 1024 * 1024


def ask(url: str, ca: pathlib.Path | None = None) -> Mapping[str, Any]:
    """The page of the queues. Raises Unavailable without an answer, NotFound if the daemon has no queues."""
    connection = connect(url, ca)
    try:
        connection.request("GET", queue_view.PATH)
        answer = connection.getresponse()
        body = answer.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise errors.Unavailable(f"{url}{queue_view.PATH}: {type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if answer.status == http.HTTPStatus.NOT_FOUND:
        raise errors.NotFound(f"{url}{queue_view.PATH}: {body.decode(errors='replace').strip()}")
    try:
        found = json.loads(body) if answer.status == http.HTTPStatus.OK else None
    except ValueError as error:
        raise errors.BadAnswer(f"{url}{queue_view.PATH}: {error}") from error
    if not isinstance(found, dict):
        raise errors.BadAnswer(f"{url}{queue_view.PATH}: answered {answer.status}")
    return found


def connect(url: str, ca: pathlib.Path | None, seconds: float = _SECONDS) -> http.client.HTTPConnection:
    """A connection to this address; a redirect is never followed."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.BadConfiguration(f"--url {url!r}: allowed is http:// or https:// and a host")
    try:
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)
        context = ssl.create_default_context(cafile=ca)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=context)
    except (OSError, ValueError) as error:
        raise errors.BadConfiguration(f"--url {url!r}: {error}") from error


def problems(file: pathlib.Path) -> list[str]:
    """The errors in a file that configures queues, by the same rules as in the daemon."""
    try:
        parsed = parsing.parse(files.read(str(file)))
    except errors.BadConfiguration as error:
        return [str(error)]
    return [str(one) for one in checking.problems(parsed)]
