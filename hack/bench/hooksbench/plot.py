"""How speed changes with the size of the cluster, as a drawing: two panels, both axes logarithmic. Pure."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

from hooksbench.figures import GOAL_NODES, GOALS, Row

_WIDTH, _HEIGHT = 920, 430
#: A panel's inside: where it begins and ends, from the left edge of the panel and from the top.
_PANEL = _WIDTH / 2
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 24.0, 56.0, 118.0

#: Told apart without colours, too: each has its own mark.
_COLOURS = ("#4c566a", "#0b6bcb", "#c2410c", "#15803d", "#7c3aed", "#a16207")
_MARKS = ("circle", "square", "diamond", "triangle")


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic axis from one length of the drawing to another."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where on the drawing."""
        part = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + part * (self.end - self.start)


def draw(rows: Sequence[Row], goals: Mapping[str, float] = GOALS) -> str:
    """An SVG of all rows; one panel for each kind of workloads."""
    kinds = list(dict.fromkeys(row.shapes for row in rows))
    names = list(dict.fromkeys(row.who for row in rows))
    inside = [
        part
        for place, kind in enumerate(kinds)
        for part in _panel(place * _PANEL, [row for row in rows if row.shapes == kind], names, _spans(rows, goals))
    ]
    body = "\n".join(["<title>Workloads per second by the number of nodes</title>", *inside, *_legend(names)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="system-ui, sans-serif" font-size="12" role="img">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def decades(low: float, high: float) -> list[float]:
    """The powers of ten that hold these two between them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


_Spans = tuple[Sequence[float], Sequence[float]]


def _spans(rows: Sequence[Row], goals: Mapping[str, float]) -> _Spans:
    """The sizes, and the powers of ten around all speeds: both panels have the same axes, to be compared."""
    speeds = [row.rate for row in rows] + [goals[row.shapes] for row in rows if row.shapes in goals]
    return sorted({row.nodes for row in rows}), decades(min(speeds), max(speeds))


def _panel(left: float, rows: Sequence[Row], names: Sequence[str], spans: _Spans) -> Iterable[str]:
    sizes, speeds = spans
    across = Scale(sizes[0] / 1.2, sizes[-1] * 1.2, left + _LEFT, left + _PANEL - _RIGHT)
    up = Scale(speeds[0], speeds[-1], _HEIGHT - _BOTTOM, _TOP)
    kind = rows[0].shapes
    yield _text(left + _LEFT, 30, f"{kind} shapes: workloads per second", anchor="start", size=14)
    yield from _grid(across, up, sizes, speeds)
    if kind in GOALS:
        yield from _goal(across, up, GOALS[kind])
    for place, name in enumerate(names):
        yield from _series(across, up, [row for row in rows if row.who == name], place)


def _grid(across: Scale, up: Scale, sizes: Sequence[float], speeds: Sequence[float]) -> Iterable[str]:
    for speed in speeds:
        yield _line(across.start, up.at(speed), across.end, up.at(speed), "#e2e8f0")
        yield _text(across.start - 8, up.at(speed) + 4, _spaced(speed), anchor="end")
    for size in sizes:
        yield _line(across.at(size), up.start, across.at(size), up.end, "#e2e8f0")
        yield _text(across.at(size), up.start + 18, _spaced(size))
    yield _text((across.start + across.end) / 2, up.start + 38, "nodes")


def _goal(across: Scale, up: Scale, goal: float) -> Iterable[str]:
    yield _line(across.start, up.at(goal), across.end, up.at(goal), "#b91c1c", dashes="5 4")
    words = f"goal at {_spaced(GOAL_NODES)} nodes: {goal:.0f}"
    yield _text(across.start + 6, up.at(goal) + 14, words, anchor="start", fill="#b91c1c")


def _series(across: Scale, up: Scale, rows: Sequence[Row], place: int) -> Iterable[str]:
    points = [(across.at(row.nodes), up.at(row.rate)) for row in sorted(rows, key=lambda row: row.nodes)]
    colour = _COLOURS[place % len(_COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    yield from (_mark(x, y, place) for x, y in points)


def _legend(names: Sequence[str]) -> Iterable[str]:
    step = (_WIDTH - _LEFT) / max(len(names), 1)
    for place, name in enumerate(names):
        x, y = _LEFT + place * step, _HEIGHT - 24.0
        yield _mark(x, y - 4, place)
        yield _text(x + 12, y, name, anchor="start")


def _mark(x: float, y: float, place: int) -> str:
    colour, mark = _COLOURS[place % len(_COLOURS)], _MARKS[place % len(_MARKS)]
    if mark == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "diamond": ((0, -5), (5, 0), (0, 5), (-5, 0)),
        "triangle": ((0, -5), (5, 4), (-5, 4)),
    }[mark]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def _spaced(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, *, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"{dashed}/>'


def _text(x: float, y: float, words: str, *, anchor: str = "middle", size: int = 12, fill: str = "#334155") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{escape(words)}</text>'
    )
