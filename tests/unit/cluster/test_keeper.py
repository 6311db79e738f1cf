"""The snapshot says what both sides said last, and moves its versions only for a reason."""

import dataclasses
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import snapshot
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.model import names
from slurm_bridge.model.meta import Condition
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources
from tests.unit.hooks.builders import node, partition, pod, slurm_node


def keeper(*nodes: Node) -> ClusterCache:
    """One that knows these nodes, and Slurm's counterparts."""
    made = ClusterCache(resources.requests_of)
    for one in nodes:
        made.on_node(None, one)
    found = tuple(one.slurm_name for one in nodes)
    made.set_slurm(map(slurm_node, found), [partition("debug", *found)])
    return made


def bound(name: str, where: str, cpu: str = "1", phase: str = "Running") -> Pod:
    """A pod that runs somewhere."""
    return pod(name, requests={"cpu": cpu}, node_name=where, phase=phase)


def used(made: ClusterCache, name: str = "n1") -> Mapping[str, Fraction]:
    """What is used of a node now."""
    return dict(made.snapshot().nodes[name].used)


ONE = {"cpu": Fraction(1), "pods": Fraction(1)}


def test_nothing_new_is_the_same_snapshot() -> None:
    """Looking twice costs nothing."""
    made = keeper(node("n1"))
    assert made.snapshot() is made.snapshot()


def test_a_snapshot_does_not_change() -> None:
    """What was given out stays as it was."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.on_pod(None, bound("a", "n1"))
    made.on_node(node("n1"), None)
    assert list(before.nodes) == ["n1"]
    assert not before.nodes["n1"].used


def test_t25_both_names_of_a_node() -> None:
    """A label names the node's counterpart in Slurm, and both ways lead to the same facts."""
    made = keeper(node("n1", labels={names.LABEL_SLURM_NODE_NAME: "slurm1"}))
    seen = made.snapshot()
    found = seen.by_slurm_name("slurm1")
    assert found is seen.nodes["n1"]
    assert found.slurm == slurm_node("slurm1")
    assert seen.by_slurm_name("n1") is None


def test_t24_a_slurm_node_that_kubernetes_does_not_have() -> None:
    """It is known as a Slurm node, and leads to no facts."""
    made = keeper()
    made.set_slurm([slurm_node("ghost")], [])
    assert made.snapshot().by_slurm_name("ghost") is None
    assert "ghost" in made.snapshot().slurm_nodes


def test_two_nodes_that_claim_one_counterpart_get_none() -> None:
    """Nobody could say which of them an allocation means; the one that remains gets it back."""
    label = {names.LABEL_SLURM_NODE_NAME: "s"}
    one, other = node("n1", labels=label), node("n2", labels=label)
    made = keeper(one, other)
    assert [facts.slurm for facts in made.snapshot().nodes.values()] == [None, None]
    made.on_node(other, None)
    assert made.snapshot().by_slurm_name("s") is made.snapshot().nodes["n1"]


def test_a_node_that_takes_another_slurm_name() -> None:
    """The old name leads nowhere, the new one to it."""
    made = keeper(node("n1"))
    made.set_slurm([slurm_node("n1"), slurm_node("s")], [])
    made.on_node(node("n1"), node("n1", labels={names.LABEL_SLURM_NODE_NAME: "s"}))
    seen = made.snapshot()
    assert seen.by_slurm_name("n1") is None
    assert seen.by_slurm_name("s") is not None


CHANGES: Mapping[str, Node] = {
    "label": node("n1", labels={"a": "b"}),
    "taint": node("n1", taints=[Taint(key="k", effect="NoSchedule")]),
    "cordoned": node("n1", unschedulable=True),
    "readiness": node("n1", ready=False),
    "allocatable": node("n1", allocatable={"cpu": "8"}),
    "deletion": node("n1", deleting=True),
    "another incarnation": node("n1", uid="other"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_placement_depends_on_moves_the_version(what: str) -> None:
    """A plan that was worked out before must not be used any more."""
    made = keeper(node("n1"))
    before = made.snapshot().version
    made.on_node(node("n1"), CHANGES[what])
    assert made.snapshot().version > before
    assert made.snapshot().nodes["n1"].node == CHANGES[what]


def test_a_heartbeat_does_not_move_the_version() -> None:
    """Kubelets report every few seconds; only the object is taken over."""
    made = keeper(node("n1"))
    before = made.snapshot()
    fresh = node("n1", version="2")
    pressure = (*fresh.status.conditions, Condition(type="MemoryPressure", status="False"))
    fresh = msgspec.structs.replace(fresh, status=msgspec.structs.replace(fresh.status, conditions=pressure))
    made.on_node(node("n1"), fresh)
    after = made.snapshot()
    assert after.nodes["n1"].node == fresh
    assert (after.version, after.names) == (before.version, before.names)
    assert after.names is before.names


def test_nodes_come_and_go() -> None:
    """Both move the version, and names follow."""
    made = keeper(node("n1"))
    first = made.snapshot()
    made.on_node(None, node("n2"))
    second = made.snapshot()
    made.on_node(node("n1"), None)
    third = made.snapshot()
    assert [set(one.names) for one in (first, second, third)] == [{"n1"}, {"n1", "n2"}, {"n2"}]
    assert first.version < second.version < third.version


def test_the_end_of_an_unknown_node_is_nothing() -> None:
    """A node that was never seen cannot leave."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.on_node(node("n2"), None)
    assert made.snapshot() is before


def test_slurm_says_the_same_again() -> None:
    """An unchanged answer is no change."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.set_slurm([slurm_node("n1")], [partition("debug", "n1")])
    assert made.snapshot() is before


def test_a_slurm_node_that_gets_busy_does_not_move_the_version() -> None:
    """Slurm itself knows its states; our plans do not depend on them."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.set_slurm([slurm_node("n1", states="ALLOCATED EXTERNAL")], [partition("debug", "n1")])
    after = made.snapshot()
    assert after.version == before.version
    assert after.nodes["n1"].slurm == slurm_node("n1", states="ALLOCATED EXTERNAL")


def test_a_partition_that_goes_down_does_not_move_the_version() -> None:
    """Slurm queues for it; but the snapshot tells."""
    made = keeper(node("n1"))
    before = made.snapshot()
    down = dataclasses.replace(partition("debug", "n1"), states=frozenset({"DOWN"}))
    made.set_slurm([slurm_node("n1")], [down])
    after = made.snapshot()
    assert (after.version, after.partitions) == (before.version, (down,))


@pytest.mark.parametrize(
    ("nodes", "partitions"),
    [
        ([], [partition("debug", "n1")]),
        ([slurm_node("n1"), slurm_node("n2")], [partition("debug", "n1")]),
        ([slurm_node("n1", partitions=("other",))], [partition("debug", "n1")]),
        ([slurm_node("n1")], [partition("debug")]),
        ([slurm_node("n1")], [partition("debug", "n1"), partition("big", "n1")]),
    ],
)
def test_slurm_nodes_and_partitions_move_the_version(nodes: list[Any], partitions: list[Any]) -> None:
    """What belongs where decides which names may be sent."""
    made = keeper(node("n1"))
    before = made.snapshot().version
    made.set_slurm(nodes, partitions)
    assert made.snapshot().version > before


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


def test_what_slurm_knows_of_what_is_used() -> None:
    """Pods that name their job, and those that are about to be bound for one; not those of other schedulers."""

    def placed(made: ClusterCache) -> tuple[Mapping[str, Fraction], Mapping[str, Fraction]]:
        facts = made.snapshot().nodes["n1"]
        return dict(facts.placed), dict(facts.used)

    made = keeper(node("n1"))
    made.on_pod(None, bound("theirs", "n1"))
    assert placed(made) == ({}, ONE)
    made.assume("uid-ours", "n1", ONE)
    two = {name: 2 * amount for name, amount in ONE.items()}
    assert placed(made) == (ONE, two)
    ours = bound("ours", "n1")
    labelled = msgspec.structs.replace(
        ours, metadata=msgspec.structs.replace(ours.metadata, labels={names.LABEL_JOB_ID: "7"})
    )
    made.on_pod(None, labelled)
    assert placed(made) == (ONE, two)
    made.on_pod(labelled, None)
    assert placed(made) == ({}, ONE)


def test_what_jobs_use_moves_no_rule() -> None:
    """It changes with every start; what is cached for rules about placement stands."""
    made = keeper(node("n1"))
    before = made.snapshot()
    busy = slurm_node("n1", used_cpus=4, used_memory_mib=100)
    made.set_slurm([busy], before.partitions)
    after = made.snapshot()
    assert (after.version, after.nodes["n1"].slurm) == (before.version, busy)
    assert after.use_version > before.use_version
    made.set_slurm([slurm_node("n1", cpus=8)], before.partitions)
    assert made.snapshot().version > before.version


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


def test_a_link_that_changes_is_followed() -> None:
    """Slurm comes to know a node, takes another name for it, forgets it."""
    made = ClusterCache(resources.requests_of)
    made.on_node(None, node("n1"))
    found = [dict(made.snapshot().by_slurm)]
    for names_of_slurm in (["n1"], [], ["n1"]):
        made.set_slurm(map(slurm_node, names_of_slurm), [])
        found.append(dict(made.snapshot().by_slurm))
    made.on_node(node("n1"), node("n1", labels={"a": "b"}))
    found.append(dict(made.snapshot().by_slurm))
    made.on_node(node("n1"), node("n1", labels={names.LABEL_SLURM_NODE_NAME: "s"}))
    found.append(dict(made.snapshot().by_slurm))
    linked = {"n1": "n1"}
    assert found == [{}, linked, {}, linked, linked, {}]


def test_another_default_partition_is_another_version() -> None:
    """Jobs that name none come to other nodes then; who remembers by version must not give the old ones."""
    follows = keeper()
    machines = [slurm_node("a"), slurm_node("b")]
    follows.set_slurm(machines, [partition("x", "a", default=True), partition("y", "b")])
    before = follows.version
    follows.set_slurm(machines, [partition("x", "a"), partition("y", "b", default=True)])
    assert follows.version > before


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
