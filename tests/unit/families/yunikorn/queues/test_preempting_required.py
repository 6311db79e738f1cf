"""Asks that have to run on one node."""

from slurm_bridge.families.yunikorn.queues.preemptors import facts, required
from slurm_bridge.families.yunikorn.queues.preemptors.facts import Outcome, Planned
from tests.unit.families.yunikorn.queues.support_preempting import Cluster, guarantees, reason, victims

CPU = {"cpu": 1}


def attempt(cluster: Cluster, cpu: int, priority: int = 5) -> Outcome:
    """For an ask of team a that has to run on node n."""
    node = facts.room("n", cluster.capacity["n"], cluster.running.values())
    asker = cluster.ask("a", {"cpu": cpu}, priority=priority)
    return required.try_preemption(asker, node, cluster.running.values())


def test_whatever_queue_they_are_of_the_lowest_priority_goes_first() -> None:
    """There is no fence and no guarantee that an asker would need."""
    cluster = Cluster("a", "b", "c", nodes={"n": {"cpu": 2}})
    cluster.run("low", "b", "n", resource=CPU, priority=1)
    cluster.run("high", "c", "n", resource=CPU, priority=2)
    plan = attempt(cluster, 1)
    assert isinstance(plan, Planned)
    assert (plan.asker, plan.nodes, victims(plan)) == ("ask", ("n",), ["low"])
    assert plan.message == "preempted for ask, which has to run on node n"


def test_nobody_of_a_higher_priority_goes() -> None:
    """And then there is no plan at all."""
    cluster = Cluster("a", "b", nodes={"n": CPU})
    cluster.run("high", "b", "n", resource=CPU, priority=6)
    assert reason(attempt(cluster, 1)) == "no_victims"


def test_a_guarantee_that_is_met_stays_met() -> None:
    """One of two is borrowed, and two are needed."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 2}}, settings=guarantees(b=CPU))
    for key in ("old", "new"):
        cluster.run(key, "b", "n", resource=CPU)
    assert victims(attempt(cluster, 1)) == ["new"]
    assert reason(attempt(cluster, 2)) == "no_victims"


def test_a_gang_frees_there_only_what_it_has_there() -> None:
    """Two members on other nodes do not make room on this one."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 2}, "m": {"cpu": 2}})
    cluster.run("gang", "b", "n", "m", "m", resource=CPU)
    assert reason(attempt(cluster, 3)) == "no_victims"
    assert victims(attempt(cluster, 2)) == ["gang"]
