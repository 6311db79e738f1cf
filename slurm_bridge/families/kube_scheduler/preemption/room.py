"""Whether a pod fits on a node beside some others: by what all of them ask for, and by required anti-affinity."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

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
    return not any(repels(one, pod) or repels(pod, one) for one in beside) and _suffices(pod, beside, has, needs_of)


def _suffices(pod: Pod, others: Sequence[Pod], has: Amounts, needs_of: NeedsOf) -> bool:
    needs = {name: amount for name, amount in needs_of(pod).items() if amount > 0}
    left = {name: has.get(name, NOTHING) - amount for name, amount in needs.items()}
    for one in others:
        for name, amount in needs_of(one).items():
            if name in left:
                left[name] -= amount
    return all(amount >= 0 for amount in left.values())


def total(pods: Iterable[Pod], needs_of: NeedsOf = resources.requests_of) -> dict[str, Fraction]:
    """What all of them ask for."""
    found: dict[str, Fraction] = {}
    for pod in pods:
        for name, amount in needs_of(pod).items():
            found[name] = found.get(name, NOTHING) + amount
    return found


def repels(one: Pod, other: Pod) -> bool:
    """Required anti-affinity of one keeps the other off its node: both on one node are in one domain of every key."""
    return any(_selects(term, other) for term in neighbours.forbidden(one))


def _selects(term: neighbours.Term, other: Pod) -> bool:
    """A namespace selector is taken to match every namespace: a pod that may be kept away counts as kept away."""
    within = term.among is not None or other.metadata.namespace in term.namespaces
    return within and term.selector is not None and selectors.all_hold(term.selector, other.metadata.labels)
