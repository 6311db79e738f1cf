"""What pods use of nodes, and which of them are there, follows watches and assumptions."""

import dataclasses
from collections.abc import Callable, Mapping
from fractions import Fraction

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import snapshot
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.model.meta import Condition
from slurm_bridge.translate import resources
from tests.unit.cluster.cache_scenes import ONE, bound, keeper
from tests.unit.hooks.builders import node, pod, slurm_node


def used(made: ClusterCache, name: str = "n1") -> Mapping[str, Fraction]:
    """What is used of a node now."""
    return dict(made.snapshot().nodes[name].used)


def test_a_pod_counts_until_it_is_terminal() -> None:
    """Whoever scheduled it; deletion alone does not free anything."""
    made = keeper(node("n1"))
    running = bound("a", "n1")
    made.on_pod(None, running)
    assert used(made) == ONE
    made.on_pod(running, bound("a", "n1", phase="Succeeded"))
    assert used(made) == {}


def test_a_pod_that_is_gone_counts_no_more() -> None:
    """Deleted from the cluster."""
    made = keeper(node("n1"))
    made.on_pod(None, bound("a", "n1"))
    made.on_pod(bound("a", "n1"), None)
    assert used(made) == {}


def test_a_pending_pod_uses_nothing() -> None:
    """It has no node yet."""
    made = keeper(node("n1"))
    made.on_pod(None, pod("a", requests={"cpu": "1"}))
    assert used(made) == {}


def test_a_resized_pod() -> None:
    """The new size counts, not both."""
    made = keeper(node("n1"))
    made.on_pod(None, bound("a", "n1"))
    made.on_pod(bound("a", "n1"), bound("a", "n1", cpu="3"))
    assert used(made) == {**ONE, "cpu": Fraction(3)}


def test_use_is_remembered_for_a_node_that_comes_later() -> None:
    """Watches of pods and nodes are not ordered."""
    made = keeper()
    made.on_pod(None, bound("a", "n1"))
    made.on_node(None, node("n1"))
    assert used(made) == ONE


def test_use_does_not_move_the_version() -> None:
    """Plans do not depend on what is in use."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.on_pod(None, bound("a", "n1"))
    after = made.snapshot()
    assert after.version == before.version
    assert after.use_version > before.use_version


def test_an_assumed_pod_counts_once() -> None:
    """From the decision on, and not twice when the cluster says the same."""
    made = keeper(node("n1"))
    made.assume("uid-a", "n1", ONE)
    assert used(made) == ONE
    made.on_pod(None, bound("a", "n1"))
    made.forget("uid-a")
    assert used(made) == ONE


def test_a_forgotten_assumption() -> None:
    """The binding failed: nothing is used."""
    made = keeper(node("n1"))
    made.assume("uid-a", "n1", ONE)
    made.forget("uid-a")
    made.forget("uid-a")
    assert used(made) == {}


def test_the_cluster_knows_better_than_an_assumption() -> None:
    """Somebody bound it elsewhere."""
    made = keeper(node("n1"), node("n2"))
    made.assume("uid-a", "n1", ONE)
    made.on_pod(None, bound("a", "n2"))
    made.assume("uid-a", "n1", ONE)
    assert (used(made, "n1"), used(made, "n2")) == ({}, ONE)


def test_an_assumed_pod_that_is_deleted() -> None:
    """It never ran: its assumption goes with it."""
    made = keeper(node("n1"))
    made.assume("uid-a", "n1", ONE)
    made.on_pod(pod("a"), None)
    assert used(made) == {}


@pytest.mark.parametrize(
    ("requests", "missing"),
    [
        ({"cpu": 16}, None),
        ({"cpu": 15, "pods": 1}, None),
        ({"cpu": 17}, "Insufficient cpu"),
        ({"memory": 2**40, "nvidia.com/gpu": 1}, "Insufficient memory, Insufficient nvidia.com/gpu"),
        ({"nvidia.com/gpu": 0}, None),
        ({"pods": 111}, "Too many pods"),
    ],
)
def test_fits(requests: Mapping[str, int], missing: str | None) -> None:
    """What is missing is named in kube-scheduler's words."""
    facts = keeper(node("n1")).snapshot().nodes["n1"]
    assert snapshot.fits(facts, {name: Fraction(amount) for name, amount in requests.items()}) == missing


def test_fits_beside_what_is_there() -> None:
    """Pods of all schedulers count."""
    made = keeper(node("n1"))
    made.on_pod(None, bound("a", "n1", cpu="15"))
    facts = made.snapshot().nodes["n1"]
    assert snapshot.fits(facts, ONE) is None
    assert snapshot.fits(facts, {"cpu": Fraction(2)}) == "Insufficient cpu"
    assert snapshot.lacking(facts, {"cpu": Fraction(2)}, free=False) == ()


_steps = st.lists(
    st.tuples(
        st.sampled_from(["assume", "forget", "run", "end", "gone"]), st.sampled_from("abc"), st.sampled_from("12")
    ),
    max_size=25,
)


@hypothesis.given(_steps)
def test_any_history_adds_up(steps: list[tuple[str, str, str]]) -> None:
    """Whatever happens, what is used is exactly what is held, and nothing remains when all have gone."""
    made = keeper(node("n1"), node("n2"))
    held: dict[str, tuple[str, bool]] = {}
    for what, name, where in steps:
        uid, place = f"uid-{name}", f"n{where}"
        observed = held.get(uid, ("", False))[1]
        if what == "assume":
            made.assume(uid, place, ONE)
            held[uid] = held[uid] if observed else (place, False)
        elif what == "forget":
            made.forget(uid)
            held = held if observed else {key: value for key, value in held.items() if key != uid}
        elif what == "run":
            made.on_pod(None, bound(name, place))
            held[uid] = (place, True)
        else:
            made.on_pod(bound(name, place), bound(name, place, phase="Failed") if what == "end" else None)
            held.pop(uid, None)
    places = [place for place, _ in held.values()]
    assert [used(made, one).get("pods", 0) for one in ("n1", "n2")] == [places.count("n1"), places.count("n2")]


def named(made: ClusterCache, name: str = "n1") -> list[str]:
    """The pods on a node now."""
    return [one.metadata.name for one in made.snapshot().nodes[name].pods]


def test_pods_are_known_by_node() -> None:
    """Those of any scheduler, for as long as they count; also where the node comes after them."""
    made = keeper(node("n1"))
    made.on_pod(None, bound("a", "n1"))
    made.on_pod(None, bound("b", "n2"))
    made.on_pod(None, pod("waiting"))
    made.on_node(None, node("n2"))
    assert (named(made), named(made, "n2")) == (["a"], ["b"])
    made.on_pod(bound("a", "n1"), bound("a", "n1", phase="Succeeded"))
    made.on_pod(bound("b", "n2"), None)
    assert (named(made), named(made, "n2")) == ([], [])


def test_an_assumed_pod_is_there_when_it_is_given() -> None:
    """Else only its amounts count; what the cluster shows replaces it."""
    made = keeper(node("n1"))
    made.assume("uid-a", "n1", ONE)
    assert (named(made), used(made)) == ([], ONE)
    made.assume("uid-a", "n1", ONE, pod("a"))
    assert (named(made), used(made)) == (["a"], ONE)
    seen = bound("a", "n1")
    made.on_pod(pod("a"), seen)
    assert made.snapshot().nodes["n1"].pods == (seen,)
    made.forget("uid-a")
    assert named(made) == ["a"]


def test_a_forgotten_pod_is_not_there() -> None:
    """Nor one that turned out to be elsewhere."""
    made = keeper(node("n1"), node("n2"))
    made.assume("uid-a", "n1", ONE, pod("a"))
    made.on_pod(None, bound("a", "n2"))
    assert (named(made), named(made, "n2")) == ([], ["a"])
    made.assume("uid-b", "n1", ONE, pod("b"))
    made.forget("uid-b")
    assert named(made) == []


def test_the_version_can_be_asked_without_a_snapshot() -> None:
    """For every node that a watch lists at the start, for example."""
    made = keeper(node("n1"))
    assert made.version == made.snapshot().version
    made.on_node(node("n1"), node("n1", labels={"a": "b"}))
    assert made.version == made.snapshot().version


def test_a_pod_that_goes_on_keeps_its_place() -> None:
    """Where it asks for as much as before, only the pod itself is another; those beside it stay in their order."""
    made = keeper(node("n1"))
    first, second = bound("a", "n1", phase="Pending"), bound("b", "n1")
    for one in (first, second):
        made.on_pod(None, one)
    before = made.snapshot().nodes["n1"]
    made.on_pod(first, bound("a", "n1", phase="Running"))
    after = made.snapshot().nodes["n1"]
    assert [(one.metadata.name, one.status.phase) for one in after.pods] == [("a", "Running"), ("b", "Running")]
    assert (after.used, after.placed) == (before.used, before.placed)


def test_a_pod_of_which_only_the_amounts_are_left() -> None:
    """Whoever assumes it anew without the pod itself takes it from those that are shown, and not from the sums."""
    made, one = keeper(node("n1")), pod("a", requests={"cpu": "1"})
    made.assume(one.uid, "n1", resources.requests_of(one), one)
    made.assume(one.uid, "n1", resources.requests_of(one))
    assert made.snapshot().nodes["n1"].pods == ()
    assert used(made) == ONE
    made.forget(one.uid)
    assert used(made) == {}


AWAY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


replace = msgspec.structs.replace


def test_what_decides_who_comes_near_moves_a_version_of_its_own() -> None:
    """A word of a node, a promise, and pods with affinity; not pods that only take room, nor what Slurm counts."""
    made = keeper(node("n1"))
    plain, picky = bound("a", "n1"), pod("b", affinity=AWAY, node_name="n1", phase="Running")
    pressed, promised = node("n1"), pod("w")
    full = Condition(type="DiskPressure", status="True")
    pressed = replace(pressed, status=replace(pressed.status, conditions=(*pressed.status.conditions, full)))
    promised = replace(promised, status=replace(promised.status, nominated_node_name="n1"))
    steps: tuple[tuple[bool, Callable[[], None]], ...] = (
        (False, lambda: made.on_pod(None, plain)),
        (False, lambda: made.on_pod(plain, None)),
        (False, lambda: made.assume("c", "n1", {"cpu": Fraction(1)}, pod("c"))),
        (False, lambda: made.set_slurm([dataclasses.replace(slurm_node("n1"), used_cpus=3)], [])),
        (True, lambda: made.on_pod(None, picky)),
        (True, lambda: made.on_pod(picky, None)),
        (True, lambda: made.assume(picky.uid, "n1", {}, picky)),
        (True, lambda: made.forget(picky.uid)),
        (True, lambda: made.on_pod(None, promised)),
        (True, lambda: made.on_node(node("n1"), pressed)),
        (True, lambda: made.on_node(pressed, node("n1", unschedulable=True))),
    )
    for moves, step in steps:
        made.set_slurm([slurm_node("n1")], [])
        before = made.snapshot()
        step()
        after = made.snapshot()
        assert after.use_version > before.use_version
        assert (after.company_version > before.company_version) is moves
