"""Which of the best nodes is taken: here Slurm chooses, in kube-scheduler its own loop does."""

from collections.abc import Callable

from slurm_bridge.families.kube_scheduler import matrix
from slurm_bridge.families.kube_scheduler.matrix import Prioritized
from slurm_bridge.families.kube_scheduler.priorities.rule import HostPriority, HostPriorityList

#: A number below the one that is given: dice, or turns.
Pick = Callable[[int], int]


class NothingToSelect(ValueError):
    """There is no node to choose from."""


class HostTurns:
    """Of several equally good ones each in turn."""

    def __init__(self, start: int = 0) -> None:
        self._next = start

    def __call__(self, below: int) -> int:
        turn = self._next
        self._next += 1
        return turn % below


def hosts(found: Prioritized) -> tuple[HostPriority, ...]:
    """The sums as a list, by name."""
    return tuple(sorted(matrix.listed(found.columns, found.combined, found.nodes), key=lambda one: one.host))


def select_host(scored: HostPriorityList, pick: Pick) -> str:
    """A node with the highest score; which of several is for `pick` to say, in the order of the list."""
    if not scored:
        raise NothingToSelect("empty priority list")
    most = max(one.score for one in scored)
    best = [one.host for one in scored if one.score == most]
    return best[pick(len(best))]
