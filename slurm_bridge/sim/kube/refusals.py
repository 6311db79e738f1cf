"""What the API says when it will not: Status objects with the real codes, reasons and words."""

import dataclasses
from typing import Any

from slurm_bridge.sim.kube.resources import Resource


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One line of a Status' details."""

    reason: str
    message: str
    field: str = ""

    def shown(self) -> dict[str, str]:
        """As it is written; an empty field is left out."""
        return {name: text for name, text in dataclasses.asdict(self).items() if text}


class Refusal(Exception):
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


def _about(group: str, kind: str, name: str, *causes: Cause) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details["causes"] = [cause.shown() for cause in causes]
    return {field: value for field, value in details.items() if value}


def not_found(resource: Resource, name: str) -> Refusal:
    """No such object."""
    about = _about(resource.group, resource.plural, name)
    return Refusal(404, "NotFound", f'{resource.key} "{name}" not found', about)


def no_such_page() -> Refusal:
    """No such resource."""
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Refusal:
    """Not with this verb."""
    return Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def already_exists(resource: Resource, name: str) -> Refusal:
    """The name is taken."""
    about = _about(resource.group, resource.plural, name)
    return Refusal(409, "AlreadyExists", f'{resource.key} "{name}" already exists', about)


def conflict(resource: Resource, name: str, why: str, *, subresource: str = "") -> Refusal:
    """The object is not in the state that the request counts on."""
    key = resource.key + subresource
    message = f'Operation cannot be fulfilled on {key} "{name}": {why}'
    return Refusal(409, "Conflict", message, _about(resource.group, resource.plural + subresource, name))


def stale(resource: Resource, name: str) -> Refusal:
    """Somebody was faster."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def precondition(resource: Resource, namespace: str, name: str, what: str, values: tuple[str, str]) -> Refusal:
    """A write names another incarnation; these words come straight from the storage."""
    path = "/".join(part for part in ("/registry", resource.plural, namespace, name) if part)
    given, stored = values
    why = (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {what} in precondition: {given}, {what} in object meta: {stored}"
    )
    return conflict(resource, name, why)


def delete_precondition(resource: Resource, name: str, what: str, values: tuple[str, str]) -> Refusal:
    """A delete names another incarnation; here the kind is named instead of the resource."""
    given, stored = values
    might = "deleted and then recreated" if what == "UID" else "modified"
    message = (
        f'Operation cannot be fulfilled on {resource.kind} "{name}": the {what} in the precondition ({given}) does '
        f"not match the {what} in record ({stored}). The object might have been {might}"
    )
    return Refusal(409, "Conflict", message, _about(resource.group, resource.kind, name))


def invalid(resource: Resource, name: str, *causes: Cause) -> Refusal:
    """The object would not be acceptable."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    lines = [f"{cause.field}: {cause.message}" for cause in causes]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    about = _about(resource.group, resource.kind, name, *causes)
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {text}', about)


def version_missing(resource: Resource, name: str) -> Refusal:
    """An update that does not say which version it changes; named by the resource, unlike every other 422."""
    cause = Cause(
        reason="FieldValueInvalid",
        message="Invalid value: 0: must be specified for an update",
        field="metadata.resourceVersion",
    )
    message = f'{resource.key} "{name}" is invalid: {cause.field}: {cause.message}'
    return Refusal(422, "Invalid", message, _about(resource.group, resource.plural, name, cause))


def immutable(field: str, value: str) -> Cause:
    """A field that never changes."""
    return Cause(reason="FieldValueInvalid", message=f"Invalid value: {value}: field is immutable", field=field)


def required(field: str, why: str = "") -> Cause:
    """A field that must be there."""
    return Cause(reason="FieldValueRequired", message=f"Required value{': ' if why else ''}{why}", field=field)


def forbidden_value(field: str, why: str) -> Cause:
    """A change that is not allowed."""
    return Cause(reason="FieldValueForbidden", message=f"Forbidden: {why}", field=field)


def bad_request(message: str) -> Refusal:
    """It cannot be understood."""
    return Refusal(400, "BadRequest", message)


def plain_error(message: str) -> Refusal:
    """Errors that nobody wrapped: code 500 and no reason at all."""
    return Refusal(500, "", message)


def unsupported_media(message: str) -> Refusal:
    """A body of an unknown kind."""
    return Refusal(415, "UnsupportedMediaType", message)


def unauthorized() -> Refusal:
    """Who are you?"""
    return Refusal(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str, *causes: Cause) -> Refusal:
    """You may not, or it may not be now."""
    quoted = f' "{name}"' if name else ""
    about = _about(resource.group, resource.plural, name, *causes)
    return Refusal(403, "Forbidden", f"{resource.key}{quoted} is forbidden: {why}", about)


def expired(message: str, *, go_on: str = "") -> Refusal:
    """The version asked for is no longer known; a paged list may go on inconsistently with another token."""
    refusal = Refusal(410, "Expired", message)
    refusal.go_on = go_on
    return refusal


def from_the_future(asked: int, current: int) -> Refusal:
    """A version that has not happened yet."""
    cause = Cause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = {"causes": [cause.shown()], "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Refusal(504, "Timeout", message, details)


def too_many(message: str, *causes: Cause) -> Refusal:
    """Not now; a disruption budget says so, without a time to come back."""
    return Refusal(429, "TooManyRequests", message, {"causes": [cause.shown() for cause in causes]})
