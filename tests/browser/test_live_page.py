"""The page of the live view in a real Chromium, before a daemon with two thousand workloads."""

import json
import pathlib

import pytest

from slurm_bridge.model import kinds
from tests import wait
from tests.browser import audit, crowded_world, tour
from tests.browser.driver import Browser
from tests.browser.tour import COUNT, ROWS, look
from tests.component.daemon.running import Running


def test_the_first_paint_comes_within_a_second(browser: Browser, home: str) -> None:
    """With 2 000 workloads; the best of three, as other work shares the machine."""
    painted = tour.first_paint(browser, home)
    assert painted < 1000, painted
    assert browser.run(COUNT) >= crowded_world.WORKLOADS


def test_only_rows_that_are_seen_are_in_the_page(browser: Browser, home: str) -> None:
    """However many there are; the last one is a key away."""
    look(browser, home)
    assert browser.run(ROWS) < 60
    browser.run("document.querySelector('.row').focus()")
    browser.press("End")
    browser.until("last row", "return document.activeElement.getAttribute('aria-rowindex') > 1500")
    assert browser.run(ROWS) < 60


def test_from_a_queue_to_a_workload_to_its_reason_to_a_node(
    browser: Browser, home: str, pictures: pathlib.Path
) -> None:
    """By clicks alone: each leads to the next."""
    look(browser, home)
    tour.from_a_queue_to_a_node(browser, "climate", pictures)


def test_everything_is_reached_by_keys(browser: Browser, home: str) -> None:
    """Search, rows, details, explanation, the other views, and the way back."""
    look(browser, home)
    browser.press("/", "assemble", "Enter")
    browser.until("the gang", "return document.activeElement.classList.contains('row')")
    assert "assemble" in browser.run("return document.activeElement.textContent")
    browser.press("Enter")
    browser.until("details", "return document.activeElement.closest('.detail') && document.activeElement.textContent")
    browser.press("x")
    browser.until("explanation", "return document.querySelector('.explained h3')", seconds=30)
    browser.press("Escape")
    browser.until("the row again", "return document.activeElement.classList.contains('row')")
    browser.press("2")
    browser.until("nodes", "return document.activeElement.classList.contains('node')")
    first = browser.run("return document.activeElement.textContent")
    browser.press("ArrowRight", "ArrowDown")
    assert browser.run("return document.activeElement.textContent") != first
    browser.press("Enter")
    browser.until("the node", "return document.querySelector('.detail .amounts')")
    browser.press("Escape", "4")
    browser.until("decisions", "return document.querySelector('.grid.decisions')")
    browser.press("?")
    browser.until("the keys", "return document.getElementById('keys').open")
    browser.press("Escape")
    browser.until("no dialog", "return !document.querySelector('dialog[open]')")


def test_dark_and_light_follow_the_system_until_the_user_chooses(
    browser: Browser, home: str, pictures: pathlib.Path
) -> None:
    """The choice is kept by the browser."""
    look(browser, home)
    back = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(back)
    browser.click(".tile", "queued")
    browser.until("reasons of Slurm", "return document.querySelector('.chip[data-reason=Priority]')")
    browser.click(".head .c-reason button")
    browser.picture(pictures / "live-view-workloads.png")
    browser.prefers("dark")
    dark = browser.run(back)
    assert dark != light
    browser.press("t", "t")
    assert browser.run(back) == light
    look(browser, home)
    assert browser.run(back) == light
    browser.press("t")
    assert browser.run(back) == dark
    browser.press("2")
    browser.until("nodes", "return document.querySelectorAll('.node').length > 9")
    browser.picture(pictures / "live-view-nodes.png")


#: In the other colours all but the contrast is the same.
CONTRAST = ("color-contrast",)


@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", CONTRAST)])
def test_an_audit_of_accessibility_has_no_serious_finding(
    browser: Browser, home: str, scheme: str, rules: tuple[str, ...]
) -> None:
    """Of every view, with and without details."""
    browser.prefers(scheme)
    look(browser, home)
    browser.click(".row")
    browser.until("details", "return document.querySelector('.detail .time')")
    found = {"workloads": audit.findings(browser, *rules)}
    browser.press("2")
    browser.click(".node")
    browser.until("the node", "return document.querySelector('.detail .amounts')")
    found["nodes"] = audit.findings(browser, *rules)
    browser.press("Escape", "3")
    browser.until("queues", "return document.querySelector('.card')")
    found["queues"] = audit.findings(browser, *rules)
    browser.press("4")
    browser.until("decisions", "return document.querySelector('.grid.decisions')")
    found["decisions"] = audit.findings(browser, *rules)
    browser.press("?")
    found["keys"] = audit.findings(browser, *rules)
    assert {view: one for view, one in found.items() if one} == {}


@pytest.mark.security("input")
def test_a_name_with_html_is_a_text(browser: Browser, home: str) -> None:
    """A name or a message with HTML is shown by the live view as text, and makes no element."""
    look(browser, home)
    browser.press("/", "onerror")
    browser.until("its row", f"{ROWS} === 1")
    assert crowded_world.HOSTILE in browser.text(".row .name")
    browser.click(".row")
    browser.until("details", "return document.querySelector('.detail .time')")
    assert browser.text(".detail h2") == crowded_world.HOSTILE
    assert browser.run("return document.querySelectorAll('img[src=x]').length") == 0


def test_what_happens_is_seen_without_a_reload(browser: Browser, daemon: Running, home: str) -> None:
    """A new pod is there within seconds, and gone when it is deleted; the neighbours stay."""
    look(browser, home)
    before = browser.run(COUNT)
    daemon.world.kube.create(kinds.PODS, crowded_world.pod("brand-new", "vision", 1))
    seen = "return [...document.querySelectorAll('.row .name')].some((one) => one.textContent.includes('brand-new'))"
    browser.until("the new pod", seen)
    daemon.world.kube.delete(kinds.PODS, ("vision", "brand-new"))
    browser.until("its end", f"return !(() => {{ {seen} }})()")
    assert browser.run(COUNT) == before


def test_a_small_screen_shows_the_same(browser: Browser, home: str) -> None:
    """As a telephone has it: nothing is wider than the screen."""
    browser.size(390, 800)
    look(browser, home)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    browser.click(".row")
    browser.until("details", "return document.querySelector('.detail .time')")
    assert browser.run("return document.querySelector('.detail').getBoundingClientRect().width") == 390


def test_viewers_cost_little(daemon: Running) -> None:
    """What was sent is counted, and no viewer is left."""
    wait.until(lambda: "slurm_bridge_live_viewers" in daemon.get("/metrics")[1], "metrics")
    numbers = dict(
        line.rsplit(" ", 1) for line in daemon.get("/metrics")[1].splitlines() if line.startswith("slurm_bridge_live")
    )
    assert float(numbers["slurm_bridge_live_view_bytes_total"]) > 1000
    assert json.loads(numbers["slurm_bridge_live_viewers"]) <= 3
