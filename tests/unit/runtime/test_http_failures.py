"""What urllib3's errors mean for an order: surely not sent, for the operator, or unknown."""

import ssl

import pytest
from urllib3 import exceptions

from slurm_bridge import errors
from slurm_bridge.runtime.http import failures
from slurm_bridge.runtime.http.messages import Dropped


def tls(reason: str) -> exceptions.SSLError:
    """A TLS error as urllib3 wraps it."""
    inner = ssl.SSLError(1, f"[SSL: {reason}]")
    inner.reason = reason
    return exceptions.SSLError(inner)


@pytest.mark.parametrize(
    ("problem", "meaning"),
    [
        (exceptions.ConnectTimeoutError("slow"), errors.Unavailable),
        (ConnectionResetError("reset"), errors.Unavailable),
        (TimeoutError("the handshake operation timed out"), errors.Unavailable),
        (tls("UNEXPECTED_EOF_WHILE_READING"), errors.Unavailable),
        (tls("CERTIFICATE_VERIFY_FAILED"), errors.BadConfiguration),
        (exceptions.SSLError("Client private key is encrypted, password is required"), errors.BadConfiguration),
        (FileNotFoundError("no such certificate"), errors.BadConfiguration),
        (exceptions.LocationParseError("label empty or too long"), errors.BadConfiguration),
    ],
)
def test_a_connection_that_was_not_made_sent_nothing(problem, meaning):
    """Never unknown; only what waiting does not mend is for the operator."""
    assert type(failures.while_connecting(problem, "slurmrestd")) is meaning


@pytest.mark.parametrize(
    ("problem", "meaning"),
    [
        (exceptions.ConnectTimeoutError("slow"), errors.Unavailable),
        (exceptions.ClosedPoolError(None, "closed"), errors.Unavailable),
        (tls("TLSV13_ALERT_CERTIFICATE_REQUIRED"), errors.BadConfiguration),
        (tls("UNEXPECTED_EOF_WHILE_READING"), errors.Unanswered),
        (exceptions.ProtocolError("Connection aborted.", ConnectionResetError("reset")), Dropped),
        (exceptions.ReadTimeoutError(None, "/", "Read timed out."), errors.Unanswered),
        (exceptions.HTTPError("something new"), errors.Unanswered),
    ],
)
def test_a_request_that_may_have_left_is_unanswered(problem, meaning):
    """Save where a server cannot have read it: TLS 1.3 refuses a client certificate after the request has left."""
    assert type(failures.while_sending(problem, "slurmrestd")) is meaning
