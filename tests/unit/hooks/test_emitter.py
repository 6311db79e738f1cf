"""Node fields come in the form that Slurm bears best, or not at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import emitter
from slurm_bridge.model import names
from slurm_bridge.model.job import JobRequest
from tests.unit.hooks.builders import cluster, node, partition, request

FIVE = cluster([node(f"n{number}") for number in range(1, 6)])
ALL = FIVE.names


def emit(
    eligible: frozenset[str], candidates: frozenset[str] | None = None, seen: ClusterSnapshot = FIVE, **fields: Any
) -> JobRequest:
    """The request as it would be sent."""
    return emitter.Emitter().emit_all(request(**fields), seen, (eligible,), candidates).request


def lists(sent: JobRequest) -> tuple[str, ...]:
    """What is excluded; nothing else is ever said of nodes."""
    return sent.excluded_nodes


def test_nothing_is_excluded_nothing_is_sent() -> None:
    """Most jobs carry no node field, and stay the very same request."""
    plain = request()
    assert emitter.Emitter().emit(plain, FIVE, ALL).request is plain


def test_what_may_not_be_used_is_excluded_in_order() -> None:
    """Sorted: equal decisions are equal requests."""
    assert lists(emit(frozenset({"n4", "n2"}))) == ("n1", "n3", "n5")


def test_only_nodes_of_the_partition_are_excluded() -> None:
    """Other nodes could not be used anyway."""
    seen = cluster([node("a"), node("b"), node("c")], partition("one", "a", "b"), partition("two", "c"))
    assert lists(emit(frozenset({"a"}), seen=seen, partition="one")) == ("b",)
    assert lists(emit(frozenset({"a", "c"}), seen=seen, partition="one,two")) == ("b",)


@pytest.mark.parametrize(("named", "inside"), [("one", "ab"), ("two, one", "abc"), (None, "c"), ("", "c")])
def test_rows_tell_which_nodes_a_partition_has(named: str | None, inside: str) -> None:
    """The default one's, where none is named."""
    kinds = (partition("one", "a", "b"), partition("two", "c", default=True))
    seen = cluster([node("a"), node("b"), node("c")], *kinds)
    assert seen.columns.nodes(emitter.Emitter().inside(named, seen)) == frozenset(inside)


def test_t24_a_slurm_node_without_a_kubernetes_node_is_excluded() -> None:
    """Slurm could choose it, and nothing could be bound there."""
    seen = cluster([node("a")], slurm=["a", "ghost"])
    assert lists(emit(frozenset({"a"}), seen=seen)) == ("ghost",)


def test_a_name_that_slurm_no_longer_knows_is_never_sent() -> None:
    """One unknown name refuses the whole request, though the partition still lists it."""
    seen = cluster([node("a"), node("b")], partition("debug", "a", "b", "deleted"))
    assert lists(emit(frozenset({"a"}), seen=seen)) == ("b",)


def test_t25_slurms_names_are_sent() -> None:
    """The label on the node decides."""
    seen = cluster([node("a"), node("b", labels={names.LABEL_SLURM_NODE_NAME: "slurm-b"})])
    assert lists(emit(frozenset({"a"}), seen=seen)) == ("slurm-b",)


def test_the_default_partition_is_meant_where_none_is_named() -> None:
    """Where Slurm tells which one it is; else it may be any."""
    nodes = [node("a"), node("b"), node("c")]
    told = cluster(nodes, partition("one", "a", "b", default=True), partition("two", "c"))
    untold = cluster(nodes, partition("one", "a", "b"), partition("two", "c"))
    assert lists(emit(frozenset({"a"}), seen=told)) == ("b",)
    assert lists(emit(frozenset({"a"}), seen=untold)) == ("b", "c")


def test_candidates_are_excluded_from_the_other_side() -> None:
    """Without a fixed count the exclusion form narrows too: it packs correctly."""
    assert lists(emit(ALL, frozenset({"n1"}))) == ("n2", "n3", "n4", "n5")


@pytest.mark.security("neighbours")
@pytest.mark.parametrize(
    "fields",
    [
        {"minimum_nodes": 1, "maximum_nodes": 1},
        {"minimum_nodes": 2, "maximum_nodes": 2},
        {"minimum_nodes": 3, "maximum_nodes": 3},
        {"minimum_nodes": 1, "maximum_nodes": 2},
        {"maximum_nodes": 1},
        {},
    ],
)
def test_candidates_are_never_listed_whatever_the_count(fields: dict[str, int]) -> None:
    """Preferred nodes are requested by excluding all others, so that a job never depends on unused nodes."""
    assert lists(emit(ALL, frozenset({"n1", "n2"}), **fields)) == ("n3", "n4", "n5")


def test_the_last_attempt_excludes_only_what_is_not_eligible() -> None:
    """Without candidates a fixed count changes nothing."""
    one = {"minimum_nodes": 1, "maximum_nodes": 1}
    assert lists(emit(frozenset({"n1", "n2"}), **one)) == ("n3", "n4", "n5")
    assert lists(emit(ALL, **one)) == ()


def test_lists_of_an_earlier_plan_are_replaced() -> None:
    """A request that carries old lists gets new ones, or none."""
    assert lists(emit(ALL, excluded_nodes=("n1",))) == ()


def test_reach() -> None:
    """Which of the nodes the partitions have; the same object when it is all of them."""
    seen = cluster([node("a"), node("b")], partition("one", "a"))
    made = emitter.Emitter()
    both = frozenset({"a", "b"})
    assert made.reach(request(partition="one"), seen, both) == {"a"}
    only = frozenset({"a"})
    assert made.reach(request(partition="one"), seen, only) is only


def test_nothing_left_is_a_mistake_of_the_caller() -> None:
    """Excluding every node would make a job that waits for ever."""
    with pytest.raises(ValueError, match="no node of debug"):
        emit(frozenset(), partition="debug")


def test_excluded_nodes_are_told_by_kubernetes_names() -> None:
    """For people, who look at Kubernetes."""
    seen = cluster([node("a"), node("b", labels={names.LABEL_SLURM_NODE_NAME: "s"})], slurm=["a", "s", "ghost"])
    assert emitter.Emitter().emit(request(), seen, frozenset({"a"})).excluded == {"b"}


class TestParts:
    """A heterogeneous request carries node fields in each of its components."""

    def test_each_part_has_its_own_fields(self) -> None:
        """As if it were sent alone; what no part may have is what is told."""
        both = request(components=(request(name="second"),))
        parts = (frozenset({"n1", "n2"}), frozenset({"n2", "n3"}))
        emission = emitter.Emitter().emit_all(both, FIVE, parts)
        assert lists(emission.request) == ("n3", "n4", "n5")
        assert [lists(one) for one in emission.request.components] == [("n1", "n4", "n5")]
        assert emission.request.components[0].name == "second"
        assert emission.excluded == {"n4", "n5"}

    def test_candidates_narrow_every_part(self) -> None:
        """Each to what it has of them."""
        both = request(components=(request(),))
        parts = (frozenset({"n1", "n2"}), frozenset({"n2", "n3"}))
        sent = emitter.Emitter().emit_all(both, FIVE, parts, frozenset({"n1", "n3", "n4"})).request
        assert lists(sent) == ("n2", "n3", "n4", "n5")
        assert lists(sent.components[0]) == ("n1", "n2", "n4", "n5")

    def test_the_partition_of_each_part_counts(self) -> None:
        """Nodes of another one are not its matter."""
        seen = cluster([node("a"), node("b"), node("c")], partition("one", "a", "b"), partition("two", "c"))
        both = request(partition="one", components=(request(partition="two"),))
        sent = emitter.Emitter().emit_all(both, seen, (frozenset({"a"}), frozenset({"c"}))).request
        assert (lists(sent), lists(sent.components[0])) == (("b",), ())

    def test_a_plain_request_is_emitted_as_ever(self) -> None:
        """The very same where nothing is excluded."""
        plain = request()
        assert emitter.Emitter().emit_all(plain, FIVE, (ALL,)).request is plain

    def test_equal_decisions_are_equal_requests(self) -> None:
        """Whatever order sets have in memory: a placeholder is not updated without need."""
        both = request(components=(request(),))
        first, second = (
            emitter.Emitter().emit_all(both, FIVE, (frozenset(order), frozenset(order[::-1]))).request
            for order in (["n1", "n4"], ["n4", "n1"])
        )
        assert first == second


_subsets = st.frozensets(st.sampled_from(sorted(ALL)), min_size=1)


@given(_subsets, st.none() | st.integers(min_value=1, max_value=5))
def test_slurm_is_left_exactly_the_candidates(candidates: frozenset[str], count: int | None) -> None:
    """What the job may get is what was asked, whatever the count."""
    sent = emit(ALL, candidates, minimum_nodes=count, maximum_nodes=count)
    assert set(ALL) - set(sent.excluded_nodes) == candidates


def test_pods_that_run_already_pin_their_nodes_by_excluding_all_others() -> None:
    """With their number: Slurm would pack the tasks onto fewer, and pods would sit on a node that is not held."""
    sent = emitter.pinned(request(tasks=4, excluded_nodes=("n2",)), FIVE, ("n4", "n2"))
    assert sent is not None
    assert (sent.excluded_nodes, sent.minimum_nodes, sent.maximum_nodes) == (("n1", "n3", "n5"), 2, 2)


def test_nodes_that_have_left_slurm_cannot_be_pinned() -> None:
    """Everything but them would be excluded, and the job would wait for ever."""
    assert emitter.pinned(request(), FIVE, ("n1", "left")) is None
