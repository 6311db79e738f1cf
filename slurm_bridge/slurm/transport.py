"""Bytes to slurmrestd and back: kept connections, time limits, bounded answers, and nothing followed or inherited.

Polls and orders have a pool each, so that a hung poll never holds the connection that a submit would use.
"""

import contextlib
import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import urllib3
from urllib3 import exceptions

from slurm_bridge import errors
from slurm_bridge.runtime import pools
from slurm_bridge.slurm import failures, sockets
from slurm_bridge.slurm.settings import SlurmSettings

_PIECE = 1 << 20
#: Whatever Retry-After says, Slurm is asked again after so many seconds: a proxy's word must not silence us for days.
_LONGEST: Final = 120.0
_DIGITS: Final = 9
_NEVER = urllib3.Retry(total=False, redirect=False)

#: An identity encoding keeps a compressed answer from growing past the limit unseen.
_ALWAYS = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "slurm-bridge"}


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


class Response(Protocol):
    """What is read of an answer of `urllib3`."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def read(self, amt: int, /) -> bytes: ...

    def close(self) -> None: ...


#: The connections of this adapter.
Pool = pools.Pool[Response]


Connect = Callable[[SlurmSettings], Pool]


def pool(settings: SlurmSettings) -> Pool:
    """Connections that take nothing from the environment."""
    return sockets.pool(settings)


class Transport:
    """The pools of one address."""

    def __init__(self, settings: SlurmSettings, connect: Connect = pool) -> None:
        self._limit = settings.max_answer_bytes
        self._connect_timeout = settings.connect_timeout
        self._patience = self._timeout(settings.read_timeout)
        self._base = sockets.base(settings)
        self._pools = {lane: connect(settings) for lane in Lane}

    def send(self, call: Call, prefix: str, headers: Mapping[str, str]) -> Answer:
        """Ask once. Raises Unavailable when nothing was sent, Unanswered or BadAnswer when no whole answer came."""
        with contextlib.closing(self._ask(call, prefix, headers)) as response:
            return Answer(
                status=response.status,
                body=self._whole(response),
                content_type=response.headers.get("content-type", ""),
                retry_after=_seconds(response.headers.get("retry-after", "")),
            )

    def close(self) -> None:
        """Drop all kept connections."""
        for each in self._pools.values():
            each.close()

    def _ask(self, call: Call, prefix: str, headers: Mapping[str, str]) -> Response:
        try:
            return self._pools[call.lane].urlopen(
                call.method,
                f"{self._base}{prefix}{call.path}",
                body=call.body,
                headers={**_ALWAYS, **headers},
                timeout=self._patience if call.patience is None else self._timeout(call.patience),
                retries=_NEVER,
                redirect=False,
                preload_content=False,
            )
        except exceptions.HTTPError as problem:
            raise failures.while_sending(problem) from problem
        except ValueError:
            # Not chained: http.client quotes the header that it cannot send.
            raise errors.BadConfiguration("slurmrestd cannot be asked: a header or path cannot be sent") from None

    def _whole(self, response: Response) -> bytearray:
        body = bytearray()
        try:
            while piece := response.read(_PIECE):
                body += piece
                if len(body) > self._limit:
                    raise errors.BadAnswer(f"slurmrestd's answer exceeds {self._limit} bytes")
        except (exceptions.HTTPError, OSError) as problem:
            raise failures.while_reading(problem) from problem
        return body

    def _timeout(self, patience: float) -> urllib3.Timeout:
        return urllib3.Timeout(connect=self._connect_timeout, read=patience)


def _seconds(text: str) -> float | None:
    """The plain number form of Retry-After, bounded; the date form is not worth a clock."""
    return min(float(text[:_DIGITS]), _LONGEST) if text.isascii() and text.isdigit() else None
