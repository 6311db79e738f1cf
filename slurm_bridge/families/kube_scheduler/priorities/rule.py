"""What a priority is made of: a function of all nodes, or a map of one node with an optional reduce.

Both styles exist for single nodes, which is how a site writes its own, and over columns, which is how the shipped ones
are written: 20 000 nodes are then a few array operations.
"""

import dataclasses
from collections.abc import Callable, Sequence

from slurm_bridge.cluster.columns import Mask, Whole
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.base import Session
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.pod import Pod

#: Of a priority, or an extender: enough for one that is to outweigh all others.
MOST_WEIGHT = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class HostPriority:
    """The score of one node."""

    host: str
    score: int


HostPriorityList = Sequence[HostPriority]

Function = Callable[[Pod, Session, Sequence[NodeFacts]], HostPriorityList]
Map = Callable[[Pod, Session, NodeFacts], HostPriority]
Reduce = Callable[[Pod, Session, HostPriorityList], HostPriorityList]


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnFunction:
    """Scores that depend on which nodes are candidates; None: this pod is not rated by it at all."""

    of: Callable[[Scene, Mask], Whole | None]


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnMap:
    """Scores of nodes before any reduce; None: this pod is not rated by it at all.

    `by_row`: it looks at nothing of the cluster but the node itself and the pods there, so that what it said of nodes
    that have not changed holds.
    """

    of: Callable[[Scene], Whole | None]
    by_row: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnReduce:
    """What becomes of the raw scores once those of all candidates are known."""

    of: Callable[[Scene, Whole, Mask], Whole]


class BadPriority(ValueError):
    """A priority that cannot be registered; the message names it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a priority rates, before it has a name and a weight; `needs` are the objects that it looks at.

    `about` tells two of one name apart: the label that it is about.
    """

    function: Function | ColumnFunction | None = None
    map: Map | ColumnMap | None = None
    reduce: Reduce | ColumnReduce | None = None
    needs: frozenset[Need] = frozenset()
    about: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PriorityConfig:
    """One priority as it is registered: by `function`, or by `map` and perhaps `reduce`, never by both styles."""

    name: str
    weight: int = 1
    function: Function | ColumnFunction | None = None
    map: Map | ColumnMap | None = None
    reduce: Reduce | ColumnReduce | None = None
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if self.function is not None and (self.map is not None or self.reduce is not None):
            raise BadPriority(f"priority {self.name}: has function and map or reduce; it must have one style only")
        if self.function is None and self.map is None:
            raise BadPriority(f"priority {self.name}: has neither function nor map; it must have one of them")
        if not 1 <= self.weight <= MOST_WEIGHT:
            raise BadPriority(f"priority {self.name}: weight is {self.weight}; it must be from 1 to {MOST_WEIGHT}")

    @property
    def over_columns(self) -> bool:
        """Nothing in it looks at single nodes: its scores depend on nothing but the scene, and may be remembered."""
        parts = (self.function, self.map, self.reduce)
        return all(part is None or isinstance(part, ColumnFunction | ColumnMap | ColumnReduce) for part in parts)
