"""The phases of the chain, what a hook is asked with, and the frozen record that each phase returns.

    admit ─► order ─► capacity ─► sample ─► filter ─► express ─► score ─► subset ─► commit      (before Slurm is asked)
    verify                                                             (after Slurm allocated, before pods are bound)

The methods themselves are in `hooks.phases`. Nodes are Kubernetes' names throughout.
"""

import collections
import dataclasses
import enum
import itertools
import operator
import random
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from slurm_bridge.cluster.columns import NodeColumns, Reasons
from slurm_bridge.cluster.outside import Outside
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.model.features import FeatureDemand
from slurm_bridge.model.job import Gres, JobRequest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate.shapes import Shape
from slurm_bridge.translate.translator import Value

Nodes = frozenset[str]


class HookPhase(enum.StrEnum):
    """What a hook is asked, in the order in which the chain asks: each is the name of its method."""

    ADMIT = "admit"
    ORDER = "order"
    CAPACITY = "capacity"
    SAMPLE = "sample"
    FILTER = "filter"
    EXPRESS = "express"
    SCORE = "score"
    SUBSET = "subset"
    COMMIT = "commit"
    VERIFY = "verify"

    # That of an Enum is written in Python, and phases are looked up dozens of times for each workload.
    __hash__ = str.__hash__


class Mode(enum.Enum):
    """Whether a pass may end in a submission, or only tries out what would happen."""

    REAL = "real"
    SIMULATED = "simulated"


class Audience(enum.Enum):
    """The audience of an explanation line: the pod's owner, or only the bridge's operators."""

    USER = "user"
    OPERATOR = "operator"


class Log(Protocol):
    """A logger that is bound to the hook and its workload; a trace becomes a text only where the log level shows it."""

    def trace(self, message: object, /) -> None: ...

    def debug(self, message: str, /) -> None: ...

    def info(self, message: str, /) -> None: ...

    def warning(self, message: str, /) -> None: ...


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is to be placed: the workload, and the request that it has become so far, each value with its source.

    `hints` are the annotations that speak to hooks, not to Slurm. `shapes` are its pods by what they ask of a node;
    with fewer than two all ask the same: a look at the first pod counts for all, except for their volumes.
    `demands` are fields of the pods that some hook has to honour, `devices` what their ResourceClaims ask Slurm for, by
    uid. `members` are all pods of a workload of which the ask is about one shape only.
    """

    workload: Workload
    request: JobRequest
    values: tuple[Value, ...] = ()
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    demands: tuple[FeatureDemand, ...] = ()
    devices: Mapping[str, tuple[Gres, ...]] = dataclasses.field(default_factory=dict)
    members: tuple[Pod, ...] = ()

    @property
    def every_pod(self) -> tuple[Pod, ...]:
        """All pods of the workload, also where the ask is about one shape."""
        return self.members or self.workload.pods

    def value(self, field: str) -> Value | None:
        """Where a field of the request comes from; None when it is not set."""
        return next((value for value in self.values if value.field == field), None)


@frozen_records.quick
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


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The nodes that are looked at; all others are left out of this pass.

    `retry_after`: when another sample is worth a try, in seconds, should none of these be left in the end. `given_up`:
    the sampler tries nothing more until then; with these words, and a warning, the user is told so.
    """

    nodes: Nodes
    note: str = ""
    retry_after: float | None = None
    given_up: str = ""


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Denied:
    """Nodes that cannot take the workload, each with its reasons.

    Records are compared by identity: a hook that returns the same record for equal questions makes the chain fast.
    `moving`: what runs on the nodes is part of it, so that a workload without nodes is looked at when pods come or go.
    """

    nodes: Mapping[str, tuple[str, ...]]
    audience: Audience = Audience.USER
    moving: bool = False

    @classmethod
    def because(cls, reason: str, nodes: Iterable[str]) -> "Denied":
        """All of them for the same reason."""
        return cls(nodes=dict.fromkeys(nodes, (reason,)))

    def left(self, nodes: Nodes) -> Nodes:
        """Those of these nodes that are not denied."""
        return self.nodes.left(nodes) if isinstance(self.nodes, Reasons | Outside) else nodes.difference(self.nodes)

    def counts(self) -> Mapping[str, int]:
        """Of how many nodes each reason is true."""
        if isinstance(self.nodes, Reasons | Outside):
            return self.nodes.counts()
        return collections.Counter(itertools.chain.from_iterable(self.nodes.values()))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one priority said of each node."""

    name: str
    weight: float
    scores: Mapping[str, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """How scores came about: a row for each priority, and what they were combined to."""

    rows: tuple[Row, ...]
    combined: Mapping[str, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """How scores become attempts: the best nodes first, then more, the last of `count` tiers being all of them.

    `first` None: twice as many as are needed, at least 10. A tier lasts for `widen_after` seconds from Slurm's look.
    """

    count: int = 3
    first: int | None = None
    widen_after: float = 15.0


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """How good nodes are, higher is better; a node without a score has 0. Scores of several hooks are added.

    `tiers` says how they become attempts, None: as the scores of the others, or as the configured limits say.
    """

    nodes: Mapping[str, float]
    note: str = ""
    tiers: Tiers | None = None
    matrix: Matrix | None = None


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeSet:
    """Nodes to try together; of a `required` set the workload is never let out.

    `parts`, one for each shape of the ask, are the nodes for its pods: a set for jobs with a component for each shape.
    `each`: the workload takes all of these nodes, and at most so many of its pods come on each. `seconds`: how long the
    set is tried where others follow, None: as long as is configured. `again`: how often it was tried before then; sets
    that were tried less often come before it.
    """

    nodes: Nodes
    name: str = ""
    required: bool = False
    parts: tuple[Nodes, ...] = ()
    each: int | None = None
    seconds: float | None = None
    again: int = 0


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subsets:
    """The node sets to try, best first. Not relevant: the incoming set stays as it is; relevant without sets: none.

    `note` is for operators, `wanted` says in the workload's own words what all sets keep to. `memo` comes back in the
    session for as long as these sets are tried. `moving`: which ones come first depends on what runs on the nodes.
    `everywhere`: not relevant to any set of nodes, so that the hook need not be asked about others.
    """

    relevant: bool = True
    sets: tuple[NodeSet, ...] = ()
    note: str = ""
    wanted: tuple[str, ...] = ()
    memo: str = ""
    moving: bool = False
    everywhere: bool = False


@frozen_records.quick
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
    exclusive: bool | None = None
    source: str = ""

    def given(self) -> dict[str, str | int]:
        """What is set, by field name of the request."""
        return {name: value for name, value in zip(_FIELDS, _field_values(self), strict=True) if value is not None}


_FIELDS = tuple(one.name for one in dataclasses.fields(Fields) if one.name != "source")
_field_values = operator.attrgetter(*_FIELDS)


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
    def columns(self) -> NodeColumns:
        """The snapshot's nodes as arrays: a rule that looks at all of them at once."""

    @property
    def attempt(self) -> int:
        """The attempt that the job of this workload is at; 0 where there is none yet."""

    @property
    def placed(self) -> bool:
        """Slurm has a job of this workload already."""

    @property
    def memo(self) -> str:
        """What this hook's `Subsets.memo` said when the plan began that is carried out now; "" where there is none."""

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
