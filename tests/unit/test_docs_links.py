"""The links of every page lead to files that exist, and to headings that these have."""

import pathlib
import re

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]

#: Pages are at the top of the tree and anywhere below these folders.
FOLDERS = ("deploy", "docs", "examples", "hack", "tests")

CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = ("http:", "https:", "mailto:")


def pages() -> list[str]:
    """Every page, by its path from the top of the tree."""
    found = [*PROJECT.glob("*.md"), *(page for folder in FOLDERS for page in (PROJECT / folder).rglob("*.md"))]
    return sorted(str(page.relative_to(PROJECT)) for page in found)


def anchors(path: pathlib.Path) -> set[str]:
    """The headings of a page as links name them; of equal headings the second has -1 at its end, and so on."""
    titles = re.findall(r"^#+ (.*)$", CODE.sub("", path.read_text()), re.MULTILINE)
    names = [re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles]
    return {f"{name}-{names[:at].count(name)}" if name in names[:at] else name for at, name in enumerate(names)}


@pytest.mark.parametrize("name", pages())
def test_links_lead_somewhere(name: str) -> None:
    """To files that exist, and to headings that they have."""
    page = PROJECT / name
    wrong = []
    for target in LINK.findall(CODE.sub("", page.read_text())):
        if target.startswith(ELSEWHERE):
            continue
        file, _, heading = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if not path.exists() or (heading and heading not in anchors(path)):
            wrong.append(target)
    assert not wrong, f"{name} links to what does not exist: {', '.join(wrong)}"


def test_the_pages_of_every_folder_are_read() -> None:
    """The documents, the decisions, the examples and what deploys."""
    assert {"README.md", "docs/decisions/README.md", "examples/README.md", "deploy/README.md"} <= {*pages()}
