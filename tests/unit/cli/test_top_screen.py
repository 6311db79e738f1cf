"""`slurm-bridge top`: its keys on a window of cells, and the whole command on a pseudo-terminal."""

import curses
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.cli import top_screen
from slurm_bridge.cli.admin_client import TokenSource
from slurm_bridge.cli.live_client import LiveClient
from slurm_bridge.cli.live_rows import LiveRows, RowChoice
from slurm_bridge.cli.top_screen import LiveFeed, TopScreen
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request
from slurm_bridge.web.server import Bounds, HttpServer
from tests import wait
from tests.unit.cli.test_live_rows import ABOUT, node, workload

WORKLOADS = [workload(number, stage="running" if number % 2 else "held") for number in range(40)]
DETAIL = {
    "kind": "Pod",
    "namespace": "team",
    "name": "train-39",
    "stage": "held",
    "reason": "Unschedulable",
    "message": "no node is large enough",
    "step": "Ask for less.",
    "row": {"pods": 1},
    "members": [{"name": "train-39", "state": "waiting", "node": ""}],
    "jobs": [],
    "timeline": [{"at": 1000, "what": "created", "text": "the pod is created"}],
}
POD = {"namespace": "team", "name": "train-1", "job": "7", "cpus": 1, "gpus": 0}
PAGES: dict[str, Any] = {
    "/ui/workload": DETAIL,
    "/ui/node": {"pods": [POD], "unseen": 2},
    "/ui/explain": {"text": "line one\nline two", "title": ""},
}


class Daemon:
    """Serves a stream of made-up rows, and the pages beside it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.asked: list[str] = []
        self.status: str = ""
        routes = {("GET", path): self._page for path in PAGES}
        self.server = HttpServer("127.0.0.1", 0, {**routes, ("GET", "/ui/stream"): self._stream}, bounds=Bounds())
        self.thread = threading.Thread(target=self.server.run, args=(self.stop,))
        self.thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server.port}"

    def client(self) -> LiveClient:
        """A client without a token."""
        return LiveClient(url=self.url, credentials=TokenSource())

    def _page(self, request: Request) -> Reply:
        self.asked.append(request.path)
        return Reply.json(PAGES[request.path])

    def _stream(self, _request: Request) -> Reply:
        return Reply(content_type="text/event-stream", stream=self._events())

    def _events(self) -> Iterator[bytes]:
        rows = Reply.json({"workloads": WORKLOADS, "nodes": [node("n1"), node("n2", "down")], "queues": []}).body
        yield b"event: begin\ndata: %b\n" % Reply.json(ABOUT).body
        yield b"data: %b\n" % rows
        yield b"event: ready\ndata: {}\n\n"
        while not self.stop.wait(0.05):
            yield b""


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """Stopped with the case."""
    made = Daemon()
    yield made
    made.stop.set()
    made.thread.join(20)


class Cells:
    """Implements top_screen.Window: lines of letters."""

    def __init__(self, height: int = 24, width: int = 120) -> None:
        self.size = (height, width)
        self.lines: dict[int, str] = {}
        self.chosen = -1

    def getmaxyx(self) -> tuple[int, int]:
        return self.size

    def erase(self) -> None:
        self.lines, self.chosen = {}, -1

    def addstr(self, y: int, x: int, text: str, style: int, /) -> None:
        assert text.isprintable()
        if y >= self.size[0] or x + len(text) > self.size[1]:
            raise curses.error("addwstr() returned ERR")
        line = self.lines.get(y, "").ljust(x)
        self.lines[y] = line[:x] + text + line[x + len(text) :]
        if y > 5 and style & curses.A_REVERSE:
            self.chosen = y

    def refresh(self) -> None:
        """Nothing more to do."""

    def timeout(self, milliseconds: int, /) -> None:
        raise AssertionError(f"keys are given one by one here, not within {milliseconds} ms")

    def get_wch(self) -> str:
        raise AssertionError("keys are given one by one here")

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines[y] for y in sorted(self.lines))


class Screen:
    """A screen in the hands of a test."""

    def __init__(self, daemon: Daemon, *, height: int = 24, width: int = 120) -> None:
        self.cells = Cells(height, width)
        client = daemon.client()
        self.feed = LiveFeed(client)
        wait.until(lambda: self.feed.note == "live", "rows", 20, every=0.01)
        self.top = TopScreen(self.cells, client, self.feed, RowChoice(), {})
        self.top.draw()

    def press(self, *keys: str | int) -> str:
        """What is shown after these keys."""
        for key in keys:
            assert self.top.keyed(key)
            self.top.draw()
        return self.cells.text

    def row(self) -> str:
        """The chosen row."""
        return self.cells.lines.get(self.cells.chosen, "")


@pytest.fixture
def screen(daemon: Daemon) -> Iterator[Screen]:
    """With forty workloads and two nodes."""
    made = Screen(daemon)
    yield made
    made.feed.stop()


def test_keys_move_through_the_rows(screen: Screen) -> None:
    """The chosen row stays in sight, and the ends are ends."""
    assert "train-39" in screen.row()
    screen.press(curses.KEY_DOWN, "j")
    assert "train-37" in screen.row()
    screen.press("G")
    assert "train-0" in screen.row()
    screen.press(curses.KEY_DOWN)
    assert "train-0" in screen.row()
    screen.press(curses.KEY_PPAGE, "g")
    assert "train-39" in screen.row()


def test_a_row_opens_and_closes(screen: Screen, daemon: Daemon) -> None:
    """With its reason, its next step and its timeline."""
    text = screen.press("\n")
    assert ("Unschedulable" in text, "next step: Ask for less." in text, "the pod is created" in text) == (True,) * 3
    assert "STAGE" not in text
    assert "STAGE" in screen.press("\x1b")
    assert daemon.asked == ["/ui/workload"]


def test_a_row_is_explained(screen: Screen) -> None:
    """From the list and from its details."""
    assert "line two" in screen.press("x")
    assert "line two" in screen.press("\x1b", "\n", "x", curses.KEY_DOWN)


def test_nothing_that_a_terminal_obeys_is_drawn(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon's answers and its errors are texts of others; the window takes printable letters only."""
    evil = "\x1b[2J\n"
    monkeypatch.setitem(DETAIL, "members", [{"name": "train-39", "state": "waiting", "node": evil}])
    assert "waiting" in screen.press("\n")
    screen.feed.note = f"no answer: {evil}"
    assert "no answer: ?[2J?" in screen.press("\x1b")


def test_the_other_views_have_keys(screen: Screen) -> None:
    """A node opens like a workload; queues and decisions are lists."""
    assert "n1" in screen.press("2")
    text = screen.press(curses.KEY_DOWN, "\n")
    assert ("node n2" in text, "team/train-1" in text, "and 2 that are not shown" in text) == (True, True, True)
    assert "NAMESPACE" in screen.press("\x1b", "3")
    assert "nothing to show" in screen.press("4", "\n", "x")
    assert "STAGE" in screen.press("\t")


def test_a_search_narrows_with_each_letter(screen: Screen) -> None:
    """Escape takes it back."""
    text = screen.press("/", *"train-1")
    assert ("search: train-1" in text, "train-19" in text, "train-39" in text) == (True, True, False)
    assert "train-2 " not in screen.press(curses.KEY_BACKSPACE, "7", "\n")
    assert "train-39" in screen.press("/", "\x1b")


def test_stages_reasons_and_orders_go_round(screen: Screen) -> None:
    """Each key shows the next one."""
    assert "stage: all" in screen.press("f")
    assert "stage: held" in screen.press("f")
    assert "reason: Unschedulable" in screen.press("r")
    assert "reason:" not in screen.press("r")
    assert "order: name" in screen.press("s")
    assert "(reversed)" in screen.press("S")


def test_q_ends_it(screen: Screen) -> None:
    """In every view."""
    assert not screen.top.keyed("q")


@pytest.mark.parametrize(("height", "width"), [(5, 20), (1, 1), (10, 300)])
def test_a_terminal_of_any_size_is_drawn_on(screen: Screen, height: int, width: int) -> None:
    """What does not fit is left out."""
    screen.cells.size = (height, width)
    for view in "1234":
        screen.press(view, curses.KEY_DOWN, "\n", "\x1b")


def test_a_daemon_that_does_not_answer_is_told_of(screen: Screen, daemon: Daemon) -> None:
    """The rows stay."""
    daemon.stop.set()
    daemon.thread.join(20)
    text = screen.press("\n")
    assert ("Unavailable" in text or "refused" in text or "Error" in text, "train-39" in text) == (True, True)


def test_what_no_further_try_mends_ends_the_command(daemon: Daemon) -> None:
    """As a daemon without a live view."""
    feed = LiveFeed(LiveClient(url="ftp://nowhere", credentials=TokenSource()))
    wait.until(lambda: feed.problem is not None, "problem", 20, every=0.01)
    assert isinstance(feed.problem, errors.BadConfiguration)
    assert LiveRows(ABOUT).workloads == {}
    assert daemon.asked == []


def test_the_command_runs_on_a_terminal_and_follows_its_size(daemon: Daemon) -> None:
    """Rows are drawn, a smaller terminal is drawn on anew, and `q` leaves it as it was."""
    terminal, inside = pty.openpty()
    resize(terminal, 30, 140)
    environ = {**os.environ, "TERM": "xterm-256color"}
    for fixed in ("LINES", "COLUMNS"):
        environ.pop(fixed, None)
    command = [sys.executable, "-m", "slurm_bridge", "top", "--url", daemon.url]
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environ, start_new_session=True)
    os.close(inside)
    try:
        until(terminal, b"train-39")
        os.write(terminal, b"2")
        until(terminal, b"n1")
        resize(terminal, 20, 70)
        process.send_signal(signal.SIGWINCH)
        until(terminal, b"q quit")
        os.write(terminal, b"q")
        assert process.wait(wait.PATIENCE) == 0
    finally:
        process.kill()
        process.wait(wait.PATIENCE)
        os.close(terminal)


def resize(terminal: int, height: int, width: int) -> None:
    """The user draws the window larger or smaller."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def until(terminal: int, word: bytes) -> None:
    """Read what is written until this word comes, and what comes with it."""
    found, end = b"", time.monotonic() + wait.PATIENCE
    while word not in found or select.select([terminal], [], [], 0.3)[0]:
        assert time.monotonic() < end, f"no {word!r} in {found[-500:]!r}"
        if select.select([terminal], [], [], 0.3)[0]:
            found += os.read(terminal, 65536)


def test_the_screen_is_one_of_curses() -> None:
    """Its styles are those that texts name."""
    assert {"dim", "bold", "head", "chosen"} <= top_screen.ATTRIBUTES.keys()
