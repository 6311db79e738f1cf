"""Ways through the page of the live view that are the same whatever servers the daemon has."""

import pathlib

from tests.browser.driver import Browser

LIVE = "return document.getElementById('live').dataset.state === 'live'"
ROWS = "return document.querySelectorAll('.row[role=row]').length"
NAMES = "[...document.querySelectorAll('.row .name')]"
COUNT = "return Number(document.querySelector('.count').textContent.split(' ')[2])"


def look(browser: Browser, home: str) -> None:
    """The page, with all rows."""
    browser.go(home)
    browser.until("live page", LIVE)
    browser.until("all rows", f"{ROWS} > 5")


def first_paint(browser: Browser, home: str) -> float:
    """Milliseconds; the best of three that takes no second, as other work shares the machine."""
    painted = []
    for _ in range(3):
        look(browser, home)
        painted.append(browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        if painted[-1] < 1000:
            break
    return min(painted)


def from_a_queue_to_a_node(browser: Browser, namespace: str, pictures: pathlib.Path) -> None:
    """From the queue of a namespace to a workload that waits for others, to its reason, to one that runs, to its node.

    By clicks alone: each leads to the next.
    """
    browser.click("#tab-queues")
    browser.until("tree of queues", "return document.querySelectorAll('.card table').length === 2")
    browser.picture(pictures / "live-view-queues.png")
    browser.click(".card th button", namespace)
    browser.until(
        "rows of the team",
        f"{ROWS} > 3 && {NAMES}.every((one) => one.textContent.startsWith('{namespace}/'))",
    )
    browser.click(".chip", "Priority")
    browser.until(
        "a workload that waits",
        "return [...document.querySelectorAll('.row .why b')].some((one) => one.textContent === 'Priority')",
    )
    browser.click(".row")
    browser.until("its reason", "return document.querySelector('.detail .reason')?.textContent === 'Priority'")
    assert "Next step: Wait: jobs with a higher priority" in browser.text(".detail .step")
    browser.picture(pictures / "live-view-why.png")
    browser.click(".detail .reason button")
    browser.until(
        "all that wait for it",
        "return document.querySelector('.chip[aria-pressed=true]')?.dataset.reason === 'Priority'",
    )
    browser.click(".tile", "running")
    browser.click(".row", "train-")
    browser.until("its node", "return document.querySelector('.detail [data-node]')")
    node = browser.run("return document.querySelector('.detail [data-node]').dataset.node")
    browser.click(".detail [data-node]")
    browser.until("the node", "return document.querySelector('.detail h2').textContent === arguments[0]", node)
    assert "by pods of this bridge" in browser.text(".amounts")
    browser.click(".detail .list button", "/train-")
    browser.until(
        "a workload of the node", "return document.querySelector('.detail h2').textContent.startsWith('train-')"
    )
