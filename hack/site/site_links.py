"""Links that lead nowhere within a built site, and what a page would load from elsewhere."""

import html
import pathlib
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

#: What a browser loads by itself, and the attribute that says from where.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """The names in a page, its links, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        said = {key: value or "" for key, value in attrs}
        self.names |= {said[key] for key in ("id", "name") if key in said}
        if tag == "a" and "href" in said:
            self.links.add(said["href"])
        if tag in LOADED and LOADED[tag] in said:
            self.loaded.add(said[LOADED[tag]])


def problems(out: pathlib.Path) -> Iterator[str]:
    """Every link within the site without a page or heading, and everything that would be loaded from elsewhere."""
    read = {page: Page(page.read_text(encoding="utf-8")) for page in sorted(out.rglob("*.html"))}
    for page, found in read.items():
        name = page.relative_to(out).as_posix()
        yield from (f"{name}: loads {one}" for one in sorted(found.loaded) if urlsplit(one).netloc)
        ends = {
            link: _end(page, link)
            for link in sorted(found.links | found.loaded)
            if not (urlsplit(link).scheme or urlsplit(link).netloc)
        }
        yield from _lost(name, ends.items(), read)


def _end(page: pathlib.Path, link: str) -> tuple[pathlib.Path, str]:
    parts = urlsplit(html.unescape(link))
    path = page.parent / unquote(parts.path) if parts.path else page
    return path.resolve(), unquote(parts.fragment)


def _lost(
    name: str, ends: Iterable[tuple[str, tuple[pathlib.Path, str]]], read: dict[pathlib.Path, Page]
) -> Iterator[str]:
    for link, (path, heading) in ends:
        if not path.exists():
            yield f"{name}: {link} leads to no page"
        elif heading and path in read and heading not in read[path].names:
            yield f"{name}: {link} leads to no heading"
