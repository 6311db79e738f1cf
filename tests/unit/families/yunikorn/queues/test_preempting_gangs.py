"""Gangs: asks whose members all need a place, and victims that end together."""

from slurm_bridge.families.yunikorn.queues.preemptors.facts import Planned
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from tests.unit.families.yunikorn.queues.support_preempting import Cluster, guarantees, reason, victims

CPU = {"cpu": 1}


def full(*nodes: str, guaranteed: int = 4) -> Cluster:
    """Nodes of 2, all of them borrowed by team b one by one, from the first node on."""
    cluster = Cluster("a", "b", nodes={node: {"cpu": 2} for node in nodes}, settings=guarantees(a={"cpu": guaranteed}))
    for node in nodes:
        for place in "xy":
            cluster.run(f"{node}{place}", "b", node, resource=CPU)
    return cluster


def test_every_member_of_a_gang_gets_a_node_and_its_victims() -> None:
    """Two members that fill a node each."""
    cluster = full("n1", "n2", "n3")
    plan = cluster.attempt(cluster.ask("a", {"cpu": 2}, members=2))
    assert isinstance(plan, Planned)
    assert (plan.nodes, victims(plan)) == (("n1", "n2"), ["n1y", "n1x", "n2y", "n2x"])


def test_several_members_may_share_a_node() -> None:
    """Each takes its own part of it."""
    cluster = full("n1", "n2")
    plan = cluster.attempt(cluster.ask("a", CPU, members=2))
    assert isinstance(plan, Planned)
    assert (plan.nodes, victims(plan)) == (("n1", "n1"), ["n1y", "n1x"])


def test_nobody_is_evicted_for_a_part_of_a_gang() -> None:
    """The fifth member has a guarantee, and no node."""
    cluster = full("n1", "n2", guaranteed=8)
    assert reason(cluster.attempt(cluster.ask("a", CPU, members=5))) == "no_node"


def test_a_gang_is_entitled_as_a_whole() -> None:
    """Three of its four members would be guaranteed."""
    cluster = full("n1", "n2", guaranteed=3)
    assert reason(cluster.attempt(cluster.ask("a", CPU, members=4))) == "does_not_guarantee"


def test_members_take_what_is_free_before_anybody_is_evicted() -> None:
    """Only the second member needs a victim."""
    cluster = full("n1", "n2")
    cluster.end(cluster.running["n2x"])
    plan = cluster.attempt(cluster.ask("a", CPU, members=2), nodes_tried=True)
    assert isinstance(plan, Planned)
    assert (plan.nodes, victims(plan)) == (("n2", "n1"), ["n1y"])


def test_a_gang_that_fits_as_it_is_evicts_nobody() -> None:
    """All members have their places."""
    cluster = full("n1")
    cluster.capacity["n2"] = {"cpu": 2}
    assert reason(cluster.attempt(cluster.ask("a", CPU, members=2))) == "not_needed"


def test_a_maximum_above_is_made_room_in_for_the_whole_gang() -> None:
    """The nodes have room, and the queue above only for what is there."""
    settings = guarantees(p_a={"cpu": 2}) | {"root.p": QueueSettings(max={"cpu": 3})}
    cluster = Cluster("p.a", "p.b", nodes={"n": {"cpu": 9}}, settings=settings)
    for key in ("old", "middle", "new"):
        cluster.run(key, "p.b", "n", resource=CPU)
    assert victims(cluster.attempt(cluster.ask("p.a", CPU, members=2))) == ["new", "middle"]


def test_a_gang_among_the_victims_ends_on_all_its_nodes() -> None:
    """What becomes free on the second node serves the second member: nobody else has to go."""
    cluster = Cluster("a", "b", nodes={"n1": CPU, "n2": CPU}, settings=guarantees(a={"cpu": 2}))
    cluster.run("gang", "b", "n1", "n2", resource=CPU)
    plan = cluster.attempt(cluster.ask("a", CPU, members=2))
    assert isinstance(plan, Planned)
    assert (plan.nodes, victims(plan)) == (("n1", "n2"), ["gang"])


def test_allocations_of_a_group_end_together() -> None:
    """Only one of them is in the way."""
    cluster = Cluster("a", "b", nodes={"n1": CPU, "n2": CPU}, settings=guarantees(a=CPU))
    for node in ("n1", "n2"):
        cluster.run(f"on-{node}", "b", node, resource=CPU, group="job")
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["on-n1", "on-n2"]


def test_a_single_victim_is_less_harm_than_a_newer_gang() -> None:
    """One member ends instead of two."""
    cluster = Cluster("a", "b", nodes={"n1": CPU, "n2": CPU, "n3": CPU}, settings=guarantees(a=CPU))
    cluster.run("single", "b", "n3", resource=CPU)
    cluster.run("gang", "b", "n1", "n2", resource=CPU)
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["single"]


def test_all_that_a_gang_has_counts_against_its_queues_guarantee() -> None:
    """One of its members is borrowed, and ending it ends the guaranteed one too."""
    cluster = Cluster("a", "b", nodes={"n1": CPU, "n2": CPU}, settings=guarantees(a=CPU, b=CPU))
    cluster.run("gang", "b", "n1", "n2", resource=CPU)
    ask = cluster.ask("a", CPU)
    assert reason(cluster.attempt(ask)) == "no_node"
    assert victims(cluster.attempt(ask, guarded=False)) == ["gang"]


def test_a_gang_larger_than_the_askers_guarantee_may_be_evicted() -> None:
    """Otherwise large gangs would be safe from every small queue."""
    cluster = Cluster("a", "b", nodes={f"n{place}": CPU for place in range(8)}, settings=guarantees(a=CPU))
    cluster.run("gang", "b", *cluster.capacity, resource=CPU)
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["gang"]


def test_a_group_is_as_protected_as_the_most_protected_of_it() -> None:
    """Opted out, bound to a node, of a high priority: one such member is enough."""
    cluster = Cluster("a", "b", nodes={"n1": CPU, "n2": CPU, "n3": CPU}, settings=guarantees(a=CPU))
    cluster.run("single", "b", "n3", resource=CPU, originator=True)
    cluster.run("one", "b", "n1", resource=CPU, group="job")
    cluster.run("other", "b", "n2", resource=CPU, group="job", allow_preempt_self=False)
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["single"]
    cluster.run("bound", "b", "n2", resource={"gpu": 1}, group="job", required_node="n2")
    cluster.end(cluster.running["single"])
    cluster.run("again", "b", "n3", resource=CPU, priority=1)
    assert reason(cluster.attempt(cluster.ask("a", CPU))) == "no_node"


def test_what_a_gang_can_do_without_is_not_evicted() -> None:
    """The second member's gang frees the first one's node too, so the first one's victim stays."""
    settings = guarantees(a={"cpu": 4}, b={"cpu": 0}, c={"cpu": 0})
    cluster = Cluster("a", "b", "c", nodes={"n1": {"cpu": 2}, "n2": {"cpu": 1}}, settings=settings)
    cluster.run("small", "b", "n1", resource=CPU)
    cluster.run("wide", "c", "n1", "n2", resource=CPU)
    plan = cluster.attempt(cluster.ask("a", CPU, members=2))
    assert isinstance(plan, Planned)
    assert (sorted(plan.nodes), victims(plan)) == (["n1", "n2"], ["wide"])
