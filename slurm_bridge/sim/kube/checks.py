"""What the apiserver refuses in an object or a change, as far as the bridge or its users can meet it."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.sim.kube import refusals
from slurm_bridge.sim.kube.refusals import StatusCause
from slurm_bridge.sim.kube.resources import Resource

Manifest = Mapping[str, Any]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_POD_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
#: The fields of a pod's spec that may change, and those that may change while the pod is gated.
_CHANGEABLE = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
_CHANGEABLE_GATED = {"nodeSelector", "affinity"}

_WHAT_NEVER_CHANGES = {
    "podgroups.scheduling.k8s.io": ("spec.schedulingPolicy",),
    "workloads.scheduling.k8s.io": ("spec",),
    "resourceclaims.resource.k8s.io": ("spec",),
    "resourceclaimtemplates.resource.k8s.io": ("spec",),
    "jobs.batch": ("spec.template", "spec.selector", "spec.completionMode"),
}


def new(resource: Resource, manifest: Manifest) -> None:
    """Refuse an object that cannot be created."""
    name = manifest["metadata"].get("name", "")
    causes = []
    if not name:
        causes.append(refusals.required("metadata.name", "name or generateName is required"))
    elif not _NAME.fullmatch(name):
        rule = f'Invalid value: "{name}": {_NAME_RULE}'
        causes.append(StatusCause(reason="FieldValueInvalid", message=rule, field="metadata.name"))
    if resource.key in _NEW:
        causes.extend(_NEW[resource.key](manifest))
    if causes:
        raise refusals.invalid(resource, name, *causes)


def change(resource: Resource, old: Manifest, new_: Manifest, *, resized: bool = False) -> None:
    """Refuse a change that is not allowed; `resized`: it comes through the resize subresource."""
    causes = _metadata(old["metadata"], new_["metadata"])
    paths = _WHAT_NEVER_CHANGES.get(resource.key, ())
    causes.extend(refusals.immutable(path, "null") for path in paths if _dig(old, path) != _dig(new_, path))
    if resource.key == "pods" and not resized:
        causes.extend(_pod_change(old["spec"], new_["spec"]))
    if resource.key == "resourceclaims.resource.k8s.io":
        causes.extend(_claim_status(old, new_))
    if causes:
        raise refusals.invalid(resource, old["metadata"]["name"], *causes)


def _claim_status(old: Manifest, new_: Manifest) -> list[StatusCause]:
    before, now = (old.get("status") or {}).get("allocation"), (new_.get("status") or {}).get("allocation")
    users = (new_.get("status") or {}).get("reservedFor") or []
    if before and now and before != now:
        return [refusals.immutable("status.allocation", "null")]
    if users and not now:
        why = "may not be specified when `allocated` is not set"
        return [refusals.forbidden_value("status.reservedFor", why)]
    added = [one for one in users if one not in ((old.get("status") or {}).get("reservedFor") or [])]
    if added and old["metadata"].get("deletionTimestamp"):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        return [refusals.forbidden_value("status.reservedFor", why)]
    return []


def _new_pod(pod: Manifest) -> list[StatusCause]:
    return [] if pod["spec"].get("containers") else [refusals.required("spec.containers")]


def _new_pod_group(group: Manifest) -> list[StatusCause]:
    policy = group["spec"].get("schedulingPolicy") or {}
    if len(policy.keys() & {"basic", "gang"}) == 1:
        return []
    message = 'Invalid value: "": must specify one of: `basic`, `gang`'
    return [StatusCause(reason="FieldValueInvalid", message=message, field="spec.schedulingPolicy")]


_NEW: Mapping[str, Callable[[Manifest], list[StatusCause]]] = {
    "pods": _new_pod,
    "podgroups.scheduling.k8s.io": _new_pod_group,
}


def _metadata(old: Manifest, new_: Manifest) -> list[StatusCause]:
    causes = []
    if new_.get("uid", old["uid"]) != old["uid"]:
        causes.append(refusals.immutable("metadata.uid", f'"{new_["uid"]}"'))
    added = [name for name in new_.get("finalizers") or () if name not in (old.get("finalizers") or ())]
    if added and old.get("deletionTimestamp"):
        shown = ", ".join(f'"{name}"' for name in added)
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        causes.append(refusals.forbidden_value("metadata.finalizers", why))
    return causes


def _dig(manifest: Manifest, path: str) -> Any:
    value: Any = manifest
    for part in path.split("."):
        value = (value or {}).get(part)
    return value


def _pod_change(old: Manifest, new_: Manifest) -> list[StatusCause]:
    gates = [gate["name"] for gate in old.get("schedulingGates") or ()]
    for place, gate in enumerate(new_.get("schedulingGates") or ()):
        if gate["name"] not in gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            return [refusals.forbidden_value(f"spec.schedulingGates[{place}].name", why)]
    allowed = _CHANGEABLE | _CHANGEABLE_GATED if gates else _CHANGEABLE
    tolerations = new_.get("tolerations") or ()
    only_added = all(line in tolerations for line in old.get("tolerations") or ())
    if only_added and _rest(old, allowed) == _rest(new_, allowed):
        return []
    return [refusals.forbidden_value("spec", _POD_RULE)]


def _rest(spec: Manifest, allowed: set[str]) -> dict[str, Any]:
    rest = {name: value for name, value in spec.items() if name not in allowed}
    for field in ("containers", "initContainers"):
        rest[field] = [{**container, "image": ""} for container in spec.get(field) or ()]
    return rest
