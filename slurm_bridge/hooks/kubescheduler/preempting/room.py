"""Whether a pod fits on a node beside some others: by what all of them ask for, and by who keeps away from whom."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from slurm_bridge.hooks.kubescheduler.preempting.budgets import requirements
from slurm_bridge.hooks.rules import selectors
from slurm_bridge.hooks.snapshot import NOTHING, Amounts
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
    anti = (one.spec.affinity or {}).get("podAntiAffinity")
    if not isinstance(anti, Mapping):
        return False
    return any(_selects(term, one, other) for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _selects(term: Mapping[str, Any], one: Pod, other: Pod) -> bool:
    """A namespace selector is taken to match every namespace: whoever may be kept away counts as kept away."""
    near = term.get("namespaces") or (one.metadata.namespace,)
    within = term.get("namespaceSelector") is not None or other.metadata.namespace in near
    selector = term.get("labelSelector")
    return within and selector is not None and selectors.all_hold(requirements(selector), other.metadata.labels)
