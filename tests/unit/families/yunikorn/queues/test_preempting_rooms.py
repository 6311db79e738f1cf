"""Attempts where another scheduler shares out the nodes: it says which victims leave room there for the ask."""

from collections.abc import Callable, Iterable, Sequence

from slurm_bridge.families.yunikorn.queues.preemptors.facts import AttemptAllocation, Planned
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from tests.unit.families.yunikorn.queues.support_preempting import Cluster, guarantees, reason, victims

BIG = {"vcore": 1_000_000}


class Told:
    """Knows the ways by the keys of the victims, and remembers which of them it was offered."""

    def __init__(self, *ways: Iterable[str], known: bool = True) -> None:
        self.ways, self.known = [frozenset(way) for way in ways], known
        self.offered: list[str] = []
        self.allowed: list[bool] = []

    def __call__(
        self, victims: Sequence[tuple[AttemptAllocation, ...]], may: Callable[[Sequence[int]], bool], /
    ) -> Iterable[tuple[int, ...]] | None:
        if not self.known:
            return None
        self.offered = [str(part.key) for unit in victims for part in unit]
        found = [tuple(self.offered.index(key) for key in sorted(way)) for way in self.ways]
        self.allowed = [may(way) for way in found]
        return found


def full(**settings: QueueSettings) -> Cluster:
    """Queue b has twenty vcores in pods of two; queue a is guaranteed four."""
    named = {f"root.{path}": one for path, one in settings.items()}
    cluster = Cluster("a", "b", nodes={"slurm": BIG}, settings={**guarantees(a={"vcore": 4}), **named})
    for number in range(10):
        cluster.run(f"b{number}", "b", "slurm", resource={"vcore": 2})
    return cluster


SIZE = {"vcore": 20}


def test_the_way_that_leaves_room_is_taken_and_not_the_newest() -> None:
    """They are offered in the order of victims, the newest first."""
    cluster, told = full(), Told(["b1", "b2"], ["b3", "b4"])
    outcome = cluster.attempt(cluster.ask("a", {"vcore": 4}), size=SIZE, rooms=told)
    assert victims(outcome) == ["b1", "b2"]
    assert told.offered[:2] == ["b9", "b8"]


def test_no_way_means_no_victim() -> None:
    """However much they have together."""
    cluster = full()
    outcome = cluster.attempt(cluster.ask("a", {"vcore": 4}), size=SIZE, rooms=Told())
    assert reason(outcome) == "no_room"


def test_what_is_not_known_yet_is_asked_later() -> None:
    """Slurm has to say first what is in use."""
    cluster = full()
    outcome = cluster.attempt(cluster.ask("a", {"vcore": 4}), size=SIZE, rooms=Told(known=False))
    assert reason(outcome) == "not_yet"


def test_a_node_with_room_needs_no_victim() -> None:
    """It is let in, and starts there."""
    cluster = full()
    outcome = cluster.attempt(cluster.ask("a", {"vcore": 4}), size=SIZE, rooms=Told([]))
    assert reason(outcome) == "not_needed"


def test_what_has_not_started_beyond_the_size_is_taken_back_besides() -> None:
    """It lines up behind the ask; nothing more that runs is evicted."""
    cluster = full()
    cluster.run("late", "b", "slurm", resource={"vcore": 2}, started=False)
    outcome = cluster.attempt(cluster.ask("a", {"vcore": 4}), size=SIZE, rooms=Told(["b1"]))
    assert victims(outcome) == ["b1", "late"]


def test_a_way_that_costs_a_queue_its_guarantee_is_none() -> None:
    """The whole of one way may not go, although each of its victims may."""
    cluster = full(b=QueueSettings(guaranteed={"vcore": 18}))
    told = Told(["b1", "b2"], ["b3"])
    outcome = cluster.attempt(cluster.ask("a", {"vcore": 2}), size=SIZE, rooms=told)
    assert told.allowed == [False, True]
    assert victims(outcome) == ["b3"]


def test_where_a_maximum_is_in_the_way_too_the_fewest_that_do_for_both_go() -> None:
    """The cheaper way leaves room on a node, and not in the queue above; the other one does for both."""
    settings = {**guarantees(team_a={"vcore": 4}), "root.team": QueueSettings(max={"vcore": 20})}
    cluster = Cluster("team.a", "team.b", "c", nodes={"slurm": BIG}, settings=settings)
    for number in range(10):
        cluster.run(f"b{number}", "team.b", "slurm", resource={"vcore": 2})
    ask = cluster.ask("team.a", {"vcore": 4})
    assert len(victims(cluster.attempt(ask, rooms=Told(["b1"])))) == 2
    assert victims(cluster.attempt(ask, rooms=Told(["b1"], ["b2", "b3"]))) in (["b1", "b9"], ["b2", "b3"])
    assert victims(cluster.attempt(ask, rooms=Told([]))) == victims(cluster.attempt(ask))


def test_a_plan_for_rooms_brings_the_asker_within_every_maximum() -> None:
    """What leaves room on nodes is not enough by itself."""
    settings = {**guarantees(team_a={"vcore": 4}), "root.team": QueueSettings(max={"vcore": 20})}
    cluster = Cluster("team.a", "team.b", nodes={"slurm": BIG}, settings=settings)
    for number in range(10):
        cluster.run(f"b{number}", "team.b", "slurm", resource={"vcore": 2})
    outcome = cluster.attempt(cluster.ask("team.a", {"vcore": 4}), rooms=Told(["b5"]))
    assert isinstance(outcome, Planned)
    assert sum(one.resource["vcore"] for one in outcome.victims) == 4
    assert "b5" in victims(outcome)
