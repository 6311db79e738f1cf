"""The rules of admission as policies of Kubernetes, which need no webhook: objects to apply, with expressions in CEL.

    slurm-bridge-pods         refuses pods of the bridge for their annotations, marks, node, sizes, requirements, resize
    slurm-bridge-owners       refuses objects that make or group such pods, for the same reasons
    slurm-bridge-environment  adds Slurm's environment to the containers of pods that ask for it
    slurm-bridge-toleration   adds the toleration of the taint of managed nodes, where one is configured
    slurm-bridge-managed      gives pods of managed namespaces the bridge's scheduler, and removes their node

A refusal has all problems of an object at once.
"""

import dataclasses
import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from slurm_bridge.admission import conditions
from slurm_bridge.admission.conditions import labels, names_none, names_ours, source, texts
from slurm_bridge.admission.environment import VARIABLES, Variable
from slurm_bridge.admission.expressions import literal
from slurm_bridge.admission.rules import MIRROR
from slurm_bridge.hooks import honoured_demands
from slurm_bridge.model import names
from slurm_bridge.model.features import Feature
from slurm_bridge.model.node import Taint
from slurm_bridge.model.selectors import Requirement

Json = dict[str, Any]

VERSION: Final = "admissionregistration.k8s.io/v1"
#: The API server writes it on each namespace.
NAMESPACE: Final = "kubernetes.io/metadata.name"

#: Objects that make or group pods: group, versions, resources.
OWNERS: Final[Sequence[tuple[str, str, tuple[str, ...]]]] = (
    ("", "v1", ("replicationcontrollers",)),
    ("apps", "v1", ("deployments", "replicasets", "statefulsets")),
    ("batch", "v1", ("cronjobs", "jobs")),
    ("jobset.x-k8s.io", "*", ("jobsets",)),
    ("leaderworkerset.x-k8s.io", "*", ("leaderworkersets",)),
    ("kubeflow.org", "*", ("mpijobs",)),
    ("scheduling.k8s.io", "*", ("podgroups", "workloads")),
    ("scheduling.x-k8s.io", "*", ("podgroups",)),
)

#: Bytes; the API server drops a longer message. The rest is cut after so many letters.
MOST_MESSAGE: Final = 5000
_CUT: Final = 1200
#: Containers of each sort that get variables: CEL has no loop over numbers.
MOST_CONTAINERS: Final = 10

#: The namespaces of the cluster itself, and that of the bridge.
NEVER: Final = ("kube-system", "kube-public", "kube-node-lease", "slurm-bridge-system")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRules:
    """What the policies are generated from.

    `managed` and `selector` choose the managed namespaces; `never` are none in any case. `accounts` are patterns of
    users that may write what only the bridge writes. Requirements that are not `honoured` are refused, unless they are
    to be ignored (`strict` is False). `environment`: also for pods that do not say whether they want it. Pods of the
    bridge tolerate `taint`, written as `key=value:effect`. The names of all policies begin with `name`.
    """

    name: str = "slurm-bridge"
    schedulers: tuple[str, ...] = (names.SCHEDULER_NAME,)
    managed: tuple[str, ...] = ()
    selector: tuple[Requirement, ...] = ()
    never: tuple[str, ...] = NEVER
    accounts: tuple[str, ...] = ("system:serviceaccount:slurm-bridge-system:slurm-bridge",)
    honoured: frozenset[Feature] = frozenset()
    strict: bool = True
    environment: bool = False
    taint: str | None = None

    @property
    def refused(self) -> tuple[Feature, ...]:
        """Requirements that no pod may have."""
        missing = (one for one in Feature if one not in self.honoured)
        return tuple(one for one in missing if self.strict or one in honoured_demands.NEVER_IGNORED)


def objects(rules: PolicyRules) -> tuple[Json, ...]:
    """All policies, each with its bindings."""
    tolerating = () if rules.taint is None else (_tolerating(rules, rules.taint),)
    everywhere = (_pods(rules), _owners(rules), _environment(rules), *tolerating)
    made = [one for policy in everywhere for one in (policy, _binding(policy))]
    return (*made, *_in_managed_namespaces(rules))


def _in_managed_namespaces(rules: PolicyRules) -> Iterator[Json]:
    """A binding for the names of namespaces, and one for their labels: either is enough."""
    if not (rules.managed or rules.selector):
        return
    policy = _managed(rules)
    yield policy
    if rules.managed:
        yield _binding(policy, "-by-name", [_requirement(NAMESPACE, "In", rules.managed)])
    if rules.selector:
        chosen = [_requirement(one.key, one.operator, one.values) for one in rules.selector]
        yield _binding(policy, "-by-label", [*chosen, _requirement(NAMESPACE, "NotIn", rules.never)])


def _requirement(key: str, operator: str, values: Sequence[str]) -> Json:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def _object(kind: str, name: str, spec: Json) -> Json:
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "slurm-bridge"}}
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _binding(policy: Json, end: str = "", namespaces: Sequence[Json] = ()) -> Json:
    name = policy["metadata"]["name"]
    denies = {"validationActions": ["Deny"]} if policy["kind"] == "ValidatingAdmissionPolicy" else {}
    chosen = {"matchResources": {"namespaceSelector": {"matchExpressions": list(namespaces)}}} if namespaces else {}
    return _object(f"{policy['kind']}Binding", f"{name}{end}", {"policyName": name, **denies, **chosen})


def _resources(group: str, version: str, resources: Sequence[str], *operations: str) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": list(resources),
    }


def _named(**expressions: str) -> list[Json]:
    """Variables, or conditions."""
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


# -- what is refused --------------------------------------------------------------------------------------------------

#: An object that is being deleted only loses its finalizers.
_STAYS: Final = "oldObject == null || !has(oldObject.metadata.deletionTimestamp)"
_NEW: Final = "oldObject == null"

_POD: Final = '("Pod " + request.namespace + "/" + object.metadata.name)'
_OWNER: Final = '(request.kind.kind + " " + request.namespace + "/" + object.metadata.name)'
_DRAFT: Final = '("Pod " + request.namespace + "/" + object.metadata.name + "-xxxxx")'

_RESIZED: Final = (
    '": its resources cannot be changed while it exists, because Slurm counts what it asked for; delete it, and create'
    ' it with other resources"'
)


def _refusing(name: str, resources: list[Json], fails: str, ours: list[Json], variables: list[Json]) -> Json:
    """All problems are one validation, because the API server tells the message of one."""
    said = 'variables.problems.join("; ")'
    cut = f'[{said}].map(t, size(bytes(t)) <= {MOST_MESSAGE} ? t : t.substring(0, {_CUT}) + "…")[0]'
    spec = {
        "failurePolicy": fails,
        "matchConstraints": {"resourceRules": resources},
        "matchConditions": [*ours, *_named(stays=_STAYS)],
        "variables": variables,
        "validations": [{"expression": "size(variables.problems) == 0", "messageExpression": cut}],
    }
    return _object("ValidatingAdmissionPolicy", name, spec)


def _pods(rules: PolicyRules) -> Json:
    resources = [
        _resources("", "v1", ["pods", "pods/status"], "CREATE", "UPDATE"),
        _resources("", "v1", ["pods/resize"], "UPDATE"),
    ]
    node = f"({conditions.mirror('object.metadata')} ? [] : {conditions.node('object.spec', _POD)})"
    placed = conditions.of_spec("object.spec", _POD, rules.refused, "variables.alone")
    memory = conditions.little_memory(_POD, "object.metadata", "object.spec")
    about = [conditions.span(_POD, "variables.alone"), memory, conditions.group(_POD)]
    created = " + ".join([*about, conditions.owners(_POD), node, placed])
    before = "oldObject.metadata"
    changed = (
        f"{conditions.written('object.metadata', _POD, before)} + {conditions.removed('object.metadata', before, _POD)}"
    )
    marks = f"variables.trusted ? [] : {_NEW} ? {conditions.written('object.metadata', _POD)} : {changed}"
    variables = [
        *_named(part='has(request.subResource) ? request.subResource : ""', trusted=_trusted(rules)),
        *_annotated(lambda of: f"[{source(_POD, f'{of}.metadata')}]"),
        *_named(
            alone=conditions.alone(),
            marks=marks,
            created=f"{_NEW} ? {created} : []",
            resized=conditions.if_("object.spec != oldObject.spec", f"{_POD} + {_RESIZED}"),
            problems=(
                'variables.part == "resize" ? variables.resized : variables.part == "status" ? variables.marks : '
                "variables.marks + variables.wrong + variables.contradicting + variables.created"
            ),
        ),
    ]
    ours = _named(ours=names_ours("object.spec", rules.schedulers))
    return _refusing(f"{rules.name}-pods", resources, "Fail", ours, variables)


def _owners(rules: PolicyRules) -> Json:
    """An error in these expressions refuses nothing: objects of others are looked at as well."""
    ours = f"({names_ours('t.spec', rules.schedulers)} || ({names_none('t.spec')} && variables.managed))"
    plain = f"{texts('object.metadata')}.exists(k, k.startsWith({literal(names.JOB_PREFIX)}))"

    def sources(of: str) -> str:
        made = f"{_templates(of)}.filter(t, has(t.metadata) && {ours}).map(t, {source(_DRAFT, 't.metadata')})"
        return f"(variables.ours ? [{source(_OWNER, f'{of}.metadata')}] + {_jobs(of)} + {made} : [])"

    named = f"variables.templates.filter(t, {names_ours('t.spec', rules.schedulers)})"
    marks = f'{named}.filter(t, has(t.metadata)).map(t, {conditions.written("t.metadata", _DRAFT)}.join("; "))'
    node = conditions.node("t.spec", _DRAFT)
    placed = conditions.of_spec("t.spec", _DRAFT, rules.refused, "false")
    memory = (
        f"(has(t.metadata) ? {conditions.little_memory(_DRAFT, 't.metadata', 't.spec', 'object.metadata')} : []) + "
        f"{conditions.little_memory(_OWNER, 'object.metadata', 't.spec')}"
    )
    # What is wrong with a template stays as it is until the template changes.
    same = f"!({_NEW}) && variables.templates == {_templates('oldObject')}"
    variables = [
        *_named(
            trusted=_trusted(rules),
            managed=_is_managed(rules),
            templates=_templates("object"),
            ours=f"variables.templates.exists(t, {ours}) || (size(variables.templates) == 0 && {plain})",
        ),
        *_annotated(sources),
        *_named(
            marks=f"variables.trusted || ({same}) ? [] : {marks}.filter(x, x != '')",
            placed=f"{same} ? [] : {named}.map(t, ({memory} + {node} + {placed}).join('; ')).filter(x, x != '')",
            problems="variables.wrong + variables.contradicting + variables.marks + variables.placed",
        ),
    ]
    resources = [_resources(group, version, found, "CREATE", "UPDATE") for group, version, found in OWNERS]
    return _refusing(f"{rules.name}-owners", resources, "Ignore", [], variables)


def _annotated(sources: Callable[[str], str]) -> list[Json]:
    """Variables about annotations; `sources` gives those of an object."""
    return _named(
        words=conditions.words(),
        sources=sources("object"),
        sourcesBefore=f"{_NEW} ? [] : {sources('oldObject')}",
        wrong=f"variables.sources.map(s, {conditions.wrong()}).filter(x, x != '')",
        contradicting=f"variables.sources.map(s, {conditions.contradiction()}).filter(x, x != '')",
    )


def _templates(of: str) -> str:
    """The templates of pods in an object of any kind."""
    spec = f"dyn({of}).spec"
    sets = f"{spec}.leaderWorkerTemplate"
    leader, worker = (f"(has({sets}.{one}) ? [{sets}.{one}] : [])" for one in ("leaderTemplate", "workerTemplate"))
    return (
        f"(!has(dyn({of}).spec) ? [] : has({spec}.template) ? [{spec}.template] : "
        f"has({spec}.jobTemplate) ? [{spec}.jobTemplate.spec.template] : "
        f"has({spec}.replicatedJobs) ? {spec}.replicatedJobs.map(r, r.template.spec.template) : "
        f"has({sets}) ? {leader} + {worker} : [])"
    )


def _jobs(of: str) -> str:
    """The templates of Jobs in an object, which have annotations as well."""
    spec = f"dyn({of}).spec"
    cron = source(f'{_OWNER} + ", spec.jobTemplate"', f"{spec}.jobTemplate.metadata")
    part = source(f'{_OWNER} + ", spec.replicatedJobs " + r.name', "r.template.metadata")
    return (
        f"(!has(dyn({of}).spec) ? [] : has({spec}.jobTemplate) && has({spec}.jobTemplate.metadata) ? [{cron}] : "
        f"has({spec}.replicatedJobs) ? {spec}.replicatedJobs.filter(r, has(r.template.metadata)).map(r, {part}) : [])"
    )


def _trusted(rules: PolicyRules) -> str:
    """The user may write what only the bridge writes."""
    exact = [one for one in rules.accounts if not re.search(r"[*?\[]", one)]
    tests = [f"request.userInfo.username in {literal(exact)}"]
    tests += [
        f"request.userInfo.username.matches({literal(regular(one))})" for one in rules.accounts if one not in exact
    ]
    return f"({' || '.join(tests)})"


def regular(pattern: str) -> str:
    """A pattern of fnmatch for RE2, which has no atomic groups and another end of a text."""
    return "^" + re.sub(r"\\[zZ]$", "$", fnmatch.translate(pattern)).replace("(?>", "(?:")


def _is_managed(rules: PolicyRules) -> str:
    """The namespace of the request is managed. Conditions of policies do not see the namespace, variables do."""
    if not (rules.managed or rules.selector):
        return "false"
    chosen = " && ".join(map(_holds, rules.selector)) or "false"
    never = f"request.namespace in {literal(list(rules.never))}"
    return f"!({never}) && (request.namespace in {literal(list(rules.managed))} || ({chosen}))"


def _holds(one: Requirement) -> str:
    given = labels("namespaceObject.metadata")
    key, values = literal(one.key), literal(list(one.values))
    return {
        "In": f"({key} in {given} && {given}[{key}] in {values})",
        "NotIn": f"!({key} in {given} && {given}[{key}] in {values})",
        "Exists": f"({key} in {given})",
        "DoesNotExist": f"!({key} in {given})",
    }[one.operator]


# -- what is changed --------------------------------------------------------------------------------------------------


def _changing(name: str, ours: list[Json], patches: Sequence[str]) -> Json:
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"resourceRules": [_resources("", "v1", ["pods"], "CREATE")]},
        "matchConditions": ours,
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": one}} for one in patches],
    }
    return _object("MutatingAdmissionPolicy", name, spec)


def _managed(rules: PolicyRules) -> Json:
    owners = "object.metadata.ownerReferences"
    daemon = f'has({owners}) && {owners}.exists(o, o.kind == "DaemonSet")'
    take = (
        f"{names_none('object.spec')} ? "
        f'[JSONPatch{{op: "add", path: "/spec/schedulerName", value: {literal(rules.schedulers[0])}}}] : []'
    )
    free = (
        'has(object.spec.nodeName) && object.spec.nodeName != "" ? '
        '[JSONPatch{op: "remove", path: "/spec/nodeName"}] : []'
    )
    chosen = _named(open=_open(rules), elsewhere=f"!({daemon}) && !({literal(MIRROR)} in {texts('object.metadata')})")
    return _changing(f"{rules.name}-managed", chosen, (take, free))


def _tolerating(rules: PolicyRules, written: str) -> Json:
    taint = Taint.parse(written)
    means = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
    wanted = {"key": taint.key, **means, "effect": taint.effect}
    given, ours = "object.spec.tolerations", names_ours("object.spec", rules.schedulers)
    alike = " && ".join(f"has(t.{key}) && t.{key} == {literal(value)}" for key, value in wanted.items())
    fields = ", ".join(f"{key}: {literal(value)}" for key, value in wanted.items())
    none = f'(has({given}) ? [] : [JSONPatch{{op: "add", path: "/spec/tolerations", value: []}}])'
    added = f'[JSONPatch{{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{{{fields}}}}}]'
    patch = f"{ours} && !(has({given}) && {given}.exists(t, {alike})) ? {none} + {added} : []"
    return _changing(f"{rules.name}-toleration", _named(open=_open(rules)), (patch,))


def _open(rules: PolicyRules) -> str:
    """The pod is the bridge's, or may become so: it is looked at again then only if it was looked at before."""
    return f"({names_ours('object.spec', rules.schedulers)}) || {names_none('object.spec')}"


def _environment(rules: PolicyRules) -> Json:
    key, given = literal(names.JOB_PREFIX + names.ENVIRONMENT), texts("object.metadata")
    word = f"{given}[{key}].trim().lowerAscii()"
    asked = f'{key} in {given} ? {word} in ["true", "torch"] : {literal(rules.environment)}'
    torch = f'{key} in {given} && {word} == "torch"'
    ours = names_ours("object.spec", rules.schedulers)
    patches = [
        _adding(sort, one, f"{ours} && {torch}" if one.torch else ours)
        for sort in ("containers", "initContainers")
        for one in reversed(VARIABLES)
    ]
    return _changing(f"{rules.name}-environment", _named(open=_open(rules), asked=asked), patches)


def _adding(sort: str, one: Variable, condition: str) -> str:
    """The patch that adds a variable in front of the others of each container that lacks it.

    Each operation adds one object: the API server fails at a patch whose value is a list of objects.
    """
    env = f"object.spec.{sort}[i].env"
    numbers = f"{list(range(MOST_CONTAINERS))}.filter(i, i < size(object.spec.{sort}))"
    there = f"({condition} && has(object.spec.{sort}) ? {numbers} : [])"
    path = f'"/spec/{sort}/" + string(i) + "/env'
    none = f'{there}.filter(i, !has({env})).map(i, JSONPatch{{op: "add", path: {path}", value: []}})'
    lacks = f"!has({env}) || !{env}.exists(e, e.name == {literal(one.name)})"
    added = f'JSONPatch{{op: "add", path: {path}/0", value: {_value(sort, one)}}}'
    return f"{none} + {there}.filter(i, {lacks}).map(i, {added})"


def _value(sort: str, one: Variable) -> str:
    kind = f"Object.spec.{sort}.env"
    if one.fixed:
        return f"{kind}{{name: {literal(one.name)}, value: {literal(one.source)}}}"
    reference = f"{kind}.valueFrom.fieldRef{{fieldPath: {literal(one.field)}}}"
    return f"{kind}{{name: {literal(one.name)}, valueFrom: {kind}.valueFrom{{fieldRef: {reference}}}}}"
