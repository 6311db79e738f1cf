"""A configuration of queues as frozen records; `where` is the place in the document and no part of what is said."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem
from slurm_bridge.families.yunikorn.queues.config.properties import NOTHING, Stated

ROOT = "root"

#: What a node has and what of it is in use, to a score; nodes with low ones come first.
NodeOrder = Callable[[amounts.Amount, amounts.Amount], float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What each of these users, and each of these groups, may have in a queue; 0 applications are unlimited."""

    note: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: amounts.Known = None
    max_applications: int = 0
    where: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What a leaf gets that is made by a placement rule."""

    guaranteed: amounts.Known = None
    max: amounts.Known = None
    max_applications: int = 0
    properties: Stated = NOTHING
    where: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueDocument:
    """One queue with all that is below it; names are kept as they are written."""

    name: str
    parent: bool = False
    submit_acl: str = ""
    admin_acl: str = ""
    guaranteed: amounts.Known = None
    max: amounts.Known = None
    max_applications: int = 0
    properties: Stated = NOTHING
    template: Template | None = None
    limits: tuple[Limit, ...] = ()
    queues: tuple["QueueDocument", ...] = ()
    where: str = dataclasses.field(default="", compare=False)

    @property
    def leaf(self) -> bool:
        """Applications go into leaves only."""
        return not (self.parent or self.queues)

    def child(self, name: str) -> "QueueDocument | None":
        """The child of this name, ignoring case."""
        return next((queue for queue in self.queues if queue.name.lower() == name.lower()), None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UserFilter:
    """The users that a placement rule is for; `kind` is allow, deny or empty, in any case of letters."""

    kind: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    where: str = dataclasses.field(default="", compare=False)

    @property
    def allows(self) -> bool:
        """Listed users pass, others do not."""
        return self.kind.lower() != "deny"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRule:
    """One placement rule; its parent rule finds the queue above."""

    name: str
    value: str = ""
    create: bool = False
    parent: "PlacementRule | None" = None
    filter: UserFilter = UserFilter()
    where: str = dataclasses.field(default="", compare=False)

    @property
    def kind(self) -> str:
        """The name ignoring case."""
        return self.name.lower()

    def chain(self) -> tuple["PlacementRule", ...]:
        """The rule with all its parent rules, the outermost first."""
        return (*(self.parent.chain() if self.parent else ()), self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeSort:
    """How a partition sorts nodes; a resource without a weight has the program's own.

    `registered` are orders beside those that are built in, by name.
    """

    policy: str = ""
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    registered: Mapping[str, NodeOrder] = dataclasses.field(default_factory=dict)
    where: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionDocument:
    """Whether a partition preempts for guarantees, and for maxima that were lowered."""

    enabled: bool = True
    quota: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDocument:
    """One tree of queues; `limits` are those that were written on the partition and hold for its root."""

    name: str
    root: QueueDocument
    limits: tuple[Limit, ...] = ()
    rules: tuple[PlacementRule, ...] = ()
    node_sort: NodeSort = NodeSort()
    preemption: PreemptionDocument = PreemptionDocument()
    where: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole configuration; `warnings` tell what of it is ignored."""

    partitions: tuple[PartitionDocument, ...]
    warnings: tuple[QueueProblem, ...] = dataclasses.field(default=(), compare=False)


def walk(queue: QueueDocument, above: str = "") -> Iterator[tuple[str, QueueDocument]]:
    """The queue and all below it with their paths, parents first."""
    path = f"{above}.{queue.name.lower()}" if above else queue.name.lower()
    yield path, queue
    for child in queue.queues:
        yield from walk(child, path)
