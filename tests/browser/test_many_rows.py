"""The page before ten thousand workloads that are made up, and before a caller with a token."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.view import rows
from slurm_bridge.view.feed import Feed
from slurm_bridge.view.live_model import ViewScope
from slurm_bridge.view.pages import LivePages, ViewBackend
from slurm_bridge.web.server import Bounds, HttpServer
from tests.browser.driver import Browser
from tests.unit.view.viewing import Callers, DetailSource

MANY = 10_000
CHANGES = 200


def row(number: int, beat: int = 0) -> rows.LiveWorkload:
    """One workload; with each beat it is at another stage."""
    waits = (number + beat) % 3
    return rows.LiveWorkload(
        number=number,
        kind="Pod",
        namespace=("a", "b")[number % 2],
        name=f"train-{number:05}",
        uid=f"u{number}",
        stage=(rows.RUNNING, rows.QUEUED, rows.HELD)[waits],
        pods=1,
        bound=0,
        job=number,
        reason="" if not waits else "Priority",
        message="",
        partition="debug",
        account="",
        cpus=1 + number % 64,
        memory=1024,
        gpus=0,
        nodes=("n1",),
        node_count=1,
        priority=0,
        created=1_790_000_000 + number,
        submitted=0,
        starts=0,
        lead=f"train-{number:05}",
    )


class Crowd:
    """In the place of a LiveModel: ten thousand rows, of which some change with each step."""

    def __init__(self, _heard: object) -> None:
        self.namespaces = frozenset({"a", "b"})
        self.beat = 0

    def step(self) -> Any:
        self.beat += 1
        first = self.beat * CHANGES % MANY
        return Part([row(number, self.beat) for number in range(first, first + CHANGES)])

    def full(self, scope: ViewScope) -> Iterator[bytes]:
        for first in range(0, MANY, 500):
            yield Part([row(number) for number in range(first, first + 500)]).text(scope)

    def told(self, _key: object) -> None:
        return None

    def close(self) -> None:
        """Nothing is kept."""


class Part:
    """Some rows."""

    def __init__(self, made: list[rows.LiveWorkload]) -> None:
        self._made = made

    def text(self, scope: ViewScope) -> bytes:
        return msgspec.json.encode({"workloads": [one for one in self._made if scope.sees(one.namespace)]})


@contextlib.contextmanager
def served(callers: Callers | None = None) -> Iterator[str]:
    """The address of such a page."""
    clock = SystemClock()
    backend = ViewBackend(
        feed=Feed(Crowd, clock, most=4, period=0.5),  # type: ignore[arg-type]
        details=DetailSource(),
        clock=clock,
        callers=callers,
        about=lambda: {"cluster": "many", "window": 100, "explains": False},
        leads=lambda: "",
        closing=lambda: False,
        busy=lambda: 0.0,
        slow=lambda: 0.0,
        explain=None,
        count=lambda _what, _status: None,
        sent=lambda _size: None,
        ended=lambda _why: None,
    )
    server = HttpServer("127.0.0.1", 0, LivePages(backend).routes(), bounds=Bounds())
    stop = threading.Event()
    thread = threading.Thread(target=server.run, args=(stop,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/ui"
    finally:
        stop.set()
        thread.join(20)


def test_ten_thousand_workloads_do_not_stall_the_page(browser: Browser) -> None:
    """While hundreds change in a second: no task of the page is long, and keys are obeyed at once."""
    with served() as home:
        browser.go(home)
        browser.until("all rows", "return document.querySelector('.count').textContent.startsWith('10000 of 10000')")
        browser.run(
            "window.longest = 0; new PerformanceObserver((list) => list.getEntries().forEach((one) => {"
            "window.longest = Math.max(window.longest, one.duration); })).observe({ type: 'longtask' });"
            "window.began = performance.now();"
        )
        browser.run("document.querySelector('.row').focus()")
        for key in ("End", "Home", "PageDown", "PageDown"):
            browser.press(key)
        browser.press("/", "0999")
        browser.until(
            "those that match", "return document.querySelector('.count').textContent.startsWith('11 of 10000')"
        )
        browser.until("some beats", "return performance.now() - window.began > 2500")
        assert browser.run("return document.querySelectorAll('.row[role=row]').length") < 60
        assert browser.run("return window.longest") < 400
        browser.go("about:blank")


@pytest.mark.security("identity")
def test_a_caller_is_asked_for_a_token_and_sees_what_it_allows(browser: Browser) -> None:
    """The page of the live view asks for a token, keeps it in memory only, and shows the namespaces of its owner."""
    with served(Callers(eve={"a"})) as home:
        browser.go(home)
        browser.until("question for a token", "return document.getElementById('token').open")
        browser.press("made-up", "Enter")
        browser.until(
            "refusal", "return document.getElementById('token-problem').textContent.includes('does not accept')"
        )
        browser.press("eve", "Enter")
        browser.until("rows", "return document.querySelector('.count').textContent.startsWith('5000 of 5000')")
        names = browser.run("return [...document.querySelectorAll('.row .name')].map((one) => one.textContent)")
        assert all(name.startswith("a/") for name in names)
        kept = browser.run(
            "return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])"
        )
        assert "eve" not in kept
        browser.go("about:blank")
    # The browser notes answers of 401 by itself.
    assert all("401" in line or "ERR_" in line for line in browser.log())
