"""What a predicate is: asked about one pod, it says which nodes fail and why."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.cluster.columns import Mask
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.features import Feature

#: Which of the nodes of a scene fail, with the words for it, in the order in which the words are said.
Failures = tuple[tuple[Mask, str], ...]

#: Any callable of this form will do; it must not change what it is given.
Predicate = Callable[[Scene], Failures]

PASSED: Failures = ()


class BadPredicate(ValueError):
    """A predicate that cannot be used as it is configured; the message says why."""


def never(_scene: Scene) -> bool:
    """The answer follows from what nodes are, and not from what runs on them."""
    return False


def always(_scene: Scene) -> bool:
    """The answer may follow from what runs."""
    return True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PredicateRule:
    """A predicate, what it has to see, and whether its answer about a pod can change with what runs (`moving`).

    Answers that cannot are remembered for as long as the nodes stay as they are, however many pods come and go. Which
    these are is remembered, too, by the snapshot's `company_version`: `moving` may look at the pod and at what is
    looked up for it, at nodes themselves, and of what runs there at affinity. `own`: it comes with a site's package,
    and always moves. `honours`: what pods ask for and it sees to.
    """

    failures: Predicate
    needs: frozenset[Need] = frozenset()
    moving: Callable[[Scene], bool] = never
    own: bool = False
    honours: frozenset[Feature] = frozenset()

    def __call__(self, scene: Scene) -> Failures:
        return self.failures(scene)


#: Makes a rule from the `args` of its configuration; raises ValueError saying which arguments there are.
Builder = Callable[[Mapping[str, Any]], PredicateRule]


def failing(mask: Mask, reason: str) -> Failures:
    """One reason, where there is any node for it."""
    return ((mask, reason),) if mask.any() else PASSED
