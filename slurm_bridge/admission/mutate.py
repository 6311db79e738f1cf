"""What is changed: pods that become the bridge's, and the record of the user that created an object.

    a pod of the bridge     schedulerName    the first of the bridge's, in a managed namespace where the pod names none
                            nodeName         removed in a managed namespace, when the pod is created and never later
                            tolerations      the one of the nodes that the bridge manages, where one is configured
                            env              Slurm's environment in all containers, where the pod asks for it
    every object of the     created-by       the user; removed from pods and Jobs that controllers make; kept by changes
    bridge                                   of what is the bridge's already

Each change is an operation of a JSON patch. A pod that has everything gets none.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge.admission import bridge_marks, validate
from slurm_bridge.admission.environment import slurm_environment
from slurm_bridge.admission.review import CREATE, UPDATE, AdmissionRequest, Patch, part
from slurm_bridge.admission.rules import AdmissionRules
from slurm_bridge.model import creator, kinds, names

Json = Mapping[str, Any]
Operation = Mapping[str, Any]


def patch(request: AdmissionRequest, rules: AdmissionRules) -> Patch:
    """The changes of this object, in order; empty where there is nothing to change."""
    manifest = request.object
    if manifest is None or request.sub_resource or request.operation not in (CREATE, UPDATE):
        return ()
    if not _takes(request, manifest, rules):
        return ()
    created = request.operation == CREATE
    pod = _pod(request, manifest, rules) if created and validate.is_pod(request) else ()
    return (*pod, *_creator(request, manifest, rules))


def _takes(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> bool:
    if validate.is_pod(request) and request.operation == CREATE:
        return rules.takes(manifest, request.namespace, request.user_info.groups or ())
    return validate.concerns(request, manifest, rules)


def _pod(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> Iterator[Operation]:
    spec = part(manifest, "spec")
    if not rules.names_ours(spec):
        yield {"op": "add", "path": "/spec/schedulerName", "value": rules.scheduler_names[0]}
    if spec.get("nodeName") and rules.managed(request.namespace):
        yield {"op": "remove", "path": "/spec/nodeName"}
    if rules.toleration is not None:
        yield from _tolerating(spec, rules.toleration)
    yield from _environment(manifest, rules)


def _environment(manifest: Json, rules: AdmissionRules) -> Iterator[Operation]:
    """The variables that a container lacks, before its own, so that those can refer to them."""
    asked = part(manifest, "metadata", "annotations").get(names.JOB_PREFIX + names.ENVIRONMENT)
    if asked is None and rules.translation.environment:
        asked = "true"
    for sort in ("initContainers", "containers"):
        for number, container in enumerate(part(manifest, "spec").get(sort) or ()):
            given = container.get("env") or []
            added = slurm_environment(str(asked or ""), {one.get("name") for one in given})
            if added:
                yield {"op": "add", "path": f"/spec/{sort}/{number}/env", "value": [*added, *given]}


def _tolerating(spec: Json, wanted: Json) -> Iterator[Operation]:
    given = spec.get("tolerations")
    if not isinstance(given, list):
        yield {"op": "add", "path": "/spec/tolerations", "value": [dict(wanted)]}
    elif wanted not in given:
        yield {"op": "add", "path": "/spec/tolerations/-", "value": dict(wanted)}


def _creator(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> Iterator[Operation]:
    user = request.user_info
    now = bridge_marks.created_by(manifest)
    if rules.trusts(user.username):
        return
    before = request.old_object if request.operation == UPDATE else None
    if before is not None and rules.controls(user.username):
        # What controllers copy to an object that they made has been recorded by the webhook before.
        wanted = now
    elif before is not None and validate.concerns(request, before, rules):
        wanted = bridge_marks.created_by(before)
    elif rules.controls(user.username):
        wanted = None if request.kind.kind in (kinds.PODS.kind, kinds.JOBS.kind) else now
    else:
        wanted = creator.write(user.username, user.groups or ()) or None
    yield from _annotated(manifest, now, wanted)


def _annotated(manifest: Json, now: str | None, wanted: str | None) -> Iterator[Operation]:
    path = f"/metadata/annotations/{names.ANNOTATION_CREATED_BY.replace('~', '~0').replace('/', '~1')}"
    if wanted == now:
        return
    if wanted is None:
        yield {"op": "remove", "path": path}
        return
    if not isinstance(part(manifest, "metadata").get("annotations"), Mapping):
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    yield {"op": "add", "path": path, "value": wanted}
