"""What holds for every plan: guarantees that were met stay met, the ask has its place, and nobody is taken back."""

import dataclasses
import random
from collections.abc import Callable, Iterator

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.preemptors.facts import Asker, AttemptAllocation, Planned
from slurm_bridge.families.yunikorn.queues.priorities import PriorityPolicy
from slurm_bridge.families.yunikorn.queues.settings import PreemptionPolicy, QueueSettings
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_preempting import Cluster, below

_LEAVES = ("p.a", "p.b", "q.c", "q.d", "e")
_PATHS = ("root", "root.p", "root.q", *(f"root.{leaf}" for leaf in _LEAVES))
_NODES = ("n1", "n2", "n3")


def _amount(dice: random.Random, most: int) -> dict[str, int]:
    """Of one type at least."""
    kinds = dice.choice((("cpu",), ("cpu", "memory"), ("cpu", "memory"), ("memory",)))
    return {kind: dice.randint(1, most) for kind in kinds}


def _settings(dice: random.Random, *, leaf: bool) -> QueueSettings:
    fenced, ruled = dice.random() < 0.1, dice.random() < 0.2
    return QueueSettings(
        guaranteed=_amount(dice, 7) if dice.random() < (0.7 if leaf else 0.3) else None,
        max={"cpu": dice.randint(6, 14)} if dice.random() < 0.2 else None,
        offset=dice.choice((0, 0, 0, 1, -1)),
        priority_policy=PriorityPolicy.FENCE if fenced else PriorityPolicy.DEFAULT,
        preemption_policy=dice.choice(tuple(PreemptionPolicy)) if ruled else PreemptionPolicy.DEFAULT,
    )


def _full(dice: random.Random, largest: int) -> Cluster:
    """Nodes that are full of what mostly two of the queues run, in gangs of at most so many members."""
    settings = {path: _settings(dice, leaf=path.removeprefix("root.") in _LEAVES) for path in _PATHS}
    settings["root"] = dataclasses.replace(settings["root"], max=None)
    nodes = {name: {"cpu": 6, "memory": 6} for name in _NODES}
    cluster = Cluster(*_LEAVES, nodes=nodes, settings=settings)
    greedy = dice.sample(_LEAVES, 2) * 4
    free = {name: dict(most) for name, most in nodes.items()}
    for key in range(20):
        resource, members = _amount(dice, 2), dice.randint(1, largest)
        places = [name for name in dice.sample(_NODES, 3) if amounts.fit_in(resource, free[name])][:members]
        for name in places:
            free[name] = amounts.minus(free[name], resource)
        if places:
            group = dice.choice((None, None, "x", "y")) if largest > 1 else None
            queue = dice.choice((*greedy, *_LEAVES))
            cluster.run(str(key), queue, *places, resource=resource, priority=dice.randint(0, 1), group=group)
    return cluster


def _plans(seed: int) -> Iterator[tuple[Cluster, Asker, Planned]]:
    """A cluster with a plan for an ask of each queue, where there is one."""
    for place, queue in enumerate(_LEAVES):
        dice = random.Random(seed)
        largest = dice.choice((1, 3))
        cluster = _full(dice, largest)
        dice = random.Random(seed + place)
        members = dice.randint(1, largest)
        asker = cluster.ask(queue, _amount(dice, 3), members=members, priority=dice.randint(0, 2))
        outcome = cluster.attempt(asker)
        if isinstance(outcome, Planned):
            yield cluster, asker, outcome


_seeds = st.integers(0, 2**32)
_many = hypothesis.settings(max_examples=examples(150))


def _of_every_plan(fact: Callable[[Cluster, Asker, Planned], None]) -> Callable[[], None]:
    @_many
    @hypothesis.given(_seeds)
    def stated(seed: int) -> None:
        for cluster, asker, plan in _plans(seed):
            hypothesis.event(f"planned for {'one' if asker.members == 1 else 'many'}")
            fact(cluster, asker, plan)

    stated.__doc__ = fact.__doc__
    return stated


def _guarantees_stay_met(cluster: Cluster, asker: Asker, plan: Planned) -> None:
    """No queue is below a guarantee, in any type, that it was not below before."""
    queues = list(tree.downward(cluster.root))
    before = below(queues)
    cluster.serve(asker, plan)
    assert all(types <= before[path] for path, types in below(queues).items())


def _nobody_loses_what_is_guaranteed(cluster: Cluster, asker: Asker, plan: Planned) -> None:
    """Every queue that loses something borrows in a type of the ask, where it has a guarantee in one."""
    borrowing = {
        queue: {kind for kind, least in (queue.guaranteed or {}).items() if queue.allocated.get(kind, 0) > least}
        for queue in tree.downward(cluster.root)
    }
    for victim in plan.victims:
        asked = asker.resource.keys() & (victim.queue.guaranteed or {}).keys()
        assert not asked or asked & borrowing[victim.queue]


def _the_ask_has_its_place(cluster: Cluster, asker: Asker, plan: Planned) -> None:
    """With the victims gone all members fit, on the nodes that are held for them and into every maximum."""
    cluster.serve(asker, plan)
    assert len(plan.nodes) == asker.members
    for name in plan.nodes:
        rooms = cluster.scene().nodes
        room = rooms.get(name)
        assert room is not None
        assert all(room.free[kind] >= 0 for kind in asker.resource)
    for queue in asker.queue.lineage:
        assert all(queue.allocated[kind] <= (queue.max or {}).get(kind, 10**9) for kind in asker.resource)


def _whole_groups_end(cluster: Cluster, asker: Asker, plan: Planned) -> None:
    """Of a group everybody is a victim or nobody."""
    gone = {(victim.queue, victim.group) for victim in plan.victims if victim.group is not None}
    left = [one for one in cluster.running.values() if one not in plan.victims]
    assert not [one for one in left if (one.queue, one.group) in gone], asker


def _nobody_is_taken_back(cluster: Cluster, asker: Asker, plan: Planned) -> None:
    """When the victims ask again, in the next cycle, nothing of the asking queue is preempted for them."""
    cluster.serve(asker, plan)
    for victim in plan.victims:
        again = _again(victim)
        outcome = cluster.attempt(again)
        taken = outcome.victims if isinstance(outcome, Planned) else ()
        assert all(one.queue is not asker.queue for one in taken)


def _again(victim: AttemptAllocation) -> Asker:
    return Asker(
        key=victim.key,
        queue=victim.queue,
        resource=victim.resource,
        members=len(victim.nodes),
        priority=victim.priority,
    )


test_guarantees_that_were_met_stay_met = _of_every_plan(_guarantees_stay_met)
test_nobody_loses_what_is_guaranteed = _of_every_plan(_nobody_loses_what_is_guaranteed)
test_the_ask_has_its_place = _of_every_plan(_the_ask_has_its_place)
test_whole_groups_end = _of_every_plan(_whole_groups_end)
test_nobody_is_taken_back = _of_every_plan(_nobody_is_taken_back)


@_many
@hypothesis.given(_seeds)
def test_preemption_comes_to_an_end(seed: int) -> None:
    """Whoever was evicted asks again, and again, and after a few cycles nobody is evicted any more."""
    for cluster, first, _ in _plans(seed):
        waiting, evicting = [first], 0
        while waiting:
            asker = waiting.pop(0)
            outcome = cluster.attempt(asker)
            if isinstance(outcome, Planned):
                evicting += 1
                cluster.serve(asker, outcome)
                waiting += map(_again, outcome.victims)
            assert evicting < 20
