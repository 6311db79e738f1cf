"""A site's own predicates: functions of a scene, or of a pod and one node, from packages that offer them."""

import importlib.metadata
from collections.abc import Callable, Iterable

import numpy as np

from slurm_bridge.cluster.columns import Mask
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.families.kube_scheduler.plugins import PREDICATE_GROUP
from slurm_bridge.families.kube_scheduler.predicates.base import (
    BadPredicate,
    Failures,
    Predicate,
    PredicateRule,
    always,
)
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.features import Feature
from slurm_bridge.model.pod import Pod

#: Entry points of packages that bring predicates.
GROUP = PREDICATE_GROUP


class PredicateFailed(Exception):
    """A site's predicate raised, or answered with something that is no answer; the message names it."""


def load(name: str, offered: importlib.metadata.EntryPoint) -> PredicateRule:
    """As a rule; its attribute `needs` says what it has to see, `honours` what it sees to. Raises BadPredicate."""
    try:
        found = offered.load()
    except Exception as error:  # foreign code: whatever its import raises makes only it unusable
        raise BadPredicate(f"cannot be loaded: {type(error).__name__}: {error}") from error
    needs = frozenset(getattr(found, "needs", ()))
    if not callable(found):
        raise BadPredicate(f"{offered.value} is not callable: a predicate is a function of a scene")
    if strange := [repr(need) for need in needs if not isinstance(need, Need)]:
        raise BadPredicate(f"needs {', '.join(sorted(strange))}, use one of {', '.join(need.name for need in Need)}")
    honours = frozenset(getattr(found, "honours", ()))
    if strange := [repr(one) for one in honours if not isinstance(one, Feature)]:
        raise BadPredicate(f"honours {', '.join(sorted(strange))}, use one of {', '.join(one.name for one in Feature)}")
    return PredicateRule(failures=_checked(name, found), needs=needs, moving=always, own=True, honours=honours)


def per_node(ask: Callable[[Pod, NodeFacts], Iterable[str]]) -> Predicate:
    """A predicate of a function that says why one node cannot take a pod: slower, and often fast enough."""

    def over_all(scene: Scene) -> Failures:
        found: dict[str, Mask] = {}
        for row, facts in enumerate(scene.columns.facts):
            for reason in ask(scene.pod, facts) if facts is not None else ():
                found.setdefault(reason, np.zeros(len(scene.columns), np.bool_))[row] = True
        return tuple((mask, reason) for reason, mask in found.items())

    return over_all


def _checked(name: str, predicate: Predicate) -> Predicate:
    def checked(scene: Scene) -> Failures:
        try:
            found = tuple((np.asarray(mask), reason) for mask, reason in predicate(scene))
        except Exception as error:  # foreign code: the hook's `on_error` decides, and needs to know whose it was
            raise PredicateFailed(f"predicate {name}: {type(error).__name__}: {error}") from error
        for mask, reason in found:
            if mask.dtype != np.bool_ or mask.shape != (len(scene.columns),) or not isinstance(reason, str):
                shape = f"{mask.dtype} of shape {mask.shape} with {type(reason).__name__}"
                wanted = f"bool of shape ({len(scene.columns)},) with a text"
                raise PredicateFailed(f"predicate {name}: answered with {shape}, not with {wanted}")
        return found

    return checked
