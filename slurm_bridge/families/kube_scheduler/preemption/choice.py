"""Where preemption might help, where it costs least, and what extenders say of that."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from slurm_bridge.cluster import parties
from slurm_bridge.cluster.parties import Fits, Guarded, Party, Victims, priority_of
from slurm_bridge.hooks.services import NotAnswered
from slurm_bridge.model.pod import Pod

#: Makes sums of priorities grow with every victim, even with those whose priority is negative.
LIFT = 2**31

#: What an extender leaves of the candidates; it may know other victims.
Verb = Callable[[Mapping[str, Victims]], Mapping[str, Victims]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Extender:
    """A service that has a say, where it is interested in the pod; `ask` raises NotAnswered.

    One that is ignorable may fail.
    """

    name: str
    ask: Verb
    interested: bool = True
    ignorable: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VictimChoice:
    """The node that is taken, and its victims."""

    node: str
    victims: Victims


def eligible(priority: int, nominated: str | None, on_node: Callable[[str], Iterable[Pod]]) -> bool:
    """Not again while a pod of a lower priority is still leaving the node that is nominated for the pod."""
    if not nominated:
        return True
    return not any(pod.terminating and priority_of(pod) < priority for pod in on_node(nominated))


def pick(candidates: Mapping[str, Victims]) -> str | None:
    """The node where it costs least; of equal ones the first."""
    return min(candidates, key=lambda node: cost(candidates[node]), default=None)


def cost(victims: Victims) -> tuple[float, ...]:
    """Compared from left to right; a node without victims costs least of all, and late starts cost less."""
    priorities = [priority_of(pod) for pod in victims.pods]
    if not priorities:
        return ()
    lifted, started = sum(one + LIFT for one in priorities), parties.first_start(victims.pods)
    return victims.violations, max(priorities), lifted, len(priorities), -started


def extended(candidates: Mapping[str, Victims], extenders: Iterable[Extender]) -> Mapping[str, Victims]:
    """What the extenders leave, each seeing what those before it left; raises NotAnswered of one that counts."""
    for extender in extenders:
        if not candidates:
            break
        if not extender.interested:
            continue
        try:
            candidates = dict(extender.ask(candidates))
        except NotAnswered:
            if not extender.ignorable:
                raise
    return candidates


def preempt(
    priority: int,
    by_node: Mapping[str, Sequence[Party]],
    fits: Fits,
    guarded: Guarded = parties.unguarded,
    extenders: Iterable[Extender] = (),
) -> VictimChoice | None:
    """Among nodes where it might help: the victims, what extenders say, and where it costs least."""
    candidates = extended(parties.select_all(priority, by_node, fits, guarded), extenders)
    node = pick(candidates)
    return VictimChoice(node=node, victims=candidates[node]) if node is not None else None
