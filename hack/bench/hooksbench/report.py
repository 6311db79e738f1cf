"""Rows as a table for people and a document for programs."""

import dataclasses
import os
import platform
from collections.abc import Iterable, Sequence

from hooksbench.figures import Row, Turn, Verdict

#: Between these a page has what was measured last.
BEGIN, END = "<!-- measured: hooks -->", "<!-- end -->"

#: Milliseconds from which on a part is worth a word.
_SHOWN = 0.05


def line(turn: Turn) -> str:
    """One turn, as it ends."""
    return (
        f"{turn.nodes:>6} nodes, {turn.shapes:<9} {turn.who:<24} {turn.rate:8.0f} workloads/s, "
        f"{1000 * turn.cpu_seconds / turn.workloads:7.2f} ms of CPU each"
    )


def table(rows: Sequence[Row]) -> str:
    """Medians, kind by kind of workload: a row for each contestant and size."""
    return "\n\n".join(_table(shapes, rows) for shapes in dict.fromkeys(row.shapes for row in rows))


def markdown(rows: Sequence[Row]) -> str:
    """The speeds for a page: a table for each kind of workloads, a column for each size."""
    return "\n\n".join(_page_table(shapes, rows) for shapes in dict.fromkeys(row.shapes for row in rows))


def replaced(page: str, measured: str) -> str:
    """The page with this between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{measured}\n{END}{after}"


def parts(rows: Sequence[Row]) -> str:
    """Where the time of one workload goes on the largest cluster; what is no hook's is the framework's own."""
    largest = max(row.nodes for row in rows)
    return "\n".join(
        f"{row.who}, {row.shapes} shapes, {row.nodes} nodes: {_parts(row)}" for row in rows if row.nodes == largest
    )


def judgement(verdicts: Iterable[Verdict]) -> str:
    """The goals, one line each."""
    return "\n".join(
        f"{'reached' if one.met else 'MISSED '} {one.row.who}, {one.row.shapes} shapes, {one.row.nodes} nodes: "
        f"{one.row.rate:.0f}/s ({one.row.cpu_rate:.0f} per CPU second), goal {one.goal:.0f}/s"
        + (f", allowed {one.allowed:.0f}/s" if one.allowed != one.goal else "")
        for one in verdicts
    )


def document(turns: Sequence[Turn], rows: Sequence[Row], verdicts: Sequence[Verdict]) -> dict[str, object]:
    """Everything, with every turn."""
    return {
        "machine": {"processors": os.cpu_count(), "python": platform.python_version()},
        "rows": [{**dataclasses.asdict(row), "milliseconds": row.milliseconds} for row in rows],
        "goals": [
            {"who": one.row.who, "shapes": one.row.shapes, "nodes": one.row.nodes, "goal": one.goal, "met": one.met}
            for one in verdicts
        ],
        "turns": [dataclasses.asdict(turn) for turn in turns],
    }


def _page_table(shapes: str, rows: Sequence[Row]) -> str:
    sizes = sorted({row.nodes for row in rows})
    rates = {(row.who, row.nodes): row.rate for row in rows if row.shapes == shapes}
    lines = [
        f"| {who} | " + " | ".join(f"{rates[who, size]:.0f}" if (who, size) in rates else "" for size in sizes) + " |"
        for who in dict.fromkeys(who for who, _ in rates)
    ]
    heads = " | ".join(f"{size} nodes" for size in sizes)
    return "\n".join([f"| {shapes} shapes, workloads/s | {heads} |", "|---" * (len(sizes) + 1) + "|", *lines])


def _table(shapes: str, rows: Sequence[Row]) -> str:
    head = f"{shapes + ' shapes':<24} {'nodes':>6} {'workloads/s':>11} {'from':>7} {'to':>7} {'ms each':>8}"
    head += f" {'by framework':>12}"
    return "\n".join([head, *(_line(row) for row in rows if row.shapes == shapes)])


def _line(row: Row) -> str:
    ratio = f"{row.ratio:12.2f}" if row.ratio is not None else ""
    return (
        f"{row.who:<24} {row.nodes:>6} {row.rate:>11.0f} {row.lowest:>7.0f} {row.highest:>7.0f} "
        f"{row.milliseconds:>8.2f} {ratio}"
    ).rstrip()


def _parts(row: Row) -> str:
    listed = sorted(row.parts.items(), key=lambda part: -part[1])
    shown = [f"{name} {spent:.2f} ms" for name, spent in listed if spent >= _SHOWN]
    return ", ".join([*shown, f"the rest {row.milliseconds - sum(row.parts.values()):.2f} ms"])
