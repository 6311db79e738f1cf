"""Predicates in their order, pods that were promised a node, and the error when nothing is left."""

from collections.abc import Iterable

import pytest

from slurm_bridge.cluster.nominations import Nominations
from slurm_bridge.families.kube_scheduler import filters
from slurm_bridge.families.kube_scheduler.predicates import standard
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, Predicate
from slurm_bridge.families.kube_scheduler.scene import Scene, with_pods
from slurm_bridge.model.pod import Pod
from tests.conformance.kube_cycle import fiterror
from tests.conformance.kube_cycle.fiterror import FitError
from tests.unit.families.kube_scheduler.scenes import keeper, node, pod, seen, snapshot

THREE = [node("a"), node("b"), node("c")]


def saying(names: Iterable[str], *reasons: str) -> Predicate:
    """A predicate that denies these nodes."""
    denied = frozenset(names)
    return lambda at: tuple((at.columns.mask(denied), reason) for reason in reasons)


PREDICATES = {"one": saying("ab", "x", "y"), "two": saying("bc", "z"), "three": saying("", "never")}


def test_a_node_is_out_with_the_first_predicate_that_fails() -> None:
    """It has all reasons of that one, and none of those after it."""
    found = filters.evaluate(seen(pod(), THREE), PREDICATES)
    assert dict(found) == {"a": ("x", "y"), "b": ("x", "y"), "c": ("z",)}


def test_all_reasons_when_all_are_asked() -> None:
    """In the order of the predicates."""
    found = filters.evaluate(seen(pod(), THREE), PREDICATES, always_check_all=True)
    assert dict(found) == {"a": ("x", "y"), "b": ("x", "y", "z"), "c": ("z",)}


def test_nobody_is_asked_when_nothing_is_left() -> None:
    """Predicates cost something."""

    def unwanted(_scene: Scene) -> Failures:
        raise AssertionError("was asked")

    found = filters.evaluate(seen(pod(), THREE), {"all": saying("abc", "x"), "later": unwanted})
    assert found.counts() == {"x": 3}


def test_order_is_for_configuration_to_say() -> None:
    """The predicate that is named first gives the reason."""
    turned = dict(reversed(PREDICATES.items()))
    assert filters.reasons_at(seen(pod(), THREE), "b", turned) == ("z",)


def test_a_node_that_is_not_judged_has_no_reasons() -> None:
    """Nobody has looked at it."""
    assert filters.reasons_at(seen(pod(), THREE), "gone", PREDICATES) == ()


FITS = {"PodFitsResources": standard.build("PodFitsResources", {}, {})}
PROMISED = pod("promised", requests={"cpu": 6}, priority=5)


@pytest.mark.parametrize(("priority", "denied"), [(4, True), (5, True), (6, False)])
def test_room_for_whoever_was_promised_the_node(priority: int, denied: bool) -> None:
    """Pods of the same or higher priority count as if they were there; lower ones have to look elsewhere."""
    at = seen(pod(requests={"cpu": 3}, priority=priority), THREE)
    found = filters.evaluate(at, FITS, nominated={"a": (PROMISED,), "gone": (PROMISED,)})
    assert dict(found) == ({"a": ("Insufficient cpu",)} if denied else {})


def test_a_promise_does_not_stand_in_its_own_way() -> None:
    """The pod that was promised the node may have it."""
    at = seen(PROMISED, THREE)
    assert filters.evaluate(at, FITS, nominated={"a": (PROMISED,)}).counts() == {}


def test_the_promised_may_not_come() -> None:
    """A pod that only fits with them there does not fit."""
    alone = {"needs company": lambda at: ((at.columns.pods.count(at.columns.pods.present) == 0, "lonely"),)}
    at = seen(pod(), THREE)
    assert dict(filters.evaluate(at, alone, nominated={"a": (PROMISED,)}))["a"] == ("lonely",)


def test_promises_are_in_the_snapshot() -> None:
    """From the moment at which a pod names the node until it is bound, gone or promised nothing any more."""
    waiting = pod("w", nominated="a")
    follows = keeper(THREE, [waiting])
    assert follows.snapshot().nominated == {"a": (waiting,)}
    before = follows.snapshot()
    follows.on_pod(waiting, pod("w", nominated="b"))
    assert set(follows.snapshot().nominated) == {"b"}
    assert follows.snapshot().use_version > before.use_version
    follows.on_pod(waiting, pod("w", nominated="b", on="b"))
    assert follows.snapshot().nominated == {}


@pytest.mark.parametrize("now", [None, pod("w")])
def test_a_promise_that_is_over(now: Pod | None) -> None:
    """The pod is gone, or was promised something else; to hear the same twice changes nothing."""
    known = Nominations()
    waiting = pod("w", nominated="a")
    assert known.hear(waiting.uid, waiting)
    assert not known.hear(waiting.uid, waiting)
    assert known.hear(waiting.uid, now)
    assert known.by_node == {}
    assert not known.hear(waiting.uid, now)


def test_a_node_with_other_pods() -> None:
    """What it uses follows: those that went no longer count, those that came do, odd ones count as nothing."""
    running = [pod("r1", on="a", requests={"cpu": 2}), pod("r2", on="a", requests={"cpu": 3})]
    facts = snapshot(THREE, running).nodes["a"]
    now = with_pods(facts, [running[1], pod("new", requests={"cpu": 1}), pod("odd", requests={"cpu": "much"})])
    assert (now.used["cpu"], now.used["pods"], len(now.pods)) == (4, 2, 3)
    assert with_pods(now, facts.pods).used == facts.used


def test_a_fit_error_counts_reasons_over_all_nodes() -> None:
    """Sorted as text, over all nodes, whether anybody looked at them or not."""
    found = filters.evaluate(seen(pod(), THREE), PREDICATES)
    assert FitError(nodes=12, reasons=found).message == "0/12 nodes are available: 1 z, 2 x, 2 y."
    assert fiterror.message(3, {"a": ("x", "x")}) == "0/3 nodes are available: 2 x."
    assert fiterror.message(3, {}) == "0/3 nodes are available: ."


def test_a_reason_can_be_said_twice() -> None:
    """Two predicates with one word for it: the node counts twice, as in kube-scheduler."""
    twice = {"one": saying("a", "x"), "two": saying("a", "x")}
    found = filters.evaluate(seen(pod(), THREE), twice, always_check_all=True)
    assert FitError(nodes=3, reasons=found).message == "0/3 nodes are available: 2 x."
