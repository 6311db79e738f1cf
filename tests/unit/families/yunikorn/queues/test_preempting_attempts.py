"""Attempts for one ask: whom they name, whom they spare, and what they leave as it is."""

import dataclasses

import pytest

from slurm_bridge.families.yunikorn.queues import tree
from slurm_bridge.families.yunikorn.queues.preemptors import attempts
from slurm_bridge.families.yunikorn.queues.preemptors.facts import WORDS, Asker, AttemptAllocation, Planned, Reason
from slurm_bridge.families.yunikorn.queues.settings import PreemptionPolicy, QueueSettings
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.unit.families.yunikorn.queues.support_preempting import Cluster, guarantees, reason, victims

CPU = {"cpu": 1}


def borrowed() -> Cluster:
    """Team a is guaranteed half of a node that team b has all of."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 4}}, settings=guarantees(a={"cpu": 2}, b={"cpu": 2}))
    for key in ("first", "second", "third", "fourth"):
        cluster.run(key, "b", "n", resource=CPU)
    return cluster


def test_a_plan_names_the_asker_the_node_to_hold_and_the_victims() -> None:
    """A plan says for whom, on which node, whom, and why."""
    cluster = borrowed()
    plan = cluster.attempt(cluster.ask("a", CPU))
    assert isinstance(plan, Planned)
    assert (plan.asker, plan.queue, plan.nodes, victims(plan)) == ("ask", "root.a", ("n",), ["fourth"])
    assert plan.message == "preempted for ask of queue root.a, which is below its guarantee"


def test_the_newest_go_first_in_the_order_of_their_eviction() -> None:
    """Victims are listed newest first."""
    cluster = borrowed()
    assert victims(cluster.attempt(cluster.ask("a", {"cpu": 2}))) == ["fourth", "third"]


def test_of_equally_new_victims_the_cheapest_goes_first() -> None:
    """The rules leave the order of equally new ones open: the smaller one goes."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 4}}, settings=guarantees(a={"cpu": 3}))
    cluster.run("large", "b", "n", resource={"cpu": 3}, created=1.0)
    cluster.run("small", "b", "n", resource=CPU, created=1.0)
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["small"]


def test_a_queue_is_not_preempted_for_more_than_its_guarantee() -> None:
    """Two are guaranteed, three are asked for."""
    cluster = borrowed()
    outcome = cluster.attempt(cluster.ask("a", {"cpu": 3}))
    assert reason(outcome) == "does_not_guarantee"
    assert outcome.message == "queue root.a has no guarantee left that covers ask"


def test_what_others_were_promised_counts_as_theirs() -> None:
    """A guarantee that is being freed for one ask is not there for the next one."""
    cluster = borrowed()
    promised = ((cluster.queue("a"), {"cpu": 2}),)
    assert reason(cluster.attempt(cluster.ask("a", CPU), promised=promised)) == "does_not_guarantee"


def test_an_attempt_changes_nothing_in_the_tree() -> None:
    """Removals are tried on an overlay."""
    cluster = borrowed()
    before = {queue.path: (dict(queue.allocated), queue.changes) for queue in tree.downward(cluster.root)}
    victims(cluster.attempt(cluster.ask("a", {"cpu": 2})))
    assert before == {queue.path: (dict(queue.allocated), queue.changes) for queue in tree.downward(cluster.root)}


def test_a_victim_that_would_take_its_queue_below_its_guarantee_is_spared() -> None:
    """Team b has 4 of the 3 that are guaranteed to it: its only allocation is borrowed by less than it has."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 4}}, settings=guarantees(a={"cpu": 4}, b={"cpu": 3}))
    cluster.run("all", "b", "n", resource={"cpu": 4})
    ask = cluster.ask("a", CPU)
    assert reason(cluster.attempt(ask)) == "no_node"
    assert victims(cluster.attempt(ask, guarded=False)) == ["all"]


def test_a_smaller_victim_is_taken_in_the_place_of_one_that_is_spared() -> None:
    """Sparing one is no reason to give up."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 4}}, settings=guarantees(a={"cpu": 4}, b={"cpu": 3}))
    cluster.run("small", "b", "n", resource=CPU)
    cluster.run("large", "b", "n", resource={"cpu": 3})
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["small"]


def test_a_guarantee_in_another_type_than_the_asks_stays_met_too() -> None:
    """The victim's CPU is borrowed, its GPUs are guaranteed."""
    settings = guarantees(a={"cpu": 2}, b={"cpu": 1, "gpu": 2})
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 2, "gpu": 2}}, settings=settings)
    cluster.run("one", "b", "n", resource={"cpu": 2, "gpu": 2})
    assert reason(cluster.attempt(cluster.ask("a", CPU))) == "no_node"


def test_a_queue_below_its_guarantee_loses_nothing_because_its_parent_is_over() -> None:
    """What its sibling borrows is not its debt."""
    settings = guarantees(a={"cpu": 2}, b={"cpu": 1}, b_small={"cpu": 2})
    cluster = Cluster("a", "b.small", "b.large", nodes={"n": {"cpu": 4}}, settings=settings)
    cluster.run("old", "b.large", "n", resource={"cpu": 3})
    cluster.run("new", "b.small", "n", resource=CPU)
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["old"]
    assert victims(cluster.attempt(cluster.ask("a", CPU), guarded=False)) == ["new"]


def test_who_has_borrowed_more_than_the_asking_queue_may_have_is_not_protected_by_that() -> None:
    """The rest becomes free for everybody. By the rules alone it has to fit into what is left of the guarantee."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 4}}, settings=guarantees(a={"cpu": 2}))
    cluster.run("mine", "a", "n", resource=CPU)
    cluster.run("large", "b", "n", resource={"cpu": 3})
    assert victims(cluster.attempt(cluster.ask("a", CPU))) == ["large"]
    assert reason(cluster.attempt(cluster.ask("a", CPU), guarded=False)) == "no_node"


def test_what_is_beyond_a_lowered_maximum_goes_with_what_is_borrowed() -> None:
    """It is in the way of whoever is entitled, and from each of the others a part of it too small to be taken back."""
    settings = guarantees(p_a={"cpu": 2}, p_b={"cpu": 2}) | {"root.p": QueueSettings(max={"cpu": 4})}
    cluster = Cluster("p.a", "p.b", "p.c", nodes={"n": {"cpu": 90}}, settings=settings)
    cluster.run("mine", "p.a", "n", resource=CPU)
    cluster.run("large", "p.b", "n", resource={"cpu": 2})
    cluster.run("second", "p.b", "n", resource=CPU)
    cluster.run("third", "p.c", "n", resource=CPU)
    assert sorted(victims(cluster.attempt(cluster.ask("p.a", CPU)))) == ["second", "third"]


def test_a_small_one_that_comes_first_does_not_protect_a_large_one() -> None:
    """Of the guarantee less is left then than the large one has; it goes alone, because it is enough."""
    settings = guarantees(p_a={"cpu": 2}) | {"root.p": QueueSettings(max={"cpu": 3})}
    cluster = Cluster("p.a", "p.b", nodes={"n": {"cpu": 90}}, settings=settings)
    cluster.run("large", "p.b", "n", resource={"cpu": 2})
    cluster.run("small", "p.b", "n", resource=CPU)
    assert victims(cluster.attempt(cluster.ask("p.a", {"cpu": 2}))) == ["large"]


def test_nobody_is_evicted_who_would_take_it_back() -> None:
    """Nobody has a guarantee of memory: whoever loses memory to a queue may ask for the memory of that queue."""
    nodes = {"n1": {"cpu": 4, "memory": 3}, "n2": {"memory": 3}}
    cluster = Cluster("p.a", "p.b", nodes=nodes, settings=guarantees(p={"cpu": 6}, p_a={"cpu": 2}))
    cluster.run("mine", "p.b", "n2", resource={"memory": 3})
    cluster.run("memory", "p.a", "n1", resource={"memory": 3})
    for key in "wxyz":
        cluster.run(key, "p.a", "n1", resource=CPU)
    outcome = cluster.attempt(cluster.ask("p.b", {"cpu": 1, "memory": 1}))
    assert reason(outcome) == "taken_back"
    assert outcome.message == "queue root.p.b would be preempted for the victims of ask in turn"


def test_nobody_more_is_evicted_than_the_ask_needs_beside_what_is_free() -> None:
    """By the rules alone the victims have to cover all of the ask, although a part of it has its place."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 3}}, settings=guarantees(a={"cpu": 2}))
    for key in ("old", "new"):
        cluster.run(key, "b", "n", resource=CPU)
    ask = cluster.ask("a", {"cpu": 2})
    assert victims(cluster.attempt(ask)) == ["new"]
    assert victims(cluster.attempt(ask, guarded=False)) == ["new", "old"]


def test_nobody_is_evicted_where_the_ask_fits_anyway() -> None:
    """Whatever kept it from running, it is not room."""
    cluster = Cluster("a", "b", nodes={"n": {"cpu": 4}}, settings=guarantees(a={"cpu": 2}))
    cluster.run("one", "b", "n", resource=CPU)
    assert reason(cluster.attempt(cluster.ask("a", CPU))) == "not_needed"


def test_nobody_is_evicted_where_that_is_not_enough_for_the_maximum_above() -> None:
    """The node has room for all, and what may be taken is too little for the queue's maximum."""
    settings = guarantees(p_a={"cpu": 4, "gpu": 4}) | {"root.p": QueueSettings(max={"cpu": 4})}
    cluster = Cluster("p.a", "p.b", "p.c", nodes={"n": {"cpu": 9, "gpu": 9}}, settings=settings)
    cluster.run("gpus", "p.b", "n", resource={"gpu": 2})
    cluster.run("bound", "p.c", "n", resource={"cpu": 4}, required_node="n")
    ask = cluster.ask("p.a", {"cpu": 2, "gpu": 2})
    assert reason(cluster.attempt(ask)) == "shortfall"
    assert victims(cluster.attempt(ask, guarded=False)) == ["gpus"]


def test_predicates_are_asked_with_the_victims_from_the_best_node_on() -> None:
    """The first node that is acceptable ends the search."""
    cluster = Cluster("a", "b", nodes={"n1": CPU, "n2": CPU, "n3": CPU}, settings=guarantees(a=CPU))
    for node in ("n1", "n2", "n3"):
        cluster.run(node, "b", node, resource=CPU)
    asked: list[tuple[str, list[object]]] = []

    def acceptable(node: str, gone: tuple[AttemptAllocation, ...]) -> bool:
        asked.append((node, [one.key for one in gone]))
        return node == "n2"

    plan = cluster.attempt(cluster.ask("a", CPU), acceptable=acceptable)
    assert victims(plan) == ["n2"]
    assert asked == [("n1", ["n1"]), ("n2", ["n2"])]


def test_a_node_that_is_held_for_another_ask_is_left_out() -> None:
    """What is freed there would not be for this one."""
    cluster = Cluster("a", "b", nodes={"n1": CPU, "n2": CPU}, settings=guarantees(a=CPU))
    for node in ("n1", "n2"):
        cluster.run(node, "b", node, resource=CPU)
    assert victims(cluster.attempt(cluster.ask("a", CPU), held=lambda node: node == "n1")) == ["n2"]


def test_only_leaves_under_the_fence_are_looked_at() -> None:
    """The cost is that of the queues that an ask reaches."""
    fence = {"root.team": QueueSettings(preemption_policy=PreemptionPolicy.FENCE)}
    cluster = Cluster("team.a", "team.b", "c", nodes={"n": CPU}, settings=guarantees(team_a=CPU) | fence)
    cluster.run("one", "team.b", "n", resource=CPU)
    seen: list[str] = []

    def standing(queue: Queue) -> list[AttemptAllocation]:
        seen.append(queue.path)
        return cluster.standing(queue)

    scene = dataclasses.replace(cluster.scene(guarded=False), standing=standing)
    assert victims(attempts.try_preemption(cluster.ask("team.a", CPU), scene)) == ["one"]
    assert seen == ["root.team.b"]


def test_an_ask_that_its_queue_is_not_guaranteed_looks_at_nobody() -> None:
    """Most asks that wait are such."""
    cluster = borrowed()

    def nobody(queue: Queue) -> list[AttemptAllocation]:
        raise AssertionError(queue.path)

    scene = dataclasses.replace(cluster.scene(), standing=nobody)
    assert reason(attempts.try_preemption(cluster.ask("a", {"cpu": 3}), scene)) == "does_not_guarantee"


@pytest.mark.parametrize(
    ("now", "allowed"),
    [(29.0, False), (30.0, True), (44.0, False), (45.0, True)],
)
def test_an_ask_waits_for_its_delay_and_between_attempts(now: float, allowed: bool) -> None:
    """30 s from its creation, 15 s from the last attempt."""
    queue = Cluster("a").queue("a")
    last = 30.0 if now > 30 else float("-inf")
    asker = Asker(key="ask", queue=queue, resource=CPU, created=0.0, last_check=last)
    assert attempts.is_allowed(asker, now=now, delay=30.0) is allowed


def test_nothing_is_preempted_twice_for_one_ask() -> None:
    """What was freed for it is still to come."""
    queue = Cluster("a").queue("a")
    assert not attempts.is_allowed(Asker(key="ask", queue=queue, resource=CPU, triggered=True), now=60.0)


def test_every_reason_has_its_words() -> None:
    """No refusal is silent."""
    assert WORDS.keys() == set(Reason)
