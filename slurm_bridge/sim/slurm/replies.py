"""The envelope of every answer of slurmrestd: errors by number, warnings, and their source."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from slurm_bridge.sim.wire import Response

#: error_number -> Slurm's text.
WORDS: Mapping[int, str] = {
    -1: "Unspecified error",
    0: "No error",
    1: "Operation not permitted",
    22: "Invalid argument",
    11: "Resource temporarily unavailable",
    1000: "Unexpected message received",
    1007: "Protocol authentication error",
    1800: "Unable to contact slurm controller (connect failure)",
    2000: "Invalid partition name specified",
    2002: "Access/permission denied",
    2006: "Node count specification invalid",
    2007: "Unable to create job record, try again",
    2010: "Invalid user id",
    2011: "Duplicate job id",
    2012: "Pathname of a file, directory or other parameter too long",
    2014: "Requested node configuration is not available",
    2015: "Requested partition configuration not available now",
    2016: "Requested nodes are busy",
    2017: "Invalid job id specified",
    2018: "Invalid node name specified",
    2021: "Job/step already completing or completed",
    2025: "Task count specification invalid",
    2029: "Invalid feature specification",
    2031: "Invalid feature specification",
    2036: "Requested operation not supported on this system",
    2038: "Job dependency problem",
    2039: "Only batch jobs are accepted or processed",
    2042: "Job is in held state, pending scheduler release",
    2048: "Invalid license specification",
    2052: "Access denied to requested reservation",
    2053: "Requested reservation is invalid",
    2055: "Requested reservation is in use",
    2058: "Requested reservation overlaps with another reservation",
    2069: "CPU count specification invalid",
    2070: "Required partition not available (inactive or drain)",
    2072: "Invalid generic resource (gres) specification",
    2073: "Job is no longer pending execution",
    2078: "Job can not start immediately",
    2081: "Invalid job array specification",
    2084: "Job has already finished",
    2085: "Job is not running",
    2104: "Reservation already started",
    2115: "Invalid Trackable RESource (TRES) specification",
    2123: "Invalid --nice value",
    2133: "Invalid preferred feature specification",
    2137: "JobID can not be zero",
    2166: "Unable to resolve user ID to user name",
    2168: "Node already exists in the node table",
    2169: "Unable to add node, node table is full",
    2173: "Invalid signal jobs request, at least one job id or filter is required.",
    2178: "Requested topology configuration is not available",
    2189: "Invalid configuration for external job",
    5005: "Zero Bytes were transmitted or received",
    5004: "Socket timed out on send/recv operation",
    9000: "Query empty or not RFC7320 compliant",
    9202: "Unable to convert Data type",
    9209: "Data parser expected a dictionary or object",
    9207: "Data parser unable to parse invalid flag",
}

#: error_number -> HTTP status, if it is not 422.
STATUS: Mapping[int, int] = {
    -1: 500,
    0: 200,
    1: 403,
    11: 500,
    22: 500,
    1000: 500,
    1007: 511,
    1800: 502,
    2017: 404,
    2189: 500,
    5004: 504,
    5005: 502,
    9202: 500,
    9207: 500,
    9209: 500,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Warn:
    """One warning."""

    description: str
    source: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Error:
    """One error; the first of several determines the HTTP status."""

    number: int
    description: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmReply:
    """The answer of a verb, without its envelope."""

    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    errors: Sequence[Error] = ()
    warnings: Sequence[Warn] = ()
    status: int | None = None

    @property
    def code(self) -> int:
        """The HTTP status."""
        if self.status is not None:
            return self.status
        return STATUS.get(self.errors[0].number, 422) if self.errors else 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """An answer that is not JSON."""

    status: int
    text: str = ""


NOT_MODIFIED = Plain(status=304)
UNSPECIFIED = Plain(status=500, text="Unspecified error")
TOO_LONG = Plain(status=500, text="Insane message length")
NO_CREDENTIALS = Plain(status=401, text="Authentication failure")
NOWHERE = Plain(
    status=404,
    text=(
        "Unable to find requested URL endpoint. Please query the '/openapi/v3' endpoint or visit "
        "'https://slurm.schedmd.com/rest_api.html' for the OpenAPI specification which includes a list of all "
        "possible slurmrestd endpoints."
    ),
)


def refusal(number: int, description: str, source: str, **fields: Any) -> SlurmReply:
    """One error only."""
    return SlurmReply(errors=(Error(number, description, source),), fields=fields)


def encode(reply: SlurmReply | Plain, meta: Mapping[str, Any]) -> Response:
    """The answer as bytes. Every error closes the connection, as slurmrestd does."""
    if isinstance(reply, Plain):
        close = reply.status >= 400  # noqa: PLR2004 - HTTP errors begin here
        return Response(status=reply.status, body=reply.text.encode(), content_type="text/plain", close=close)
    body = {
        **reply.fields,
        "meta": meta,
        "errors": [_error(error) for error in reply.errors],
        "warnings": [{"description": warning.description, "source": warning.source} for warning in reply.warnings],
    }
    return Response(status=reply.code, body=_json(body), close=reply.code >= 400)  # noqa: PLR2004


def _json(body: Mapping[str, Any]) -> bytes:
    """slurmrestd passes on any bytes that users have written; here they are lone surrogates until they are sent."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        plain = json.dumps(msgspec.to_builtins(body), ensure_ascii=False, separators=(",", ":"))
        return plain.encode("utf-8", "surrogateescape")


def _error(error: Error) -> dict[str, Any]:
    return {
        "description": error.description,
        "error_number": error.number,
        "error": WORDS[error.number],
        "source": error.source,
    }
