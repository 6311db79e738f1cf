"""One exchange with slurmrestd: in the API version that both sides speak, under the token that is valid now.

A refused token did nothing, and an unknown version did nothing: after either, the same call may be sent once more,
whatever it orders. Nothing else is ever repeated here.
"""

import threading
from collections.abc import Callable, Mapping

from slurm_bridge import errors
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.http.client import Client
from slurm_bridge.runtime.http.connections import KeptConnections
from slurm_bridge.runtime.http.messages import HttpAnswer, HttpPool, HttpRequest
from slurm_bridge.slurm import answers, calls, error_numbers, replies, shapes
from slurm_bridge.slurm.settings import SlurmSettings
from slurm_bridge.slurm.token import TokenFile
from slurm_bridge.slurm.wire import OUTDATED, WIRES, Wire

_NOT_FOUND = 404
#: A longer text is not the number of a release.
_MOST_RELEASE = 20
_UNAUTHORIZED = (401, 511)
_TOKEN = "X-SLURM-USER-TOKEN"  # noqa: S105 - the name of a header

Connect = Callable[[SlurmSettings], HttpPool]


def pool(settings: SlurmSettings) -> HttpPool:
    """Kept connections to this slurmrestd."""
    return KeptConnections(settings.server, settings.limits, SystemClock().now)


class Dialogue:
    """Adds version and credentials to calls."""

    def __init__(self, settings: SlurmSettings, *, now: Callable[[], float], connect: Connect = pool) -> None:
        credentials = _Credentials(settings, now)
        self.token_life = credentials.token.life
        self._prefix = settings.server.prefix
        # Of their own, so that a hung read never holds the connection that a submit would use.
        self._reads = Client(connect(settings), settings.limits, now, credentials)
        self._orders = Client(connect(settings), settings.limits, now, credentials)
        names = settings.api_versions
        if not names or not WIRES.keys() >= set(names):
            known = ", ".join(WIRES)
            raise errors.BadConfiguration(f"API versions have to be some of {known}, not {', '.join(names)}")
        self._wires = tuple(WIRES[name] for name in names)
        self._lock = threading.Lock()
        self._agreed: Wire | None = None

    def ask(self, call: HttpRequest) -> HttpAnswer:
        """The answer, whatever it says. A version that has disappeared is negotiated anew, once."""
        wire = self.wire()
        answer = self._send(call, wire)
        if not _unknown_version(answer):
            return answer
        with self._lock:
            if self._agreed is wire:
                self._agreed = None
        return self._send(call, self.wire())

    def wire(self) -> Wire:
        """The version in use; the first caller negotiates it."""
        agreed = self._agreed
        if agreed is not None:
            return agreed
        with self._lock:
            if self._agreed is None:
                self._agreed = self._negotiate()
            return self._agreed

    def close(self) -> None:
        """Drop all connections."""
        self._reads.close()
        self._orders.close()

    def _negotiate(self) -> Wire:
        """The first of ours that is served. Nothing was ordered yet, so a missing answer leaves no doubt."""
        for wire in self._wires:
            answer = self._ping(wire)
            if _unknown_version(answer):
                continue
            if not answer.ok:
                problem = replies.failure(answer, replies.envelope(answer))
                raise problem if isinstance(problem, errors.OperatorMustAct) else errors.Unavailable(str(problem))
            return wire
        raise self._no_common_version()

    def _no_common_version(self) -> errors.NoCommonVersion:
        """A version that is not allowed, an outdated Slurm, or something else at this address."""
        asked = ", ".join(wire.name for wire in self._wires)
        for wire in (*(one for one in WIRES.values() if one not in self._wires), *OUTDATED):
            answer = self._ping(wire)
            pings = replies.decode(answer, shapes.Pings)
            if _unknown_version(answer) or pings is None:
                continue
            if wire not in OUTDATED:
                text = f"slurmrestd serves {wire.name}, which slurm.api_versions ({asked}) does not name"
                return errors.NoCommonVersion(text)
            release = answers.ping(pings).version[:_MOST_RELEASE]
            return errors.NoExternalJobs(
                f"slurmrestd{f' of Slurm {release}' if release else ''} serves API version {wire.name}, and none of "
                f"{asked}: slurm-bridge needs external jobs, which Slurm has since 25.05 (v0.0.43). Upgrade Slurm, or "
                "start slurmrestd with a newer data_parser"
            )
        return errors.NoCommonVersion(f"slurmrestd serves none of {asked} at this address")

    def _ping(self, wire: Wire) -> HttpAnswer:
        try:
            return self._send(calls.PING, wire)
        except (errors.Unanswered, errors.BadAnswer) as silence:
            raise errors.Unavailable(str(silence)) from silence

    def _send(self, call: HttpRequest, wire: Wire) -> HttpAnswer:
        client = self._reads if call.method == "GET" else self._orders
        return client.ask(call, self._prefix + wire.prefix)


class _Credentials:
    """The token that is valid now, as headers."""

    def __init__(self, settings: SlurmSettings, now: Callable[[], float]) -> None:
        self.token = TokenFile(settings.token_file, now)
        self._user = {"X-SLURM-USER-NAME": settings.user_name} if settings.user_name else {}

    def headers(self) -> Mapping[str, str]:
        return {_TOKEN: self.token.current(), **self._user}

    def renewed(self, answer: HttpAnswer, sent: Mapping[str, str]) -> bool:
        """Whether the token was refused, and the file holds another one now."""
        problem = replies.decisive(replies.envelope(answer))
        if problem is None:
            refused = answer.status in _UNAUTHORIZED
        else:
            refused = error_numbers.of_number(problem.error_number).error is errors.NotAuthenticated
        return refused and self.token.changed_since(sent[_TOKEN])


def _unknown_version(answer: HttpAnswer) -> bool:
    """Slurm says "no such job" with the same status, but in JSON."""
    return answer.status == _NOT_FOUND and not answer.json
