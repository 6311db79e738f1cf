"""Trees of domains in order: which domain is tried first, and the scores that keep the tasks of a workload together."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from slurm_bridge.families.kai.topology import Domain

#: One step of the scores: more than all scores of other origin that are less important come to.
STEP = 10_000

#: So many steps the roomiest domain is above nothing.
STEPS = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A domain with what is within it, in an order; `number` is how its owner tells it from the others."""

    number: int
    domain: Domain
    level: str
    children: tuple["Branch", ...] = ()


def sort_tree(tree: Branch | None, ratio: Callable[[Branch], float], lowest: str | None) -> Branch | None:
    """The fullest domains first, so that workloads are packed; equal ones by name.

    Children of domains of the level `lowest` are the last to be sorted; without it nothing is.
    """
    return tree if tree is None or lowest is None else _sorted(tree, ratio, lowest)


def _sorted(tree: Branch, ratio: Callable[[Branch], float], lowest: str) -> Branch:
    if not tree.children:
        return tree
    children = sorted(tree.children, key=lambda one: (-ratio(one), one.domain))
    if tree.level != lowest:
        children = [_sorted(one, ratio, lowest) for one in children]
    return dataclasses.replace(tree, children=tuple(children))


def kept(tree: Branch, holds: Callable[[Branch], bool]) -> Branch:
    """Only those domains below this one that hold what is asked for; what is within others does not either."""
    children = tuple(kept(one, holds) for one in tree.children if holds(one))
    return dataclasses.replace(tree, children=children)


def by_depth(tree: Branch | None) -> Iterator[tuple[Branch, ...]]:
    """The domains of each depth from left to right, counted in steps from the root."""
    layer: tuple[Branch, ...] = () if tree is None else (tree,)
    while layer:
        yield layer
        layer = tuple(child for one in layer for child in one.children)


def reverse_level_order(tree: Branch | None) -> tuple[Branch, ...]:
    """The deepest domains from left to right, then those above, at last the root."""
    return tuple(one for layer in reversed([*by_depth(tree)]) for one in layer)


def level_domains(tree: Branch | None, level: str) -> tuple[Branch, ...]:
    """The domains of a level from left to right."""
    if tree is None:
        return ()
    within = tuple(found for one in tree.children for found in level_domains(one, level))
    return (tree, *within) if tree.level == level else within


def domain_scores(tree: Branch | None, preferred: str) -> Mapping[int, int]:
    """What each node in a domain of the preferred level gets, by its number: the last and roomiest the most."""
    found = level_domains(tree, preferred)
    return {one.number: (place * STEPS // len(found)) * STEP for place, one in enumerate(found, 1)}
