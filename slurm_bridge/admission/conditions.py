"""What is looked at in an object, as CEL: its annotations, the marks of the bridge, and the specs of its pods.

Each function gives an expression. Those about problems are lists of messages, in the words of the scheduler as far as
CEL can say them: it knows no place of an entry in a list, and no word that is close to another one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from slurm_bridge.admission import bridge_marks, content, expressions
from slurm_bridge.admission.expressions import literal
from slurm_bridge.admission.rules import DEFAULT_SCHEDULER, MIRROR, NODES
from slurm_bridge.hooks import honoured_demands
from slurm_bridge.model import names
from slurm_bridge.model.features import Feature, FeatureDemand
from slurm_bridge.translate import annotations, forms, sizes
from slurm_bridge.translate.class_resources import DEVICE_CLASS

#: Text `t` of a user, as a message shows it.
SHOWN: Final = '(size(t) > 60 ? t.substring(0, 60) + "..." : t).replace("\\n", "?").replace("\\r", "?")'

#: Letters of a value, and annotations of an object: more would take seconds of the API server.
MOST_VALUE: Final = 4096
MOST_KEYS: Final = 50

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NEIGHBOURS: Final = ("podAffinity", "podAntiAffinity")


def names_ours(spec: str, schedulers: Sequence[str]) -> str:
    """The spec of a pod names one of the bridge's schedulers."""
    return f"has({spec}.schedulerName) && {spec}.schedulerName in {literal(list(schedulers))}"


def names_none(spec: str) -> str:
    """The spec of a pod leaves the scheduler open."""
    return f"(!has({spec}.schedulerName) || {spec}.schedulerName in {literal(['', DEFAULT_SCHEDULER])})"


def mirror(metadata: str) -> str:
    """The pod shows a static pod of a kubelet."""
    return f"({literal(MIRROR)} in {texts(metadata)} && {literal(NODES)} in request.userInfo.groups)"


def texts(metadata: str) -> str:
    """The annotations in some metadata."""
    return f"(has({metadata}.annotations) ? {metadata}.annotations : {{}})"


def labels(metadata: str) -> str:
    """The labels in some metadata."""
    return f"(has({metadata}.labels) ? {metadata}.labels : {{}})"


def if_(condition: str, message: str) -> str:
    """A list of one message, or of none."""
    return f"({condition} ? [{message}] : [])"


# -- annotations ------------------------------------------------------------------------------------------------------


def source(subject: str, metadata: str) -> str:
    """An object with annotations for its jobs."""
    return f'{{"subject": dyn({subject}), "texts": dyn({texts(metadata)})}}'


def words() -> str:
    """What is allowed, by key."""
    return literal({names.JOB_PREFIX + row.key: f"use {row.form.words}" for row in annotations.ANNOTATIONS})


def wrong() -> str:
    """What is wrong with the annotations of source `s`, and was not there before, as one text."""
    keys = ", ".join(sorted(annotations.BY_KEY))
    unknown = literal(f"unknown key, use one of {keys}")
    same = "variables.sourcesBefore.exists(o, k in o.texts && o.texts[k] == s.texts[k])"
    said = f"[s.texts[k]].map(t, {SHOWN})[0]"
    allowed = f"(k in variables.words ? variables.words[k] : {unknown})"
    message = f's.subject + ": annotation " + k + "=\\"" + {said} + "\\": " + {allowed}'
    ours = f"s.texts.filter(k, k.startsWith({literal(names.JOB_PREFIX)}))"
    many = f's.subject + ": has " + string(size(ks)) + " annotations {names.JOB_PREFIX}…, use one of {keys}"'
    each = f'ks.filter(k, !{same} && !{_valid()}).map(k, {message}).join("; ")'
    return f"[{ours}].map(ks, size(ks) > {MOST_KEYS} ? {many} : {each})[0]"


def _valid() -> str:
    """Whether the text of key `k` is a valid value of it."""
    by_form: dict[str, list[str]] = {}
    for row in annotations.ANNOTATIONS:
        by_form.setdefault(expressions.FORMS[row.form], []).append(names.JOB_PREFIX + row.key)
    tests = [f"k in {literal(keys)} ? {form}" for form, keys in by_form.items()]
    return f"(size(s.texts[k]) <= {MOST_VALUE} && [s.texts[k].trim()].all(v, {' : '.join(tests)} : false))"


def contradiction() -> str:
    """The message about an empty range of nodes of source `s`, or an empty text."""
    least, most = (literal(names.JOB_PREFIX + key) for key in ("min-nodes", "max-nodes"))
    there = f"{least} in s.texts && {most} in s.texts"
    counts = " && ".join(f"[s.texts[{key}].trim()].all(v, {_COUNT})" for key in (least, most))
    same = f"o.texts[{least}] == s.texts[{least}] && o.texts[{most}] == s.texts[{most}]"
    before = f"variables.sourcesBefore.exists(o, {least} in o.texts && {most} in o.texts && {same})"
    more = f"int(s.texts[{least}].trim()) > int(s.texts[{most}].trim())"
    message = (
        f's.subject + ": annotation {names.JOB_PREFIX}min-nodes=\\"" + s.texts[{least}].trim() + '
        f'"\\": use at most max-nodes, which is " + s.texts[{most}].trim()'
    )
    return f'{there} && {counts} && {more} && !{before} ? {message} : ""'


_COUNT: Final = expressions.FORMS[forms.COUNT]


def span(subject: str, alone: str) -> str:
    """A pod that stands alone asks for several nodes."""
    key, given = literal(names.JOB_PREFIX + "min-nodes"), texts("object.metadata")
    more = f"[{given}[{key}].trim()].all(v, {_COUNT} && int(v) > 1)"
    message = (
        f'{subject} + ": annotation {names.JOB_PREFIX}min-nodes=\\"" + {given}[{key}].trim() + '
        '"\\": one pod cannot span nodes: use 1"'
    )
    return if_(f"{alone} && {key} in {given} && {more}", message)


def little_memory(subject: str, metadata: str, spec: str, over: str = "") -> str:
    """mem-per-node below the memory that the containers of `spec` request together.

    `over`: the metadata of the owner, whose annotation overrides that of the pod.
    """
    key, given, mebibytes = literal(_MEMORY), texts(metadata), "int((x + 1048575.0) / 1048576.0)"
    text, asked = f"{given}[{key}].trim()", f"[{_sum(spec, 'memory')}].map(x, {mebibytes})[0]"
    valid = f"[{text}].all(v, {expressions.FORMS[forms.MEMORY]})"
    less = f"[quantity({text}).asApproximateFloat()].map(x, {mebibytes})[0] < {asked}"
    message = (
        f'{subject} + ": annotation {_MEMORY}=\\"" + {text} + '
        f'"\\": use at least the memory that the pod requests, " + string({asked}) + "Mi"'
    )
    counts = f"{key} in {given}" + (f" && !({key} in {texts(over)})" if over else "")
    return if_(f"{counts} && {valid} && {less}", message)


_MEMORY: Final = names.JOB_PREFIX + "mem-per-node"


def group(subject: str) -> str:
    """A group by name without a size; pods with owners may belong to a group of theirs."""

    def said(key: str) -> str:
        one, label, text = literal(key), labels("object.metadata"), texts("object.metadata")
        return (
            f"({one} in {label} && {label}[{one}] != '' ? {label}[{one}] : {one} in {text} ? {text}[{one}] : '').trim()"
        )

    name, size = said(names.GROUP), said(names.GROUP_SIZE)
    message = (
        f'{subject} + " of Group " + request.namespace + "/" + [{name}].map(t, {SHOWN})[0] + '
        f'": {names.GROUP_SIZE}=\'" + [{size}].map(t, {SHOWN})[0] + '
        '"\': use the number of pods of the group, the same on each, as a label or an annotation"'
    )
    counted = f'{size}.matches("^[0-9]{{1,9}}$") && int({size}) > 0'
    owned = "has(object.metadata.ownerReferences) && size(object.metadata.ownerReferences) > 0"
    return if_(f"!({owned}) && {name} != '' && !({counted})", message)


def alone() -> str:
    """The pod belongs to no group and to no owner, as far as it says itself."""
    marks = [names.GROUP, names.LABEL_COSCHEDULING, names.LABEL_JOBSET_NAME, names.LABEL_LWS_NAME]
    notes = [names.GROUP, names.ANNOTATION_KAI_GROUP]
    return (
        f"!{literal(marks)}.exists(k, k in {labels('object.metadata')}) && "
        f"!{literal(notes)}.exists(k, k in {texts('object.metadata')}) && "
        "(!has(object.metadata.ownerReferences) || size(object.metadata.ownerReferences) == 0) && "
        "!has(object.spec.schedulingGroup)"
    )


# -- marks ------------------------------------------------------------------------------------------------------------


def written(metadata: str, subject: str, before: str = "") -> str:
    """Marks of the bridge that are new in some metadata; without `before` all are."""
    found = []
    for sort, of in _SORTS.items():
        same = f" && !(k in {of(before)} && {of(before)}[k] == {of(metadata)}[k])" if before else ""
        message = f'{subject} + ": {sort} " + k + ": only slurm-bridge may write it; leave it out"'
        every = literal([*bridge_marks.FIXED, *bridge_marks.REMOVABLE])
        found.append(f"{every}.filter(k, k in {of(metadata)}{same}).map(k, {message})")
    return f"({' + '.join(found)})"


def removed(metadata: str, before: str, subject: str) -> str:
    """Marks that are missing although only the bridge removes them."""
    found = []
    for sort, of in _SORTS.items():
        message = f'{subject} + ": {sort} " + k + ": only slurm-bridge may remove it; leave it as it is"'
        gone = f"k in {of(before)} && !(k in {of(metadata)})"
        found.append(f"{literal(list(bridge_marks.FIXED))}.filter(k, {gone}).map(k, {message})")
    return f"({' + '.join(found)})"


_SORTS: Final[Mapping[str, Callable[[str], str]]] = {"label": labels, "annotation": texts}


# -- the spec of a pod ------------------------------------------------------------------------------------------------


def of_spec(spec: str, subject: str, refused: Iterable[Feature], single: str) -> str:
    """What is wrong with the spec of a pod; `single` says whether the pod is a workload of its own."""
    found = [*_sizes(spec, subject), _cpus(spec, subject)]
    for feature in refused:
        # What depends on other objects is left to the scheduler.
        if feature in _DEMANDS:
            found += _DEMANDS[feature](spec, _sentence(feature, subject), single)
    return " + ".join(found)


def node(spec: str, subject: str) -> str:
    """A node that is named."""
    before, after = content.node_named({"schedulerName": "\0"}).split("\0")
    message = f"{subject} + {literal(': ' + before)} + {spec}.schedulerName + {literal(after)}"
    return if_(f'has({spec}.nodeName) && {spec}.nodeName != ""', message)


def owners(subject: str) -> str:
    """More owners than any controller writes."""
    found = "object.metadata.ownerReferences"
    message = (
        f'{subject} + ": has " + string(size({found})) + " owner references; at most {content.MOST_OWNERS} are allowed"'
    )
    return if_(f"has({found}) && size({found}) > {content.MOST_OWNERS}", message)


def _sizes(spec: str, subject: str) -> list[str]:
    nodes = f"{spec}.affinity.nodeAffinity"
    paths = [f"{spec}.nodeSelector", f"{spec}.tolerations", f"{spec}.topologySpreadConstraints"]
    paths += [f"{nodes}.{_REQUIRED}.nodeSelectorTerms", f"{nodes}.{_PREFERRED}"]
    paths += [f"{spec}.affinity.{kind}.{when}" for kind in _NEIGHBOURS for when in (_REQUIRED, _PREFERRED)]
    found = []
    for path in paths:
        called, most = "spec" + path.removeprefix(spec), sizes.MOST_TERMS
        message = f'{subject} + ": {called} has " + string(size({path})) + " entries; at most {most} are allowed"'
        found.append(if_(f"{_there(path, spec)} && size({path}) > {most}", message))
    return found


def _there(path: str, spec: str) -> str:
    """Each field on the way from the spec is there."""
    steps = path.removeprefix(f"{spec}.").split(".")
    return " && ".join(f"has({spec}.{'.'.join(steps[: number + 1])})" for number in range(len(steps)))


def _cpus(spec: str, subject: str) -> str:
    """More cpus than Slurm counts, of its containers together."""
    total, most = _sum(spec, "cpu"), forms.MOST_SHORT
    message = f'{subject} + ": requests " + string(int({total})) + " cpus; at most {most} are allowed"'
    return if_(f"{total} > {float(most)}", message)


def _sum(spec: str, resource: str) -> str:
    asks = f'has(c.resources) && has(c.resources.requests) && "{resource}" in c.resources.requests'
    amount = f'({asks} ? quantity(string(c.resources.requests["{resource}"])).asApproximateFloat() : 0.0)'
    return f"{spec}.containers.map(c, {amount}).sum()"


_Say = Callable[[str], str]


def _sentence(feature: Feature, subject: str) -> _Say:
    """The message about a field, which is an expression."""
    said = honoured_demands.sentence(FeatureDemand(feature=feature, subject="", field="\0"))
    before, after = said.split("\0")
    return lambda field: f"{subject} + {literal(before)} + {field} + {literal(after)}"


def _spread(spec: str, say: _Say, _single: str) -> list[str]:
    rows = f"{spec}.topologySpreadConstraints"
    strict = '(!has(c.whenUnsatisfiable) || c.whenUnsatisfiable == "DoNotSchedule")'
    field = '"spec.topologySpreadConstraints (" + c.topologyKey + ", DoNotSchedule)"'
    return [f"(has({rows}) ? {rows}.filter(c, {strict}).map(c, {say(field)}) : [])"]


def _near(spec: str, say: _Say, _single: str) -> list[str]:
    return [_neighbours(spec, "podAffinity", say, "true")]


def _away(spec: str, say: _Say, single: str) -> list[str]:
    return [_neighbours(spec, "podAntiAffinity", say, single)]


def _neighbours(spec: str, kind: str, say: _Say, condition: str) -> str:
    rows = f"{spec}.affinity.{kind}.{_REQUIRED}"
    field = f'"spec.affinity.{kind}.{_REQUIRED} (" + c.topologyKey + ")"'
    return f"({condition} && {_there(rows, spec)} ? {rows}.map(c, {say(field)}) : [])"


def _ports(spec: str, say: _Say, _single: str) -> list[str]:
    stays = 'has(c.restartPolicy) && c.restartPolicy == "Always"'
    taken = "has(p.hostPort) && p.hostPort > 0"
    found = []
    for sort, which in (("containers", "true"), ("initContainers", stays)):
        field = f'"spec.{sort} " + c.name + ": hostPort (" + string(p.hostPort) + ")"'
        each = f'c.ports.filter(p, {taken}).map(p, {say(field)}).join("; ")'
        rows = f"{spec}.{sort}.filter(c, {which} && has(c.ports) && c.ports.exists(p, {taken}))"
        found.append(f"(has({spec}.{sort}) ? {rows}.map(c, {each}) : [])")
    return found


def _device_claims(spec: str, say: _Say, _single: str) -> list[str]:
    claims, claim = f"{spec}.resourceClaims", '"spec.resourceClaims (" + c.name + ")"'
    return [f"(has({claims}) ? {claims}.map(c, {say(claim)}) : [])"]


def _devices(spec: str, say: _Say, _single: str) -> list[str]:
    by_class, found = f"k.startsWith({literal(DEVICE_CLASS)})", list[str]()
    for sort in ("containers", "initContainers"):
        limits = "c.resources.limits"
        rows = f"{spec}.{sort}.filter(c, has(c.resources) && has({limits}) && {limits}.exists(k, {by_class}))"
        field = f'"spec.{sort} " + c.name + ": resources (" + {limits}.filter(k, {by_class})[0] + ")"'
        found.append(f"(has({spec}.{sort}) ? {rows}.map(c, {say(field)}) : [])")
    return found


_DEMANDS: Final[Mapping[Feature, Callable[[str, _Say, str], list[str]]]] = {
    Feature.TOPOLOGY_SPREAD: _spread,
    Feature.POD_AFFINITY: _near,
    Feature.POD_ANTI_AFFINITY: _away,
    Feature.HOST_PORTS: _ports,
    Feature.RESOURCE_CLAIMS: _device_claims,
    Feature.CLASS_RESOURCES: _devices,
}
