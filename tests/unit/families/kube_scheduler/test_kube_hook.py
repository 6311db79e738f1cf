"""The hook "kube-scheduler" in a chain: what it denies, remembers, rates and checks at the end."""

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.hooks.base import Denied, Deny
from slurm_bridge.hooks.chain import Plan, asked
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.kube_hook_scenes import TWO, ask, chained, cluster, denied, hooked, scores
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, near, node, pod, term
from tests.unit.hooks.builders import Around, gang, shape, translated, workload


def test_a_pod_that_fits_nowhere_is_told_so(around: Around) -> None:
    """The message is kube-scheduler's."""
    chain = chained(around, hooked())
    found = chain.plan(workload(pod(requests={"cpu": 9})), translated(), cluster(TWO), now=0.0)
    assert isinstance(found, Wait)
    assert found.message == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_full_cluster_is_no_reason_to_wait(around: Around) -> None:
    """What is in use is Slurm's queue's matter, unless capacity is `free`."""
    full = cluster(TWO, [pod("r1", on="a", requests={"cpu": 8}), pod("r2", on="b", requests={"cpu": 8})])
    asking = workload(pod(requests={"cpu": 1}))
    assert isinstance(chained(around, hooked()).plan(asking, translated(), full, now=0.0), Plan)
    free = chained(around, hooked(capacity="free")).plan(asking, translated(), full, now=0.0)
    assert isinstance(free, Wait)


def test_equal_pods_get_the_same_record(around: Around) -> None:
    """As long as nothing changes that matters to them, pods that come and go change nothing."""
    hook = hooked()
    chain, follows = chained(around, hook), scenes.keeper(TWO)
    first = denied(chain, hook, follows.snapshot(), pod("x", requests={"cpu": 9}))
    follows.on_pod(None, pod("r", on="a", requests={"cpu": 1}))
    assert denied(chain, hook, follows.snapshot(), pod("y", requests={"cpu": 9})) is first
    follows.on_node(None, node("c"))
    assert denied(chain, hook, follows.snapshot(), pod("y", requests={"cpu": 9})) is not first


def test_pods_that_care_who_is_there_are_looked_at_again(around: Around) -> None:
    """An answer about neighbours holds until somebody moves."""
    hook = hooked()
    chain, follows = chained(around, hook), scenes.keeper(TWO)
    away = pod(affinity=near("podAntiAffinity", term(HOST, {"app": "web"})))
    first = denied(chain, hook, follows.snapshot(), away)
    assert denied(chain, hook, follows.snapshot(), away) is first
    follows.on_pod(None, pod("r", on="a", labels={"app": "web"}))
    assert dict(denied(chain, hook, follows.snapshot(), away).nodes) == {"a": (reasons.POD_ANTI_AFFINITY,)}


def test_pressure_counts_at_once(around: Around) -> None:
    """A kubelet's word does not move the version by which answers are kept, and is heard all the same."""
    hook = hooked()
    chain, follows = chained(around, hook), scenes.keeper(TWO)
    assert not denied(chain, hook, follows.snapshot(), pod()).nodes
    follows.on_node(TWO[0], node("a", labels={ZONE: "1"}, conditions={"DiskPressure": "True"}))
    assert dict(denied(chain, hook, follows.snapshot(), pod()).nodes) == {"a": (reasons.DISK_PRESSURE,)}
    follows.on_node(None, TWO[0])
    assert not denied(chain, hook, follows.snapshot(), pod()).nodes


def test_promised_nodes(around: Around) -> None:
    """Where what is free counts, so does a pod that was promised the node."""
    hook = hooked(capacity="free")
    chain = chained(around, hook)
    snapshot = cluster(TWO, [pod("w", nominated="a", requests={"cpu": 8}, priority=1)])
    assert dict(denied(chain, hook, snapshot, pod(requests={"cpu": 1})).nodes) == {"a": ("Insufficient cpu",)}
    assert not denied(chain, hook, snapshot, pod(requests={"cpu": 1}, priority=2)).nodes


def test_of_several_shapes_one_that_fits_is_enough(around: Around) -> None:
    """A node is denied when no shape can use it."""
    hook = hooked()
    left, right = pod("l", node_selector={ZONE: "1"}), pod("r", node_selector={ZONE: "3"})
    chain, snapshot = chained(around, hook), cluster(TWO)
    both = asked(gang(left, right), translated(shapes=(shape(left), shape(right))))
    with chain.session(snapshot, now=0.0) as session:
        found = hook.filter(session, both, snapshot.names)
    assert isinstance(found, Denied)
    assert dict(found.nodes) == {"b": (reasons.NODE_SELECTOR,)}


def test_scores_come_with_their_matrix_and_tiers(around: Around) -> None:
    """The emptier node is better; tiers are as configured."""
    hook = hooked(
        priorities=[{"name": "LeastRequestedPriority", "weight": 2}], tiers=2, first_tier=1, widen_after_seconds=5
    )
    used = [pod("r", on="a", requests={"cpu": 4, "memory": 512})]
    found = scores(chained(around, hook), hook, cluster(TWO, used), pod(requests={"cpu": 1, "memory": 1}))
    assert found.nodes["b"] > found.nodes["a"]
    assert found.tiers is not None
    assert (found.tiers.count, found.tiers.first, found.tiers.widen_after) == (2, 1, 5.0)
    assert found.matrix is not None
    assert [(row.name, row.weight) for row in found.matrix.rows] == [("LeastRequestedPriority", 2)]


def test_every_score_can_be_read(around: Around) -> None:
    """As kube-scheduler logs it, for whoever wants it that fine."""
    lines: list[str] = []
    hook = hooked(priorities=[{"name": "EqualPriority"}], finest=lambda made: lines.extend(made()))
    scores(chained(around, hook), hook, cluster(TWO), pod())
    assert lines == ["team/new -> a: EqualPriority, Score: (1)", "team/new -> b: EqualPriority, Score: (1)"]


def test_its_own_rules_are_not_foreign() -> None:
    """They are called where they are, and not in a worker."""
    assert not hooked().foreign


@pytest.mark.parametrize(
    ("percentage", "nodes", "fitting", "rated"),
    [
        (30, 150, 150, 100),
        (10, 1500, 400, 150),
        (10, 1500, 120, 120),
        # 50 percent less one for every 125 nodes: 38 of 1500.
        (0, 1500, 1000, 570),
        (0, 150, 150, 100),
        (100, 150, 130, 130),
        (10, 90, 90, 90),
    ],
)
def test_only_some_nodes_are_rated(around: Around, percentage: int, nodes: int, fitting: int, rated: int) -> None:
    """As many as kube-scheduler searches for, a part of all nodes and not of those that fit; at least 100 of these."""
    snapshot = cluster([node(f"n{number}") for number in range(nodes)])
    hook = hooked(priorities=[{"name": "LeastRequestedPriority"}], percentage_of_nodes=percentage)
    left = frozenset(f"n{number}" for number in range(fitting))
    with chained(around, hook).session(snapshot, now=0.0) as session:
        found = hook.score(session, ask(pod(requests={"cpu": 1})), left)
    assert len(found.nodes) == rated
    assert left.issuperset(found.nodes)


class TestVerify:
    def verify(self, snapshot: ClusterSnapshot, nodes: Mapping[str, str], *pods: Pod, **options: Any) -> Any:
        """What is said of these places for pods, by name."""
        hook = hooked(**options)
        places = {f"uid-{name}": where for name, where in nodes.items()}
        return chained(Around(), hook).verify(workload(*pods), places, snapshot)

    def test_free_counts_without_the_pod_itself(self) -> None:
        """A pod that is counted there already is not in its own way; others are."""
        half = {"cpu": 5}
        own = cluster(TWO, [pod("new", on="a", requests=half)])
        assert self.verify(own, {"new": "a"}, pod(requests=half)) is None
        others = cluster(TWO, [pod("r", on="a", requests=half)])
        found = self.verify(others, {"new": "a"}, pod(requests=half))
        assert isinstance(found, Deny)
        assert found.nodes == {"a"}
        assert found.message == "nodes that Slurm allocated cannot take the pods: a: Insufficient cpu"

    def test_members_of_a_gang_count_for_each_other(self) -> None:
        """Two that each fit do not fit together; beside each other they do."""
        pair = [pod("x", requests={"cpu": 5}), pod("y", requests={"cpu": 5})]
        assert isinstance(self.verify(cluster(TWO), {"x": "a", "y": "a"}, *pair), Deny)
        assert self.verify(cluster(TWO), {"x": "a", "y": "b"}, *pair) is None

    def test_members_that_do_not_want_each_other_near(self) -> None:
        """Domains reach over nodes, so members on other nodes count too."""
        away = near("podAntiAffinity", term(ZONE, {"app": "web"}))
        pair = [pod(name, labels={"app": "web"}, affinity=away) for name in "xy"]
        assert self.verify(cluster(TWO), {"x": "a", "y": "b"}, *pair) is None
        same_zone = cluster([TWO[0], node("c", labels={ZONE: "1"})])
        found = self.verify(same_zone, {"x": "a", "y": "c"}, *pair)
        assert isinstance(found, Deny)
        assert found.nodes == {"a", "c"}

    def test_a_node_that_is_gone(self) -> None:
        """It cannot take anybody."""
        found = self.verify(cluster(TWO), {"new": "gone"}, pod())
        assert isinstance(found, Deny)
        assert "gone: the node is gone from Kubernetes" in found.message

    def test_a_pod_without_a_node_is_no_matter(self) -> None:
        """Whoever places decides on those."""
        assert self.verify(cluster(TWO), {}, pod()) is None
