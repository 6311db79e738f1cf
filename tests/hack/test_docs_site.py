"""The site of the documents: every page has a place, and links that lead nowhere are found."""

import pathlib

import pytest

import site_links
import site_navigation

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def test_every_page_has_one_place() -> None:
    """No page is listed twice, and none that does not exist."""
    listed = [page for pages in site_navigation.parts(PROJECT).values() for page in pages]
    listed += [page for parent in site_navigation.BELOW for page in site_navigation.below(PROJECT, parent)]
    assert sorted([*listed, site_navigation.ROOT]) == site_navigation.pages(PROJECT)


def test_a_page_that_no_list_names_is_appended(tmp_path: pathlib.Path) -> None:
    """A new page is in the site before its place is chosen."""
    for name in ("README.md", "CHANGELOG.md", "docs/README.md", "docs/new.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert list(site_navigation.parts(tmp_path).values())[-1][-1] == "docs/new"


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<a href="b.html#there">', ""),
        ('<a href="#here"><p id="here">', ""),
        ('<a href="https://example.org/x#y">', ""),
        ('<a href="gone.html">', "a.html: gone.html leads to no page"),
        ('<a href="b.html#gone">', "a.html: b.html#gone leads to no heading"),
        ('<img src="gone.svg">', "a.html: gone.svg leads to no page"),
        ('<script src="https://example.org/x.js"></script>', "a.html: loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "a.html: loads //example.org/x.css"),
    ],
)
def test_links_that_lead_nowhere_are_found(page: str, problem: str, tmp_path: pathlib.Path) -> None:
    """Within the site; and nothing is loaded from elsewhere."""
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.html").write_text('<h2 id="there">')
    assert list(site_links.problems(tmp_path)) == ([problem] if problem else [])
