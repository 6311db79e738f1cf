"""One exchange with slurmrestd: in the API version that both sides speak, under the token that is valid now.

A refused token did nothing, and an unknown version did nothing: after either, the same call may be sent once more,
whatever it orders. Nothing else is ever repeated here.
"""

import threading
from collections.abc import Callable

from slurm_bridge import errors
from slurm_bridge.slurm import calls, error_numbers, replies
from slurm_bridge.slurm.settings import SlurmSettings
from slurm_bridge.slurm.token import TokenFile
from slurm_bridge.slurm.transport import Answer, Call, Connect, Transport, pool
from slurm_bridge.slurm.versions import WIRES
from slurm_bridge.slurm.wire import Wire

_NOT_FOUND = 404
_UNAUTHORIZED = (401, 511)


class Dialogue:
    """Adds version and credentials to calls."""

    def __init__(self, settings: SlurmSettings, *, now: Callable[[], float], connect: Connect = pool) -> None:
        self._token = TokenFile(settings.token_file, now)
        self._transport = Transport(settings, connect)
        self._user = {"X-SLURM-USER-NAME": settings.user_name} if settings.user_name else {}
        self._wires = _wires(settings.api_versions)
        self._lock = threading.Lock()
        self._agreed: Wire | None = None

    def ask(self, call: Call) -> Answer:
        """The answer, whatever it says. A version that has disappeared is negotiated anew, once."""
        wire = self.wire()
        answer = self._authenticated(call, wire)
        if not _unknown_version(answer):
            return answer
        self._forget(wire)
        return self._authenticated(call, self.wire())

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
        self._transport.close()

    def _forget(self, wire: Wire) -> None:
        with self._lock:
            if self._agreed is wire:
                self._agreed = None

    def _negotiate(self) -> Wire:
        """The first of ours that is served. Nothing was ordered yet, so a missing answer leaves no doubt."""
        for wire in self._wires:
            try:
                answer = self._authenticated(calls.PING, wire)
            except (errors.Unanswered, errors.BadAnswer) as problem:
                raise errors.Unavailable(str(problem)) from problem
            if _unknown_version(answer):
                continue
            if not answer.ok:
                raise _unusable(answer)
            return wire
        names = ", ".join(wire.name for wire in self._wires)
        raise errors.NoCommonVersion(f"slurmrestd serves none of {names} at this address")

    def _authenticated(self, call: Call, wire: Wire) -> Answer:
        token = self._token.current()
        answer = self._send(call, wire, token)
        if _token_refused(answer) and self._token.changed_since(token):
            return self._send(call, wire, self._token.current())
        return answer

    def _send(self, call: Call, wire: Wire, token: str) -> Answer:
        headers = {"X-SLURM-USER-TOKEN": token, **self._user}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        return self._transport.send(call, wire.prefix, headers)


def _wires(names: tuple[str, ...]) -> tuple[Wire, ...]:
    unknown = [name for name in names if name not in WIRES]
    if unknown or not names:
        raise errors.BadConfiguration(f"API versions have to be some of {', '.join(WIRES)}, not {', '.join(names)}")
    return tuple(WIRES[name] for name in names)


def _unknown_version(answer: Answer) -> bool:
    """Slurm says "no such job" with the same status, but in JSON."""
    return answer.status == _NOT_FOUND and not answer.json


def _token_refused(answer: Answer) -> bool:
    if answer.ok:
        return False
    problem = replies.decisive(replies.envelope(answer))
    if problem is None:
        return answer.status in _UNAUTHORIZED
    return error_numbers.of_number(problem.error_number).error is errors.NotAuthenticated


def _unusable(answer: Answer) -> errors.BridgeError:
    problem = replies.failure(answer, replies.envelope(answer))
    return problem if isinstance(problem, errors.OperatorMustAct) else errors.Unavailable(str(problem))
