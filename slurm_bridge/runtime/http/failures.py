"""What it means that urllib3 gave up: was nothing sent, or is only the answer missing?

The difference decides whether an order may be given again, so anything doubtful counts as sent.
"""

import ssl
from collections.abc import Iterator

from urllib3 import exceptions

from slurm_bridge import errors
from slurm_bridge.runtime.http.messages import ConnectionDropped

#: Words of OpenSSL's reasons that only occur before the server has read a request.
_HANDSHAKE = ("CERTIFICATE", "UNKNOWN_CA", "KEY_VALUES", "PEM", "WRONG_VERSION", "PROTOCOL_VERSION", "HANDSHAKE")

#: Before the first byte of a request; a closed pool is our own end.
_NEVER_LEFT = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError, exceptions.ClosedPoolError)

#: CA, certificate and key files that are missing or cannot be read, a key with a password, a host that is no name.
_OURS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ValueError)

_TIMEOUTS = (TimeoutError, exceptions.TimeoutError)


def while_connecting(problem: Exception, about: str) -> errors.BridgeError:
    """Nothing was sent, for sure."""
    causes = list(_causes(problem))
    if not isinstance(problem, _NEVER_LEFT):
        if any(_before_the_request(cause) for cause in causes):
            return errors.BadConfiguration(f"{about}: no TLS connection: {_innermost(causes)}")
        if isinstance(causes[-1], (*_OURS, exceptions.SSLError)):
            return errors.BadConfiguration(f"{about}: cannot be asked: {_innermost(causes)}")
    return errors.Unavailable(f"{about}: not reached: {_innermost(causes)}")


def while_sending(problem: Exception, about: str) -> errors.BridgeError:
    """No answer has begun."""
    causes = list(_causes(problem))
    # With TLS 1.3 the server's opinion of our certificate comes after the request, and instead of reading it.
    if isinstance(problem, _NEVER_LEFT) or any(_before_the_request(cause) for cause in causes):
        return while_connecting(problem, about)
    if any(isinstance(cause, _TIMEOUTS) for cause in causes):
        return errors.Unanswered(f"{about}: {_innermost(causes)}")
    dropped = any(isinstance(cause, ConnectionResetError | BrokenPipeError) for cause in causes)
    return (ConnectionDropped if dropped else errors.Unanswered)(f"{about}: the connection broke: {_innermost(causes)}")


def while_reading(problem: Exception, about: str) -> errors.BridgeError:
    """The head came, the whole body did not."""
    causes = list(_causes(problem))
    if any(isinstance(cause, _TIMEOUTS) for cause in causes):
        return errors.Unanswered(f"{about}: {_innermost(causes)}")
    return errors.BadAnswer(f"{about}: the answer ended early: {_innermost(causes)}")


def _before_the_request(cause: BaseException) -> bool:
    return isinstance(cause, ssl.SSLError) and any(word in (cause.reason or "") for word in _HANDSHAKE)


def _innermost(causes: list[BaseException]) -> str:
    """The plainest wording; the outer ones quote URLs and object addresses."""
    root = causes[-1]
    return getattr(root, "strerror", None) or str(root) or type(root).__name__


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps, outermost first: urllib3 hides causes in arguments."""
    current: object = problem
    seen: set[int] = set()
    while isinstance(current, BaseException) and id(current) not in seen:
        seen.add(id(current))
        yield current
        wrapped = [*current.args, current.__cause__, current.__context__]
        current = next((inner for inner in wrapped if isinstance(inner, BaseException) and id(inner) not in seen), None)
