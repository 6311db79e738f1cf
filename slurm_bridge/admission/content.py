"""What is wrong with an object, whatever it was before: the words are those of the scheduler, all of them at once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from slurm_bridge.admission import drafts, templates
from slurm_bridge.admission.drafts import Maker
from slurm_bridge.admission.review import AdmissionRequest, part
from slurm_bridge.admission.rules import AdmissionRules
from slurm_bridge.hooks import honoured_demands
from slurm_bridge.model import kinds, names
from slurm_bridge.model.features import FeatureDemand
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import annotations, demands, translator
from slurm_bridge.workloads.draft import random_name

#: More than any controller writes.
MOST_OWNERS: Final = 16
#: Of one object. What is behind them is looked at when pods are made of it.
MOST_TEMPLATES: Final = 100

Json = Mapping[str, Any]


def of_pod(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> tuple[str, ...]:
    """Everything that is wrong with a pod of the bridge."""
    owners = part(manifest, "metadata").get("ownerReferences")
    count = len(owners) if isinstance(owners, list) else 0
    many = (
        (f"{request.about}: has {count} owner references; at most {MOST_OWNERS} are allowed",)
        if count > MOST_OWNERS
        else ()
    )
    try:
        pod = drafts.read(kinds.PODS, manifest, request.namespace, request.called)
    except drafts.UnreadableManifest as problem:
        return (str(problem), *many)
    return (*_of_draft(pod, rules), *many)


def of_owner(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> tuple[str, ...]:
    """Everything that is wrong with an object that makes or groups pods of the bridge: itself and its templates."""
    kind = drafts.kind_of(request.kind.group, request.kind.kind)
    found = list(_annotations(request.about, part(manifest, "metadata")))
    try:
        maker = Maker(kind=kind, object=drafts.read(kind, manifest, request.namespace, request.called))
        for template in ours(request, manifest, rules)[:MOST_TEMPLATES]:
            found += _of_template(request, template, maker, rules)
    except drafts.UnreadableManifest as problem:
        found.append(str(problem))
    return tuple(dict.fromkeys(found))


def ours(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> tuple[templates.PodTemplate, ...]:
    """The templates of pods of the bridge in an object."""
    group, kind = request.kind.group, request.kind.kind
    daemons = kind == kinds.DAEMONSETS.kind
    every = tuple(templates.of(group, kind, manifest))
    open_too = not daemons and any(rules.names_none(one.spec) for one in every) and rules.managed(request.namespace)
    return tuple(one for one in every if rules.names_ours(one.spec) or (open_too and rules.names_none(one.spec)))


def ignored(request: AdmissionRequest, manifest: Json, rules: AdmissionRules) -> str:
    """What a pod asks for that no hook honours and that is ignored by configuration; "" where nothing is."""
    workload = drafts.workload_of(drafts.read(kinds.PODS, manifest, request.namespace, request.called), rules.options)
    lacking = () if isinstance(workload, str) else _lacking(demands.of(workload), rules)
    return honoured_demands.ignored([one for one in lacking if not _refused(one, rules)])


def _of_template(
    request: AdmissionRequest, template: templates.PodTemplate, maker: Maker, rules: AdmissionRules
) -> Iterator[str]:
    if template.job is not None:
        around = f"{request.about}, {template.where.removesuffix('.spec.template')}"
        yield from _annotations(around, part(template.job, "metadata"))
        if maker.kind is kinds.CRONJOBS:
            name = random_name(request.called)
            job = drafts.read(kinds.JOBS, template.job, request.namespace, name)
            maker = Maker(kind=kinds.JOBS, object=job)
    if template.spec.get("nodeName") and not rules.managed(request.namespace):
        yield f"{request.about}, {template.where}: {node_named(template.spec)}"
    yield from _of_draft(drafts.from_template(template, maker), rules, maker)


def node_named(spec: Json) -> str:
    """The words about a node beside a scheduler of the bridge."""
    return (
        f"spec.nodeName cannot be set beside schedulerName {spec.get('schedulerName')}, whose pods get their node from"
        " Slurm: leave it out, or use a nodeSelector"
    )


def _of_draft(pod: Pod, rules: AdmissionRules, maker: Maker | None = None) -> tuple[str, ...]:
    workload = drafts.workload_of(pod, rules.options, maker)
    if isinstance(workload, str):
        # The group is wrong; what is wrong with the pod itself is said as well.
        _, wrong = annotations.read(f"Pod {'/'.join(pod.key)}", pod.metadata.annotations)
        return (*((workload,) if workload else ()), *wrong)
    lacking = [one for one in _lacking(demands.of(workload), rules) if _refused(one, rules)]
    return (*translator.problems(workload, rules.translation), *map(honoured_demands.sentence, lacking))


def _lacking(asked: Iterable[FeatureDemand], rules: AdmissionRules) -> tuple[FeatureDemand, ...]:
    """Without a view of the cluster, demands that depend on a claim or a class of devices are left to the scheduler."""
    return honoured_demands.missing(asked, rules.honoured, {})


def _refused(one: FeatureDemand, rules: AdmissionRules) -> bool:
    return rules.strict or one.feature in honoured_demands.NEVER_IGNORED


def _annotations(subject: str, metadata: Json) -> Iterator[str]:
    """What is wrong with the annotations of an object that is no pod."""
    texts = {key: str(text) for key, text in part(metadata, "annotations").items()}
    said, wrong = annotations.read(subject, texts)
    yield from wrong
    yield from annotations.contradictions({one.row.key: one for one in said})


def annotated(manifest: Json) -> bool:
    """Whether the object has an annotation for its jobs."""
    return any(str(key).startswith(names.JOB_PREFIX) for key in part(manifest, "metadata", "annotations"))
