"""Bytes to slurmrestd and back: kept connections, time limits, bounded answers, and nothing followed or inherited.

Polls and orders have a session each, so that a hung poll never holds the connection that a submit would use.
"""

import dataclasses
import enum
import http.cookiejar
from collections.abc import Mapping

import requests
import requests.adapters

from slurm_bridge import errors
from slurm_bridge.slurm import failures, sockets
from slurm_bridge.slurm.settings import SlurmSettings

_PIECE = 64 * 1024


class Lane(enum.Enum):
    """Which connections a call may use."""

    READ = "read"
    ORDER = "order"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, still without version and credentials. `path` follows the API version and carries the query."""

    method: str
    path: str
    lane: Lane
    body: bytes | None = None
    patience: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whatever came back, whole."""

    status: int
    body: bytes | bytearray
    content_type: str = ""
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        """The status claims success; the body may still disagree."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the class of HTTP statuses

    @property
    def json(self) -> bool:
        """Formed by slurmrestd itself; anything else is its HTTP layer or something in between."""
        return self.content_type.startswith("application/json")


class Transport:
    """The sessions of one address."""

    def __init__(self, settings: SlurmSettings) -> None:
        self._limit = settings.max_answer_bytes
        self._connect_timeout = settings.connect_timeout
        self._read_timeout = settings.read_timeout
        self._base = sockets.BASE_URL if settings.socket_path else settings.url.rstrip("/")
        self._sessions = {lane: _session(settings) for lane in Lane}

    def send(self, call: Call, prefix: str, headers: Mapping[str, str]) -> Answer:
        """Ask once. Raises Unavailable when nothing was sent, Unanswered or BadAnswer when no whole answer came."""
        patience = call.patience if call.patience is not None else self._read_timeout
        try:
            response = self._sessions[call.lane].request(
                call.method,
                self._base + prefix + call.path,
                data=call.body,
                headers=headers,
                timeout=(self._connect_timeout, patience),
                allow_redirects=False,
                stream=True,
            )
        except OSError as problem:
            raise failures.while_sending(problem) from problem
        with response:
            return Answer(
                status=response.status_code,
                body=self._whole(response),
                content_type=response.headers.get("Content-Type", ""),
                retry_after=_seconds(response.headers.get("Retry-After", "")),
            )

    def close(self) -> None:
        """Drop all kept connections."""
        for session in self._sessions.values():
            session.close()

    def _whole(self, response: requests.Response) -> bytearray:
        body = bytearray()
        try:
            for piece in response.iter_content(_PIECE):
                body += piece
                if len(body) > self._limit:
                    raise errors.BadAnswer(f"slurmrestd's answer exceeds {self._limit} bytes")
        except OSError as problem:
            raise failures.while_reading(problem) from problem
        return body


def _session(settings: SlurmSettings) -> requests.Session:
    session = requests.Session()
    # Else the environment's proxies, CA bundle and .netrc override what is said here.
    session.trust_env = False
    session.verify = str(settings.ca_file) if settings.ca_file is not None else True
    session.cert = _client_certificate(settings)
    # An identity encoding keeps a compressed answer from growing past the limit unseen.
    session.headers.update({"Accept": "application/json", "Accept-Encoding": "identity"})
    session.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
    session.mount("http://", _adapter(settings))
    session.mount("https://", _adapter(settings))
    return session


def _adapter(settings: SlurmSettings) -> requests.adapters.HTTPAdapter:
    size = settings.connections
    if settings.socket_path is not None:
        return sockets.UnixAdapter(settings.socket_path, size)
    return requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=size, max_retries=0)


def _client_certificate(settings: SlurmSettings) -> tuple[str, str] | str | None:
    if settings.cert_file is None:
        return None
    if settings.key_file is None:
        return str(settings.cert_file)
    return str(settings.cert_file), str(settings.key_file)


def _seconds(text: str) -> float | None:
    """The plain number form of Retry-After; the date form is not worth a clock."""
    return float(text) if text.isascii() and text.isdigit() else None
