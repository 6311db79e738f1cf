"""What it means that `requests` gave up: was nothing sent, or is only the answer missing?

The difference decides whether an order may be given again, so anything doubtful counts as sent.
"""

import ssl
from collections.abc import Iterator

import requests
import urllib3.exceptions

from slurm_bridge import errors

#: Words of OpenSSL's reasons that only occur before the server has read a request.
_HANDSHAKE = ("CERTIFICATE", "UNKNOWN_CA", "KEY_VALUES", "PEM", "WRONG_VERSION", "PROTOCOL_VERSION", "HANDSHAKE")

_ADDRESS = (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema)


def while_sending(problem: OSError) -> errors.BridgeError:
    """No answer has begun."""
    if isinstance(problem, _ADDRESS) or not isinstance(problem, requests.RequestException):
        # requests raises a bare OSError for a CA or client certificate file that is not there.
        return errors.BadConfiguration(f"slurmrestd cannot be asked: {problem}")
    causes = list(_causes(problem))
    if any(_before_the_request(cause) for cause in causes):
        return errors.BadConfiguration(f"no TLS connection to slurmrestd: {_innermost(causes)}")
    if isinstance(problem, requests.ConnectTimeout) or any(_never_connected(cause) for cause in causes):
        return errors.Unavailable(f"slurmrestd is not reached: {_innermost(causes)}")
    return errors.Unanswered(f"slurmrestd did not answer: {_innermost(causes)}")


def while_reading(problem: OSError) -> errors.BridgeError:
    """The status line came, the whole body did not."""
    if any(isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError) for cause in _causes(problem)):
        return errors.Unanswered("slurmrestd stopped in the middle of its answer")
    return errors.BadAnswer("slurmrestd's answer is cut off")


def _never_connected(cause: BaseException) -> bool:
    """Python has no class of its own for a handshake that takes too long."""
    silent = isinstance(cause, TimeoutError) and "handshake" in str(cause)
    return silent or isinstance(cause, urllib3.exceptions.NewConnectionError)


def _before_the_request(cause: BaseException) -> bool:
    return isinstance(cause, ssl.SSLError) and any(word in (cause.reason or "") for word in _HANDSHAKE)


def _innermost(causes: list[BaseException]) -> str:
    """The plainest wording; the outer ones quote URLs and object addresses."""
    return str(causes[-1]) or type(causes[-1]).__name__


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps, outermost first: requests and urllib3 hide causes in arguments and `reason`."""
    current: object = problem
    seen: set[int] = set()
    while isinstance(current, BaseException) and id(current) not in seen:
        seen.add(id(current))
        yield current
        wrapped = [getattr(current, "reason", None), *current.args, current.__cause__, current.__context__]
        current = next((inner for inner in wrapped if isinstance(inner, BaseException) and id(inner) not in seen), None)
