"""Turns the bodies of requests into changes: replacement, the patch formats, server-side apply."""

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from slurm_bridge.sim import http
from slurm_bridge.sim.kube import ownership, patch, refusals
from slurm_bridge.sim.kube.objects import Objects, ObjectTarget
from slurm_bridge.sim.kube.store import Manifest, StoredObject
from slurm_bridge.sim.kube.views import ResourceView

_BUILT_IN = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
_CUSTOM = ("json-patch+json", "merge-patch+json", "apply-patch+yaml")


def decoded(body: bytes, what: str) -> Any:
    """The JSON of a body."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        shown = body[:40].decode(errors="replace")
        why = f"the object provided is unrecognized (must be of type {what}): couldn't get version/kind; json parse "
        raise refusals.bad_request(f"{why}error: {problem} ({shown})") from None


def sent(view: ResourceView, request: http.Request) -> Manifest:
    """The object in a body, in its stored form; an object of another kind is refused."""
    what = view.resource.kind
    manifest = decoded(request.body, what)
    if not isinstance(manifest, dict):
        raise refusals.bad_request(f"cannot unmarshal into a {what}")
    if view.resource.custom and "kind" not in manifest:
        shown = request.body[:28].decode(errors="replace")
        why = f"(must be of type {what}): Object 'Kind' is missing in '{request.body.decode()}' ({shown} ...)"
        raise refusals.bad_request(f"the object provided is unrecognized {why}")
    kind, version = manifest.get("kind", what), manifest.get("apiVersion", view.api_version)
    if (kind, version) != (what, view.api_version):
        why = f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a {what}'
        raise refusals.bad_request(why)
    stored: Manifest = _said(manifest)
    return view.read(stored)


def _said(value: Any) -> Any:
    """Drop null values, except in lists."""
    if isinstance(value, dict):
        return {key: _said(inner) for key, inner in value.items() if inner is not None}
    return [_said(inner) for inner in value] if isinstance(value, list) else value


def replace(
    objects: Objects, target: ObjectTarget, view: ResourceView, request: http.Request
) -> tuple[int, StoredObject]:
    """PUT. A missing Lease is created, whatever version the caller sends, unless the request has a uid."""
    manifest = sent(view, request)
    metadata = manifest.setdefault("metadata", {})
    _check_name(metadata, target)
    with objects.store.changed:
        missing = objects.store.get(target.resource, target.namespace, target.name) is None
        if missing and target.resource.plural == "leases":
            _check_uid(metadata, target, "")
            metadata.pop("resourceVersion", None)
            return 201, objects.create(target.resource, target.namespace, manifest)
        stored = objects.existing(target)
        if target.resource.version_required and not metadata.get("resourceVersion"):
            raise refusals.version_missing(target.resource, target.name)
        _check_uid(metadata, target, stored.uid)
        changed = objects.change(target, lambda _: manifest, manager=_manager(request))
        return 200, changed


def _check_name(metadata: Manifest, target: ObjectTarget) -> None:
    name = metadata.get("name", target.name)
    if name != target.name:
        why = f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        raise refusals.bad_request(why)


def _check_uid(metadata: Manifest, target: ObjectTarget, stored: str) -> None:
    uid = metadata.get("uid")
    if uid and uid != stored:
        raise refusals.precondition(target.resource, target.namespace, target.name, "UID", (uid, stored))


def _manager(request: http.Request) -> str:
    return request.asked("fieldManager") or request.headers.get("user-agent", "unknown").partition("/")[0]


def change(
    objects: Objects, target: ObjectTarget, view: ResourceView, request: http.Request
) -> tuple[int, StoredObject]:
    """PATCH, in any of the formats."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().removeprefix("application/")
    if media not in (_CUSTOM if target.resource.custom else _BUILT_IN):
        raise _unknown_format(target, media)
    if media == "apply-patch+yaml":
        return _apply(objects, target, view, request)
    body = decoded(request.body, target.resource.kind)
    if isinstance(body, dict):
        body = view.read(body)
    patched = functools.partial(_patched, target, _FORMATS[media], body)
    return 200, objects.change(target, patched, manager=_manager(request))


def _unknown_format(target: ObjectTarget, media: str) -> refusals.StatusError:
    if target.resource.custom and media in _BUILT_IN:
        accepted = ", ".join(f"application/{name}" for name in _CUSTOM)
        why = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        return refusals.unsupported_media(why)
    return refusals.unsupported_media("415: Unsupported Media Type")


_FORMATS: dict[str, Callable[[Any, Any], Any]] = {
    "json-patch+json": patch.json_patch,
    "merge-patch+json": patch.merge,
    "strategic-merge-patch+json": patch.strategic,
}


def _patched(target: ObjectTarget, patcher: Callable[[Any, Any], Any], body: Any, old: Manifest) -> Manifest:
    try:
        new: Manifest = patcher(old, body)
    except (patch.Unpatchable, KeyError, TypeError):
        why = "the server rejected our request due to an error in our request"
        raise refusals.StatusError(422, "Invalid", why, {}) from None
    _check_name(new.get("metadata") or {}, target)
    return new


def _apply(
    objects: Objects, target: ObjectTarget, view: ResourceView, request: http.Request
) -> tuple[int, StoredObject]:
    manager = request.asked("fieldManager")
    if not manager:
        cause = refusals.required("fieldManager", "is required for apply patch")
        details = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause.shown()]}
        message = f'PatchOptions.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
        raise refusals.StatusError(422, "Invalid", message, details)
    wanted = sent(view, request)
    wanted.setdefault("metadata", {}).setdefault("name", target.name)
    _check_name(wanted["metadata"], target)
    if wanted["metadata"].get("managedFields") is not None:
        raise refusals.bad_request("metadata.managedFields must be nil")
    with objects.store.changed:
        stored = objects.store.get(target.resource, target.namespace, target.name)
        if stored is None:
            return 201, _applied_anew(objects, target, manager, wanted)
        if request.asked("force") not in ("true", "1"):
            _check_clashes(objects, stored, manager, wanted)
        applied = functools.partial(objects.ownership.apply, stored.uid, manager, wanted=wanted)
        return 200, objects.change(target, applied)


def _applied_anew(objects: Objects, target: ObjectTarget, manager: str, wanted: Manifest) -> StoredObject:
    uid = wanted["metadata"].get("uid")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise refusals.conflict(target.resource, target.name, why)
    if target.subresource:
        raise refusals.not_found(target.resource, target.name)
    named = ownership.leaves(wanted)
    made = objects.create(target.resource, target.namespace, wanted)
    objects.ownership.created(made.uid, manager, named)
    return made


def _check_clashes(objects: Objects, stored: StoredObject, manager: str, wanted: Manifest) -> None:
    clashes = objects.ownership.clashes(stored.uid, manager, stored.manifest(), wanted)
    if not clashes:
        return
    causes = [
        refusals.StatusCause(reason="FieldManagerConflict", message=f"conflict with {clash.manager}", field=clash.field)
        for clash in clashes
    ]
    lines = ", ".join(f"{cause.message}: {cause.field}" for cause in causes)
    count = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    details = {"causes": [cause.shown() for cause in causes]}
    raise refusals.StatusError(409, "Conflict", f"Apply failed with {count}: {lines}", details)
