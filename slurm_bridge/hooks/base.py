"""The phases of the chain: one small Protocol each, and the frozen record that it returns.

    admit ─► order ─► capacity ─► sample ─► filter ─► score ─► subset ─► express ─► commit      (before Slurm is asked)
    verify                                                             (after Slurm allocated, before pods are bound)

A hook is any object with one or more methods of these names. It looks, and returns data: it never talks to Slurm or
to Kubernetes and never names nodes to Slurm, which only the emitter does. Nodes are Kubernetes' names throughout.
"""

import dataclasses
import enum
import random
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.snapshot import ClusterSnapshot
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate.shapes import Shape
from slurm_bridge.translate.translator import Value

Nodes = frozenset[str]


class Phase(enum.Enum):
    """What a hook is asked, in the order in which the chain asks."""

    ADMIT = "admit"
    ORDER = "order"
    CAPACITY = "capacity"
    SAMPLE = "sample"
    FILTER = "filter"
    SCORE = "score"
    SUBSET = "subset"
    EXPRESS = "express"
    COMMIT = "commit"
    VERIFY = "verify"


class Mode(enum.Enum):
    """Whether a pass may end in a submission, or only tries out what would happen."""

    REAL = "real"
    SIMULATED = "simulated"


class Audience(enum.Enum):
    """Who is shown an explanation line: the pod's owner, or only those who run the bridge."""

    USER = "user"
    OPERATOR = "operator"


class Log(Protocol):
    """A logger that is bound to the hook and its workload."""

    def trace(self, message: str, /) -> None: ...

    def debug(self, message: str, /) -> None: ...

    def info(self, message: str, /) -> None: ...

    def warning(self, message: str, /) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is to be placed: the workload, and the request that it has become so far, each value with its source.

    `hints` are the annotations that speak to hooks, not to Slurm. `shapes` are its pods by what they ask of a node;
    with fewer than two all ask the same: whoever looked at the first pod has looked at all, but for their volumes.
    """

    workload: Workload
    request: JobRequest
    values: tuple[Value, ...] = ()
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()

    def value(self, field: str) -> Value | None:
        """Where a field of the request comes from; None when nobody set it."""
        return next((value for value in self.values if value.field == field), None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Admit:
    """Go on; a note ends up in the explanation."""

    note: str = ""
    audience: Audience = Audience.USER


#: Nothing to say against it.
GO = Admit()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A place in the queue: smaller keys first. `nice` is for hooks whose `emit` says that Slurm hears of it."""

    key: Any
    nice: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The nodes that are looked at; all others are left out of this pass."""

    nodes: Nodes
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Denied:
    """Nodes that cannot take the workload, each with its reasons.

    Records are compared by identity: a hook that returns the same record for equal questions makes the chain fast.
    """

    nodes: Mapping[str, tuple[str, ...]]
    audience: Audience = Audience.USER

    @classmethod
    def because(cls, reason: str, nodes: Iterable[str]) -> "Denied":
        """All of them for the same reason."""
        return cls(nodes=dict.fromkeys(nodes, (reason,)))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How good nodes are, higher is better; a node without a score has 0. Scores of several hooks are added."""

    nodes: Mapping[str, float]
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeSet:
    """Nodes to try together; of a `required` set the workload is never let out."""

    nodes: Nodes
    name: str = ""
    required: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subsets:
    """The node sets to try, best first. Not relevant: the incoming set stays as it is; relevant without sets: none."""

    relevant: bool = True
    sets: tuple[NodeSet, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Values for the request; None leaves a field alone. The request's identity, size and nodes are not a hook's."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    wckey: str | None = None
    licenses: str | None = None
    constraints: str | None = None
    user: str | None = None
    group: str | None = None
    priority: int | None = None
    nice: int | None = None
    time_limit_minutes: int | None = None
    comment: str | None = None
    source: str = ""

    def given(self) -> dict[str, str | int]:
        """What is set, by field name of the request."""
        names = (field.name for field in dataclasses.fields(self) if field.name != "source")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """Slurm allocated nodes that cannot be used; the workload is placed again without them."""

    nodes: Nodes
    message: str


class Session(Protocol):
    """What a hook may use during one pass, and not a moment longer: every use after its end is an error."""

    @property
    def snapshot(self) -> ClusterSnapshot:
        """The cluster at one moment; it does not change during the pass."""

    @property
    def now(self) -> float:
        """Unix time at which the pass began."""

    @property
    def mode(self) -> Mode: ...

    @property
    def dice(self) -> random.Random: ...

    @property
    def log(self) -> Log: ...

    def view(self, need: Need) -> View:
        """Objects of the cluster that this hook has declared in its `needs`."""

    def filter_nodes(self, ask: Ask, nodes: Nodes) -> Nodes:
        """All hooks' filters, asked once with this ask; what they denied is in the session's explanation."""

    def score_nodes(self, ask: Ask, nodes: Nodes) -> Mapping[str, float]:
        """All hooks' scores, added."""

    def subset_nodes(self, ask: Ask, tasks: tuple[Pod, ...], nodes: Nodes) -> tuple[NodeSet, ...]:
        """All hooks' divisions, one layer within the other."""


class Admits(Protocol):
    """May this workload be submitted at all, now?"""

    def admit(self, session: Session, ask: Ask, /) -> Admit | Wait | Reject: ...


class Orders(Protocol):
    """Which workload is submitted first? Asked outside any pass; exactly one hook of a chain may answer."""

    def order(self, workload: Workload, /) -> Rank: ...


class HasCapacity(Protocol):
    """Is there room in what the workload draws from (a queue, a quota)? Nodes in use are not asked about here."""

    def capacity(self, session: Session, ask: Ask, /) -> Admit | Wait | Reject: ...


class Samples(Protocol):
    """Which nodes are worth looking at? Exactly one hook of a chain may answer. Asked for each shape, as `Filters`."""

    def sample(self, session: Session, ask: Ask, nodes: Nodes, /) -> Sample | Wait: ...


class Filters(Protocol):
    """Which of these nodes cannot take the workload?

    Where its pods differ this is asked once for each shape: the workload is then the one without all other pods.
    """

    def filter(self, session: Session, ask: Ask, nodes: Nodes, /) -> Denied: ...


class Rates(Protocol):
    """How good is each of these nodes?"""

    def score(self, session: Session, ask: Ask, nodes: Nodes, /) -> Scores: ...


class Divides(Protocol):
    """Which groups of these nodes are to be tried, one after the other?

    `tasks` are the pods to place: the pending ones, and in a simulation also those that it has virtually evicted.
    """

    def subset(self, session: Session, ask: Ask, tasks: tuple[Pod, ...], nodes: Nodes, /) -> Subsets: ...


class Expresses(Protocol):
    """Which fields of the request come from here?"""

    def express(self, session: Session, ask: Ask, /) -> Fields: ...


class Commits(Protocol):
    """Does all of it still hold, at the last moment before the submission?"""

    def commit(self, session: Session, ask: Ask, /) -> Admit | Wait | Reject: ...


class Verifies(Protocol):
    """Slurm has allocated: may each of these pods (by uid) run on its node?"""

    def verify(
        self, session: Session, workload: Workload, nodes: Mapping[str, str], /
    ) -> Admit | Deny | Wait | Reject: ...
