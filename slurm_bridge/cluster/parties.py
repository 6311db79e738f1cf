"""Victims: parties that leave together or not at all, and the order in which they may stay."""

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from slurm_bridge.model.pod import Pod

#: Whether the preemptor could run on this node beside these pods, and no others.
Fits = Callable[[str, Sequence[Pod]], bool]
#: Whether a disruption budget does not let this pod go.
Guarded = Callable[[Pod], bool]


def priority_of(pod: Pod) -> int:
    """A pod without a priority has 0, as in Kubernetes."""
    return pod.spec.priority or 0


def started(pod: Pod) -> float:
    """When it started, in Unix time. A pod that has a node and did not start yet is younger than any other."""
    written = pod.status.start_time
    return dt.datetime.fromisoformat(written).timestamp() if written else math.inf


def first_start(pods: Iterable[Pod]) -> float:
    """When the first of the most important of these pods started."""
    every = tuple(pods)
    most = max(map(priority_of, every), default=0)
    return min((started(pod) for pod in every if priority_of(pod) == most), default=math.inf)


def unguarded(pod: Pod) -> bool:  # noqa: ARG001 - a Guarded
    """There are no budgets."""
    return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """Pods of which none leaves without the others: one pod, or a gang. `here` are those on the node in question."""

    here: tuple[Pod, ...]
    elsewhere: tuple[Pod, ...] = ()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All that would leave."""
        return self.here + self.elsewhere

    @property
    def priority(self) -> int:
        """That of the most important member: no pod of its priority may be lost for a pod of the same."""
        return max(map(priority_of, self.pods))

    @property
    def started(self) -> float:
        """When the first of its most important members started."""
        return first_start(self.pods)


def alone(pods: Iterable[Pod]) -> tuple[Party, ...]:
    """Each pod is a party of its own."""
    return tuple(Party(here=(pod,)) for pod in pods)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """Parties that would have to leave one node; `violations`: so many of their pods a disruption budget would keep."""

    parties: tuple[Party, ...] = ()
    violations: int = 0

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All of them, those on other nodes included."""
        return tuple(pod for party in self.parties for pod in party.pods)


def select(
    node: str, priority: int, parties: Sequence[Party], fits: Fits, guarded: Guarded = unguarded
) -> Victims | None:
    """Take away all of a lower priority, then give back what can stay; None when even without them it does not fit.

    Parties that a budget guards come back first, then the others, each time the most important first, and of equally
    important ones the oldest: what is left are the fewest budgets broken, the least important pods, and the youngest.
    """
    staying = [pod for party in parties if party.priority >= priority for pod in party.here]
    if not fits(node, staying):
        return None
    lower = [(party, sum(map(guarded, party.pods))) for party in parties if party.priority < priority]
    leaving, violations = [], 0
    for party, held in sorted(lower, key=lambda one: (not one[1], -one[0].priority, one[0].started)):
        if fits(node, [*staying, *party.here]):
            staying += party.here
        else:
            leaving.append(party)
            violations += held
    return Victims(parties=tuple(leaving), violations=violations)


def select_all(
    priority: int, by_node: Mapping[str, Sequence[Party]], fits: Fits, guarded: Guarded = unguarded
) -> dict[str, Victims]:
    """For every node on which it helps, in the order of the nodes."""
    found = {node: select(node, priority, parties, fits, guarded) for node, parties in by_node.items()}
    return {node: victims for node, victims in found.items() if victims is not None}
