"""`make docs-site`: builds the pages into a folder of their version, lists all versions, and checks every link.

What was built of other versions stays, and is in the menu. Each page is a file that needs no server: the list of
versions is a script, and so is the index of the search.
"""

import json
import pathlib
import re
import shutil
import sys

from sphinx.cmd import build

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "hack" / "site")]

import site_links  # noqa: E402 - from beside this file
import site_navigation  # noqa: E402 - from beside this file
import slurm_bridge  # noqa: E402 - only its version

SITE = PROJECT / "build" / "site"
_REDIRECT = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">{0}</a>\n'
)


def main() -> int:
    """Build and check; the exit status says whether there was neither a warning nor a link without an end."""
    version = slurm_bridge.__version__
    out = SITE / version
    here = pathlib.Path(__file__).parent
    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(here), "-d", str(PROJECT / "build" / "site-read")]
    status = int(build.main([*options, str(PROJECT), str(out)]))
    if status:
        return status
    (out / "index.html").write_text(_REDIRECT.format(f"{site_navigation.ROOT}.html"))
    versions = sorted(
        (one.name for one in SITE.iterdir() if one.is_dir() and one.name[:1] != "."), key=_order, reverse=True
    )
    listed = [{"name": one, "pages": _pages(SITE / one)} for one in versions]
    (SITE / "versions.js").write_text(f"window.siteVersions = {json.dumps(listed)};\n")
    (SITE / "index.html").write_text(_REDIRECT.format(f"{versions[0]}/{site_navigation.ROOT}.html"))
    # Their pages stand for them.
    shutil.rmtree(out / "_downloads", ignore_errors=True)
    found = list(site_links.problems(out))
    print(
        "\n".join(found)
        if found
        else f"{out.relative_to(PROJECT)}: every link of {len(_all(out))} pages leads somewhere"
    )
    return 1 if found else 0


def _order(version: str) -> tuple[tuple[int, str], ...]:
    """0.10.0 comes after 0.9.0."""
    return tuple((int(part) if part.isdigit() else 0, part) for part in re.split(r"[.-]", version))


def _pages(out: pathlib.Path) -> list[str]:
    """The pages that another version may lead to, the first page first."""
    found = sorted(page.relative_to(out).as_posix() for page in _all(out) if "files" not in page.relative_to(out).parts)
    first = f"{site_navigation.ROOT}.html"
    return [first, *(page for page in found if page != first)]


def _all(out: pathlib.Path) -> list[pathlib.Path]:
    return sorted(out.rglob("*.html"))


if __name__ == "__main__":
    sys.exit(main())
