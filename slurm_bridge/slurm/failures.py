"""What it means that `urllib3` gave up: was nothing sent, or is only the answer missing?

The difference decides whether an order may be given again, so anything doubtful counts as sent.
"""

import ssl
from collections.abc import Iterator

from urllib3 import exceptions

from slurm_bridge import errors

#: Words of OpenSSL's reasons that only occur before the server has read a request.
_HANDSHAKE = ("CERTIFICATE", "UNKNOWN_CA", "KEY_VALUES", "PEM", "WRONG_VERSION", "PROTOCOL_VERSION", "HANDSHAKE")

#: Before the first byte of a request; a closed pool is our own end.
_NEVER_LEFT = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError, exceptions.ClosedPoolError)

#: CA, certificate and key files that are not there or not ours to read, a key with a password, a host that is no name.
_OURS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ValueError)


def while_connecting(problem: Exception) -> errors.BridgeError:
    """Nothing was sent, for sure."""
    causes = list(_causes(problem))
    if isinstance(problem, _NEVER_LEFT):
        return _unreached(causes)
    if any(_before_the_request(cause) for cause in causes):
        return _no_tls(causes)
    if isinstance(causes[-1], (*_OURS, exceptions.SSLError)):
        return errors.BadConfiguration(f"slurmrestd cannot be asked: {_innermost(causes)}")
    return _unreached(causes)


def while_sending(problem: Exception) -> errors.BridgeError:
    """No answer has begun."""
    causes = list(_causes(problem))
    if isinstance(problem, _NEVER_LEFT):
        return _unreached(causes)
    # With TLS 1.3 the server's opinion of our certificate comes after what we have sent, and instead of reading that.
    if any(_before_the_request(cause) for cause in causes):
        return _no_tls(causes)
    return errors.Unanswered(f"slurmrestd did not answer: {_innermost(causes)}")


def while_reading(problem: Exception) -> errors.BridgeError:
    """The status line came, the whole body did not."""
    if any(isinstance(cause, TimeoutError | exceptions.TimeoutError) for cause in _causes(problem)):
        return errors.Unanswered("slurmrestd stopped in the middle of its answer")
    return errors.BadAnswer("slurmrestd's answer is cut off")


def _unreached(causes: list[BaseException]) -> errors.BridgeError:
    return errors.Unavailable(f"slurmrestd is not reached: {_innermost(causes)}")


def _no_tls(causes: list[BaseException]) -> errors.BridgeError:
    return errors.BadConfiguration(f"no TLS connection to slurmrestd: {_innermost(causes)}")


def _before_the_request(cause: BaseException) -> bool:
    return isinstance(cause, ssl.SSLError) and any(word in (cause.reason or "") for word in _HANDSHAKE)


def _innermost(causes: list[BaseException]) -> str:
    """The plainest wording; the outer ones quote URLs and object addresses."""
    return str(causes[-1]) or type(causes[-1]).__name__


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps, outermost first: urllib3 hides causes in arguments."""
    current: object = problem
    seen: set[int] = set()
    while isinstance(current, BaseException) and id(current) not in seen:
        seen.add(id(current))
        yield current
        wrapped = [*current.args, current.__cause__, current.__context__]
        current = next((inner for inner in wrapped if isinstance(inner, BaseException) and id(inner) not in seen), None)
