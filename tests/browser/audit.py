"""axe-core, the accessibility audit: fetched from the npm registry by version and digest, and put into the page."""

import base64
import functools
import hashlib
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

import pytest

from tests.browser.driver import Browser

VERSION = "4.14.1"
DIGEST = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
SERIOUS = ("serious", "critical")

_RUN = """
const rules = arguments[0] ? { runOnly: { type: "rule", values: arguments[0] } } : {};
const found = await axe.run(document, { resultTypes: ["violations"], ...rules });
const shown = (one) => one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3);
return found.violations.map((one) => [one.impact, one.id, shown(one)]);
"""


@functools.cache
def source() -> str:
    """The script. The package is kept in build/ of the tree, which no commit has."""
    kept = pathlib.Path(__file__).resolve().parents[2] / "build" / "browser" / f"axe-core-{VERSION}.tgz"
    if not kept.is_file():
        _fetch(kept)
    packed = kept.read_bytes()
    assert base64.b64encode(hashlib.sha512(packed).digest()).decode() == DIGEST, f"{kept} is not axe-core {VERSION}"
    with tarfile.open(kept) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def _fetch(kept: pathlib.Path) -> None:
    if not shutil.which("npm"):
        pytest.skip("there is no npm to fetch axe-core with: install Node.js")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"axe-core@{VERSION}", "--silent", "--pack-destination", folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=folder)
        assert done.returncode == 0, done.stderr[-2000:]
        shutil.move(pathlib.Path(folder) / kept.name, kept)


def findings(browser: Browser, *rules: str) -> list[str]:
    """What is seriously wrong with the page as it is now, for people who use it without a mouse or without sight.

    By all rules, or by these.
    """
    if not browser.run("return typeof axe !== 'undefined'"):
        browser.run(f"{source()}; window.axe = axe;")
    return [
        f"{impact} {rule}: {nodes}"
        for impact, rule, nodes in browser.run(_RUN, list(rules) or None)
        if impact in SERIOUS
    ]
