"""The search for room on nodes: the fewest pods leave, filters and budgets of queues hold, and all members fit."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.parties import Party
from slurm_bridge.cluster.snapshot import Amounts, ClusterSnapshot
from slurm_bridge.families.yunikorn import rooms
from slurm_bridge.hooks.base import Ask, Nodes
from slurm_bridge.hooks.evictions import Answers, Site
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources
from tests.examples import examples
from tests.unit.hooks import builders as scene

#: Workloads by node: how many cpus each of its pods has there.
Layout = Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Imagined:
    """Implements hooks.evictions.QueueSituation; `repelled` are nodes that filters refuse while a workload stays."""

    ask: Ask
    layout: Layout
    has: Mapping[str, int]
    repelled: Mapping[str, str] = dataclasses.field(default_factory=dict)
    split: tuple[Nodes, ...] = ()
    avoided: Nodes = frozenset()
    submitted: bool = True
    snapshot: ClusterSnapshot = dataclasses.field(init=False)
    pods: Mapping[tuple[str, str], Pod] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        pods = {
            (name, node): scene.pod(f"{name}-{node}", node_name=node, requests={"cpu": str(cpus)})
            for node, here in self.layout.items()
            for name, cpus in here.items()
        }
        object.__setattr__(self, "pods", pods)
        made = cluster_cache.ClusterCache(resources.requests_of)
        for name, cpus in self.has.items():
            made.on_node(None, scene.node(name, allocatable={"cpu": str(cpus)}))
        for pod in pods.values():
            made.on_pod(None, pod)
        made.set_slurm((scene.slurm_node(name) for name in self.has), (scene.partition("debug", *self.has),))
        object.__setattr__(self, "snapshot", made.snapshot())

    def answers(self, snapshot: ClusterSnapshot) -> Answers | None:
        there = {pod.uid for facts in snapshot.nodes.values() for pod in facts.pods}
        open_ = frozenset(
            node
            for node in self.has
            if node not in self.repelled or self.pods[self.repelled[node], node].uid not in there
        )
        return Answers(request=self.ask.request, nodes=open_, sets=self.split or (open_,), budgets=())

    def placed(self, workload: WorkloadKey) -> Sequence[Pod]:
        return tuple(pod for (name, _), pod in self.pods.items() if name == workload)

    def sites(self, request: JobRequest, nodes: Iterable[str]) -> Sequence[Site]:  # noqa: ARG002 - as declared
        return [self._site(node) for node in nodes]

    def _site(self, node: str) -> Site:
        here = [pod for (_, where), pod in self.pods.items() if where == node]
        parties = tuple(Party(here=(pod,)) for pod in here)
        return Site(node=node, has={"cpu": Fraction(self.has[node])}, parties=parties, needs_of=needs)

    def evictable(self) -> Mapping[str, Sequence[Pod]]:
        raise NotImplementedError

    def on_node(self, node: str) -> Iterable[Pod]:
        raise NotImplementedError


def needs(pod: Pod) -> Amounts:
    """What it asks for of cpus."""
    return {"cpu": Fraction(str(pod.spec.containers[0].resources.requests["cpu"]))}


def asks(*cpus: int) -> Ask:
    """A workload of pods with so many cpus each."""
    pods = [scene.pod(f"mine-{number}", requests={"cpu": str(amount)}) for number, amount in enumerate(cpus)]
    return Ask(workload=scene.gang(*pods) if len(pods) > 1 else scene.workload(*pods), request=scene.request())


def found(situation: Imagined, *names: str, kept: Iterable[str] = ()) -> list[set[str]]:
    """The ways, with the names of the victims; those that are kept may not go."""
    kept = frozenset(kept)

    def may(numbers: Sequence[int]) -> bool:
        return kept.isdisjoint(names[number] for number in numbers)

    every: Iterator[tuple[int, ...]] = rooms.ways(
        situation, [[WorkloadKey(name)] for name in names], may, rooms.Effort()
    )
    return [{names[number] for number in way} for way in itertools.islice(every, 20)]


FULL: Layout = {"n1": {"a": 2, "b": 2}, "n2": {"c": 1, "d": 1, "e": 2}, "n3": {"f": 4}}
FOUR = dict.fromkeys(FULL, 4)


def test_the_fewest_pods_come_first() -> None:
    """One, two, three; every way is on one node."""
    assert found(Imagined(ask=asks(4), layout=FULL, has=FOUR), *"cdeabf") == [{"f"}, {"a", "b"}, {"c", "d", "e"}]


def test_of_equal_ways_the_first_in_the_order_of_victims_comes_first() -> None:
    """The queues put the newest first."""
    assert found(Imagined(ask=asks(2), layout=FULL, has=FOUR), *"fbaecd")[:2] == [{"f"}, {"b"}]


def test_a_free_node_needs_no_victim() -> None:
    """The way is empty."""
    assert found(Imagined(ask=asks(4), layout=FULL, has={**FOUR, "n4": 4}), *"abcdef")[0] == set()


def test_what_may_not_go_stays() -> None:
    """Its queue is within its guarantee."""
    assert found(Imagined(ask=asks(4), layout=FULL, has=FOUR), *"abcdef", kept="fa") == [{"c", "d", "e"}]


def test_a_node_that_filters_refuse_is_none() -> None:
    """While one stays that repels the pod, the others leave in vain; with it gone they do not."""
    situation = Imagined(ask=asks(2), layout=FULL, has=FOUR, repelled={"n3": "f", "n1": "a"})
    assert {"b"} not in found(situation, *"bacdef")
    assert {"a"} in found(Imagined(ask=asks(2), layout=FULL, has=FOUR, repelled={"n1": "a"}), *"abcdef")


def test_nodes_that_are_held_for_others_are_left_alone() -> None:
    """They are being cleared for another workload."""
    assert found(Imagined(ask=asks(4), layout=FULL, has=FOUR, avoided=frozenset({"n3"})), *"abcdef")[0] == {"a", "b"}


def test_a_gang_has_a_place_for_each_pod() -> None:
    """What one of them frees counts for the next."""
    assert found(Imagined(ask=asks(2, 2), layout=FULL, has=FOUR), *"abcdef") == [{"f"}]
    assert found(Imagined(ask=asks(4, 4), layout=FULL, has=FOUR), *"abcdef") == [{"f", "a", "b"}]
    assert not found(Imagined(ask=asks(4, 4, 4, 4), layout=FULL, has=FOUR), *"abcdef")


def test_a_gang_stays_within_one_set_of_nodes() -> None:
    """As a hook requires that divides the nodes."""
    within = (frozenset({"n1"}), frozenset({"n2", "n3"}))
    assert found(Imagined(ask=asks(4, 3), layout=FULL, has=FOUR, split=within), *"abcdef") == [set("cef")]


def test_pods_that_leave_with_a_victim_count() -> None:
    """A gang on two nodes costs two pods, though one would do."""
    layout = {"n1": {"gang": 4}, "n2": {"gang": 4}, "n3": {"single": 4}}
    assert found(Imagined(ask=asks(4), layout=layout, has=FOUR), "gang", "single") == [{"single"}, {"gang"}]


def packed(nodes: int, victims: int) -> Imagined:
    """A gang of forty pods comes; from each node so many may leave."""
    layout = {f"n{node}": {f"v{node}-{number}": 1 for number in range(victims)} for node in range(nodes)}
    return Imagined(ask=asks(*[2] * 40), layout=layout, has=dict.fromkeys(layout, victims))


def test_a_search_ends_at_its_limit_and_has_found_nothing_then() -> None:
    """Its cost is bounded, whatever may leave; a neighbour's search begins anew, and finds room."""
    situation, looks = packed(nodes=20, victims=10), itertools.count()
    names = [[WorkloadKey(name)] for here in situation.layout.values() for name in here]
    short, enough = rooms.Effort(left=1_000), rooms.Effort()
    assert not list(rooms.ways(situation, names, lambda _: next(looks) >= 0, short))
    assert short.is_spent
    assert next(looks) < 1_000
    assert next(rooms.ways(situation, names, lambda _: True, enough))
    assert not enough.is_spent


def test_without_victims_on_any_node_there_is_no_way() -> None:
    """Workloads that wait in Slurm leave no node."""
    assert not found(Imagined(ask=asks(4), layout={}, has={"n1": 3}), "pending")


@hypothesis.settings(max_examples=examples(200))
@hypothesis.given(data=st.data())
def test_one_pod_never_costs_more_pods_than_it_has_to(data: st.DataObject) -> None:
    """Compared with every set of victims of every node; each way frees enough."""
    cpus = st.integers(1, 3)
    layout = {
        node: {f"{node}{number}": data.draw(cpus) for number in range(data.draw(st.integers(0, 4)))} for node in FOUR
    }
    free = {node: data.draw(st.integers(0, 2)) for node in FOUR}
    has = {node: sum(here.values()) + free[node] for node, here in layout.items()}
    wanted, every = data.draw(st.integers(1, 6)), [name for here in layout.values() for name in here]
    victims = data.draw(st.permutations(every))
    ways = found(Imagined(ask=asks(wanted), layout=layout, has=has), *victims)
    sets = [
        set(some)
        for node, here in layout.items()
        for count in range(len(here) + 1)
        for some in itertools.combinations(here, count)
        if free[node] + sum(here[name] for name in some) >= wanted
    ]
    assert bool(ways) == bool(sets)
    if ways:
        assert len(ways[0]) == min(map(len, sets))
        assert all(way in sets for way in ways)
