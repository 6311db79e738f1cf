"""The screen of `slurm-bridge top`: keys, scrolling, and the spans of `top_text` on a terminal, by curses."""

import contextlib
import curses
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from slurm_bridge import errors
from slurm_bridge.cli import live_rows, top_text
from slurm_bridge.cli.live_client import LiveClient
from slurm_bridge.cli.live_rows import LiveRows, Row, RowChoice
from slurm_bridge.cli.top_text import VIEWS, Line

#: Milliseconds that a look for a key takes.
_LOOK: Final = 250
_AGAIN: Final = 2.0
_HELP: Final = "q quit  1-4 views  ↑↓ move  Enter details  x explain  / search  f stage  r reason  s order  S reverse"
_BACK: Final = "Esc back  ↑↓ scroll  x explain  q quit"
_FOOT: Final = 1

_COLOURS: Final = {
    "held": curses.COLOR_YELLOW,
    "drained": curses.COLOR_YELLOW,
    "queued": curses.COLOR_CYAN,
    "mixed": curses.COLOR_CYAN,
    "starting": curses.COLOR_CYAN,
    "running": curses.COLOR_GREEN,
    "idle": curses.COLOR_GREEN,
    "failed": curses.COLOR_RED,
    "down": curses.COLOR_RED,
    "absent": curses.COLOR_RED,
    "ours": curses.COLOR_BLUE,
    "other": curses.COLOR_MAGENTA,
    "native": curses.COLOR_YELLOW,
}
#: Styles that need no colour.
ATTRIBUTES: Final = {
    "dim": curses.A_DIM,
    "bold": curses.A_BOLD,
    "head": curses.A_BOLD | curses.A_UNDERLINE,
    "chosen": curses.A_REVERSE,
}


class Window(Protocol):
    """The part of a window of curses that is used."""

    def getmaxyx(self) -> tuple[int, int]: ...

    def erase(self) -> None: ...

    def addstr(self, y: int, x: int, text: str, style: int, /) -> None: ...

    def refresh(self) -> None: ...

    def timeout(self, milliseconds: int, /) -> None: ...

    def get_wch(self) -> str | int: ...


class LiveFeed:
    """Follows the stream in a thread, and connects again after it has ended."""

    def __init__(self, client: LiveClient) -> None:
        self._client = client
        self.lock = threading.Lock()
        self.rows = LiveRows({"fields": {"workload": [], "node": [], "decision": []}})
        self.note = "connecting"
        #: An error that no further try can mend.
        self.problem: errors.BridgeError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live view", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Follow no longer. The thread ends with what it hears next, or with the process."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._client.events() as events:
                    self._follow(events)
                self.note = "connecting"
            except (errors.NotAuthenticated, errors.NotAuthorized, errors.BadConfiguration, errors.NotFound) as problem:
                self.problem = problem
                return
            except errors.BridgeError as problem:
                self.note = f"no answer: {problem}"
            self._stop.wait(_AGAIN)

    def _follow(self, events: Iterable[tuple[str, live_rows.Row]]) -> None:
        coming = self.rows
        for name, data in events:
            if self._stop.is_set():
                return
            if name == "begin":
                coming = LiveRows(data)
            elif name == "ready":
                with self.lock:
                    self.rows = coming
                self.note = "live"
            elif name == "message":
                with self.lock:
                    coming.apply(data)


@dataclasses.dataclass(slots=True)
class Position:
    """The chosen row of a view, and the first one that is shown."""

    at: int = 0
    top: int = 0

    def move(self, by: int, length: int, height: int) -> None:
        """Choose another row, and scroll as far as that needs."""
        self.at = max(0, min(length - 1, self.at + by))
        self.top = max(0, min(self.top, self.at, max(0, length - height)))
        if self.at >= self.top + height:
            self.top = self.at - height + 1


class TopScreen:
    """One screen on one terminal; `keyed` and `draw` are its whole life."""

    def __init__(
        self, window: Window, client: LiveClient, feed: LiveFeed, choice: RowChoice, styles: Mapping[str, int]
    ) -> None:
        self._window, self._client, self._feed, self.choice = window, client, feed, choice
        self.view = VIEWS[0]
        self._positions = {view: Position() for view in VIEWS}
        self._chosen: Row | None = None
        self._detail: Callable[[int], Iterable[Line]] | None = None
        self._scrolled = 0
        self._typed: str | None = None
        self._note = ""
        self._styles = styles

    def run(self) -> None:
        """Until the user quits, or nothing more can come."""
        self._window.timeout(_LOOK)
        while self._feed.problem is None:
            with self._feed.lock:
                self.draw()
            try:
                key = self._window.get_wch()
            except curses.error:
                continue
            if not self.keyed(key):
                return

    # -- keys

    def keyed(self, key: str | int) -> bool:
        """Obey one key; False to quit."""
        self._note = ""
        if self._typed is not None:
            self._type(key)
        elif key in ("q", "Q"):
            return False
        elif key == "\x1b":
            self._detail = None
        elif key == "x":
            self._explain()
        elif self._detail is not None:
            self._scrolled = max(0, self._scrolled + self._steps().get(key, 0))
        elif key in ("\n", "\r", curses.KEY_ENTER):
            self._open()
        else:
            self._choose(key)
        return True

    def _steps(self) -> dict[str | int, int]:
        page = max(1, self._window.getmaxyx()[0] - 7)
        far = 1 << 30
        return {
            curses.KEY_DOWN: 1,
            "j": 1,
            curses.KEY_UP: -1,
            "k": -1,
            curses.KEY_NPAGE: page,
            " ": page,
            curses.KEY_PPAGE: -page,
            curses.KEY_HOME: -far,
            "g": -far,
            curses.KEY_END: far,
            "G": far,
        }

    def _choose(self, key: str | int) -> None:
        steps = self._steps()
        if key in steps:
            self._positions[self.view].at += steps[key]
        elif key == "\t":
            self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        elif key in tuple("1234"):
            self.view = VIEWS[int(key) - 1]
        elif key == "/":
            self.view, self._typed = VIEWS[0], self.choice.text
        elif key == "f":
            self.choice = dataclasses.replace(self.choice, stages=_next(tuple(live_rows.CHOICES), self.choice.stages))
        elif key == "s":
            self.choice = dataclasses.replace(self.choice, order=_next(tuple(live_rows.ORDERS), self.choice.order))
        elif key == "S":
            self.choice = dataclasses.replace(self.choice, reverse=not self.choice.reverse)
        elif key == "r":
            found = ["", *(reason for reason, _ in live_rows.reasons(self._feed.rows.workloads.values()))]
            self.choice = dataclasses.replace(self.choice, reason=_next(found, self.choice.reason))

    def _type(self, key: str | int) -> None:
        """The search: each letter narrows it at once."""
        assert self._typed is not None
        if key in ("\n", "\r", curses.KEY_ENTER):
            self._typed = None
        elif key == "\x1b":
            self._typed = None
            self.choice = dataclasses.replace(self.choice, text="")
        else:
            if key in (curses.KEY_BACKSPACE, "\x7f", "\b"):
                self._typed = self._typed[:-1]
            elif isinstance(key, str) and key.isprintable():
                self._typed += key
            self.choice = dataclasses.replace(self.choice, text=self._typed)

    def _open(self) -> None:
        row, now = self._chosen, time.time()
        if row is None:
            return
        if self.view == "nodes":
            pods = self._asked(lambda: self._client.node(row["name"]))
            if pods is not None:
                self._show(functools.partial(top_text.node_detail, row, pods))
        elif "uid" in row:
            found = self._asked(lambda: self._client.workload(row))
            if found is not None:
                self._show(functools.partial(top_text.detail, found, now))

    def _explain(self) -> None:
        row = self._chosen
        if row is None or "lead" not in row:
            return
        self._note = "asking both servers…"
        with self._feed.lock:
            self.draw()
        found = self._asked(lambda: self._client.explain(row["namespace"], row["lead"]))
        if found is not None:
            self._show(functools.partial(top_text.explanation, found))

    def _show(self, detail: Callable[[int], Iterable[Line]]) -> None:
        self._detail, self._scrolled = detail, 0

    def _asked(self, ask: Callable[[], live_rows.Row]) -> live_rows.Row | None:
        self._note = ""
        try:
            return ask()
        except errors.BridgeError as problem:
            self._note = str(problem)
            return None

    # -- the picture

    def draw(self) -> None:
        """Everything, as it is now."""
        height, width = self._window.getmaxyx()
        self._window.erase()
        rows = self._feed.rows
        for place, line in enumerate(top_text.header(rows, self._feed.note, self.view, self.choice)):
            self._put(place, line, width)
        top = 5
        if self._detail is not None:
            lines = list(self._detail(width - 1))
            self._scrolled = max(0, min(self._scrolled, len(lines) - (height - top - _FOOT)))
            for place, line in enumerate(lines[self._scrolled : self._scrolled + height - top - _FOOT], start=top):
                self._put(place, line, width)
        else:
            self._draw_rows(rows, top, height, width)
        foot = f"search: {self._typed}▏" if self._typed is not None else self._note
        self._put(height - 1, [(foot or (_BACK if self._detail is not None else _HELP), "dim")], width)
        self._window.refresh()

    def _draw_rows(self, rows: LiveRows, top: int, height: int, width: int) -> None:
        found: Sequence[Row] = ()
        head: Line | None = None
        if self.view == "workloads":
            found = self.choice.of(rows.workloads.values())
        elif self.view == "nodes":
            found = sorted(rows.nodes.values(), key=lambda row: str(row["name"]))
        elif self.view == "decisions":
            found = list(rows.decisions)
        room = height - top - _FOOT - 1
        position = self._positions[self.view]
        if self.view == "queues":
            lines = list(top_text.queues(rows))
            position.move(0, len(lines), room + 1)
            for place, line in enumerate(lines[position.top : position.top + room + 1], start=top):
                self._put(place, line, width)
            self._chosen = None
            return
        position.move(0, len(found), room)
        shown = found[position.top : position.top + room]
        if self.view == "workloads":
            head, made = top_text.workloads(shown, width - 1, time.time())
        elif self.view == "nodes":
            head, made = top_text.nodes(shown, width - 1)
        else:
            head, made = top_text.decisions(rows, width - 1)
            made = iter(list(made)[position.top : position.top + room])
        self._chosen = found[position.at] if found else None
        self._put(top, head, width)
        for place, line in enumerate(made):
            self._put(top + 1 + place, line, width, chosen=position.top + place == position.at)
        if not found:
            self._put(top + 1, [("nothing to show", "dim")], width)

    def _put(self, y: int, line: Line, width: int, *, chosen: bool = False) -> None:
        """One line; what does not fit is left out, and a terminal that is too small shows less."""
        x = 0
        for text, style in top_text.clean(line):
            cut = text if x + top_text.width_of(text) < width else top_text.fit(text, max(0, width - 1 - x))
            with contextlib.suppress(curses.error):
                self._window.addstr(y, x, cut, self._styles.get(style, 0) | (curses.A_REVERSE if chosen else 0))
            x += top_text.width_of(cut)
        if chosen:
            with contextlib.suppress(curses.error):
                self._window.addstr(y, x, " " * max(0, width - 1 - x), curses.A_REVERSE)


def _styles() -> dict[str, int]:
    found = dict(ATTRIBUTES)
    if curses.has_colors():
        curses.use_default_colors()
        for number, (style, colour) in enumerate(_COLOURS.items(), start=1):
            curses.init_pair(number, colour, -1)
            found[style] = curses.color_pair(number)
    return found


def _next(choices: Sequence[str], now: str) -> str:
    at = choices.index(now) if now in choices else -1
    return choices[(at + 1) % len(choices)]


def show(client: LiveClient, choice: RowChoice) -> None:
    """Show the live view on this terminal until the user quits. Raises what no further try can mend."""
    feed = LiveFeed(client)

    def run(window: "curses.window") -> None:
        with contextlib.suppress(curses.error):
            curses.curs_set(0)
        curses.set_escdelay(25)
        TopScreen(window, client, feed, choice, _styles()).run()

    try:
        curses.wrapper(run)
    finally:
        feed.stop()
    if feed.problem is not None:
        raise feed.problem
