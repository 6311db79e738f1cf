import msgspec
import pytest

from slurm_bridge import errors
from slurm_bridge.kube import status
from slurm_bridge.runtime.http import messages
from slurm_bridge.runtime.http.messages import Answer


def a_status(code: int, reason: str = "", **details: object) -> bytes:
    """A Status as the API server writes it."""
    return msgspec.json.encode(
        {"kind": "Status", "code": code, "reason": reason, "message": "told so", "details": details}
    )


@pytest.mark.parametrize(
    ("number", "details", "expected"),
    [
        (400, {}, errors.Invalid),
        (401, {}, errors.NotAuthenticated),
        (403, {}, errors.NotAuthorized),
        (403, {"causes": [{"reason": "NamespaceTerminating"}]}, errors.Conflict),
        (404, {"name": "a"}, errors.NotFound),
        (404, {}, errors.BadAnswer),
        (405, {}, errors.Invalid),
        (409, {}, errors.Conflict),
        (410, {}, errors.Expired),
        (413, {}, errors.Invalid),
        (422, {}, errors.Invalid),
        (422, {"causes": [{"field": "metadata.uid", "reason": "FieldValueInvalid"}]}, errors.Conflict),
        (429, {}, errors.Unavailable),
        (500, {}, errors.Unanswered),
        (502, {}, errors.Unanswered),
        (503, {}, errors.Unavailable),
        (504, {}, errors.Unanswered),
        (504, {"causes": [{"reason": "ResourceVersionTooLarge"}]}, errors.Expired),
    ],
)
def test_a_signed_refusal(number: int, details: dict[str, object], expected: type[errors.BridgeError]) -> None:
    """A Status becomes the error that tells who can act."""
    assert type(status.refusal("it", Answer(status=number, body=a_status(number, **details)))) is expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (301, errors.BadAnswer),
        (400, errors.BadAnswer),
        (401, errors.NotAuthenticated),
        (403, errors.NotAuthorized),
        (404, errors.BadAnswer),
        (409, errors.BadAnswer),
        (410, errors.BadAnswer),
        (429, errors.Unavailable),
        (502, errors.Unanswered),
        (503, errors.Unavailable),
    ],
)
def test_an_unsigned_refusal(number: int, expected: type[errors.BridgeError]) -> None:
    """Without a Status nothing is believed about objects: a proxy's 404 is not an absence."""
    assert type(status.refusal("it", Answer(status=number, body=b"<html>not here</html>"))) is expected


def test_words_of_a_refusal() -> None:
    """The server's number and reason travel with a disagreement, its message and our request in the text."""
    error = status.refusal("POST /x", Answer(status=409, body=a_status(409, "AlreadyExists")))
    assert isinstance(error, errors.Conflict)
    assert (error.code, error.reason) == (409, "AlreadyExists")
    assert "POST /x" in str(error)
    assert "told so" in str(error)


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [("7", {}, 7.0), ("", {"retryAfterSeconds": 3}, 3.0), ("Wed, 21 Oct 2026 07:28:00 GMT", {}, None), ("", {}, None)],
)
def test_the_servers_wish(header: str, details: dict[str, object], expected: float | None) -> None:
    """Retry-After is taken from the header or else from the Status."""
    error = status.refusal(
        "it", Answer(status=429, body=a_status(429, **details), retry_after=messages.seconds(header))
    )
    assert isinstance(error, errors.Unavailable)
    assert error.retry_after == expected


@pytest.mark.parametrize(
    ("number", "body", "expected"),
    [
        (404, b"404 page not found\n", True),
        (404, a_status(404), True),
        (404, b"<html>404</html>", False),
        (200, b"404 page not found\n", False),
    ],
)
def test_unserved(number: int, body: bytes, *, expected: bool) -> None:
    """Only the API server itself can say that it does not serve a path."""
    assert status.unserved(Answer(status=number, body=body)) is expected
