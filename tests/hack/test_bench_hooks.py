"""What the benchmark of the hooks computes, draws and places."""

import itertools
import xml.etree.ElementTree as ET

import pytest
from hooksbench import figures, plot, report, workloads
from hooksbench.__main__ import DRAWING, PAGE, USUAL
from hooksbench.contestants import CONTESTANTS, FRAMEWORK
from hooksbench.figures import Row, Turn
from hooksbench.passes import Passes, Stuck
from hooksbench.plot import Scale
from hooksbench.world import World

SVG = "{http://www.w3.org/2000/svg}"


def turn(who: str = "a", round_: int = 0, *, seconds: float = 1.0, cpu: float = 1.0, nodes: int = 100) -> Turn:
    """A hundred workloads of one shape."""
    return Turn(
        who=who,
        shapes="equal",
        nodes=nodes,
        round=round_,
        workloads=100,
        seconds=seconds,
        cpu_seconds=cpu,
    )


def row(rate: float, *, who: str = "a", shapes: str = "equal", nodes: int = 20_000, cpu_rate: float = 0.0) -> Row:
    """A contestant's result."""
    return Row(who=who, shapes=shapes, nodes=nodes, rate=rate, cpu_rate=cpu_rate, lowest=rate, highest=rate, ratio=None)


def test_what_counts_is_the_median_of_the_turns() -> None:
    """One disturbed turn does not change the result."""
    turns = [turn(round_=number, seconds=seconds) for number, seconds in enumerate((1.0, 0.5, 100.0))]
    (found,) = figures.rows(turns, "framework alone")
    assert (found.rate, found.lowest, found.highest, found.ratio) == (100.0, 1.0, 200.0, None)


def test_ratios_are_taken_within_a_round() -> None:
    """A slow machine slows both."""
    mine = [turn("mine", number, seconds=2.0 * 10**number) for number in range(3)]
    theirs = [turn("theirs", number, seconds=1.0 * 10**number) for number in range(3)]
    found = {one.who: one for one in figures.rows([*mine, *theirs], "theirs")}
    assert found["mine"].ratio == pytest.approx(0.5)
    assert found["theirs"].ratio is None


def test_goals_are_for_the_large_clusters() -> None:
    """By the clock, or by processor time where another process kept the machine busy; the tolerance lowers them."""
    rows = [row(499.0), row(100.0, shapes="different"), row(499.0, cpu_rate=501.0), row(1.0, nodes=5000)]
    unjudged = row(1.0, who="b")
    assert [one.met for one in figures.verdicts([*rows, unjudged], {"a"}, 0.0)] == [False, True, True]
    assert [one.met for one in figures.verdicts([*rows, unjudged], {"a"}, 0.1)] == [True, True, True]


def test_contestants_without_goals_play_only_where_they_are_named() -> None:
    """What a set of families costs depends on the set; a run as it is documented has those with goals."""
    aside = [name for name, one in CONTESTANTS.items() if not one.judged]
    assert aside == ["kai, no gangs", "yunikorn", "all families"]
    assert not set(aside) & set(USUAL)


def test_all_families_place_a_workload_together() -> None:
    """The queues among them, which have to be told at first that nothing runs."""
    passes = Passes(CONTESTANTS["all families"], World(20))
    spent = passes.play(workloads.equal(0, 3))
    passes.close()
    assert spent.waits == 0
    assert {"yunikorn.admit", "kai.subset", "vela.sample", "kube-scheduler.filter"} <= spent.inside.keys()


def test_every_contestant_begins_a_round_once() -> None:
    """None always comes after the same one."""
    assert [figures.order(["a", "b", "c"], number) for number in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]


def test_the_table_has_a_part_for_each_kind_of_workloads() -> None:
    """Contestants line by line."""
    told = report.table([row(1000.0, who="kube-scheduler"), row(200.0, shapes="different")])
    assert [part.split()[0] for part in told.split("\n\n")] == ["equal", "different"]
    assert "kube-scheduler            20000        1000" in told


def test_a_page_gets_what_was_measured_last() -> None:
    """Between its marks, a column for each size of cluster; the rest of the page stays."""
    rows = [row(1000.4, nodes=100), row(90.0), row(5.0, who="b")]
    page = f"above\n{report.BEGIN}\nold\n{report.END}\nbelow"
    assert report.replaced(page, report.markdown(rows)).splitlines() == [
        "above",
        report.BEGIN,
        "| equal shapes, workloads/s | 100 nodes | 20000 nodes |",
        "|---|---|---|",
        "| a | 1000 | 90 |",
        "| b |  | 5 |",
        report.END,
        "below",
    ]


def test_the_page_has_the_marks_and_the_drawing() -> None:
    """So that it can be written again."""
    assert report.replaced(PAGE.read_text(encoding="utf-8"), "x") != ""
    assert ET.fromstring(DRAWING.read_text(encoding="utf-8")).tag == f"{SVG}svg"  # noqa: S314 - our own text


def test_the_drawing_is_whole() -> None:
    """Every result is a mark, each contestant is named, and texts are escaped."""
    rows = [
        row(speed, who=who, shapes=shapes, nodes=nodes)
        for (who, speed), shapes, nodes in itertools.product(
            (("a < b", 1000.0), ("c", 90.0)), ("equal", "different"), (100, 20_000)
        )
    ]
    root = ET.fromstring(plot.draw(rows))  # noqa: S314 - our own text
    marks = [*root.iter(f"{SVG}circle"), *root.iter(f"{SVG}polygon")]
    assert len(marks) == len(rows) + 2
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a < b", "c", "100", "20 000", "goal at 20 000 nodes: 500"} <= set(words)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(0 <= float(text.attrib["x"]) <= width for text in root.iter(f"{SVG}text"))
    assert all(0 <= float(text.attrib["y"]) <= height for text in root.iter(f"{SVG}text"))


@pytest.mark.parametrize(("value", "place"), [(10.0, 0.0), (100.0, 50.0), (1000.0, 100.0)])
def test_axes_are_logarithmic(value: float, place: float) -> None:
    """Ten times as much is one step further."""
    assert Scale(10.0, 1000.0, 0.0, 100.0).at(value) == pytest.approx(place)


@pytest.mark.parametrize(
    ("low", "high", "powers"), [(20, 900, [10, 100, 1000]), (10, 10, [10, 100]), (0.5, 3, [0.1, 1, 10])]
)
def test_an_axis_has_whole_powers_of_ten(low: float, high: float, powers: list[float]) -> None:
    """Two at least."""
    assert plot.decades(low, high) == pytest.approx(powers)


def test_workloads_are_of_one_shape_or_of_no_two_alike() -> None:
    """By what they ask for, not by their names."""
    same, mixed = (workloads.SHAPES[kind](0, 60) for kind in ("equal", "different"))
    assert len({repr(one.pod.spec) for one in same}) == 1
    assert len({repr(one.pod.spec) for one in mixed}) == 60
    assert len({one.pod.uid for one in (*same, *workloads.equal(60, 60))}) == 120


def test_every_workload_that_is_placed_changes_the_cluster() -> None:
    """One node's use, and nothing that placement depends on in general."""
    world = World(20)
    before = world.keeper.snapshot()
    passes = Passes(FRAMEWORK, world)
    spent = passes.play(workloads.equal(0, 5))
    passes.close()
    after = world.keeper.snapshot()
    assert spent.waits == 0
    assert after.version == before.version
    assert after.use_version >= before.use_version + 5


def test_a_workload_that_nothing_places_is_an_error() -> None:
    """A benchmark of refusals would look fast."""
    (one,) = workloads.equal(0, 1)
    passes = Passes(FRAMEWORK, World(1))
    with pytest.raises(Stuck, match=r"pod-0.*untolerated taint"):
        passes.play([one])
    passes.close()
