"""Columns follow a cluster that changes, and are what they would be if they were made anew."""

import concurrent.futures
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.columns.follow import Follower
from slurm_bridge.cluster.columns.table import Past, RecordTable
from slurm_bridge.cluster.facts import Amounts, NodeFacts
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import resources
from tests.unit.hooks.builders import node, partition, pod, slurm_node

NODES = ("n1", "n2", "n3")


def running(name: str, where: str, app: str) -> Pod:
    """A pod on a node."""
    asked = {"cpu": app}
    return pod(name, requests=asked, node_name=where, phase="Running", metadata={"labels": {"app": app}})


def told(found: NodeColumns) -> Mapping[str, Any]:
    """All that columns say, by node; in which row they say it does not matter."""
    pods, zones, apps = found.pods, found.label("zone"), found.pods.label("app")
    web = pods.count(apps.among(("1",)))
    cpu, used, known = found.allocatable("cpu"), found.used("cpu"), found.attribute("known", _known)
    given, crowd = found.of_slurm("cpus there", _cpus), found.of_pods("names", _names)
    for coded in (zones, apps, known, crowd):
        assert set(coded.codes.tolist()) - {-1} == set(range(len(coded.values)))
    assert len(found) == len(found.names) == len(found.facts) == len(cpu) == len(zones.codes) == len(web)
    assert len(pods) == len(pods.pods) == len(apps.codes) == len(pods.node_rows)
    assert {"" if one is None else one.name for one in found.facts} == set(found.names.tolist())
    assert pods.present.tolist() == [one is not None for one in pods.pods]
    holes = ~found.present
    assert not cpu[holes].any()
    assert (zones.codes[holes] == -1).all()
    return {
        name: (
            found.facts[row],
            zones.values[zones.codes[row]],
            known.values[known.codes[row]],
            (cpu[row], used[row], web[row], given[row], found.whole_of_pods("number", _number)[row]),
            crowd.values[crowd.codes[row]],
            [pods.pods[one] for one in pods.rows_on(row)],
            [int(pods.node_rows[one]) for one in pods.rows_on(row)] == [row] * len(pods.rows_on(row)),
        )
        for row, name in enumerate(found.names.tolist())
        if name
    }


def _known(facts: NodeFacts) -> bool:
    return facts.slurm is not None


def _cpus(slurm: SlurmNode | None) -> int:
    return slurm.cpus if slurm is not None else -1


def _number(used: Amounts, pods: Sequence[Pod]) -> int:
    return 1000 * len(pods) + len(used)


def _names(pods: Sequence[Pod]) -> tuple[str, ...]:
    return tuple(one.metadata.name for one in pods)


def agree(seen: ClusterSnapshot) -> None:
    """The columns of a snapshot say what those say that are made from scratch."""
    found = seen.columns
    assert told(found) == told(NodeColumns.of(seen.nodes))
    assert found.nodes(found.present) == seen.names
    assert found.nodes(found.mask(seen.names)) == seen.names


_place = st.sampled_from(NODES)
_name = st.sampled_from("abcd")
_step = st.one_of(
    st.tuples(st.just("node"), _place, st.sampled_from(["x", "y", "z"])),
    st.tuples(st.just("drop"), _place),
    st.tuples(st.just("run"), _name, _place, st.sampled_from("12")),
    st.tuples(st.just("end"), _name),
    st.tuples(st.just("assume"), _name, _place),
    st.tuples(st.just("forget"), _name),
    st.tuples(st.just("slurm"), st.frozensets(_place)),
    st.tuples(st.just("take")),
    st.tuples(st.just("ask"), st.integers(0, 5)),
)


class History:
    """A keeper, and the snapshots that it gave out."""

    def __init__(self) -> None:
        self.keeper = ClusterCache(resources.requests_of)
        self.taken = [self.keeper.snapshot()]

    def do(self, what: str, *args: Any) -> None:
        getattr(self, what)(*args)

    def node(self, name: str, zone: str) -> None:
        self.keeper.on_node(None, node(name, labels={"zone": zone}, allocatable={"cpu": str(ord(zone))}))

    def drop(self, name: str) -> None:
        self.keeper.on_node(node(name), None)

    def run(self, name: str, where: str, app: str) -> None:
        self.keeper.on_pod(None, running(name, where, app))

    def end(self, name: str) -> None:
        self.keeper.on_pod(pod(name), None)

    def assume(self, name: str, where: str) -> None:
        one = pod(name, metadata={"labels": {"app": "1"}})
        self.keeper.assume(one.uid, where, resources.requests_of(one), one)

    def forget(self, name: str) -> None:
        self.keeper.forget(f"uid-{name}")

    def slurm(self, names: frozenset[str]) -> None:
        told = [slurm_node(name, cpus=number) for number, name in enumerate(sorted(names), 1)]
        self.keeper.set_slurm(told, [partition("debug", *sorted(names))])

    def take(self) -> None:
        self.taken.append(self.keeper.snapshot())

    def ask(self, back: int) -> None:
        agree(self.taken[-1 - back % len(self.taken)])


@hypothesis.given(st.lists(_step, max_size=40))
def test_any_history_gives_the_columns_of_its_end(steps: list[tuple[Any, ...]]) -> None:
    """Whatever happens, whenever somebody looks, and however old the snapshot is."""
    history = History()
    for step in steps:
        history.do(*step)
    for seen in (*history.taken, history.keeper.snapshot(), *reversed(history.taken)):
        agree(seen)


@hypothesis.given(
    st.lists(st.dictionaries(_place, st.sampled_from("xyz")), min_size=1, max_size=8),
    st.lists(st.integers(0, 7), max_size=12),
    st.sampled_from([0, 2, 8192]),
)
def test_columns_can_be_asked_for_in_any_order(
    states: list[dict[str, str]], order: list[int], most_changes: int
) -> None:
    """Also of versions between which nobody remembers what has changed."""
    follower, given = Follower(most_changes), list[Mapping[str, NodeFacts]]()
    for version, zones in enumerate(states):
        now = {name: _facts(name, zone, given[-1] if given else {}) for name, zone in zones.items()}
        before = given[-1] if given else {}
        changed = {name for name in {*before, *now} if before.get(name) is not now.get(name)}
        follower.note(version, changed)
        given.append(now)
    for number in order:
        version = number % len(given)
        nodes = given[version]
        assert told(follower.columns(version, nodes, frozenset(nodes))) == told(NodeColumns.of(nodes))


def _facts(name: str, zone: str, before: Mapping[str, NodeFacts]) -> NodeFacts:
    """A node as it was, where it is in the same zone."""
    known = before.get(name)
    if known is not None and known.node.metadata.labels == {"zone": zone}:
        return known
    one = node(name, labels={"zone": zone})
    return NodeFacts(name=name, slurm_name=name, node=one, slurm=None, allocatable={}, used={}, placed={})


def test_only_what_changed_is_looked_at() -> None:
    """One pod more on one node: the function is asked about that node alone, and other columns stay the same arrays."""
    history = History()
    for name in NODES:
        history.node(name, "x")
    asked: list[str] = []

    def noted(facts: NodeFacts) -> int:
        asked.append(facts.name)
        return len(facts.pods)

    before = history.keeper.snapshot().columns
    assert before.whole("pods there", noted).tolist() == [0, 0, 0]
    zones = before.label("zone")
    history.run("a", "n2", "1")
    after = history.keeper.snapshot().columns
    assert after.whole("pods there", noted).tolist() == [0, 1, 0]
    assert asked == [*NODES, "n2"]
    assert after.label("zone") is zones
    assert before.whole("pods there", noted).tolist() == [0, 0, 0]


def test_pods_that_stay_keep_their_rows() -> None:
    """What was worked out of them is carried along."""
    history = History()
    for name in NODES:
        history.node(name, "x")
        history.run(name, name, "1")
    before = history.keeper.snapshot().columns.pods
    rows = {one.metadata.name: row for row, one in enumerate(before.pods) if one}
    history.end("n1")
    history.run("new", "n3", "2")
    after = history.keeper.snapshot().columns.pods
    found = {one.metadata.name: row for row, one in enumerate(after.pods) if one}
    assert (found["n2"], found["n3"], found["new"]) == (rows["n2"], rows["n3"], rows["n1"])
    assert len(after) == 3


def test_nodes_that_come_take_the_places_of_those_that_went() -> None:
    """Else columns would grow for ever."""
    history = History()
    for number in range(300):
        history.node(f"n{number}", "x")
        if number:
            history.drop(f"n{number - 1}")
        assert history.keeper.snapshot().columns.names.tolist().count("") <= 1
    assert len(history.keeper.snapshot().columns) <= 2


def test_a_cluster_that_shrinks_gets_fresh_columns() -> None:
    """Holes are not dragged along when most of the rows are holes."""
    history = History()
    for number in range(200):
        history.node(f"n{number}", "x")
    assert len(history.keeper.snapshot().columns) == 200
    for number in range(190):
        history.drop(f"n{number}")
    assert len(history.keeper.snapshot().columns) == 10


def test_names_are_one_object_for_as_long_as_none_comes_or_goes() -> None:
    """A node that only changes leaves rows, names and their masks as they are."""
    history = History()
    history.node("n1", "x")
    before = history.keeper.snapshot()
    members = before.columns.members
    history.node("n1", "y")
    after = history.keeper.snapshot()
    assert (after.names is before.names, after.columns.members is members) == (True, True)
    assert after.version > before.version


def test_a_pod_that_comes_leaves_all_else_as_it_is() -> None:
    """What looks at nodes alone is not even asked for again: it is the very same column."""
    history = History()
    history.node("n1", "x")
    history.slurm(frozenset({"n1"}))
    before = history.keeper.snapshot().columns
    asked = [(one.label("zone"), one.allocatable("cpu"), one.given_away("cpu"), one.used("cpu")) for one in [before]]
    history.run("a", "n1", "1")
    after = history.keeper.snapshot().columns
    asked.append((after.label("zone"), after.allocatable("cpu"), after.given_away("cpu"), after.used("cpu")))
    assert [one is other for one, other in zip(*asked, strict=True)] == [True, True, True, False]


def test_a_snapshot_made_by_hand_has_columns_of_its_own() -> None:
    """Those of the one that it was made from would be wrong."""
    history = History()
    history.node("n1", "x")
    whole = history.keeper.snapshot()
    assert len(whole.columns) == 1
    assert len(dataclasses.replace(whole, nodes={}, names=frozenset()).columns) == 0


def test_a_function_that_fails_spoils_nothing() -> None:
    """Whoever asks next gets an answer."""
    history = History()
    history.node("n1", "x")
    history.keeper.snapshot().columns.attribute("zone", _zone)
    history.node("n1", "y")
    found = history.keeper.snapshot().columns
    with pytest.raises(ZeroDivisionError):
        found.attribute("zone", lambda _: str(1 // 0))
    assert found.attribute("zone", _zone).values == ("y",)


def _zone(facts: NodeFacts) -> str:
    return facts.node.metadata.labels["zone"]


@hypothesis.given(st.lists(st.lists(st.none() | st.integers(0, 40), min_size=3, max_size=30), min_size=1, max_size=6))
def test_codes_are_used_again(states: list[list[int | None]]) -> None:
    """However many values come and go, every value is that of some row."""
    past, rows, step = Past(most_steps=2), 0, 0
    for number, state in enumerate(states):
        rows = max(rows, len(state))
        records = [*state, *[None] * (rows - len(state))]
        step = past.step(range(rows)) if number else 0
        coded = RecordTable(records, past, step).attribute("value", int)
        assert [None if code < 0 else coded.values[code] for code in coded.codes.tolist()] == records
        assert len(coded.values) == len(set(state) - {None})


def test_values_that_stay_are_the_same_tuple() -> None:
    """Whoever went through them need not do so again."""
    history = History()
    for name, zone in zip(NODES, "xyx", strict=True):
        history.node(name, zone)
    before = history.keeper.snapshot().columns.label("zone")
    history.node("n3", "y")
    after = history.keeper.snapshot().columns.label("zone")
    assert (after.codes.tolist() == before.codes.tolist(), after.values is before.values) == (False, True)
    history.node("n1", "y")
    assert history.keeper.snapshot().columns.label("zone").values == ("y",)


def test_steps_are_remembered_within_bounds() -> None:
    """Beyond them nobody knows what has changed, and says so."""
    past = Past(most_steps=2)
    for row in range(3):
        past.step([row])
    assert past.between(0, 3) is None
    found = past.between(3, 1)
    assert found is not None
    assert np.sort(found).tolist() == [1, 2]
    assert past.between(2, 2) is not None


@pytest.mark.parametrize("steps", [2, 32, 33, 200])
def test_few_and_many_steps_change_the_same_rows(steps: int) -> None:
    """Each of them once, in order."""
    past, changed = Past(), [[step % 7, 3 * step] for step in range(steps)]
    for rows in changed:
        past.step(rows)
    found = past.between(0, steps)
    assert found is not None
    assert (found.dtype, found.tolist()) == (np.intp, sorted({row for rows in changed for row in rows}))


def test_a_pod_that_reports_is_the_same_pod() -> None:
    """What its kubelet says of conditions moves nothing; what rules look at does."""
    history = History()
    history.node("n1", "x")
    one = running("a", "n1", "1")
    history.keeper.on_pod(None, one)
    before = history.keeper.snapshot()
    reported = msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, message="well"))
    history.keeper.on_pod(one, reported)
    assert history.keeper.snapshot() is before
    labelled = running("a", "n1", "1")
    labelled = msgspec.structs.replace(labelled, metadata=msgspec.structs.replace(one.metadata, labels={"app": "2"}))
    history.keeper.on_pod(reported, labelled)
    after = history.keeper.snapshot()
    assert after.nodes["n1"].pods == (labelled,)
    assert (after.version, dict(after.nodes["n1"].used)) == (before.version, dict(before.nodes["n1"].used))


def test_an_older_snapshot_is_asked_last() -> None:
    """It has fewer rows than those whose columns were worked out since, and gets its own."""
    history = History()
    history.node("n1", "x")
    older = history.keeper.snapshot()
    assert len(older.columns) == 1
    for name in NODES:
        history.node(name, "y")
        history.run(name, name, "1")
    newer = history.keeper.snapshot()
    assert newer.columns.label("zone").values == ("y",)
    assert newer.columns.pods.label("app").values == ("1",)
    assert older.columns.label("zone").codes.tolist() == [0]
    assert older.columns.label("zone").values == ("x",)
    assert older.columns.pods.count(older.columns.pods.present).tolist() == [0]
    agree(older)
    agree(newer)


def test_many_may_ask_at_once() -> None:
    """Passes, samplers and explanations look at snapshots of different moments, each from a thread of its own."""
    history = History()
    for name in NODES:
        history.node(name, "x")
    for number in range(60):
        history.run("abcd"[number % 4], NODES[number % 3], "12"[number % 2])
        history.node(NODES[number % 3], "xyz"[number % 3]) if number % 5 else history.drop(NODES[number % 2])
        history.take()
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(agree, [*history.taken, *reversed(history.taken)]))
