"""AdmissionReviews of Kubernetes: the request as a record, and the answer as JSON."""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from slurm_bridge.model.meta import Manifest, Record

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"

#: The status of a refusal: the object is at fault, not the right of its user.
_REFUSED: Final = 422

#: Of all warnings of one answer together: the API server cuts them there.
MOST_WARNINGS: Final = 4096

Patch = Sequence[Mapping[str, Any]]


class NotAReview(Exception):
    """The body is no AdmissionReview that can be answered."""


class KindName(Record, frozen=True, kw_only=True):
    """A kind with its group."""

    group: str = ""
    version: str = ""
    kind: str = ""


class ResourceName(Record, frozen=True, kw_only=True):
    """A resource with its group."""

    group: str = ""
    version: str = ""
    resource: str = ""


class Requester(Record, frozen=True, kw_only=True):
    """The user that makes the request."""

    username: str = ""
    groups: tuple[str, ...] | None = ()


class AdmissionRequest(Record, frozen=True, kw_only=True):
    """One request to the API server that is to be admitted."""

    uid: str
    kind: KindName = KindName()
    resource: ResourceName = ResourceName()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    user_info: Requester = Requester()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None

    @property
    def about(self) -> str:
        """The object in words: `Pod team/web`."""
        return f"{self.kind.kind or 'Object'} {self.namespace}/{self.called}"

    @property
    def called(self) -> str:
        """Its name; where the API server is to generate one, as far as it is known."""
        metadata = part(self.object or self.old_object or {}, "metadata")
        stem = metadata.get("generateName")
        given = self.name or metadata.get("name") or (f"{stem}xxxxx" if stem else "")
        return str(given)


class _AdmissionReview(Record, frozen=True, kw_only=True):
    api_version: str
    kind: str
    request: AdmissionRequest


class _AddressedRequest(Record, frozen=True, kw_only=True):
    uid: str
    namespace: str = ""


class _AddressedReview(Record, frozen=True, kw_only=True):
    api_version: str
    request: _AddressedRequest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionAnswer:
    """Allowed, with changes and warnings, or refused with a message. `surprise`: the error behind a failed answer."""

    uid: str
    allowed: bool = True
    message: str = ""
    patch: Patch = ()
    warnings: tuple[str, ...] = ()
    surprise: Exception | None = dataclasses.field(default=None, compare=False)


_reviews = msgspec.json.Decoder(_AdmissionReview)
_addressed = msgspec.json.Decoder(_AddressedReview)


def read(body: bytes) -> AdmissionRequest:
    """The request in this body. NotAReview if it cannot even be answered."""
    try:
        found = _reviews.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAReview(f"the body is no {KIND}: {error}") from error
    if (found.api_version, found.kind) != (API_VERSION, KIND):
        raise NotAReview(f"the body is {found.kind} of {found.api_version}, not {KIND} of {API_VERSION}")
    return found.request


def unreadable(body: bytes) -> AdmissionRequest | None:
    """What can be told of a request that cannot be read otherwise: uid and namespace; None where not even these."""
    try:
        found = _addressed.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if found.api_version != API_VERSION:
        return None
    return AdmissionRequest(uid=found.request.uid, namespace=found.request.namespace)


def write(answer: AdmissionAnswer) -> Manifest:
    """The answer as the API server wants it."""
    response: dict[str, Any] = {"uid": answer.uid, "allowed": answer.allowed}
    if not answer.allowed:
        response["status"] = {"code": _REFUSED, "reason": "Invalid", "message": answer.message}
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(list(answer.patch))).decode()
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def part(manifest: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping below this path; empty where there is none."""
    found: Any = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
