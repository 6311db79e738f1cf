"""The values of a request by layer: each layer claims fields, and of several claims the last one counts."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from slurm_bridge.model import marks, names, quantity, texts
from slurm_bridge.model.job import Memory
from slurm_bridge.model.workload import Deadline, Workload
from slurm_bridge.translate import apart, forms, gres, members
from slurm_bridge.translate import shapes as shaping
from slurm_bridge.translate.annotations import ParsedAnnotation
from slurm_bridge.translate.members import EqualPods
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.shapes import Needs, Shape

#: Letters of the comment of a job; longer ones would make lists unreadable.
MOST_COMMENT = 200

#: Of a gang, this is no amount of the request: it limits how many pods share a node.
NODE_MEMORY = "mem-per-node"

#: Annotations that replace what each pod asks for.
OF_EACH = ("cpu-per-task", "gres")

ONE_PER_NODE = "one-per-node"


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimedValue:
    """A value that holds unless a later layer says otherwise."""

    field: str
    value: Any
    source: str
    key: str = ""
    subject: str = ""


def identity(workload: Workload, rules: Rules) -> Iterator[ClaimedValue]:
    """The owner of the job, and its number of tasks."""
    root, controller = workload.root, workload.controller
    owner = marks.Owner(
        cluster=rules.cluster_id, kind=root.kind, namespace=root.namespace, name=root.name, uid=root.uid
    )
    # An owner reference may name anything, and Slurm shows names to administrators as they are.
    yield ClaimedValue(
        "name", texts.plain(workload.job_name[: forms.MOST_LETTERS]), texts.plain(f"the name of {controller or root}")
    )
    yield ClaimedValue("owner", owner, str(root))
    # For users of Slurm; the bridge never reads it.
    of = f", {controller}" if controller and controller != root else ""
    comment = texts.plain(f"{root.namespace}/{root.name} ({root.kind}{of})".encode("ascii", "replace").decode())
    if len(comment) > MOST_COMMENT:
        comment = f"{comment[: MOST_COMMENT - 3]}..."
    yield ClaimedValue("comment", comment, str(root))
    if workload.gang is None:
        yield ClaimedValue("tasks", 1, "a pod is one task")
    else:
        yield ClaimedValue("tasks", len(workload.pods), f"pods of {root}, each is one task")


def defaults(rules: Rules) -> Iterator[ClaimedValue]:
    """The configured defaults. The default group holds for other users, too: Slurm would take that of our token."""
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
        names.ENVIRONMENT: (names.ENVIRONMENT, rules.environment or None),
    }
    for setting, (field, value) in values.items():
        if value is not None:
            yield ClaimedValue(field, value, f"setting defaults.{setting}")


def derived(group: EqualPods, rules: Rules, job: Deadline | None = None) -> Iterator[ClaimedValue]:
    """Of a single pod. The defaults hold for what it does not request: Slurm takes no memory for all of it."""
    requests = f"{rules.count} of {group.subject}"
    for field, value in _asked(group, rules).items():
        yield ClaimedValue(field, value, requests)
    yield from _deadline((group,), job)


def largest(
    groups: Sequence[EqualPods], shapes: Sequence[Shape], rules: Rules, job: Deadline | None = None
) -> Iterator[ClaimedValue]:
    """Of a gang: the most that one of its pods requests; the defaults hold for what none requests."""
    most = shaping.bound([shape.needs for shape in shapes])
    values = {"cpus_per_task": most.cpus, "memory": Memory(mib=most.memory_mib), "gres": most.gres}
    asked = [(group, _asked(group, rules)) for group in groups]
    for field, value in values.items():
        asking = next((group for group, fields in asked if field in fields), None)
        if asking is not None:
            yield ClaimedValue(field, value, _requested_by(asking, groups, rules.count))
    yield from _deadline(groups, job)
    if rules.one_per_node:
        yield ClaimedValue(ONE_PER_NODE, True, "setting defaults.one_per_node")
    keeping = next((group for group in groups if group.apart), None)
    port = apart.common_port(pod for group in groups for pod in group.pods)
    if keeping is not None:
        yield ClaimedValue(ONE_PER_NODE, True, f"required anti-affinity of {keeping.subject} to pods like itself")
    elif port is not None:
        yield ClaimedValue(ONE_PER_NODE, True, f"hostPort {port} of every pod")


def annotated(said: Mapping[str, ParsedAnnotation], *, gang: bool = False) -> Iterator[ClaimedValue]:
    """The annotations of users."""
    for key, one in said.items():
        field = NODE_MEMORY if gang and key == NODE_MEMORY else one.row.field
        yield ClaimedValue(field, one.value, str(one), key, one.subject)


def needs_of(group: EqualPods, said: Mapping[str, ParsedAnnotation], rules: Rules) -> Needs:
    """What Slurm is asked for each of these pods; annotations hold for every pod."""
    found: dict[str, Any] = {
        "cpus_per_task": rules.cpus,
        "memory": Memory(mib=rules.memory_mib),
        "gres": gres.parse(rules.gres) if rules.gres else (),
        **_asked(group, rules),
        **{said[key].row.field: said[key].value for key in OF_EACH if key in said},
    }
    return Needs(cpus=found["cpus_per_task"], memory_mib=found["memory"].mib, gres=found["gres"])


def _asked(group: EqualPods, rules: Rules) -> dict[str, Any]:
    found: dict[str, Any] = {}
    amounts = group.asked
    # Kubernetes counts the cpus that the pod requests, and its ResourceClaims say which of these are its own.
    if cpus := max(quantity.whole(amounts.get("cpu", Fraction(0))), group.cpus):
        found["cpus_per_task"] = cpus
    if memory := amounts.get("memory", Fraction(0)):
        found["memory"] = Memory(mib=quantity.mebibytes(memory))
    if devices := shaping.added([gres.derive(amounts, rules.gres_names), group.devices]):
        found["gres"] = devices
    return found


def _requested_by(asking: EqualPods, groups: Sequence[EqualPods], counted: str) -> str:
    count = sum(len(group.pods) for group in groups)
    if len(groups) == 1:
        return f"{counted} of {asking.subject}" + (f" and {count - 1} like it" if count > 1 else "")
    verb = "requests" if counted == "requests" else "may use"
    return f"the most that any of {count} pods {verb}, such as {asking.subject}"


def _deadline(groups: Iterable[EqualPods], job: Deadline | None) -> Iterator[ClaimedValue]:
    """The deadline of the pods or of their Job, whichever is earlier."""
    found = members.deadline(pod for group in groups for pod in group.pods)
    limits = [(found[0], members.subject(found[1]))] if found is not None else []
    if job is not None and job.seconds > 0:
        limits.append((job.seconds, job.subject))
    if limits:
        seconds, subject = min(limits, key=lambda one: one[0])
        minutes = min(-(-seconds // 60), forms.MOST_MINUTES)
        yield ClaimedValue("time_limit_minutes", minutes, f"activeDeadlineSeconds of {subject}")
