"""What is refused: everything that is wrong with an object of the bridge, and was not wrong before.

operation                what is looked at
-----------------------  --------------------------------------------------------------------------------------------
CREATE                   the content, marks that only the bridge writes, the record of the creator
UPDATE                   the same, as far as the change makes it worse; only the record where the object is being
                         deleted, and nothing where metadata and spec stay (progress, finalizers)
UPDATE of pods/resize    other amounts: Slurm counts what the pod asked for when it started
anything else            nothing

Of an object that is not the bridge's, the record is looked at: it counts if a pod of the bridge gets this object as an
owner, or if the object becomes the bridge's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurm_bridge.admission import bridge_marks, content, templates
from slurm_bridge.admission.review import CREATE, UPDATE, AdmissionRequest, part
from slurm_bridge.admission.rules import AdmissionRules, mirror
from slurm_bridge.model import creator, kinds, names

PODS: Final = "pods"
RESIZE: Final = "resize"
STATUS: Final = "status"

Json = Mapping[str, Any]


def problems(request: AdmissionRequest, rules: AdmissionRules) -> tuple[str, ...]:
    """Every reason to refuse this request, one sentence each; empty to allow it."""
    manifest, before = request.object, request.old_object
    if manifest is None or request.operation not in (CREATE, UPDATE):
        return ()
    if request.operation == UPDATE and (before is None or _settled(manifest, before)):
        return ()
    identity = tuple(_identity(request, manifest, before, rules)) if request.sub_resource in ("", STATUS) else ()
    if part(before or {}, "metadata").get("deletionTimestamp") or not concerns(request, manifest, rules):
        return identity
    if is_pod(request):
        return (*identity, *_of_pod(request, manifest, before, rules))
    return (*identity, *_of_owner(request, manifest, before, rules)) if request.sub_resource in ("", STATUS) else ()


def is_pod(request: AdmissionRequest) -> bool:
    """Whether the request is about a pod or a part of one."""
    return (request.resource.group, request.resource.resource) == ("", PODS)


def concerns(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> bool:
    """Whether an object is the bridge's: a pod by its scheduler, others by their templates or annotations."""
    if is_pod(request):
        return rules.names_ours(part(manifest, "spec"))
    if content.ours(request, manifest, rules):
        return True
    group, kind = request.kind.group, request.kind.kind
    return content.annotated(manifest) and not any(True for _ in templates.of(group, kind, manifest))


def warnings(request: AdmissionRequest, rules: AdmissionRules) -> tuple[str, ...]:
    """What the user is told of a pod that is created."""
    manifest = request.object
    if manifest is None or request.operation != CREATE or not is_pod(request) or request.sub_resource:
        return ()
    told = content.ignored(request, manifest, rules) if concerns(request, manifest, rules) else ""
    return (told,) if told else ()


def _settled(manifest: Json, before: Json) -> bool:
    """Nothing has changed that its user writes."""
    same = all(
        part(manifest, "metadata").get(name) == part(before, "metadata").get(name)
        for name in ("labels", "annotations", "ownerReferences")
    )
    return same and manifest.get("spec") == before.get("spec")


def _of_pod(request: AdmissionRequest, manifest: Json, before: Json | None, rules: AdmissionRules) -> Iterator[str]:
    if request.sub_resource == RESIZE:
        if before is not None and _amounts(manifest) != _amounts(before):
            yield f"{request.about}: {_NO_RESIZE}"
        return
    if request.sub_resource not in ("", STATUS):
        return
    if not rules.trusts(request.user_info.username):
        yield from bridge_marks.written(request.about, manifest, before or {})
        yield from bridge_marks.removed(request.about, manifest, before or {})
    if request.sub_resource:
        return
    named = part(manifest, "spec").get("nodeName")
    if before is None and named and not mirror(manifest, request.user_info.groups or ()):
        yield f"{request.about}: {content.node_named(part(manifest, 'spec'))}"
    old = () if before is None else content.of_pod(request, before, rules)
    yield from (one for one in content.of_pod(request, manifest, rules) if one not in old)


def _of_owner(request: AdmissionRequest, manifest: Json, before: Json | None, rules: AdmissionRules) -> Iterator[str]:
    if not rules.trusts(request.user_info.username):
        yield from _in_templates(request, manifest, before)
    if request.sub_resource:
        return
    old = () if before is None else content.of_owner(request, before, rules)
    yield from (one for one in content.of_owner(request, manifest, rules) if one not in old)


def _in_templates(request: AdmissionRequest, manifest: Json, before: Json | None) -> Iterator[str]:
    """Marks in templates, whose pods and Jobs would get them."""
    group, kind = request.kind.group, request.kind.kind
    then = {one.where: one for one in templates.of(group, kind, before or {})}
    for one in templates.of(group, kind, manifest):
        old = then.get(one.where) or templates.PodTemplate(where=one.where, content={})
        where = f"{request.about}, {one.where}"
        yield from bridge_marks.written(where, one.content, old.content)
        arounds = ((one.content, old.content), (one.job or {}, old.job))
        if any(_written(now, earlier) for now, earlier in arounds):
            yield f"{where}: {_ONLY_WEBHOOK}"


def _written(now: Json, earlier: Json | None) -> bool:
    found = bridge_marks.created_by(now)
    return found is not None and found != bridge_marks.created_by(earlier)


def _identity(request: AdmissionRequest, manifest: Json, before: Json | None, rules: AdmissionRules) -> Iterator[str]:
    """Whose the object is: its record, and without one the controller that it names as its owner."""
    now, then, user = bridge_marks.created_by(manifest), bridge_marks.created_by(before), request.user_info
    ours, was_ours = concerns(request, manifest, rules), before is not None and concerns(request, before, rules)
    if rules.trusts(user.username) or not (ours or was_ours or (now, then) != (None, None)):
        return
    own = now == creator.write(user.username, user.groups or ())
    if rules.controls(user.username):
        # Controllers copy annotations of an object to what they make of it; only pods and Jobs are made of templates.
        if before is None and now is not None and request.kind.kind in (kinds.PODS.kind, kinds.JOBS.kind):
            yield f"{request.about}: {_ONLY_WEBHOOK}"
    elif ours and not was_ours:
        if now is not None and not own:
            yield f"{request.about}: {_ONLY_WEBHOOK if before is None else _OF_ANOTHER}"
    elif now != then and (was_ours or then is not None or not own):
        yield f"{request.about}: {_ONLY_WEBHOOK}"
    if now is None and not rules.controls(user.username) and _makes_pods(request, manifest):
        yield from _owner(request.about, manifest, before if was_ours else None, ours=ours)


def _makes_pods(request: AdmissionRequest, manifest: Json) -> bool:
    """Whether the webhook records the creator of such an object. A pod may own pods, too."""
    return is_pod(request) or any(True for _ in templates.of(request.kind.group, request.kind.kind, manifest))


def _owner(about: str, manifest: Json, before: Json | None, *, ours: bool) -> Iterator[str]:
    """The controller of an object without a record. `before`: as it was, if it was the bridge's."""
    now, then = bridge_marks.controllers(manifest), bridge_marks.controllers(before or {})
    if before is None:
        if now and ours:
            yield f"{about}: {_NO_RECORD}"
    elif now != then:
        yield f"{about}: {_OTHER_CONTROLLER}"
    elif now and not ours:
        yield f"{about}: {_LEAVES}"


def _amounts(manifest: Json) -> object:
    spec = part(manifest, "spec")
    containers = [
        (one.get("name"), one.get("resources"), one.get("resizePolicy"))
        for sort in ("containers", "initContainers")
        for one in (spec.get(sort) or ())
        if isinstance(one, Mapping)
    ]
    return spec.get("resources"), containers


_NO_RESIZE: Final = (
    "its resources cannot be changed while it exists, because Slurm counts what it asked for;"
    " delete it, and create it with other resources"
)
_ONLY_WEBHOOK: Final = (
    f"annotation {names.ANNOTATION_CREATED_BY}: only the admission webhook of slurm-bridge writes it; leave it as it is"
)
_OF_ANOTHER: Final = (
    f"annotation {names.ANNOTATION_CREATED_BY}: names another user than the one that gives this object to slurm-bridge;"
    " remove the annotation"
)
_NO_RECORD: Final = (
    "names a controller in metadata.ownerReferences, but the admission webhook of slurm-bridge has recorded no user"
    " that created it: leave the reference out, or create it with a schedulerName of slurm-bridge from the start;"
    " administrators may add accounts of controllers to admission.controllers"
)
_OTHER_CONTROLLER: Final = (
    "metadata.ownerReferences: only controllers may change the controller, because the object belongs to the user that"
    " created it; leave it as it is"
)
_LEAVES: Final = (
    "has no record of the user that created it, so only its controller may give its pods to another scheduler; leave"
    " schedulerName as it is"
)
