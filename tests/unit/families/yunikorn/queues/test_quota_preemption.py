"""A queue whose maximum was lowered: how much is taken back, of whom, and what stays."""

import random

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import tree
from slurm_bridge.families.yunikorn.queues.preemptors import quota
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_preempting import Cluster, below, guarantees

CPU = {"cpu": 1}


def lowered(cluster: Cluster, path: str, **maximum: int) -> list[list[str]]:
    """The victims of each plan, once the queue has this maximum."""
    queue = cluster.queue(path)
    queue.resize(maximum)
    plans = quota.plan(queue, cluster.standing)
    return [[str(victim.key) for victim in plan.victims] for plan in plans]


def team() -> Cluster:
    """Two leaves of a team, of which the second has twice as much."""
    cluster = Cluster("team.a", "team.b", nodes={"n": {"cpu": 9}})
    for place in range(9):
        cluster.run(str(place), "team.b" if place % 3 else "team.a", "n", resource=CPU, created=place * 3600.0)
    return cluster


def test_a_queue_within_its_maximum_loses_nothing() -> None:
    """Nine of nine are in use."""
    assert lowered(team(), "team", cpu=9) == []


def test_each_leaf_gives_back_its_part_the_newest_hour_first() -> None:
    """One of three and two of six."""
    assert lowered(team(), "team", cpu=6) == [["6"], ["8", "7"]]


def test_a_plan_names_the_queue_that_is_over_its_maximum() -> None:
    """Nobody asks for what is taken back, and no node is held."""
    cluster = team()
    cluster.queue("team").resize({"cpu": 6})
    plan = quota.plan(cluster.queue("team"), cluster.standing)[0]
    assert (plan.asker, plan.queue, plan.nodes) == (None, "root.team", ())
    assert plan.message == "preempted by queue root.team (over its maximum)"


def test_what_is_being_taken_back_is_not_taken_twice() -> None:
    """Two of the three that are too many are on their way out."""
    cluster = team()
    cluster.queue("team.b").mark_preempting({"cpu": 2})
    cluster.queue("team").resize({"cpu": 6})
    assert quota.preemptable_of(cluster.queue("team")) == {"cpu": 1}


def test_a_maximum_below_the_guarantee_takes_back_only_what_is_beyond_the_guarantee() -> None:
    """Of nine, seven are guaranteed and none are allowed."""
    cluster = Cluster("team", nodes={"n": {"cpu": 9}}, settings=guarantees(team={"cpu": 7}))
    for place in range(9):
        cluster.run(str(place), "team", "n", resource=CPU, created=place * 3600.0)
    assert lowered(cluster, "team", cpu=0) == [["8", "7"]]


def test_a_guarantee_in_a_type_without_a_maximum_stays_met() -> None:
    """The newest has the only GPU, which is guaranteed."""
    cluster = Cluster("team", nodes={"n": {"cpu": 3, "gpu": 1}}, settings=guarantees(team={"gpu": 1}))
    cluster.run("old", "team", "n", resource=CPU)
    cluster.run("new", "team", "n", resource={"cpu": 1, "gpu": 1}, created=7200.0, priority=-1)
    assert lowered(cluster, "team", cpu=1) == [["old"]]


def test_a_gang_counts_with_all_its_members() -> None:
    """Two are too many, and the gang of three is more than that."""
    cluster = Cluster("team", nodes={"n": {"cpu": 9}})
    cluster.run("single", "team", "n", resource=CPU, priority=1)
    cluster.run("gang", "team", "n", "n", "n", resource=CPU, created=7200.0)
    assert lowered(cluster, "team", cpu=2) == [["single"]]


def _cluster(dice: random.Random) -> Cluster:
    paths = ("root", "root.t", "root.t.a", "root.t.b", "root.t.b.c", "root.t.d")
    chosen = {path: {kind: dice.randint(0, 6) for kind in ("cpu", "gpu") if dice.random() < 0.5} for path in paths}
    settings = {path: QueueSettings(guaranteed=amount or None) for path, amount in chosen.items()}
    cluster = Cluster("t.a", "t.b.c", "t.d", nodes={"n": {}}, settings=settings)
    for key in range(dice.randint(1, 15)):
        resource = {kind: dice.randint(0, 3) for kind in ("cpu", "gpu")}
        places = ["n"] * dice.choice((1, 1, 1, 2))
        cluster.run(str(key), dice.choice(("t.a", "t.b.c", "t.d")), *places, resource=resource)
    return cluster


@hypothesis.settings(max_examples=examples(150))
@hypothesis.given(st.integers(0, 2**32), st.integers(0, 20))
def test_no_more_is_taken_back_than_is_too_much_and_guarantees_stay_met(seed: int, maximum: int) -> None:
    """Of every type with a maximum; and no queue ends below a guarantee that it was not below before."""
    cluster = _cluster(random.Random(seed))
    queue = cluster.queue("t")
    queue.resize({"cpu": maximum})
    before, used = below(tree.downward(cluster.root)), queue.allocated.get("cpu", 0)
    for plan in quota.plan(queue, cluster.standing):
        for victim in plan.victims:
            cluster.end(victim)
    assert queue.allocated.get("cpu", 0) >= min(maximum, used)
    assert all(types <= before[path] for path, types in below(tree.downward(cluster.root)).items())
