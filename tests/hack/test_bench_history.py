"""The history of figures, and what the page of performance shows of it."""

import pathlib
import re

import pytest
from clusterbench import gangs, report
from clusterbench.contestants import OURS, RAW

import bench_history
import bench_page
from tests.hack.test_bench_figures import turn
from tests.hack.test_bench_gangs import gang


def run(**fields: object) -> bench_history.Run:
    """Three rounds of ten pods."""
    plain: dict[str, object] = {
        "when": "2026-11-29T07:00Z",
        "commit": "0123abcd",
        "processors": 2,
        "part": bench_page.PART,
        "nodes": 1000,
        "workloads": 10,
        "rounds": 3,
    }
    return bench_history.Run(**{**plain, **fields})  # type: ignore[arg-type]


def both() -> list[bench_history.Values]:
    """Two rounds of two contestants."""
    ours, raw = OURS.name, RAW.name
    played = [turn(ours, cpu={ours: 0.04, "etcd": 0.1}), turn(raw, cpu={raw: 0.01, "etcd": 0.1})]
    played += [turn(ours, seconds=4.0, cpu={ours: 0.06, "etcd": 0.1}), turn(raw, cpu={raw: 0.01, "etcd": 0.2})]
    return list(report.values(played))


def test_what_is_added_is_read_again(tmp_path: pathlib.Path) -> None:
    """The median, the least and the most of the rounds; figures without a value are left out."""
    file = tmp_path / "history.tsv"
    bench_history.add(run(), [("ours", "pods/s", [3.0, 1.0, 2.0]), ("ours", "nothing", [])], file)
    bench_history.add(run(part="a gang"), [("ours", "s", [1.25])], file)
    first, second = bench_history.read(file)
    assert first == bench_history.Figure(run=run(), who="ours", what="pods/s", median=2.0, least=1.0, most=3.0)
    assert (second.run.part, second.median, second.most) == ("a gang", 1.25, 1.25)


def test_the_newest_figures_of_a_part_are_those_of_its_last_run(tmp_path: pathlib.Path) -> None:
    """Whatever other parts were measured since."""
    file = tmp_path / "history.tsv"
    for when, part in (("1", "a"), ("2", "a"), ("3", "b")):
        bench_history.add(run(when=when, part=part), [("ours", "pods/s", [1.0]), ("ours", "s", [2.0])], file)
    assert [one.run.when for one in bench_history.newest(bench_history.read(file), "a")] == ["2", "2"]
    assert bench_history.newest(bench_history.read(file), "c") == []


def test_the_history_has_the_contestants_and_what_is_compared() -> None:
    """The contestant's own CPU under one name, and ratios of each round."""
    told = {(who, what): values for who, what, values in both()}
    assert told[OURS.name, "CPU ms per pod, the contestant"] == pytest.approx([4.0, 6.0])
    assert told[RAW.name, "CPU ms per pod, etcd"] == pytest.approx([10.0, 20.0])
    assert told[f"{OURS.name} / {RAW.name}", "pods/s"] == pytest.approx([1.0, 0.5])
    assert (OURS.name, f"CPU ms per pod, {OURS.name}") not in told


def test_the_history_has_gangs() -> None:
    """A start that Slurm's log does not have is no figure."""
    told = {(who, what): values for who, what, values in gangs.values([gang(bound=None), gang(RAW.name, seconds=1.0)])}
    assert told[OURS.name, "s all there to all bound"] == [2.0]
    assert told[OURS.name, "s RUNNING to all bound"] == []
    assert told[f"{OURS.name} / {RAW.name}", "all there to all bound"] == [2.0]


def test_the_page_has_medians_with_ranges_and_ratios(tmp_path: pathlib.Path) -> None:
    """A column for each contestant; a figure that one does not have is empty."""
    bench_history.add(run(), both(), tmp_path / "history.tsv")
    lines = bench_page.table(bench_history.read(tmp_path / "history.tsv")).splitlines()
    assert lines[0].startswith("2026-11-29, commit 0123abcd: 1000 nodes, 2 processors, 3 rounds of")
    assert "| pods/s, created to bound | **3.75** (2.5 to 5) | **5** |" in lines
    assert "| created to bound, p50, ms |  |  |" in lines
    assert f"| {OURS.name} / {RAW.name} | pods/s | 0.75 | 0.50 to 1.00 |" in lines


def test_the_picture_has_a_bar_for_each_contestant_that_is_as_long_as_its_cpu(tmp_path: pathlib.Path) -> None:
    """The longest one fills the width, and what no part names is the last part of a bar."""
    bench_history.add(run(), both(), tmp_path / "history.tsv")
    drawn = bench_page.picture(bench_history.read(tmp_path / "history.tsv"))
    lengths = [float(width) for width in re.findall(r'width="([\d.]+)" height="22.0"', drawn)]
    ours, raw = sum(lengths[:4]), sum(lengths[4:])
    assert (ours / raw, max(ours, raw)) == (pytest.approx(15 / 16, abs=0.01), pytest.approx(580, abs=1))
    assert "15.0 ms, 4 pods/s" in drawn
