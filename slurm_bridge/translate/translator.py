"""A workload becomes a job request: defaults, then what its pods say, then the annotations; the last one counts.

Every value keeps its source, and all that is wrong is reported at once. The request of a gang is written here as if
each pod were a task as large as the largest; its form is chosen when its nodes are known.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from slurm_bridge.model import marks, quantity
from slurm_bridge.model.features import FeatureDemand
from slurm_bridge.model.job import Gres, JobRequest, Memory
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate import (
    annotations,
    claims,
    class_resources,
    demands,
    device_claims,
    gres,
    members,
    resources,
    shapes,
    sizes,
)
from slurm_bridge.translate.annotations import ParsedAnnotation
from slurm_bridge.translate.claims import ClaimedValue
from slurm_bridge.translate.members import EqualPods
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.shapes import Form, Shape


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One field of the request (or one hint) for users: its value and its source.

    `key` is the annotation's, without its prefix, where one set it; `subject` is the object that carries it.
    """

    field: str
    value: str
    source: str
    key: str = ""
    subject: str = ""


class RequestTemplate:
    """What the requests of equal workloads have in common; each of them names the same one."""


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """The request, the source of each of its values, and the annotations for the hooks.

    `shapes` are the pods by what they ask for; `told` is what an event says of the form. `node_memory_mib` is the most
    that pods of a gang may take of a node together, None for all of it. `demands` are the fields that some hook has to
    honour, `devices` those of the ResourceClaims of its pods, by uid, and `of_classes` their extended resources behind
    which DeviceClasses are, with the GRES of each. `shared_claim`: several pods use it, so all have to be on one node.
    `template` is that of all equal workloads, None where it is not known which are equal.
    """

    request: JobRequest
    values: tuple[Value, ...]
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    form: Form = Form.SINGLE
    told: str = ""
    one_per_node: bool = False
    node_memory_mib: int | None = None
    demands: tuple[FeatureDemand, ...] = ()
    devices: Mapping[str, tuple[Gres, ...]] = dataclasses.field(default_factory=dict)
    of_classes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    shared_claim: str = ""
    template: RequestTemplate | None = None


def translate(workload: Workload, rules: Rules) -> Translated | Reject:
    """The placeholder for the pods of this workload, before Slurm's limits and the hooks are applied."""
    gang = workload.gang is not None
    absurd = sizes.problem(workload.pods)
    if absurd:
        return Reject(reason="TooManyTerms", message=absurd)
    devices, of_classes = devices_of(workload, rules), class_gres_of(workload, rules)
    if of_classes:
        rules = dataclasses.replace(rules, gres_names={**of_classes, **rules.gres_names})
    said, groups, wrong_words, wrong_amounts = _examined(workload, rules, devices, of_classes)
    if wrong_words:
        return Reject(reason="InvalidAnnotation", message=annotations.together([*wrong_words, *wrong_amounts]))
    if wrong_amounts:
        return Reject(reason="InvalidResources", message=annotations.together(wrong_amounts))
    parts = rules.parts_of(workload) if gang else {}
    found = members.shapes(groups, lambda group: claims.needs_of(group, said, rules), parts)
    claimed = [
        *claims.identity(workload, rules),
        *claims.defaults(rules),
        *(
            claims.largest(groups, found, rules, workload.deadline)
            if gang
            else claims.derived(groups[0], rules, workload.deadline)
        ),
        *claims.annotated(said, gang=gang),
    ]
    settled = _settled(claimed, found, gang=gang)
    shared = next(iter(sorted(device_claims.shared(workload.pods))), None) if gang else None
    return dataclasses.replace(
        settled,
        demands=demands.of(workload),
        devices=devices,
        of_classes=of_classes,
        shared_claim="/".join(shared) if shared is not None else "",
    )


def devices_of(workload: Workload, rules: Rules) -> Mapping[str, tuple[Gres, ...]]:
    """What the ResourceClaims of its pods, by uid, ask Slurm for; raises TryLater while that is being worked out."""
    claiming = [pod for pod in workload.pods if pod.spec.resource_claims]
    if not claiming:
        return {}
    said = _annotated(workload)[0].get("partition")
    return rules.devices_of(workload, rules.partition if said is None else str(said.value))


def class_gres_of(workload: Workload, rules: Rules) -> Mapping[str, str]:
    """The extended resources of DeviceClasses that its pods ask for, and what one of each is in Slurm."""
    known = rules.class_gres()
    asked = {name for pod in workload.pods for name in class_resources.names(pod) if name in known} if known else ()
    return {name: known[name] for name in sorted(asked)}


def problems(workload: Workload, rules: Rules) -> tuple[str, ...]:
    """Everything for which `translate` rejects the workload, one sentence each; empty where it does not.

    For pods that are not scheduled afterwards: nothing of them is kept.
    """
    absurd = sizes.problem(workload.pods)
    if absurd:
        return (absurd,)
    _, _, wrong_words, wrong_amounts = _examined(workload, rules, {}, ())
    resources.forget(workload.pods)
    return (*wrong_words, *wrong_amounts)


def hints(workload: Workload) -> Mapping[str, str]:
    """The valid annotations for the hooks, also of a workload that is otherwise wrong."""
    said, _ = _annotated(workload)
    return {one.row.field: show(one.value) for one in said.values() if one.row.hint}


def changed(translated: Translated, field: str, value: object, why: str, shown: str = "") -> Translated:
    """With another value for a field of the request; the source names the earlier one and the reason `why`."""
    request = frozen_records.replaced(translated.request, **{field: value})
    values = _sourced(translated.values, field, shown or show(value), why)
    return frozen_records.replaced(translated, request=request, values=values)


def numbered(translated: Translated, numbers: Mapping[str, tuple[int, str]]) -> Translated:
    """With several other numbers at once, each with its reason, because copying a request takes time."""
    request = frozen_records.replaced(translated.request, **{field: number for field, (number, _) in numbers.items()})
    values = translated.values
    for field, (number, why) in numbers.items():
        values = _sourced(values, field, str(number), why)
    return frozen_records.replaced(translated, request=request, values=values)


def _sourced(values: tuple[Value, ...], field: str, shown: str, why: str) -> tuple[Value, ...]:
    """With another value for a field, at the end."""
    before = next((one for one in values if one.field == field), None)
    if before is None:
        return (*values, Value(field=field, value=shown, source=why))
    source = f"{before.source}; {why}" if before.source else why
    after = Value(field=field, value=shown, source=source, key=before.key, subject=before.subject)
    return (*[one for one in values if one.field != field], after)


def show(value: object) -> str:
    """A value of the request for users."""
    match value:
        case bool():
            return str(value).lower()
        case Memory():
            return f"{value.mib} MiB"
        case tuple():
            return gres.write(one for one in value if isinstance(one, Gres))
        case marks.Owner():
            return f"{value.kind} {value.namespace}/{value.name} {value.uid}"
    return str(value)


_Examined = tuple[Mapping[str, ParsedAnnotation], tuple[EqualPods, ...], tuple[str, ...], tuple[str, ...]]


def _examined(
    workload: Workload, rules: Rules, devices: Mapping[str, tuple[Gres, ...]], of_classes: Collection[str]
) -> _Examined:
    """The annotations that count, what the pods ask for, and what is wrong with the annotations and the amounts."""
    said, wrong_words = _annotated(workload)
    groups, wrong_amounts = members.groups(workload.pods, limits=rules.count == "limits", devices=devices)
    wrong_amounts += tuple(
        f"{group.subject}: {wrong}" for group in groups for wrong in gres.too_many(group.amounts, rules.gres_names)
    )
    wrong_words += (
        *annotations.contradictions(said),
        *_too_many_nodes(workload, said),
        *_too_little(said, groups),
        *_twice(said, groups, of_classes),
    )
    return said, groups, wrong_words, wrong_amounts


def _annotated(workload: Workload) -> tuple[Mapping[str, ParsedAnnotation], tuple[str, ...]]:
    """The annotation that wins for each key; a wrong value is a problem even where another annotation wins."""
    strongest: dict[str, ParsedAnnotation] = {}
    problems: tuple[str, ...] = ()
    for source in workload.sources:
        subject = f"{source.kind} {workload.root.namespace}/{source.name}"
        said, wrong = annotations.read(subject, source.annotations)
        strongest.update((one.row.key, one) for one in said)
        problems += wrong
    return strongest, problems


def _too_many_nodes(workload: Workload, said: Mapping[str, ParsedAnnotation]) -> Iterator[str]:
    """min-nodes above the number of pods, since each pod has one node."""
    one, gang = said.get("min-nodes"), workload.gang
    if one is None or not isinstance(one.value, int):
        return
    if gang is None and one.value != 1:
        yield one.problem("one pod cannot span nodes: use 1")
    elif gang is not None and one.value > (most := max(gang.complete_at, len(workload.pods))):
        yield one.problem(f"every node takes at least one of the {most} pods: use at most {most}")


def _too_little(said: Mapping[str, ParsedAnnotation], groups: Sequence[EqualPods]) -> Iterator[str]:
    """mem-per-node below the request of a pod, which the kubelet counts; cpu-per-task below its ResourceClaims."""
    requested = [group.amounts.get("memory", Fraction(0)) for group in groups]
    wanted = quantity.mebibytes(max(requested, default=Fraction(0)))
    one = said.get("mem-per-node")
    if one and isinstance(one.value, Memory) and one.value.mib < wanted:
        what = "the pod requests" if len(groups) == 1 else "the largest of the pods requests"
        yield one.problem(f"use at least the memory that {what}, {wanted}Mi")
    each, claimed = said.get("cpu-per-task"), max((group.cpus for group in groups), default=0)
    if each and isinstance(each.value, int) and each.value < claimed:
        yield each.problem(f"use at least what the ResourceClaims of a pod ask for, {claimed}")


def _twice(
    said: Mapping[str, ParsedAnnotation], groups: Sequence[EqualPods], of_classes: Collection[str]
) -> Iterator[str]:
    """The annotation gres, which replaces all devices of a pod, beside ResourceClaims, which need theirs."""
    claims = (group for group in groups if group.devices or any(group.amounts.get(name) for name in of_classes))
    one, claiming = said.get("gres"), next(claims, None)
    if one is not None and claiming is not None:
        yield one.problem(f"{claiming.subject} has ResourceClaims, and Slurm is asked for what they say: leave it out")


def _settled(claimed: Iterable[ClaimedValue], found: tuple[Shape, ...], *, gang: bool) -> Translated:
    chosen = {claim.field: claim for claim in claimed}
    for_hooks = {row.field for row in annotations.ANNOTATIONS if row.hint}
    beside = {claims.NODE_MEMORY, *for_hooks}
    form = Form.SINGLE
    if gang:
        form = Form.TASKS if len(shapes.kinds(found)) == 1 else Form.BOUND
    node_memory, apart = chosen.get(claims.NODE_MEMORY), chosen.get(claims.ONE_PER_NODE)
    return Translated(
        request=JobRequest(**{field: claim.value for field, claim in chosen.items() if field not in beside}),
        values=tuple(
            Value(field=claim.field, value=show(claim.value), source=claim.source, key=claim.key, subject=claim.subject)
            for claim in chosen.values()
        ),
        hints={field: show(claim.value) for field, claim in chosen.items() if field in for_hooks},
        shapes=found,
        form=form,
        one_per_node=gang and apart is not None and apart.value,
        node_memory_mib=node_memory.value.mib if node_memory else None,
    )
