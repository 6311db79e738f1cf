"""The demo on a terminal, drawn several times a second: pods, nodes, calls, events.

The newest lines of the daemon's log have a panel of their own.
"""

import collections
import io
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import rich.box
import rich.console
import rich.layout
import rich.live
import rich.panel
import rich.table
import rich.text

from slurm_bridge.demo import scene
from slurm_bridge.demo.scene import Bar, Frame, PodRow, PodStage

_COLOURS = {
    PodStage.PENDING: "grey62",
    PodStage.QUEUED: "yellow",
    PodStage.ALLOCATED: "magenta",
    PodStage.BOUND: "cyan",
    PodStage.DONE: "green",
    PodStage.FAILED: "bold red",
    PodStage.GONE: "red",
}
#: Cells of a node's bar.
_WIDTH = 24
#: Lines outside of the table of pods: its frame, the head, the foot.
_FURNITURE = 18
_LOG_LINES = 4
_NEWS_LINES = 6
_PER_SECOND = 8


class LogCorner(io.StringIO):
    """Receives the daemon's log while the screen is drawn, and keeps the newest lines."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: collections.deque[str] = collections.deque(maxlen=_LOG_LINES)

    def write(self, text: str, /) -> int:
        self._lines.extend(line for line in text.splitlines() if line)
        return len(text)

    @property
    def lines(self) -> tuple[str, ...]:
        """The newest lines."""
        return tuple(self._lines)


class Screen:
    """Implements show.Display; a context manager that leaves the last frame on the terminal."""

    def __init__(self, log: LogCorner, console: rich.console.Console | None = None) -> None:
        self._console, self._log = console or rich.console.Console(), log
        self._live = rich.live.Live(console=self._console, refresh_per_second=_PER_SECOND, screen=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def show(self, frame: Frame) -> None:
        room = max(4, self._console.height - _FURNITURE)
        self._live.update(draw(frame, self._log.lines, room=room))


def draw(frame: Frame, log: Sequence[str], *, room: int) -> rich.console.RenderableType:
    """The whole picture; `room` is how many pods it may show."""
    middle = rich.table.Table.grid(expand=True, padding=(0, 1))
    middle.add_column(ratio=3)
    middle.add_column(ratio=2)
    middle.add_row(_panel("pods", _pods(frame, room)), _panel("nodes: cpus held by our jobs", _nodes(frame.bars)))
    return rich.console.Group(
        _head(frame),
        middle,
        _panel("newest events", _tail(frame.news, _NEWS_LINES)),
        _panel("the daemon's log", _tail(log, _LOG_LINES)),
    )


def _panel(title: str, inside: rich.console.RenderableType) -> rich.panel.Panel:
    return rich.panel.Panel(inside, title=title, title_align="left", box=rich.box.ROUNDED, border_style="grey37")


def _head(frame: Frame) -> rich.text.Text:
    text = rich.text.Text(f" {frame.seconds:6.1f} s  ")
    for stage, colour in _COLOURS.items():
        count = frame.count(stage)
        if count or stage in scene.WAY:
            text.append(f" {count} {stage.value} ", style=colour)
    calls = frame.calls
    text.append(f"  calls/s: {calls.kube_rate:.1f} Kubernetes, {calls.slurm_rate:.1f} Slurm", style="bold")
    return text


def _pods(frame: Frame, room: int) -> rich.table.Table:
    table = rich.table.Table(box=None, expand=True, pad_edge=False)
    for name in ("pod", "job", "where", "stage"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in chosen(frame.rows, room):
        job = f"{row.job_id}{f' x {row.members}' if row.members > 1 else ''}" if row.job_id else ""
        way = row.stage.value
        if row.stage in scene.WAY:
            reached = scene.WAY.index(row.stage) + 1
            way = "●" * reached + "○" * (len(scene.WAY) - reached) + f" {way}"
        table.add_row(
            row.name, job, rich.text.Text(row.node or row.why), rich.text.Text(way, style=_COLOURS[row.stage])
        )
    return table


def chosen(rows: Iterable[PodRow], room: int) -> tuple[PodRow, ...]:
    """Pods in progress first, then pods that ended last; the most recent change on top."""
    ordered = sorted(rows, key=lambda row: (row.stage in scene.OVER, row.stage is PodStage.PENDING, -row.since))
    return tuple(ordered[:room])


def _nodes(bars: Iterable[Bar]) -> rich.table.Table:
    table = rich.table.Table(box=None, expand=True, pad_edge=False, show_header=False)
    for bar in bars:
        full = round(_WIDTH * bar.used / bar.cpus) if bar.cpus else 0
        line = rich.text.Text("█" * full, style="cyan").append("░" * (_WIDTH - full), style="grey37")
        table.add_row(bar.node, line, f"{bar.used}/{bar.cpus}")
    return table


def _tail(lines: Sequence[str], most: int) -> rich.text.Text:
    shown = [*lines[-most:], *[""] * (most - len(lines[-most:]))]
    return rich.text.Text("\n".join(shown), no_wrap=True, overflow="ellipsis")
