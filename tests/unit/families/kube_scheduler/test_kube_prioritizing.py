"""How priorities are registered, run side by side, remembered, and what becomes of failures."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.families.kube_scheduler import priority_chain
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions, PriorityOptions
from slurm_bridge.families.kube_scheduler.priorities import numbers, table
from slurm_bridge.families.kube_scheduler.priorities.rule import (
    BadPriority,
    ColumnMap,
    HostPriority,
    HostPriorityList,
    PriorityConfig,
    Style,
)
from slurm_bridge.families.kube_scheduler.priority_chain import Extended, PrioritiesFailed, Prioritizer
from slurm_bridge.hooks.base import Session
from slurm_bridge.model.pod import Pod
from tests.unit.families.kube_scheduler.scoring import asking, by_name, machine, machines, run, there

NODES = ("a", "b", "c")


def length(_pod: Pod, _session: Session, facts: NodeFacts) -> HostPriority:
    """A map: the length of the name."""
    return HostPriority(facts.name, len(facts.name))


def mapped(rate: Callable[[str], Any], name: str = "own", weight: int = 1, **others: Any) -> PriorityConfig:
    """A map that only looks at names."""
    return PriorityConfig(
        name=name, weight=weight, map=lambda _pod, _session, facts: HostPriority(facts.name, rate(facts.name)), **others
    )


def listing(rate: Callable[[Sequence[str]], HostPriorityList], name: str = "whole", weight: int = 1) -> PriorityConfig:
    """A function that only looks at names."""
    return PriorityConfig(
        name=name, weight=weight, function=lambda _pod, _session, nodes: rate([one.name for one in nodes])
    )


def test_a_priority_of_both_styles_cannot_be_registered() -> None:
    """The message names it."""
    with pytest.raises(BadPriority, match="priority both: has function and map or reduce"):
        PriorityConfig(name="both", function=lambda *_: (), map=length)


def test_a_function_with_a_reduce_cannot_be_registered() -> None:
    """A reduce belongs to a map."""
    with pytest.raises(BadPriority, match="priority both"):
        PriorityConfig(name="both", function=lambda *_: (), reduce=lambda *_: ())


def test_a_priority_of_neither_style_cannot_be_registered() -> None:
    """A reduce alone reduces nothing."""
    with pytest.raises(BadPriority, match="priority none: has neither function nor map"):
        PriorityConfig(name="none", reduce=lambda *_: ())


def test_a_weight_below_one_cannot_be_registered() -> None:
    """A priority that counts for nothing is a mistake."""
    with pytest.raises(BadPriority, match="priority own: weight is 0"):
        PriorityConfig(name="own", weight=0, map=length)


def test_names_that_occur_twice_are_told() -> None:
    """Rows of the matrix could not be told apart."""
    with pytest.raises(BadPriority, match="priority own: is configured twice"):
        Prioritizer([mapped(len), mapped(len)])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["LeastRequested", "LeastRequestedPriority"],
            "priorities LeastRequested and LeastRequestedPriority: are names",
        ),
        (
            ["EvenPodsSpread", "Equal", "PodTopologySpread"],
            "priorities EvenPodsSpread and PodTopologySpread: are names",
        ),
        (
            ["EvenPodsSpreadPriority", "PodTopologySpread", "EvenPodsSpread"],
            "EvenPodsSpreadPriority and PodTopologySpread and EvenPodsSpread: are names of one priority; configure it",
        ),
        (["EqualPriority", "EqualPriority"], "priority EqualPriority: is configured twice"),
    ],
)
def test_one_priority_under_two_names_is_told(names: list[str], said: str) -> None:
    """It would count twice."""
    options = KubeSchedulerOptions.model_validate({"priorities": [{"name": name} for name in names]})
    with pytest.raises(BadPriority, match=said):
        priority_chain.of(options)


def test_a_priority_about_several_labels_counts_for_each() -> None:
    """And so does one of a site whose name only looks like another's with an ending."""
    about = [table.configured(name, args={"label": label}) for name, label in (("NodeLabel", "a"), ("NodeLabel", "b"))]
    own = [mapped(len, name="own"), mapped(len, name="ownPriority")]
    assert len(Prioritizer([*about, *own]).configs) == 4


def test_rows_are_weighed_and_added() -> None:
    """Of both styles alike."""
    configs = [
        mapped(lambda name: {"a": 5, "b": 3, "c": 1}[name], weight=2),
        listing(lambda names: [HostPriority(name, ord(name) - ord("a")) for name in names], weight=10),
    ]
    assert by_name(run(Prioritizer(configs), machines(*NODES))) == {"a": 10, "b": 16, "c": 22}


def test_only_candidates_are_rated() -> None:
    """A node that was filtered out has no score, and no priority sees it."""
    seen: list[str] = []
    config = mapped(lambda name: seen.append(name) or 1)
    assert by_name(run(Prioritizer([config]), machines(*NODES), nodes=("a", "c"))) == {"a": 1, "c": 1}
    assert sorted(seen) == ["a", "c"]


def test_without_priorities_all_nodes_are_alike() -> None:
    """Every one scores 1."""
    assert by_name(run(Prioritizer([]), machines(*NODES))) == {"a": 1, "b": 1, "c": 1}


def test_a_reduce_sees_all_scores_of_its_map() -> None:
    """And what it returns takes their place."""

    def best_only(_pod: Pod, _session: Session, scores: HostPriorityList) -> HostPriorityList:
        most = max(one.score for one in scores)
        return [HostPriority(one.host, int(one.score == most)) for one in scores]

    found = run(Prioritizer([mapped(ord, reduce=best_only)]), machines(*NODES))
    assert by_name(found) == {"a": 0, "b": 0, "c": 1}


def test_a_shipped_reduce_serves_an_own_map() -> None:
    """Normalising need not be written again."""
    config = mapped(lambda name: {"a": 2, "b": 11, "c": 4}[name], reduce=numbers.normalize(10))
    assert by_name(run(Prioritizer([config]), machines(*NODES))) == {"a": 1, "b": 10, "c": 3}


@given(st.permutations(list("abcdefgh")), st.integers(1, 16))
def test_results_do_not_depend_on_order_or_parallelism(order: list[str], parallelism: int) -> None:
    """Whoever finishes first."""
    configs = [mapped(ord, weight=3), listing(lambda names: [HostPriority(one, len(names)) for one in order])]
    found = run(Prioritizer(configs, parallelism=parallelism), machines(*order))
    assert by_name(found) == {name: 3 * ord(name) + 8 for name in order}


def test_functions_run_at_the_same_time() -> None:
    """Each waits for the other, which only ends when both run."""
    both = threading.Barrier(2, timeout=30)

    def together(names: Sequence[str]) -> HostPriorityList:
        both.wait()
        return [HostPriority(name, 1) for name in names]

    found = run(Prioritizer([listing(together, "one"), listing(together, "other")]), machines(*NODES))
    assert by_name(found) == {"a": 2, "b": 2, "c": 2}


def test_maps_run_over_several_nodes_at_the_same_time() -> None:
    """As many as may run together."""
    all_three = threading.Barrier(3, timeout=30)
    config = mapped(lambda _name: all_three.wait() * 0)
    assert by_name(run(Prioritizer([config], parallelism=16), machines(*NODES))) == {"a": 0, "b": 0, "c": 0}


def test_a_failed_map_keeps_its_host() -> None:
    """The reduce sees every candidate, the failed one with nothing."""
    seen: list[HostPriority] = []

    def watching(_pod: Pod, _session: Session, scores: HostPriorityList) -> HostPriorityList:
        seen.extend(scores)
        return scores

    with pytest.raises(PrioritiesFailed):
        run(Prioritizer([mapped(lambda name: 7 // (name != "b"), reduce=watching)]), machines(*NODES))
    assert seen == [HostPriority("a", 7), HostPriority("b", 0), HostPriority("c", 7)]


def test_all_failures_are_told_at_once() -> None:
    """Each with its priority and its node, those of shipped and own ones, functions, maps and reduces."""

    def fails(*_: Any) -> Any:
        raise RuntimeError("no idea")

    configs = [
        mapped(lambda name: 1 // (name == "a"), "division"),
        PriorityConfig(name="function", function=fails),
        mapped(len, "reduced", reduce=fails),
        PriorityConfig(name="shipped", map=ColumnMap(fails)),
    ]
    with pytest.raises(PrioritiesFailed) as failed:
        run(Prioritizer(configs), machines(*NODES))
    assert [(one.priority, one.node) for one in failed.value.failures] == [
        ("division", "b"),
        ("division", "c"),
        ("function", ""),
        ("reduced", ""),
        ("shipped", ""),
    ]
    assert "priority division failed on node b: ZeroDivisionError" in str(failed.value)
    assert "priority function failed: RuntimeError: no idea" in str(failed.value)


def test_a_message_names_a_few_failures() -> None:
    """A map that fails on every node of a large cluster must not fill the log."""
    with pytest.raises(PrioritiesFailed, match=r"and 15 more$") as failed:
        run(Prioritizer([mapped(lambda _: 1 // 0)]), machines(*(f"n{number}" for number in range(20))))
    assert len(failed.value.failures) == 20


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (HostPriority("a", 1.5), "the score 1.5"),  # type: ignore[arg-type]
        (HostPriority("a", True), "the score True"),
        (HostPriority("a", 2**60), "the score"),
        (HostPriority("z", 1), "answered for node 'z'"),
        (3, "answered int, not HostPriority"),
    ],
)
def test_nonsense_of_a_map_is_a_failure(answer: object, said: str) -> None:
    """Of that node."""
    config = PriorityConfig(name="own", map=lambda *_: answer)  # type: ignore[arg-type, return-value]
    with pytest.raises(PrioritiesFailed, match=said):
        run(Prioritizer([config]), machines("a"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", 1)], "'b' is a candidate and not rated"),
        ([("a", 1), ("b", 1), ("b", 2)], "'b' is rated twice"),
        ([("a", 1), ("b", 1), ("z", 2)], "'z' is rated twice, or is no candidate"),
    ],
)
def test_nonsense_of_a_function_is_a_failure(rows: list[tuple[str, int]], said: str) -> None:
    """Every candidate is to be rated once."""
    with pytest.raises(PrioritiesFailed, match=said):
        run(Prioritizer([listing(lambda _: [HostPriority(*row) for row in rows])]), machines("a", "b"))


def test_equal_questions_get_the_same_answer_again() -> None:
    """The same object: whoever remembers by it is fast."""
    prioritizer, snapshot = Prioritizer([table.configured("LeastRequested")]), machines(*NODES)
    first = run(prioritizer, snapshot, key=b"class")
    again = run(prioritizer, snapshot, asking("other"), key=b"class")
    assert again is first
    assert again.shown is first.shown
    assert again.by_name is first.by_name


def test_a_change_of_use_is_seen() -> None:
    """A pod that came makes its node less good."""
    keeper = there([machine("a", cpu="4", memory="4Gi"), machine("b", cpu="4", memory="4Gi")])
    prioritizer, pod = Prioritizer([table.configured("LeastRequested")]), asking("p", {"cpu": "1", "memory": "1Gi"})
    assert by_name(run(prioritizer, keeper.snapshot(), pod, key=b"k")) == {"a": 7, "b": 7}
    keeper.on_pod(None, asking("new", {"cpu": "2", "memory": "2Gi"}, node="a"))
    assert by_name(run(prioritizer, keeper.snapshot(), pod, key=b"k")) == {"a": 2, "b": 7}


def test_other_candidates_are_another_question() -> None:
    """What is normalised depends on them."""
    prioritizer, snapshot = Prioritizer([table.configured("LeastRequested")]), machines(*NODES)
    assert len(run(prioritizer, snapshot, key=b"k").by_name) == 3
    assert len(run(prioritizer, snapshot, key=b"k", nodes=("a",)).by_name) == 1


def test_own_priorities_are_asked_every_time() -> None:
    """Nobody knows what they look at."""
    asked: list[str] = []
    prioritizer = Prioritizer([table.configured("Equal"), mapped(lambda name: asked.append(name) or 2)])
    snapshot = machines("a")
    for _ in range(2):
        assert by_name(run(prioritizer, snapshot, key=b"k")) == {"a": 3}
    assert asked == ["a", "a"]


def test_rows_are_in_the_order_of_configuration() -> None:
    """Own and shipped ones mixed, extenders last."""
    configs = [mapped(len, "first"), table.configured("Equal"), mapped(len, "last")]
    said = Extended(name="extender http://x", weight=5, scores={"a": 3, "gone": 9})
    found = run(Prioritizer(configs), machines("a", "b"), extended=(said,))
    assert [row.name for row in found.rows] == ["first", "Equal", "last", "extender http://x"]
    assert by_name(found) == {"a": 1 + 1 + 1 + 15, "b": 3}


def test_the_matrix_has_rows_weights_and_the_combined_row() -> None:
    """By name, for explanations."""
    matrix = run(Prioritizer([mapped(ord, weight=2), table.configured("Equal", 7)]), machines("a", "b")).shown
    assert [(row.name, row.weight, dict(row.scores)) for row in matrix.rows] == [
        ("own", 2, {"a": 97, "b": 98}),
        ("Equal", 7, {"a": 1, "b": 1}),
    ]
    assert dict(matrix.combined) == {"a": 201.0, "b": 203.0}


def test_every_cell_is_a_line_after_reduce() -> None:
    """In kube-scheduler's form."""
    told: list[str] = []
    prioritizer = Prioritizer(
        [mapped(lambda name: {"a": 1, "b": 4}[name], reduce=numbers.normalize(10))],
        finest=lambda lines: told.extend(lines()),
    )
    run(prioritizer, machines("a", "b"), asking("web"))
    assert told == ["team/web -> a: own, Score: (2)", "team/web -> b: own, Score: (10)"]


def test_nothing_is_formatted_when_nobody_listens() -> None:
    """What would make the lines is handed over, and not called."""
    handed: list[object] = []
    run(Prioritizer([table.configured("Equal")], finest=handed.append), machines("a"))
    assert len(handed) == 1
    assert callable(handed[0])


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    """Both those that ship and those that are installed."""
    with pytest.raises(BadPriority, match=r"priority Nope: neither built in nor installed .* LeastRequested.*, mine"):
        table.configured("Nope", installed={"mine": length})


def test_wrong_arguments_are_told_by_their_path() -> None:
    """With the name of the priority."""
    with pytest.raises(BadPriority, match=r"priority NodeLabel: args.label: Field required"):
        table.configured("NodeLabel")
    with pytest.raises(BadPriority, match=r"priority LeastAllocated: args.resources: .*resources\[0\].weight"):
        table.configured("LeastAllocated", 1, {"resources": [["cpu", 101]]})
    with pytest.raises(BadPriority, match=r"args.shape: Value error, utilization values must be sorted"):
        table.configured("RequestedToCapacityRatio", 1, {"shape": [[50, 1], [50, 2]]})


def test_shapes_of_old_take_no_resources() -> None:
    """On the scale to 10 they always compare cpu and memory; anything else would be ignored in silence."""
    with pytest.raises(BadPriority, match="use scale 100"):
        table.configured("RequestedToCapacityRatio", 1, {"resources": [["nvidia.com/gpu", 1]]})


def test_names_with_the_ending_of_policies_are_known() -> None:
    """As kube-scheduler's policies write them."""
    assert table.configured("LeastRequestedPriority").name == "LeastRequestedPriority"
    assert table.known("EqualPriority") == "Equal"
    assert table.known("EvenPodsSpreadPriority") == "PodTopologySpread"


class Mine:
    """A site's own priority: a map by the length of names, with an argument that is checked."""

    class Options(pydantic.BaseModel, extra="forbid"):
        """Its arguments."""

        factor: int = 1

    def __init__(self, options: Options) -> None:
        self._factor = options.factor

    def map(self, _pod: Pod, _session: Session, facts: NodeFacts) -> HostPriority:
        """The length of the name."""
        return HostPriority(facts.name, self._factor * len(facts.name))


def test_an_installed_priority_is_made_from_its_arguments() -> None:
    """They are checked by its model."""
    config = table.configured("mine", 2, {"factor": 3}, {"mine": Mine})
    assert by_name(run(Prioritizer([config]), machines("a", "bcd"))) == {"a": 6, "bcd": 18}
    with pytest.raises(BadPriority, match=r"priority mine: args.facto: Extra inputs"):
        table.configured("mine", 2, {"facto": 3}, {"mine": Mine})


def test_an_installed_priority_that_cannot_be_made_is_told() -> None:
    """With what it raised."""

    def broken(_args: object) -> Style:
        raise OSError("no such licence server")

    with pytest.raises(BadPriority, match="priority mine: cannot be built: OSError: no such licence server"):
        table.configured("mine", installed={"mine": broken})


def test_all_that_is_wrong_in_a_configuration_is_told_at_once() -> None:
    """Not one mistake after the other."""
    options = KubeSchedulerOptions(priorities=(PriorityOptions(name="Nope"), PriorityOptions(name="NodeLabel")))
    with pytest.raises(BadPriority) as bad:
        priority_chain.of(options)
    assert len(str(bad.value).splitlines()) == 2


def test_the_standard_set_is_built_with_its_weights() -> None:
    """And needs to see what its owners select by; nothing of it is somebody else's code."""
    made = priority_chain.of(KubeSchedulerOptions())
    assert {config.name: config.weight for config in made.configs}["NodePreferAvoidPods"] == 10000
    assert {need.value for need in made.needs} == {"services", "replicasets", "statefulsets", "namespaces"}
    assert not made.foreign


def test_the_same_label_priority_can_be_used_for_several_labels() -> None:
    """Each has a row of its own."""
    configs = [table.configured("NodeLabel", 1, {"label": label}) for label in ("ssd", "gpu")]
    snapshot = there([machine("a", labels={"ssd": "", "gpu": ""}), machine("b", labels={"gpu": "no"})]).snapshot()
    found = run(Prioritizer(configs), snapshot)
    assert [row.name for row in found.rows] == ["NodeLabel(ssd)", "NodeLabel(gpu)"]
    assert by_name(found) == {"a": 20, "b": 10}
