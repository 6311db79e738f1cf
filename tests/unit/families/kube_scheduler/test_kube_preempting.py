"""Preemption without a cluster: who goes, from which node, and what budgets and extenders say about it."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster import hypothetical, parties
from slurm_bridge.cluster.parties import Party, Victims
from slurm_bridge.cluster.rules import budgets
from slurm_bridge.cluster.rules.budgets import Budget
from slurm_bridge.cluster.snapshot import ClusterSnapshot, NodeFacts
from slurm_bridge.families.kube_scheduler.preemption import choice, proposal, room
from slurm_bridge.families.kube_scheduler.preemption import hook as hooks
from slurm_bridge.hooks.evictions import Site
from slurm_bridge.hooks.services import HookServices, NotAnswered
from slurm_bridge.model import selectors
from slurm_bridge.model.budget import BudgetSpec, BudgetStatus, PodDisruptionBudget
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Container, Pod, PodSpec, PodStatus, ResourceNeeds
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import resources


def pod(name: str, priority: int = 0, cpu: int = 1, **changes: Any) -> Pod:
    """A pod of so many cpus; `labels` and `namespace` are its own, anything else belongs to its spec or status."""
    needs = ResourceNeeds(requests={"cpu": cpu})
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            namespace=changes.pop("namespace", "default"),
            labels=changes.pop("labels", {}),
        ),
        status=PodStatus(nominated_node_name=changes.pop("nominated", None), start_time=changes.pop("started", None)),
        spec=PodSpec(priority=priority, containers=(Container(name="main", resources=needs),), **changes),
    )


def site(name: str, cpus: int, *there: Party | Pod) -> Site:
    """A node that has so much for these, each of whom is alone unless it is a party."""
    grouped = tuple(one if isinstance(one, Party) else Party(here=(one,)) for one in there)
    has = {"cpu": Fraction(cpus), "pods": Fraction(10)}
    return Site(node=name, has=has, parties=grouped, needs_of=resources.requests_of)


def names(pods: Sequence[Pod]) -> list[str]:
    """Of these pods."""
    return [one.metadata.name for one in pods]


def anti(selector: Mapping[str, Any], **more: Any) -> dict[str, object]:
    """Required anti-affinity to such pods."""
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname", **more}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


pods_there = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.booleans()), max_size=7)


@given(there=pods_there, wanted=st.integers(1, 8), capacity=st.integers(0, 12), priority=st.integers(0, 6))
def test_nobody_leaves_in_vain(there: list[tuple[int, int, bool]], wanted: int, capacity: int, priority: int) -> None:
    """Whoever stays leaves room enough, and with any one victim more there would be too little."""
    alone = parties.alone(pod(f"p{number}", rank, cpu) for number, (rank, cpu, _) in enumerate(there))
    guarded = {f"p{number}" for number, (_, _, held) in enumerate(there) if held}

    def fits(_node: str, staying: Sequence[Pod]) -> bool:
        return wanted + sum(int(resources.requests_of(one)["cpu"]) for one in staying) <= capacity

    found = parties.select("n", priority, alone, fits, lambda one: one.metadata.name in guarded)
    every = [one for party in alone for one in party.here]
    if found is None:
        assert not fits("n", [one for one in every if (one.spec.priority or 0) >= priority])
        return
    staying = [one for one in every if one not in found.pods]
    assert fits("n", staying)
    assert all((one.spec.priority or 0) < priority for one in found.pods)
    assert not any(fits("n", [*staying, one]) for one in found.pods)
    assert found.violations == sum(one.metadata.name in guarded for one in found.pods)


def test_a_party_is_as_important_as_its_most_important_member() -> None:
    """Nobody is lost for a pod that is not more important than he is, be it with the others of his gang."""
    gang = Party(here=(pod("a", 1),), elsewhere=(pod("b", 50),))
    assert gang.priority == 50
    assert parties.select("n", 50, [gang], lambda _node, staying: not staying) is None
    gone = parties.select("n", 51, [gang], lambda _node, staying: not staying)
    assert gone is not None
    assert names(gone.pods) == ["a", "b"]


def test_a_node_that_nobody_has_to_leave_wins() -> None:
    """Before any that costs something, however little."""
    cheap = Victims(parties=parties.alone([pod("a", -1000)]))
    assert choice.pick({"n1": cheap, "n2": Victims()}) == "n2"


def test_broken_budgets_count_most() -> None:
    """A broken one outweighs any priority."""
    guarded = Victims(parties=parties.alone([pod("a", 0)]), violations=1)
    other = Victims(parties=parties.alone([pod("b", 900), pod("c", 900)]))
    assert choice.pick({"n1": guarded, "n2": other}) == "n2"


OLD, YOUNG, YOUNGEST = "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z"


@pytest.mark.parametrize(
    ("first", "second", "leaves"),
    [
        (OLD, YOUNG, "b"),
        (YOUNG, OLD, "a"),
        # Bound and not started yet: it loses nothing.
        (OLD, None, "b"),
        (None, OLD, "a"),
    ],
)
def test_of_equally_important_pods_the_younger_leaves(first: str | None, second: str | None, leaves: str) -> None:
    """The older one has more work to lose."""
    one = site("n1", 2, pod("a", 1, started=first), pod("b", 1, started=second))
    found = proposal.propose([pod("w", 10)], 10, [one], [])
    assert found is not None
    assert names(found.victims) == [leaves]


def test_importance_goes_before_age() -> None:
    """The less important pod leaves, however old it is."""
    one = site("n1", 2, pod("a", 1, started=OLD), pod("b", 2, started=YOUNG))
    found = proposal.propose([pod("w", 10)], 10, [one], [])
    assert found is not None
    assert names(found.victims) == ["a"]


def test_a_gang_is_as_old_as_the_first_of_its_most_important_members() -> None:
    """Less important members, however old, do not count; nor does where the members are."""
    gang = Party(
        here=(pod("a", 5, started=YOUNG),), elsewhere=(pod("b", 1, started=OLD), pod("c", 5, started=YOUNGEST))
    )
    assert gang.started == Party(here=(pod("d", 5, started=YOUNG),)).started
    assert gang.started > Party(here=(pod("d", 5, started=OLD),)).started


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        ([(1, OLD)], [(1, YOUNG)], "n2"),
        ([(1, YOUNG)], [(1, OLD)], "n1"),
        ([(1, OLD)], [(1, None)], "n2"),
        # Only the most important victims are compared, by the one that started first.
        ([(2, YOUNG), (1, OLD)], [(2, OLD), (1, YOUNG)], "n1"),
        ([(2, YOUNG), (2, OLD)], [(2, YOUNG), (2, YOUNG)], "n2"),
        # Fewer victims go before younger ones, and equal nodes by their order.
        ([(1, OLD)], [(1, YOUNG), (-(2**31), YOUNG)], "n1"),
        ([(1, OLD)], [(1, OLD)], "n1"),
    ],
)
def test_of_equal_nodes_the_one_whose_victims_started_last(
    first: list[tuple[int, str | None]], second: list[tuple[int, str | None]], taken: str
) -> None:
    """What is lost is the least work."""
    candidates = {
        name: Victims(parties=parties.alone(pod(f"{name}-{rank}", rank, started=began) for rank, began in there))
        for name, there in (("n1", first), ("n2", second))
    }
    assert choice.pick(candidates) == taken


def test_an_extender_sees_what_the_one_before_it_left() -> None:
    """And the last is not asked when nothing is left."""
    asked: list[list[str]] = []

    def ask(candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        asked.append(list(candidates))
        return dict(list(candidates.items())[1:])

    every = [choice.Extender(name="one", ask=ask) for _ in range(3)]
    assert choice.extended({"n1": Victims(), "n2": Victims()}, every) == {}
    assert asked == [["n1", "n2"], ["n2"]]


def test_an_extender_that_counts_and_does_not_answer_ends_it() -> None:
    """One that may fail, or is not interested, does not."""

    def fail(_candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        raise NotAnswered("no")

    ignorable = choice.Extender(name="one", ask=fail, ignorable=True)
    strange = choice.Extender(name="two", ask=fail, interested=False)
    assert choice.extended({"n1": Victims()}, [ignorable, strange]) == {"n1": Victims()}
    with pytest.raises(NotAnswered):
        choice.extended({"n1": Victims()}, [choice.Extender(name="three", ask=fail)])


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, []),
        ({}, ["web", "bare"]),
        ({"matchLabels": {"app": "web"}}, ["web"]),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, ["web"]),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, []),
    ],
)
def test_a_budget_selects_as_policy_v1_says(selector: dict[str, object] | None, selected: list[str]) -> None:
    """Nothing selects nobody, empty selects everybody, and only in its namespace."""
    found = PodDisruptionBudget(
        metadata=ObjectMeta(namespace="default", name="pdb"),
        spec=BudgetSpec(selector=selector),
        status=BudgetStatus(disruptions_allowed=2),
    )
    one = budgets.of(found)
    there = [pod("web", labels={"app": "web"}), pod("bare"), pod("far", labels={"app": "web"}, namespace="other")]
    assert [each.metadata.name for each in there if one.selects(each)] == selected
    assert one.allowed == 2


def test_a_budget_is_overdrawn_by_all_together() -> None:
    """One may go, two may not."""
    one = Budget(namespace="default", requirements=selectors.read({"matchLabels": {"app": "db"}}), allowed=1)
    first, second = pod("a", labels={"app": "db"}), pod("b", labels={"app": "db"})
    assert not budgets.overdrawn([one], [first, pod("c")])
    assert budgets.overdrawn([one], [first, second])


@pytest.mark.parametrize(
    ("mine", "repelled"),
    [
        (anti({"matchLabels": {"app": "db"}}), True),
        (anti({"matchLabels": {"app": "web"}}), False),
        (anti({}), True),
        (anti({"matchLabels": {"app": "db"}}, namespaces=["other"]), False),
        (anti({"matchLabels": {"app": "db"}}, namespaces=["other"], namespaceSelector={}), True),
        ({"podAntiAffinity": None}, False),
        ({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": True}}, False),
        (anti({"matchExpressions": [{"key": "app", "operator": "In", "values": 7}]}), False),
        (None, False),
    ],
)
def test_anti_affinity_keeps_pods_apart_both_ways(mine: dict[str, object] | None, repelled: bool) -> None:
    """Whichever of the two has it."""
    picky, other = pod("picky", affinity=mine), pod("other", labels={"app": "db"})
    has = {"cpu": Fraction(9), "pods": Fraction(9)}
    assert room.fits(picky, [other], has) is not repelled
    assert room.fits(other, [picky], has) is not repelled


def test_what_nobody_asks_for_does_not_matter() -> None:
    """A node that is short of something is full only for those who want it."""
    assert room.fits(pod("a", cpu=0), [pod("b", cpu=5)], {"cpu": Fraction(4), "pods": Fraction(9)})
    assert not room.fits(pod("a", cpu=0), [pod("b")], {"cpu": Fraction(4), "pods": Fraction(1)})


def test_each_of_a_group_gets_a_place() -> None:
    """Free places are used first; several may share a node; whoever left once need not leave again."""
    sites = [site("n1", 2, pod("a", cpu=2)), site("n2", 4, pod("b", cpu=4)), site("n3", 1)]
    wanted = [pod(f"w{number}", 10) for number in range(3)]
    found = proposal.propose(wanted, 10, sites, [])
    assert found is not None
    assert found.places == {"w0": "n3", "w1": "n1", "w2": "n1"}
    assert names(found.victims) == ["a"]
    assert found.nodes == {"n1", "n3"}


def test_a_group_that_does_not_fit_as_a_whole_gets_nothing() -> None:
    """Nobody goes for a part of it."""
    assert proposal.propose([pod("a", 10), pod("b", 10)], 10, [site("n1", 1, pod("c"))], []) is None


def test_members_elsewhere_make_room_where_they_are() -> None:
    """A gang that goes leaves all of its nodes."""
    here, there = pod("g0"), pod("g1")
    sites = [
        site("n1", 1, Party(here=(here,), elsewhere=(there,))),
        site("n2", 1, Party(here=(there,), elsewhere=(here,))),
    ]
    found = proposal.propose([pod("a", 10), pod("b", 10)], 10, sites, [])
    assert found is not None
    assert found.places == {"a": "n1", "b": "n2"}
    assert names(found.victims) == ["g0", "g1"]


def test_no_budget_is_broken_by_all_victims_together() -> None:
    """The second pod finds no place, because the budget has given the one that it had."""
    labels = {"app": "db"}
    sites = [site("n1", 1, pod("c", labels=labels)), site("n2", 1, pod("d", labels=labels))]
    one = Budget(namespace="default", requirements=selectors.read({"matchLabels": labels}), allowed=1)
    first = proposal.propose([pod("a", 10)], 10, sites, [one])
    assert first is not None
    assert names(first.victims) == ["c"]
    assert proposal.propose([pod("a", 10), pod("b", 10)], 10, sites, [one]) is None


def snapshot() -> ClusterSnapshot:
    """One node with two pods."""
    there = (pod("a", node_name="n1"), pod("b", cpu=2, node_name="n1"))
    used = {"cpu": Fraction(3), "pods": Fraction(2)}
    facts = NodeFacts(
        name="n1",
        slurm_name="n1",
        node=Node(metadata=ObjectMeta(name="n1")),
        slurm=None,
        allocatable={"cpu": Fraction(4)},
        used=used,
        placed={"cpu": Fraction(1)},
        pods=there,
    )
    return ClusterSnapshot(
        version=3,
        use_version=4,
        company_version=4,
        nodes={"n1": facts},
        slurm_nodes={},
        partitions=(),
        names=frozenset({"n1"}),
        by_slurm={},
    )


def test_a_cluster_without_some_pods_is_another_cluster() -> None:
    """Amounts and pods are less, the real one stays as it is, and no version is ever used twice."""
    real = snapshot()
    imagined = hypothetical.without(real, [real.nodes["n1"].pods[1], pod("c", node_name="n9")])
    facts = imagined.nodes["n1"]
    assert facts.used == {"cpu": 1, "pods": 1}
    assert facts.placed["cpu"] == 0
    assert names(facts.pods) == ["a"]
    assert real.nodes["n1"].used == {"cpu": 3, "pods": 2}
    again = hypothetical.without(real, [])
    assert len({real.version, imagined.version, again.version, imagined.use_version, again.use_version}) == 3
    assert imagined.columns.names.tolist() == ["n1"]


def test_what_was_cleared_is_tried_first() -> None:
    """Then anything else; a node that is gone, or all there are, is no preference."""
    made = hooks.Preemption(hooks.PreemptionOptions(), HookServices(clock=VirtualClock()))
    every = frozenset({"n1", "n2"})

    def ask(*nominated: str | None) -> Any:
        tasks = tuple(pod(f"p{number}", nominated=name) for number, name in enumerate(nominated))
        return made.subset(None, None, tasks, every)  # type: ignore[arg-type]

    assert [one.nodes for one in ask("n1").sets] == [{"n1"}, every]
    assert [one.relevant for one in (ask(None), ask("n9"), ask("n1", "n2"))] == [False, False, False]


def test_one_pod_that_does_not_want_to_speaks_for_its_group() -> None:
    """Its policy is respected for all of them."""
    assert hooks.may([pod("a"), pod("b", preemption_policy="PreemptLowerPriority")])
    assert not hooks.may([pod("a"), pod("b", preemption_policy="Never")])
