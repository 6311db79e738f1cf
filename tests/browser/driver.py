"""A real headless Chromium, steered over WebDriver: JSON over HTTP, as far as these tests need it."""

import base64
import contextlib
import json
import pathlib
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from localcluster import packages
from tests import wait

PACKAGES = (
    packages.Tool(program="chromium", packages=("chromium",)),
    packages.Tool(program="chromedriver", packages=("chromium-driver",)),
)
WIDTH, HEIGHT = 1280, 800

#: Keys without a letter, as WebDriver names them.
KEYS = {
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Tab": "\ue004",
    "Home": "\ue011",
    "End": "\ue010",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "PageDown": "\ue00f",
}


class Browser:
    """One session. Nothing is kept of it on the disk."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"
        # As root a sandbox of its own cannot be made; the pages are ours.
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]
        options = {"args": [*arguments, f"--window-size={WIDTH},{HEIGHT}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"
        self.size(WIDTH, HEIGHT)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self._base}{path}", method=method, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(error.read().decode()[:2000]) from error

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        return self._ask(method, self._session + path, body)

    def go(self, url: str) -> None:
        """Load a page from the beginning."""
        self("POST", "/url", {"url": "about:blank"})
        self("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a function body in the page; a promise is waited for."""
        return self("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def develop(self, command: str, **given: Any) -> Any:
        """A command of the DevTools protocol."""
        return self("POST", "/goog/cdp/execute", {"cmd": command, "params": given})

    def size(self, width: int, height: int) -> None:
        """The size of the page."""
        self.develop(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def prefers(self, scheme: str) -> None:
        """What the system of the user prefers: dark or light."""
        self.develop("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, *keys: str) -> None:
        """Keys one after the other; a longer text letter by letter."""
        letters = [KEYS.get(key, key) for key in keys]
        typed = [one for letter in letters for one in ([letter] if letter in KEYS.values() else letter)]
        actions = [{"type": kind, "value": key} for key in typed for kind in ("keyDown", "keyUp")]
        self("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element that matches and has this text, as a mouse does: it has to be there and in view."""
        self.until(f"a place to click: {selector} {text}", _FIND, selector, text)
        element = self.run(_FIND, selector, text)
        self("POST", f"/element/{next(iter(element.values()))}/click", {})

    def until(self, what: str, script: str, *arguments: Any, seconds: float = 20.0) -> None:
        """Wait until a function body returns something true."""
        wait.until(lambda: self.run(script, *arguments), what, seconds, every=0.05)

    def text(self, selector: str) -> str:
        """The text of an element, "" without one."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def log(self) -> list[str]:
        """What the page complained about since the last look."""
        return [entry["message"] for entry in self("POST", "/se/log", {"type": "browser"})]

    def picture(self, file: pathlib.Path) -> None:
        """A picture of the page."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self("GET", "/screenshot")))

    def close(self) -> None:
        """End the session."""
        self("DELETE", "")


_FIND = """
const found = [...document.querySelectorAll(arguments[0])].find((one) => one.textContent.includes(arguments[1]));
found?.scrollIntoView({ block: "nearest" });
return found ?? null;
"""


@contextlib.contextmanager
def opened() -> Iterator[Browser]:
    """A browser, and its driver; both end with the block."""
    packages.require(*PACKAGES)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["chromedriver", f"--port={port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait.until(lambda: _listens(port), "driver of Chromium", 30, every=0.05)
        browser = Browser(port)
        try:
            yield browser
        finally:
            browser.close()
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
