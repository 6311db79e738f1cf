"""Why an allocation is of no use, now or at all, and which nodes are avoided for it."""

import dataclasses
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Self

from slurm_bridge.cluster.snapshot import NodeFacts, fits
from slurm_bridge.model.verdict import Wait
from slurm_bridge.scheduler.avoid import NodeTest

#: A node on which claims could not be settled is avoided for so many seconds at first: the reason is seen nowhere.
CLAIMS_AVOID_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Why an allocation is of no use. `nodes` are what to avoid from now on, none when no node is to blame.

    `seconds`: for how long at most; None: as long as is configured. `lacking`: what there has to be room for by node.
    `occupied`: whether earlier pods still take the room, by node; such a node is avoided until they do not, however
    long that takes. `unseen`: nothing that Kubernetes says of a node tells whether the reason still holds.
    """

    reason: str
    message: str
    nodes: tuple[str, ...] = ()
    seconds: float | None = None
    lacking: Mapping[str, Mapping[str, Fraction]] = dataclasses.field(default_factory=dict)
    occupied: Mapping[str, NodeTest] = dataclasses.field(default_factory=dict)
    unseen: bool = False

    def holds(self, node: str, then: NodeFacts | None) -> NodeTest:
        """Whether the reason is still to be seen of a node, which was so `then`."""
        if self.unseen:
            return lambda now: now is not None
        if node in self.occupied:
            return self.occupied[node]
        needed = self.lacking.get(node)
        if needed is not None:
            return lambda now: now is not None and fits(now, needed) is not None
        seen = _seen(then)
        return lambda now: _seen(now) == seen


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Occupied(Wait):
    """These nodes are kept for so many seconds; then the allocation is given back, and the nodes are avoided."""

    nodes: tuple[str, ...]
    patience: float
    occupied: Mapping[str, NodeTest] = dataclasses.field(default_factory=dict)

    @property
    def expired(self) -> Misfit:
        """Why the nodes are given back after that time."""
        return Misfit(reason=self.reason, message=self.message, nodes=self.nodes, occupied=self.occupied)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsPending(Occupied):
    """The nodes are kept until the claims of their pods are settled; `failed` is the reason for giving them back."""

    failed: str

    @classmethod
    def at(
        cls,
        nodes: Iterable[str],
        *,
        waits: str,
        failed: str,
        message: str,
        retry_after: float | None,
        patience: float,
    ) -> Self:
        """Pods on these nodes wait."""
        return cls(
            reason=waits,
            failed=failed,
            message=message,
            retry_after=retry_after,
            nodes=tuple(sorted(set(nodes))),
            patience=patience,
        )

    @property
    def expired(self) -> Misfit:
        text = f"{self.message}, for more than {self.patience:.0f} s"
        return unseen(self.failed, text, self.nodes)


def unseen(reason: str, message: str, nodes: tuple[str, ...]) -> Misfit:
    """Claims could not be settled on these nodes."""
    return Misfit(reason=reason, message=message, nodes=nodes, seconds=CLAIMS_AVOID_SECONDS, unseen=True)


def together(problems: Iterable[Misfit]) -> Misfit | None:
    """All nodes that are to blame are told of at once: each costs a group the whole of an allocation."""
    found = list(problems)
    if len(found) < 2:  # noqa: PLR2004
        return next(iter(found), None)
    return dataclasses.replace(
        found[0],
        message=f"{found[0].message} (and {len(found) - 1} more nodes likewise)",
        nodes=tuple(node for one in found for node in one.nodes),
        lacking={node: needed for one in found for node, needed in one.lacking.items()},
        occupied={node: holds for one in found for node, holds in one.occupied.items()},
    )


def _seen(node: NodeFacts | None) -> tuple[str, frozenset[str]] | None:
    """What Kubernetes says of a node and of the pods there, in short: it is kept for a while."""
    if node is None:
        return None
    return node.node.metadata.resource_version, frozenset(pod.uid for pod in node.pods)
