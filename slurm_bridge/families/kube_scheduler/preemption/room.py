"""Whether a pod fits on a node beside some others: by what all of them ask for, and by required anti-affinity."""

from collections.abc import Callable, Iterable

from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.cluster.snapshot import NOTHING, Amounts
from slurm_bridge.model import selectors
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources

#: What a pod takes of a node.
NeedsOf = Callable[[Pod], Amounts]


def fits(pod: Pod, others: Iterable[Pod], has: Amounts, needs_of: NeedsOf = resources.requests_of) -> bool:
    """`has` is what the node has for all of them together."""
    beside = tuple(others)
    if any(repels(one, pod) or repels(pod, one) for one in beside):
        return False
    needs = {name: amount for name, amount in needs_of(pod).items() if amount > 0}
    left = {name: has.get(name, NOTHING) - amount for name, amount in needs.items()}
    for one in beside:
        for name, amount in needs_of(one).items():
            if name in left:
                left[name] -= amount
    return all(amount >= 0 for amount in left.values())


def repels(one: Pod, other: Pod) -> bool:
    """Required anti-affinity of one keeps the other off its node: both on one node are in one domain of every key.

    A namespace selector is taken to match every namespace: a pod that may be kept away counts as kept away.
    """
    for term in neighbours.forbidden(one):
        within = term.among is not None or other.metadata.namespace in term.namespaces
        if within and term.selector is not None and selectors.all_hold(term.selector, other.metadata.labels):
            return True
    return False
