"""The annotations that users set on pods and on the objects that make them: one table row for each key.

A row names the field of `JobRequest` (or the hint for the hooks) that its value becomes. Messages, the documentation
and the checks at admission follow from the rows.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping

from slurm_bridge.model import names
from slurm_bridge.model import texts as text_
from slurm_bridge.translate import forms
from slurm_bridge.translate.forms import ValueForm

#: Problems in one message. A longer one does not help users, and every copy of the pod keeps its conditions.
MOST_PROBLEMS = 50

#: How many unknown keys of an object are compared with known ones, because that takes long.
MOST_HINTS = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationRow:
    """One key. `guarded`: only where the policy allows it. `hint`: no field of the job; what it is then `becomes`."""

    key: str
    field: str
    form: ValueForm
    example: str
    note: str
    guarded: bool = False
    hint: bool = False
    becomes: str = "for hooks"

    @property
    def annotation(self) -> str:
        """The key with its prefix, as in a manifest."""
        return names.JOB_PREFIX + self.key


ANNOTATIONS: tuple[AnnotationRow, ...] = (
    AnnotationRow(
        key="account",
        field="account",
        form=forms.NAME,
        example="physics",
        note="the account that is charged",
        guarded=True,
    ),
    AnnotationRow(
        key="constraints",
        field="constraints",
        form=forms.FEATURES,
        example="rack1&nvme",
        note="required features of nodes; Slurm checks them",
    ),
    AnnotationRow(
        key="cpu-per-task",
        field="cpus_per_task",
        form=forms.CPUS,
        example="500m",
        note="a pod is one task; replaces the pod's cpu requests",
    ),
    AnnotationRow(
        key="exclusive",
        field="exclusive",
        form=forms.BOOLEAN,
        example='"true"',
        note="the whole node instead of a share of it",
    ),
    AnnotationRow(
        key="gres",
        field="gres",
        form=forms.GRES,
        example="GPU:V100:2",
        note="replaces the devices that the pod requests; upper and lower case are the same",
    ),
    AnnotationRow(
        key="group-id",
        field="group",
        form=forms.PERSON,
        example='"2000"',
        note="the group that the job belongs to",
        guarded=True,
    ),
    AnnotationRow(
        key="user-id",
        field="user",
        form=forms.PERSON,
        example="alice",
        note="the user that the job belongs to",
        guarded=True,
    ),
    AnnotationRow(
        key="job-name",
        field="name",
        form=forms.PRINTABLE,
        example="research",
        note="default: the name of the object that the pod belongs to",
    ),
    AnnotationRow(
        key="licenses",
        field="licenses",
        form=forms.LICENSES,
        example="matlab:1",
        note="licenses that Slurm counts",
    ),
    AnnotationRow(
        key="max-nodes",
        field="maximum_nodes",
        form=forms.COUNT,
        example='"3"',
        note="the largest number of nodes, at least min-nodes; Slurm uses as few as possible",
    ),
    AnnotationRow(
        key="min-nodes",
        field="minimum_nodes",
        form=forms.COUNT,
        example='"1"',
        note="the smallest number of nodes, at most one for each pod; 2 or more makes a Job a gang",
    ),
    AnnotationRow(
        key="mem-per-node",
        field="memory",
        form=forms.MEMORY,
        example="8Gi",
        note="replaces the pod's memory request, and must not be less; "
        "a node gets as many members of a gang as fit into it",
    ),
    AnnotationRow(
        key="partition",
        field="partition",
        form=forms.NAMES,
        example="debug",
        note="of several, Slurm uses the one in which the job starts first",
    ),
    AnnotationRow(
        key="priority",
        field="priority",
        form=forms.PRIORITY,
        example='"5000"',
        note="replaces the priority that Slurm calculates; it does not grow with age",
        guarded=True,
    ),
    AnnotationRow(key="qos", field="qos", form=forms.NAME, example="high", note="quality of service", guarded=True),
    AnnotationRow(
        key="reservation",
        field="reservation",
        form=forms.NAME,
        example="course",
        note="a reservation that the job may use",
        guarded=True,
    ),
    AnnotationRow(key="wckey", field="wckey", form=forms.NAME, example="thesis", note="for accounting", guarded=True),
    AnnotationRow(
        key="timelimit",
        field="time_limit_minutes",
        form=forms.MINUTES,
        example='"90"',
        note="in minutes; overrides activeDeadlineSeconds of the pods and of their Job",
    ),
    AnnotationRow(
        key="gang",
        field="gang",
        form=forms.BOOLEAN,
        example='"true"',
        note="on a Job or JobSet: its pods start together, or not at all",
        hint=True,
        becomes="one placeholder for all pods",
    ),
    AnnotationRow(
        key="member-lost",
        field="member-lost",
        form=forms.MEMBER_LOST,
        example="restart-group",
        note="when a pod of a running gang is lost, the others continue and it is replaced, or all pods start anew",
        hint=True,
        becomes="what the bridge does",
    ),
    AnnotationRow(
        key="one-per-node",
        field="one-per-node",
        form=forms.BOOLEAN,
        example='"true"',
        note="one pod of a gang on each node; a required anti-affinity of the pods to each other does the same",
        hint=True,
        becomes="as many nodes as pods",
    ),
    AnnotationRow(
        key=names.ENVIRONMENT,
        field=names.ENVIRONMENT,
        form=forms.ENVIRONMENT,
        example='"true"',
        note="variables such as SLURM_JOB_ID, SLURM_PROCID and MASTER_ADDR; torch adds RANK, WORLD_SIZE and LOCAL_RANK",
        hint=True,
        becomes="annotations of the pods",
    ),
    AnnotationRow(
        key="node-sort-policy",
        field="node-sort-policy",
        form=forms.NAME,
        example="binpacking",
        note="how hooks rank nodes",
        hint=True,
    ),
    AnnotationRow(
        key="queue",
        field="queue",
        form=forms.NAME,
        example="root.research",
        note="the queue of the workload, for the hook yunikorn",
        hint=True,
    ),
)

BY_KEY: Mapping[str, AnnotationRow] = {row.key: row for row in ANNOTATIONS}

#: Keys that users may use only where the policy allows it.
GUARDED: frozenset[str] = frozenset(row.key for row in ANNOTATIONS if row.guarded)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAnnotation:
    """One annotation with a valid value: the object that has it, its text, and its value."""

    row: AnnotationRow
    subject: str
    text: str
    value: object

    def __str__(self) -> str:
        return f'annotation {self.row.annotation}="{text_.shown(self.text)}" of {self.subject}'

    def problem(self, words: str) -> str:
        """A message about this annotation, in the form of all such messages."""
        return _problem(self.subject, self.row.key, self.text, words)


def read(subject: str, annotations: Mapping[str, str]) -> tuple[tuple[ParsedAnnotation, ...], tuple[str, ...]]:
    """The annotations of an object for its jobs, and everything that is wrong with them; `subject` as `Job ns/web`."""
    prefix = names.JOB_PREFIX
    ours = sorted((name.removeprefix(prefix), text) for name, text in annotations.items() if name.startswith(prefix))
    said: list[ParsedAnnotation] = []
    problems: list[str] = []
    for number, (key, text) in enumerate(ours):
        if len(problems) >= MOST_PROBLEMS:
            problems.append(f"{subject}: {len(ours) - number} further annotations were not read")
            break
        row, value = BY_KEY.get(key), text.strip()
        if row is None:
            hint = f", {_hint(key)}" if len(problems) < MOST_HINTS else ""
            problems.append(_problem(subject, key, text, f"unknown key{hint}"))
            continue
        try:
            said.append(ParsedAnnotation(row=row, subject=subject, text=value, value=row.form.parse(value)))
        except ValueError:
            problems.append(_problem(subject, key, text, f"use {row.form.words}"))
    return tuple(said), tuple(problems)


def contradictions(said: Mapping[str, ParsedAnnotation]) -> Iterable[str]:
    """Annotations that are valid one by one and contradict each other."""
    least, most = said.get("min-nodes"), said.get("max-nodes")
    if least and most and _number(least) > _number(most):
        yield least.problem(f"use at most max-nodes, which is {most.value} ({most})")


def together(problems: Iterable[str]) -> str:
    """The problems in one message."""
    listed = list(problems)
    more = [f"and {len(listed) - MOST_PROBLEMS} more"] if len(listed) > MOST_PROBLEMS else []
    return "; ".join([*listed[:MOST_PROBLEMS], *more])


def _number(one: ParsedAnnotation) -> int:
    return one.value if isinstance(one.value, int) else 0


def _problem(subject: str, key: str, text: str, words: str) -> str:
    return f'{subject}: annotation {names.JOB_PREFIX}{key}="{text_.shown(text)}": {words}'


def _hint(key: str) -> str:
    near = difflib.get_close_matches(key.lower(), BY_KEY, n=1)
    return f"did you mean {near[0]}?" if near else f"use one of {', '.join(sorted(BY_KEY))}"
