"""A workload becomes a job request: defaults, then what the pod itself says, then the annotations; the last one counts.

Every value keeps where it came from, and everything that is wrong is told at once.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from slurm_bridge.model import marks, quantity
from slurm_bridge.model.job import Gres, JobRequest, Memory
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import annotations, forms, gres, resources
from slurm_bridge.translate.annotations import Said
from slurm_bridge.translate.rules import Rules

#: Any Slurm user may read a job's comment; longer ones only make lists unreadable.
MOST_COMMENT = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One field of the request (or one hint) for people: what it is and where it came from.

    `key` is the annotation's, without its prefix, where one set it; `subject` is the object that carries it.
    """

    field: str
    value: str
    source: str
    key: str = ""
    subject: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """The request, where each of its values came from, and what the annotations say to the hooks."""

    request: JobRequest
    values: tuple[Value, ...]
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class _Claim:
    """A value that holds unless a later layer says otherwise."""

    field: str
    value: Any
    source: str
    key: str = ""
    subject: str = ""

    def shown(self) -> Value:
        return Value(field=self.field, value=show(self.value), source=self.source, key=self.key, subject=self.subject)


def translate(workload: Workload, rules: Rules) -> Translated | Reject:
    """The placeholder for this workload's one pod, before Slurm's own facts and the hooks have their say."""
    (pod,) = workload.pods
    said, wrong_words = _listen(workload)
    needs, wrong_amounts = _needs(pod)
    wrong_words += (*annotations.contradictions(said), *_unfit_for_one_pod(said), *_too_little(said, needs))
    if wrong_words:
        return Reject(reason="InvalidAnnotation", message=annotations.together([*wrong_words, *wrong_amounts]))
    if wrong_amounts:
        return Reject(reason="InvalidResources", message=annotations.together(wrong_amounts))
    return _settled([*_identity(workload, rules), *_defaults(rules), *_derived(pod, needs, rules), *_annotated(said)])


def show(value: object) -> str:
    """A value of the request for people."""
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


def _listen(workload: Workload) -> tuple[Mapping[str, Said], tuple[str, ...]]:
    """The strongest voice for each key; a wrong value is a problem although a stronger voice overrules it."""
    strongest: dict[str, Said] = {}
    problems: tuple[str, ...] = ()
    for source in workload.sources:
        subject = f"{source.kind} {workload.root.namespace}/{source.name}"
        said, wrong = annotations.read(subject, source.annotations)
        strongest.update((one.row.key, one) for one in said)
        problems += wrong
    return strongest, problems


def _needs(pod: Pod) -> tuple[Mapping[str, Fraction], tuple[str, ...]]:
    try:
        needs = resources.requests_of(pod)
    except ValueError as error:
        return {}, (f"{_subject(pod)}: {error}",)
    cpus = quantity.whole(needs.get("cpu", Fraction(0)))
    if cpus > forms.MOST_SHORT:
        return needs, (f"{_subject(pod)}: requests {cpus} cpus, allowed are at most {forms.MOST_SHORT}",)
    return needs, ()


def _subject(pod: Pod) -> str:
    return f"Pod {pod.metadata.namespace}/{pod.metadata.name}"


def _unfit_for_one_pod(said: Mapping[str, Said]) -> Iterator[str]:
    """What only several pods together could do; the user is told what one pod can."""
    instead = "one pod cannot span nodes and every pod gets a placeholder of its own"
    if "gang" in said and said["gang"].value is True:
        yield said["gang"].problem(f"gangs are not available, {instead}: allowed is false")
    if "min-nodes" in said and said["min-nodes"].value != 1:
        yield said["min-nodes"].problem(f"{instead}: allowed is 1")


def _too_little(said: Mapping[str, Said], needs: Mapping[str, Fraction]) -> Iterator[str]:
    """The kubelet counts the pod's own request, whatever Slurm was told."""
    wanted = quantity.mebibytes(needs.get("memory", Fraction(0)))
    one = said.get("mem-per-node")
    if one and isinstance(one.value, Memory) and one.value.mib < wanted:
        yield one.problem(f"allowed is at least the memory that the pod requests, {wanted}Mi")


def _identity(workload: Workload, rules: Rules) -> Iterator[_Claim]:
    root, controller = workload.root, workload.controller
    owner = marks.Owner(
        cluster=rules.cluster_id, kind=root.kind, namespace=root.namespace, name=root.name, uid=root.uid
    )
    yield _Claim("name", workload.job_name, f"the name of {controller or root}")
    yield _Claim("owner", owner, str(root))
    yield _Claim("comment", _comment(workload), str(root))
    yield _Claim("tasks", 1, "a pod is one task")


def _comment(workload: Workload) -> str:
    """For people who look at Slurm's side; never read by us."""
    root, controller = workload.root, workload.controller
    of = f", {controller}" if controller else ""
    plain = f"{root.namespace}/{root.name} ({root.kind}{of})".encode("ascii", "replace").decode()
    text = "".join(letter if letter.isprintable() else "?" for letter in plain)
    return text if len(text) <= MOST_COMMENT else f"{text[: MOST_COMMENT - 3]}..."


def _defaults(rules: Rules) -> Iterator[_Claim]:
    """The default group stays under another user too: without one, Slurm takes the group of our own token."""
    values: Mapping[str, tuple[str, object]] = {
        "partition": ("partition", rules.partition),
        "account": ("account", rules.account),
        "qos": ("qos", rules.qos),
        "gres": ("gres", gres.parse(rules.gres) if rules.gres else None),
        "timelimit": ("time_limit_minutes", rules.timelimit),
        "exclusive": ("exclusive", rules.exclusive or None),
        "mcs_label": ("mcs_label", rules.mcs_label),
        "cpus": ("cpus_per_task", rules.cpus),
        "memory": ("memory", Memory(mib=rules.memory_mib)),
        "user": ("user", rules.user),
        "group": ("group", rules.group),
    }
    for setting, (field, value) in values.items():
        if value is not None:
            yield _Claim(field, value, f"setting defaults.{setting}")


def _derived(pod: Pod, needs: Mapping[str, Fraction], rules: Rules) -> Iterator[_Claim]:
    """What is not asked for, or zero, is left to the defaults: Slurm takes no memory for all of it."""
    requests = f"requests of {_subject(pod)}"
    if cpu := needs.get("cpu"):
        yield _Claim("cpus_per_task", quantity.whole(cpu), requests)
    if memory := needs.get("memory"):
        yield _Claim("memory", Memory(mib=quantity.mebibytes(memory)), requests)
    if devices := gres.derive(needs, rules.gres_names):
        yield _Claim("gres", devices, requests)
    seconds = pod.spec.active_deadline_seconds or 0
    if seconds > 0:
        minutes = min(-(-seconds // 60), forms.MOST_MINUTES)
        yield _Claim("time_limit_minutes", minutes, f"activeDeadlineSeconds of {_subject(pod)}")


def _annotated(said: Mapping[str, Said]) -> Iterator[_Claim]:
    for key, one in said.items():
        yield _Claim(one.row.field, one.value, str(one), key, one.subject)


def _settled(claims: Iterable[_Claim]) -> Translated:
    chosen = {claim.field: claim for claim in claims}
    hints = {row.field for row in annotations.ANNOTATIONS if row.hint}
    fields = {field: claim.value for field, claim in chosen.items() if field not in hints}
    return Translated(
        request=JobRequest(**fields),
        values=tuple(claim.shown() for claim in chosen.values()),
        hints={field: show(claim.value) for field, claim in chosen.items() if field in hints},
    )
