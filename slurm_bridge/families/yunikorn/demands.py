"""What a workload is to the core: how much of what, for which user, and in which queue."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping

from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.families.yunikorn import identities, opt_outs, people, whole_nodes
from slurm_bridge.families.yunikorn.identities import ApplicationIdentity
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.queues.quantities import VCORE
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.needs import View
from slurm_bridge.model.job import GresPer, JobRequest, MemoryPer
from slurm_bridge.model.meta import Object
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate import resources

MEMORY = "memory"
_MIB = 1 << 20
#: The preemption policy of pods for which no pod is evicted.
_NEVER = "Never"
#: What annotations may ask of Slurm in the place of the pods' own amounts.
_AMOUNTS = frozenset({"cpus_per_task", "memory", "gres"})
#: Of so many it is remembered when that was: pods come in bursts, and are asked about again and again.
_MOST_TIMES = 1024


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CoreDemand:
    """Everything that the core is told. `title` is for people; `created` is Unix time.

    `total` is what its queue counts. With nodes of its own these are whole nodes; `asked` is what it asks for itself.
    `application` None: it is one by itself. `problem` is why no queue takes it as it is; `note` tells its user what of
    the pods' words does not count.
    """

    uid: WorkloadKey
    title: str
    total: Mapping[str, int]
    priority: int
    created: float
    queue: str
    user: str
    groups: tuple[str, ...]
    tags: Mapping[str, str]
    node_sort: str
    #: Others may have to go for it.
    preempts: bool = True
    asked: Mapping[str, int] | None = None
    exclusive: bool = False
    application: ApplicationIdentity | None = None
    #: The service account of its pods.
    account: str = ""
    problem: str = ""
    note: str = ""
    #: Others go before it.
    opts_out: bool = False

    @property
    def identity(self) -> ApplicationIdentity:
        """The application that it is an ask of."""
        return self.application or ApplicationIdentity(key=self.uid, title=self.title)

    def same(self, other: "CoreDemand") -> bool:
        """The core would be told the same; tags, users and PriorityClasses may move, and count for what comes anew.

        What whole nodes have may move, too.
        """
        return _told(self) == _told(other)

    def is_within(self, other: "CoreDemand") -> bool:
        """The same queue, and no more of anything than the other."""
        less = all(amount <= other.total.get(kind, 0) for kind, amount in self.total.items())
        return less and _place(self) == _place(other)

    def of_members(self, there: int, missing: int) -> "CoreDemand":
        """The same with `missing` members more than those that are `there`."""
        if not missing:
            return self

        def counted(amounts: Mapping[str, int]) -> Mapping[str, int]:
            return {kind: -(-amount * (there + missing) // there) for kind, amount in amounts.items()}

        asked = counted(self.asked) if self.asked is not None else None
        return dataclasses.replace(self, total=counted(self.total), asked=asked)


def _place(one: CoreDemand) -> tuple[object, ...]:
    return one.queue, one.user, one.groups, one.node_sort, one.exclusive, _given(one)


def _told(one: CoreDemand) -> tuple[object, ...]:
    asked = one.total if one.asked is None else one.asked
    return asked, one.exclusive, one.priority, one.queue, one.node_sort, one.preempts, _given(one)


def _given(one: CoreDemand) -> str:
    """It stays in the application that it has entered, even when an owner of its pods goes, unless it names another."""
    return one.application.given if one.application else ""


def demand(
    ask: Ask,
    options: YunikornOptions,
    namespaces: View | None,
    snapshot: ClusterSnapshot = EMPTY,
    classes: View | None = None,
) -> CoreDemand:
    """Of this workload as it is asked for; `classes` are the PriorityClasses."""
    workload = ask.workload
    user = people.user_of(workload, options.users)
    asked = total(ask, options.gres)
    whole = _whole(ask, asked, snapshot)
    said = identities.read(workload)
    queue = ask.hints.get("queue", "") or said.queue
    return CoreDemand(
        uid=workload.root.key,
        title=f"{workload.root.namespace}/{workload.root.name}",
        total=asked if whole is None else whole,
        asked=None if whole is None else asked,
        exclusive=ask.request.exclusive,
        priority=workload.priority,
        created=_unix(workload.created),
        queue=queue,
        user=user.name,
        groups=user.groups,
        tags=people.tags_of(workload, namespaces),
        node_sort=ask.hints.get("node-sort-policy", ""),
        preempts=all(pod.spec.preemption_policy != _NEVER for pod in workload.pods),
        application=said.application.within(queue, user.account),
        account=user.account,
        problem=said.problem or opt_outs.problem(workload),
        note=_note(workload, options, said.ignored, user.name),
        opts_out=opt_outs.opted_out(workload, classes, by_pods=options.pods_opt_out),
    )


def _note(workload: Workload, options: YunikornOptions, ignored: str, user: str) -> str:
    """What of the pods' words does not count, to be put behind a message."""
    notes = (
        f"{ignored} is not read: the user is {user}" if ignored else "",
        "" if options.pods_opt_out else opt_outs.unread(workload),
    )
    return "".join(f"; {note}" for note in notes if note)


def _whole(ask: Ask, asked: Mapping[str, int], snapshot: ClusterSnapshot) -> Mapping[str, int] | None:
    """What its nodes have, where no other job may run there; None where it shares them."""
    if not whole_nodes.wants(ask, snapshot):
        return None
    nodes = {pod.spec.node_name for pod in ask.workload.pods}
    if "" not in nodes and None not in nodes:
        return whole_nodes.of_nodes([node for node in nodes if node], asked, snapshot)
    minimum = (ask.request.minimum_nodes or 0) if _annotated(ask, "minimum_nodes") else 0
    return whole_nodes.expected(ask, asked, minimum, snapshot)


def total(ask: Ask, gres: Mapping[str, str]) -> dict[str, int]:
    """Of all pods: cpu as vcore in thousandths, memory in bytes, everything else by its name in Kubernetes.

    What an annotation asks of Slurm in the place of the pods' own amounts counts in their place here, too.
    """
    found: dict[str, int] = {}
    for pod in ask.workload.pods:
        for name, amount in resources.requests_of(pod).items():
            kind, factor = (VCORE, 1000) if name == "cpu" else (name, 1)
            # Rounded up; as whole numbers, which costs a fifth of what fractions do.
            found[kind] = found.get(kind, 0) - (-amount.numerator * factor // amount.denominator)
    if not _is_annotated(ask):
        return found
    parts = (ask.request, *ask.request.components)
    if _annotated(ask, "cpus_per_task"):
        found[VCORE] = sum(1000 * part.tasks * part.cpus_per_task for part in parts)
    if _annotated(ask, "memory"):
        found[MEMORY] = sum(_MIB * part.memory.mib * _units(part) for part in parts)
    if _annotated(ask, "gres"):
        for part in parts:
            for one in part.gres:
                kind = gres.get(one.name, f"gres/{one.name}")
                count = one.count * (part.tasks if part.gres_per is GresPer.TASK else _nodes(part))
                found[kind] = max(found.get(kind, 0), count)
    return found


def _is_annotated(ask: Ask) -> bool:
    """One of its amounts may be."""
    for value in ask.values:  # noqa: SIM110 - every pass asks it, and `any` takes three times as long
        if value.key and value.field in _AMOUNTS:
            return True
    return False


def _annotated(ask: Ask, field: str) -> bool:
    value = ask.value(field)
    return value is not None and bool(value.key)


def _nodes(part: JobRequest) -> int:
    return max(1, part.minimum_nodes or 1)


def _units(part: JobRequest) -> int:
    """How often the amount of memory counts."""
    if part.memory.per is MemoryPer.CPU:
        return part.tasks * part.cpus_per_task
    if part.memory.per is MemoryPer.GPU:
        each = part.tasks if part.gres_per is GresPer.TASK else _nodes(part)
        return max(1, each * sum(one.count for one in part.gres))
    return _nodes(part)


@functools.lru_cache(maxsize=_MOST_TIMES)
def _unix(created: str) -> float:
    """When the first pod came; 0 where it is not known."""
    return dt.datetime.fromisoformat(created).timestamp() if created else 0.0


class Demands:
    """The last one is remembered: a pass asks at its begin and at its end."""

    def __init__(self, options: YunikornOptions) -> None:
        self._options = options
        #: What it was made of, and what came of it.
        self._last: tuple[Workload, Mapping[str, str], Object | None, int, CoreDemand] | None = None

    def of(self, ask: Ask, namespaces: View, classes: View, snapshot: ClusterSnapshot = EMPTY) -> CoreDemand:
        """Of this workload as it is asked for."""
        if _is_annotated(ask) or whole_nodes.wants(ask, snapshot):
            # Then it depends on the request, which becomes another one during the pass, or on the nodes there are.
            return demand(ask, self._options, namespaces, snapshot, classes)
        last, namespace = self._last, namespaces.get("", ask.workload.root.namespace)
        same = last is not None and last[0] is ask.workload and last[1] == ask.hints and last[2] is namespace
        if last is not None and same and last[3] == classes.version:
            return last[4]
        found = demand(ask, self._options, namespaces, classes=classes)
        self._last = ask.workload, ask.hints, namespace, classes.version, found
        return found
