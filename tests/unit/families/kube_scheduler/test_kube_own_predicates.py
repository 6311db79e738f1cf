"""Predicates of a site's own: loaded by name, checked, and named when something is wrong with them."""

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.families.kube_scheduler import filters
from slurm_bridge.families.kube_scheduler.predicates import own, standard
from slurm_bridge.families.kube_scheduler.predicates.base import BadPredicate, Failures
from slurm_bridge.families.kube_scheduler.predicates.own import PredicateFailed
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.features import Feature
from slurm_bridge.model.pod import Pod
from tests.unit.families.kube_scheduler.scenes import node, pod, seen


def loud(scene: Scene) -> Failures:
    """Denies node a."""
    return ((scene.columns.mask(["a"]), "node(s) are too loud"),)


def raising(_scene: Scene) -> Failures:
    """Has a defect."""
    raise KeyError("rack")


def nonsense(_scene: Scene) -> Any:
    """Answers with numbers."""
    return ((np.zeros(1), "x"),)


def by_name(subject: Pod, facts: NodeFacts) -> Iterator[str]:
    """Nodes are for pods of their own name."""
    if facts.name != subject.metadata.name:
        yield "node(s) have another name"


named = own.per_node(by_name)


class Looking:
    """Needs to see claims, and looks at ports."""

    needs: Any = (Need.PVCS,)
    honours: Any = (Feature.HOST_PORTS,)

    def __call__(self, scene: Scene) -> Failures:
        return loud(scene)


class Greedy(Looking):
    """Needs what there is not."""

    needs: Any = ("pods",)


class Vague(Looking):
    """Honours what there is not."""

    honours: Any = (5,)


looking, greedy, vague, number = Looking(), Greedy(), Vague(), 5


def built(what: str, **args: Any) -> dict[str, Any]:
    """The site's predicate `mine`, which is this of this module."""
    entry = importlib.metadata.EntryPoint("mine", f"{__name__}:{what}", own.GROUP)
    return {"mine": standard.build("mine", args, {"mine": entry})}


TWO = [node("a"), node("b")]


def test_a_function_of_a_scene() -> None:
    """It denies with its own words, and is asked again whenever anything moved."""
    rules = built("loud")
    at = seen(pod(), TWO)
    assert dict(filters.evaluate(at, rules)) == {"a": ("node(s) are too loud",)}
    assert rules["mine"].own
    assert rules["mine"].moving(at)


def test_a_function_of_one_node() -> None:
    """Asked for each node in turn."""
    assert dict(filters.evaluate(seen(pod("a"), TWO), built("named"))) == {"b": ("node(s) have another name",)}


def test_what_it_has_to_see() -> None:
    """It says so by an attribute."""
    assert built("looking")["mine"].needs == {Need.PVCS}


def test_what_it_honours() -> None:
    """Likewise; then no pod waits for another hook that does."""
    assert built("looking")["mine"].honours == {Feature.HOST_PORTS}
    with pytest.raises(BadPredicate, match="honours 5, use one of TOPOLOGY_SPREAD"):
        built("vague")


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("raising", "predicate mine: KeyError: 'rack'"),
        ("nonsense", "predicate mine: answered with float64 of shape .1,. with str, not with bool of shape .2,."),
    ],
)
def test_a_defect_names_the_predicate(what: str, told: str) -> None:
    """The hook's own handling of errors follows."""
    with pytest.raises(PredicateFailed, match=told):
        filters.evaluate(seen(pod(), TWO), built(what))


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("missing", "predicate mine: cannot be loaded: AttributeError"),
        ("number", "predicate mine: .*:number is not callable: a predicate is a function of a scene"),
        ("greedy", "predicate mine: needs 'pods', use one of PODS, PVCS"),
    ],
)
def test_what_cannot_be_a_predicate(what: str, told: str) -> None:
    """It is found when the configuration is read."""
    with pytest.raises(BadPredicate, match=told):
        built(what)


def test_its_own_predicates_take_no_arguments() -> None:
    """There is nobody who could check them."""
    with pytest.raises(BadPredicate, match="predicate mine: takes no args, and was given x"):
        built("loud", x=1)
