"""The phases of the chain, as small Protocols: a hook is any object with one or more of these methods.

It looks, and returns data: it never talks to Slurm or to Kubernetes and never names nodes to Slurm, which only the
emitter does. A hook need not inherit from these; registration looks for methods of these names.
"""

from collections.abc import Mapping
from typing import Protocol

from slurm_bridge.hooks.base import (
    Admit,
    Ask,
    Denied,
    Deny,
    Fields,
    Nodes,
    Rank,
    Sample,
    Scores,
    Session,
    Subsets,
)
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload


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

    def filter(self, session: Session, ask: Ask, nodes: Nodes, /) -> Denied | Wait: ...


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
