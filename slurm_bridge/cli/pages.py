"""The daemon's own HTTP pages as the command line asks them: one question, one bounded answer, nothing inherited.

Redirects are not followed, because a token would travel with them. Proxies, `.netrc` and CA bundles for `requests` are
not taken from the environment.
"""

import contextlib
import pathlib
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Final

import requests

from slurm_bridge import errors

#: How a user reaches the daemon, whose port is inside the cluster.
_TUNNEL: Final = (
    "open a tunnel (kubectl --namespace slurm-bridge-system port-forward deployment/slurm-bridge 8080), "
    "or name the server with --url"
)

_PIECE = 1 << 16
_HEADERS = {"accept-encoding": "identity", "user-agent": "slurm-bridge"}


def ask(  # noqa: PLR0913 - what a request is made of
    method: str,
    url: str,
    path: str,
    *,
    ca: pathlib.Path | None,
    seconds: float,
    most_bytes: int,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> tuple[int, bytes]:
    """Status and body. BadConfiguration: the address or the authority cannot be used. Unavailable: no answer."""
    with _answered(method, url, path, ca=ca, seconds=seconds, headers=headers, body=body) as answer:
        text = b""
        for piece in answer.iter_content(_PIECE):
            text += piece
            if len(text) >= most_bytes:
                break
        return answer.status_code, text[:most_bytes]


@contextlib.contextmanager
def stream(
    url: str,
    path: str,
    *,
    ca: pathlib.Path | None,
    silence: float,
    most_line: int,
    headers: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Status, and the lines of an answer that has no end. Unavailable: no answer, or nothing for `silence` seconds."""
    with _answered("GET", url, path, ca=ca, seconds=silence, headers=headers) as answer:
        yield answer.status_code, _lines(answer, most_line)


def _lines(answer: requests.Response, most: int) -> Iterator[bytes]:
    rest = b""
    # The answer is chunked: each piece is there as soon as it has come.
    for piece in answer.iter_content(_PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > most:
            raise errors.BadAnswer(f"a line of more than {most} bytes")


@contextlib.contextmanager
def _answered(  # noqa: PLR0913 - likewise
    method: str,
    url: str,
    path: str,
    *,
    ca: pathlib.Path | None,
    seconds: float,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Iterator[requests.Response]:
    address, verify = _address(url), _authority(url, ca)
    with requests.Session() as session:
        session.trust_env = False
        try:
            yield session.request(
                method,
                f"{address}{path}",
                data=body,
                headers={**_HEADERS, **(headers or {})},
                timeout=seconds,
                verify=verify,
                allow_redirects=False,
                stream=True,
            )
        except (requests.RequestException, OSError) as error:
            # The innermost cause: the outer ones quote object addresses.
            cause: BaseException = error
            while cause.__cause__ or cause.__context__:
                cause = cause.__cause__ or cause.__context__ or cause
            raise errors.Unavailable(f"{url}{path}: {type(cause).__name__}: {cause}") from error


@contextlib.contextmanager
def default_server(*, assumed: bool) -> Iterator[None]:
    """Errors say how the daemon is reached, where the user has not named its URL."""
    try:
        yield
    except errors.Unavailable as error:
        raise (errors.Unavailable(f"{error}; {_TUNNEL}") if assumed else error) from error.__cause__


def _address(url: str) -> str:
    """Scheme, host and port; a path or a password in the address is not sent."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.BadConfiguration(f"--url {url!r}: use http:// or https:// and a host")
    try:
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError as error:
        raise errors.BadConfiguration(f"--url {url!r}: {error}") from error
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"


def _authority(url: str, ca: pathlib.Path | None) -> str | bool:
    """The file that was named, or the system's authorities: `requests` would bring its own."""
    if not url.startswith("https:"):
        return True
    try:
        ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise errors.BadConfiguration(f"--url {url!r}: {error}") from error
    system = ssl.get_default_verify_paths()
    return str(ca) if ca is not None else system.cafile or system.capath or True
