"""A cluster that is full, behind which another scheduler queues: guarantees hold there as below a maximum."""

import random
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.preemptors import crowded
from slurm_bridge.families.yunikorn.queues.preemptors.facts import Planned
from slurm_bridge.families.yunikorn.queues.records import NodeMode, NodeReport
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import ask_id
from tests.unit.families.yunikorn.queues.support_joined import Site, two
from tests.unit.families.yunikorn.queues.support_preempting import Cluster, below, guarantees, reason, victims

BIG = 1_000_000_000


class Sized(Site):
    """One node that takes everything, and says how large the cluster is."""

    def __init__(self, *queues: Any, vcore: int | None = 20_000, **options: Any) -> None:
        super().__init__(*queues, nodes=0, mode=NodeMode.ALLOCATABLE, **options)
        self.resize(vcore)

    def resize(self, vcore: int | None) -> None:
        """So large is the cluster from now on; None: nobody says."""
        capacity, size = {"vcore": BIG, "memory": BIG}, None if vcore is None else {"vcore": vcore}
        self.world.update(nodes=(NodeReport(name="slurm", partition="default", capacity=capacity, size=size),))
        self.world.settle()

    def start(self, name: str, *numbers: int) -> None:
        """The scheduler behind has given them their nodes."""
        self.world.update(started=tuple(ask_id(name, f"{name}-{number}") for number in numbers))


def full(*queues: Any, **options: Any) -> Sized:
    """Queue b has all twenty vcores, each newer than the one before, and two more of it wait for nodes."""
    site = Sized(*queues, **options)
    site.submit("b", "root.b")
    for number in range(12):
        site.later(1)
        site.more("b", 2_000, first=number)
    site.start("b", *range(10))
    return site


class TestKeptBack:
    def test_an_ask_that_is_owed_waits_for_room_and_gets_it(self) -> None:
        """What has not started goes first, and is only taken back; then the newest that run."""
        site = full()
        site.submit("a", "root.a", 4_000)
        assert site.used("a") == 0
        site.later()
        assert site.evicted == ["b-11", "b-10", "b-9", "b-8"]
        site.confirm()
        assert (site.used("a"), site.used("b")) == (4_000, 16_000)

    def test_while_they_go_it_is_not_let_in(self) -> None:
        """Else it would wait among those that are to make room for it."""
        site = full()
        site.submit("a", "root.a", 4_000)
        site.later()
        for victim in [one.victim for one in site.manager.evictions]:
            assert site.used("a") == 0
            site.end(victim)
        assert site.used("a") == 4_000

    def test_while_they_go_nobody_else_is_let_in(self) -> None:
        """Who has been taken back lines up behind the one that it made room for."""
        site = full()
        site.submit("a", "root.a", 4_000)
        site.later()
        site.submit("c", "root.b", 2_000)
        first, *others = [one.victim for one in site.manager.evictions]
        site.end(first)
        assert "c-0" not in site.running
        site.end(*others)
        assert [application for application, _, _ in site.manager.new[-2:]] == ["a", "c"]

    def test_before_it_is_known_how_large_the_cluster_is_what_is_promised_is_kept(self) -> None:
        """As after a restart."""
        site = full()
        site.submit("a", "root.a", 4_000)
        site.later()
        capacity = {"vcore": BIG, "memory": BIG}
        site.world.update(nodes=(NodeReport(name="slurm", partition="default", capacity=capacity, size={}),))
        site.world.settle()
        assert site.used("a") == 0
        site.confirm()
        assert site.used("a") == 4_000

    def test_asks_beyond_the_guarantee_are_let_in_as_ever(self) -> None:
        """A full cluster keeps nobody who borrows; the queue gets what it is guaranteed, and no more goes for it."""
        site = full()
        site.submit("a", "root.a", *[2_000] * 7)
        for _ in range(6):
            site.later()
            site.confirm()
        assert site.used("a") == 14_000
        assert site.used("b") == 10_000
        assert site.running.count("b-0") == 1

    def test_a_guarantee_of_a_queue_above_counts(self) -> None:
        """Its child has none of its own."""
        parent = queue("p", queue("a"), resources={"guaranteed": {"vcore": "10"}})
        site = full(parent, queue("b"))
        site.submit("a", "root.p.a", 2_000)
        site.later()
        site.confirm()
        assert len(site.evicted) == 3
        assert site.used("p.a") == 2_000

    def test_where_there_is_room_nobody_waits(self) -> None:
        """Nor goes."""
        site = full(vcore=26_000)
        site.submit("a", "root.a", 2_000)
        assert site.used("a") == 2_000
        site.later()
        assert site.evicted == []

    def test_a_cluster_that_grows_lets_it_in(self) -> None:
        """Before anybody has to go."""
        site = full()
        site.submit("a", "root.a", 2_000)
        site.resize(30_000)
        assert site.used("a") == 2_000
        site.later()
        assert site.evicted == []


class TestLetIn:
    @pytest.mark.parametrize(
        "site",
        [
            lambda: full(vcore=None),
            lambda: full(fields={"preemption": {"enabled": False}}),
            lambda: full(queue("a"), queue("b")),
        ],
    )
    def test_where_nothing_is_owed_or_known_nothing_changes(self, site: Any) -> None:
        """Nobody says how large the cluster is, preemption is off, or nothing is guaranteed."""
        made = site()
        made.submit("a", "root.a", 2_000)
        assert made.used("a") == 2_000
        made.later()
        assert made.evicted == []

    def test_one_for_whom_nobody_can_go_is_let_in_after_the_attempt(self) -> None:
        """It waits with the other scheduler then."""
        site = full(*two(properties={"preemption.policy": "disabled"}))
        site.submit("a", "root.a", 2_000)
        site.later(29)
        assert site.used("a") == 0
        site.later(2)
        assert site.used("a") == 2_000
        assert site.evicted == []

    def test_one_that_has_nobody_go_for_it_is_let_in(self) -> None:
        """It says so itself."""
        site = full()
        site.submit("a", "root.a", 2_000, allow_preempt_other=False)
        assert site.used("a") == 2_000

    def test_what_is_short_has_to_be_what_is_guaranteed(self) -> None:
        """Nobody goes for vcores because of memory."""
        mine = queue("a", resources={"guaranteed": {"memory": "10G"}})
        site = full(mine, queue("b"))
        site.submit("a", "root.a", 2_000)
        assert site.used("a") == 2_000
        site.later()
        assert site.evicted == []

    def test_whoever_is_within_a_guarantee_stays(self) -> None:
        """Both queues have what they are guaranteed: the third one cannot have its."""
        share = {"resources": {"guaranteed": {"vcore": "10"}}}
        site = Sized(queue("a", **share), queue("b", **share), queue("c", **share))
        site.submit("b", "root.b", *[2_000] * 5)
        site.submit("c", "root.c", *[2_000] * 5)
        site.submit("a", "root.a", 2_000)
        site.later()
        assert site.evicted == []
        assert site.used("a") == 2_000


class TestAfterwards:
    def test_nobody_is_taken_back_in_the_next_rounds(self) -> None:
        """Both are guaranteed half of it; who lost comes again."""
        share = {"resources": {"guaranteed": {"vcore": "10"}}}
        site = full(queue("a", **share), queue("b", **share))
        site.submit("a", "root.a", *[2_000] * 5)
        for number in range(8):
            site.later()
            site.confirm()
            site.more("b", 2_000, first=20 + number)
        assert site.used("a") == 10_000
        assert {key.split("-")[0] for key in site.evicted} == {"b"}

    def test_a_spared_victim_does_not_let_the_asker_in(self) -> None:
        """Its room is not there: somebody else is asked."""
        site = full()
        site.submit("a", "root.a", 2_000)
        site.later()
        site.refuse()
        assert site.used("a") == 0
        site.later()
        assert len(set(site.evicted)) == 6
        site.confirm()
        assert site.used("a") == 2_000

    def test_a_maximum_above_and_the_cluster_make_room_in_one_go(self) -> None:
        """Both are full."""
        parent = queue(
            "p",
            queue("a", resources={"guaranteed": {"vcore": "4"}}),
            queue("c"),
            resources={"max": {"vcore": "8"}},
        )
        site = full(parent, queue("b"), vcore=28_000)
        site.submit("c", "root.p.c", *[2_000] * 4)
        site.start("c", *range(4))
        site.submit("a", "root.p.a", 4_000)
        site.later()
        assert site.evicted[:2] == ["c-0", "c-1"]
        site.confirm()
        assert site.used("p.a") == 4_000
        assert sum(site.used(path) for path in ("p.a", "p.c", "b")) <= 28_000


class TestAttempts:
    """One attempt, by itself."""

    def test_room_that_was_given_twice_is_taken_back_too(self) -> None:
        """More goes than is asked for, as far as others have borrowed it."""
        cluster = Cluster("a", "b", nodes={"n": {"cpu": BIG}}, settings=guarantees(a={"cpu": 4}))
        for number in range(10):
            cluster.run(str(number), "b", "n", resource={"cpu": 1}, started=number < 6)
        outcome = cluster.attempt(cluster.ask("a", {"cpu": 2}), size={"cpu": 6})
        assert victims(outcome) == ["9", "8", "7", "6", "5", "4"]

    def test_nobody_goes_where_all_are_too_few(self) -> None:
        """The rest is within its guarantee."""
        cluster = Cluster("a", "b", nodes={"n": {"cpu": BIG}}, settings=guarantees(a={"cpu": 4}, b={"cpu": 5}))
        for number in range(6):
            cluster.run(str(number), "b", "n", resource={"cpu": 1})
        assert reason(cluster.attempt(cluster.ask("a", {"cpu": 2}), size={"cpu": 6})) == "shortfall"

    def test_a_shared_guarantee_above_is_kept(self) -> None:
        """What its sibling has lost is missing there."""
        settings = guarantees(p={"cpu": 4}, p_a={"cpu": 2})
        cluster = Cluster("p.a", "p.b", "c", nodes={"n": {"cpu": BIG}}, settings=settings)
        cluster.run("large", "p.b", "n", resource={"cpu": 4})
        cluster.run("other", "c", "n", resource={"cpu": 4})
        assert victims(cluster.attempt(cluster.ask("p.a", {"cpu": 1}), size={"cpu": 8})) == ["other"]


_LEAVES = ("p.a", "p.b", "q.c", "d")


def _crowd(dice: random.Random) -> tuple[Cluster, dict[str, int]]:
    """Queues with and without guarantees, and about as much in them as the cluster has."""
    kinds = ("cpu", "memory")

    def share() -> dict[str, int] | None:
        return {kind: dice.randint(1, 8) for kind in dice.sample(kinds, dice.randint(1, 2))}

    paths = {"root.p", "root.q", *(f"root.{leaf}" for leaf in _LEAVES)}
    often = {"root.p.a": 1.0, "root.p": 0.3, "root.d": 0.3}
    settings = {
        path: QueueSettings(guaranteed=share() if dice.random() < often.get(path, 0.6) else None)
        for path in sorted(paths)
    }
    cluster = Cluster(*_LEAVES, nodes={"n": dict.fromkeys(kinds, BIG)}, settings=settings)
    for number in range(dice.randint(5, 25)):
        resource = {"cpu": dice.randint(1, 3), "memory": dice.randint(0, 3)}
        where = dice.choice((*_LEAVES[1:], "d", "d", "q.c")) if dice.random() < 0.9 else "p.a"
        cluster.run(str(number), where, "n", resource=resource, started=dice.random() < 0.7)
    return cluster, {kind: dice.randint(10, 30) for kind in kinds}


@hypothesis.settings(max_examples=examples(300))
@hypothesis.given(st.integers(0, 1 << 32))
def test_whoever_goes_has_borrowed_and_the_ask_fits_then(seed: int) -> None:
    """Or nobody goes: no guarantee is lost, all fits into the cluster, and nobody is asked for more than that takes."""
    dice = random.Random(seed)
    cluster, size = _crowd(dice)
    asker = cluster.ask(
        "p.a" if dice.random() < 0.8 else dice.choice(_LEAVES),
        {"cpu": dice.randint(1, 4), "memory": dice.randint(1, 3)},
    )
    root, queues = cluster.root, tuple(tree.downward(cluster.root))
    short = crowded.missing(size, root.allocated, asker.total)
    before = below(queues)
    outcome = cluster.attempt(asker, size=size)
    if not isinstance(outcome, Planned):
        return
    assert short
    for victim in outcome.victims:
        assert victim.queue is not asker.queue
        assert any(
            amount > (above.guaranteed or {}).get(kind, 0)
            for above in victim.queue.lineage
            for kind, amount in above.allocated.items()
        )
    cluster.serve(asker, outcome)
    for victim in outcome.victims:
        assert any(root.allocated[kind] + victim.resource[kind] > size[kind] for kind in short)
    after = below(queues)
    assert all(after[path] <= before[path] for path in before)
    assert amounts.fit_in({kind: root.allocated[kind] for kind in short}, size)


_SHARES = (
    queue("a", resources={"guaranteed": {"vcore": "8"}}),
    queue(
        "p", queue("b"), queue("c", resources={"guaranteed": {"vcore": "3"}}), resources={"guaranteed": {"vcore": "6"}}
    ),
    queue("d"),
)
_WHERE = ("root.a", "root.p.b", "root.p.c", "root.d", "root.d")


def _met(site: Sized) -> set[str]:
    """The queues that have all that they are guaranteed."""
    queues = tree.downward(site.world.committed().root)
    return {one.path for one in queues if one.guaranteed and amounts.fit_in(one.guaranteed, one.allocated)}


@pytest.mark.thorough
@hypothesis.settings(max_examples=examples(60))
@hypothesis.given(st.integers(0, 1 << 32))
def test_a_busy_cluster_keeps_guarantees_and_everybody_is_let_in_at_last(seed: int) -> None:
    """Whoever comes, ends, starts or cannot go, and however large the cluster becomes."""
    dice = random.Random(seed)
    site = Sized(*_SHARES, vcore=16_000)
    for number in range(25):
        name = f"w{number}"
        site.submit(name, dice.choice(_WHERE), 1_000 * dice.randint(1, 5), created=float(dice.randint(0, 20)))
        if dice.random() < 0.5:
            site.start(name, 0)
        if dice.random() < 0.2:
            site.resize(1_000 * dice.randint(8, 24))
        if dice.random() < 0.5:
            site.later(dice.choice((2, 16, 31)))
            before = _met(site)
            site.refuse() if dice.random() < 0.2 else site.confirm()
            assert before <= _met(site)
    for _ in range(40):
        site.later(16)
        site.confirm()
    assert amounts.is_empty(site.world.scheduled().root.pending)
    assert site.marked() == {}
    assert site.world.failed == []
