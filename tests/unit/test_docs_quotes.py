"""What the pages of the hooks and of the nodes quote of the program, the program says.

The other direction, that all it says is on a page, is in `test_docs_families`.
"""

import ast
import functools
import pathlib
import re
from collections.abc import Iterator

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]

#: The pages, and how many quotes of each are found at least: a table with another head would be passed over.
PAGES = {
    "hooks.md": 40,
    "kai.md": 20,
    "kube-scheduler.md": 40,
    "nodes.md": 12,
    "preemption.md": 2,
    "vela.md": 50,
    "yunikorn.md": 38,
}

#: The heads of columns with quotes; the second one only where it follows the first.
HEADS = frozenset({"what the pod says", "message", "text"})
EVENTS = ("where", "what")

#: Names of users, agents and topologies in examples.
EXAMPLES = frozenset({"ann", "bob", "east", "fast", "halls", "team", "west"})

#: A word of a name or of a value is left out: it has a digit, a capital letter or a sign.
VALUE = re.compile(r"\S*[\d./='\"_A-Z…-]\S*")


def quotes(text: str) -> Iterator[str]:
    """The code in columns of tables that quote."""
    column: int | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            column = None
        elif column is None:
            column = next((place for place, cell in enumerate(cells) if cell in HEADS), -1)
            column = 1 if tuple(cells) == EVENTS else column
        elif column >= 0:
            yield from re.findall(r"`([^`]+)`", cells[column])


@functools.cache
def literals() -> tuple[tuple[str, ...], frozenset[str]]:
    """The texts of the program, those with several words the longest first, and single words; no docstrings."""
    found: set[str] = set()
    for file in (PROJECT / "slurm_bridge").rglob("*.py"):
        if not {"sim", "demo"} & set(file.parts):
            tree = ast.parse(file.read_text())
            docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
            found |= {" ".join(one.value.split()).strip(" ;:,.({") for one in texts if isinstance(one.value, str)}
    several = sorted((one for one in found if re.search(r"[a-z)'(,] \(?[a-z]", one)), key=len, reverse=True)
    return tuple(several), frozenset(one for one in found if " " not in one)


def unsaid(quote: str) -> list[str]:
    """The words of a quote that are in no text of the program."""
    several, single = literals()
    for text in several:
        quote = quote.replace(text, " ")
    words: list[str] = re.findall(r"[a-z]{3,}", VALUE.sub(" ", quote))
    return [word for word in words if word not in single and word not in EXAMPLES]


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_quotes_is_said(name: str) -> None:
    """Word for word, but for names and values."""
    found = list(quotes((PROJECT / "docs" / name).read_text()))
    assert len(found) >= PAGES[name]
    wrong = {quote: words for quote in found if (words := unsaid(quote))}
    assert not wrong, f"docs/{name} quotes what the program does not say: {wrong}"


def test_another_word_is_noticed() -> None:
    """Also one of a message that is made of several texts."""
    said = "in queue root.a: queue root.a uses 8 of 10 vcore, and this asks for 4; others in root.a have to end first"
    assert unsaid(said) == []
    assert unsaid(said.replace("have to end first", "must finish earlier")) == ["must", "finish", "earlier"]
