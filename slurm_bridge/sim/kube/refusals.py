"""The API's refusals: Status objects with the real codes, reasons and messages."""

import dataclasses
from typing import Any

from slurm_bridge.sim.kube.resources import Resource


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StatusCause:
    """One line of a Status' details."""

    reason: str
    message: str
    field: str = ""

    def shown(self) -> dict[str, str]:
        """The JSON form; empty fields are left out."""
        return {name: text for name, text in dataclasses.asdict(self).items() if text}


class StatusError(Exception):
    """A request that is answered with a Status instead of an object."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.go_on = ""
        self.code = code
        self.reason = reason
        self.details = details

    def status(self) -> dict[str, Any]:
        """The Status object."""
        shown: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        if self.go_on:
            shown["metadata"] = {"continue": self.go_on}
        shown["message"] = str(self)
        if self.reason:
            shown["reason"] = self.reason
        if self.details is not None:
            shown["details"] = self.details
        return {**shown, "code": self.code}


def _about(group: str, kind: str, name: str, *causes: StatusCause) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details["causes"] = [cause.shown() for cause in causes]
    return {field: value for field, value in details.items() if value}


def not_found(resource: Resource, name: str) -> StatusError:
    """The object does not exist."""
    about = _about(resource.group, resource.plural, name)
    return StatusError(404, "NotFound", f'{resource.key} "{name}" not found', about)


def no_such_page() -> StatusError:
    """The resource does not exist."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    """The resource does not have this verb."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def already_exists(resource: Resource, name: str) -> StatusError:
    """The name is taken."""
    about = _about(resource.group, resource.plural, name)
    return StatusError(409, "AlreadyExists", f'{resource.key} "{name}" already exists', about)


def conflict(resource: Resource, name: str, why: str, *, subresource: str = "") -> StatusError:
    """The object is not in the required state."""
    key = resource.key + subresource
    message = f'Operation cannot be fulfilled on {key} "{name}": {why}'
    return StatusError(409, "Conflict", message, _about(resource.group, resource.plural + subresource, name))


def stale(resource: Resource, name: str) -> StatusError:
    """Another writer was faster."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def precondition(resource: Resource, namespace: str, name: str, what: str, values: tuple[str, str]) -> StatusError:
    """A write names another uid; this message comes straight from the storage."""
    path = "/".join(part for part in ("/registry", resource.plural, namespace, name) if part)
    given, stored = values
    why = (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {what} in precondition: {given}, {what} in object meta: {stored}"
    )
    return conflict(resource, name, why)


def delete_precondition(resource: Resource, name: str, what: str, values: tuple[str, str]) -> StatusError:
    """A delete names another uid; the message has the kind instead of the resource."""
    given, stored = values
    might = "deleted and then recreated" if what == "UID" else "modified"
    message = (
        f'Operation cannot be fulfilled on {resource.kind} "{name}": the {what} in the precondition ({given}) does '
        f"not match the {what} in record ({stored}). The object might have been {might}"
    )
    return StatusError(409, "Conflict", message, _about(resource.group, resource.kind, name))


def invalid(resource: Resource, name: str, *causes: StatusCause) -> StatusError:
    """The object would be invalid."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    lines = [f"{cause.field}: {cause.message}" for cause in causes]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    about = _about(resource.group, resource.kind, name, *causes)
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', about)


def version_missing(resource: Resource, name: str) -> StatusError:
    """An update without a resourceVersion; the message has the resource, unlike every other 422."""
    cause = StatusCause(
        reason="FieldValueInvalid",
        message="Invalid value: 0: must be specified for an update",
        field="metadata.resourceVersion",
    )
    message = f'{resource.key} "{name}" is invalid: {cause.field}: {cause.message}'
    return StatusError(422, "Invalid", message, _about(resource.group, resource.plural, name, cause))


def immutable(field: str, value: str) -> StatusCause:
    """The field is immutable."""
    return StatusCause(reason="FieldValueInvalid", message=f"Invalid value: {value}: field is immutable", field=field)


def required(field: str, why: str = "") -> StatusCause:
    """The field is required."""
    return StatusCause(reason="FieldValueRequired", message=f"Required value{': ' if why else ''}{why}", field=field)


def forbidden_value(field: str, why: str) -> StatusCause:
    """A change that is not allowed."""
    return StatusCause(reason="FieldValueForbidden", message=f"Forbidden: {why}", field=field)


def bad_request(message: str) -> StatusError:
    """The request is malformed."""
    return StatusError(400, "BadRequest", message)


def plain_error(message: str) -> StatusError:
    """An error that the real server does not wrap: code 500 without a reason."""
    return StatusError(500, "", message)


def unsupported_media(message: str) -> StatusError:
    """A body of an unknown kind."""
    return StatusError(415, "UnsupportedMediaType", message)


def unauthorized() -> StatusError:
    """The request is not authenticated."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str, *causes: StatusCause) -> StatusError:
    """The request is not allowed, or not allowed now."""
    quoted = f' "{name}"' if name else ""
    about = _about(resource.group, resource.plural, name, *causes)
    return StatusError(403, "Forbidden", f"{resource.key}{quoted} is forbidden: {why}", about)


def expired(message: str, *, go_on: str = "") -> StatusError:
    """The requested version is too old; a paged list may go on, inconsistently, with another token."""
    refusal = StatusError(410, "Expired", message)
    refusal.go_on = go_on
    return refusal


def from_the_future(asked: int, current: int) -> StatusError:
    """The requested version is in the future."""
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = {"causes": [cause.shown()], "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, details)


def too_many(message: str, *causes: StatusCause) -> StatusError:
    """A disruption budget forbids it for now; the answer has no Retry-After."""
    return StatusError(429, "TooManyRequests", message, {"causes": [cause.shown() for cause in causes]})
