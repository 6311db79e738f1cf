"""Modules and pages as hack/words.py and hack/figures.py read them: syntax, sentences, functions."""

import ast
import functools
import pathlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ROOT = "slurm_bridge"

#: Each folder of these two counts as a package of its own: a family of hooks is as large as a package.
FAMILIES = ("hooks", "families")

#: One is enough to make a sentence speak of a person.
PERSON = re.compile(
    r"\b(who|whoever|whom|nobody|somebody|anybody|everybody|someone|anyone|everyone|he|him|his|himself|she)\b",
    re.IGNORECASE,
)

CLASS = re.compile(r"class (\w+)")

#: Comments and strings. Exact for Python 3.11, where an f-string has no quotes of its own kind inside.
TEXT = re.compile(
    r"""(?P<comment>\#[^\n]*)
    | (?P<prefix>\b[rbfRBF]{1,2})? (?P<quote>\"{3}|'{3}|"|') (?P<text>(?:\\.|(?!(?P=quote)).)*) (?P=quote)""",
    re.DOTALL | re.VERBOSE,
)
VALUE = re.compile(r"\{[^{}]*\}")
ESCAPE = re.compile(r"\\[nrt]|\\\n")

#: Of a page: code, links to elsewhere in the tree, and what begins a paragraph.
CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"\]\([^)\s]*\)")
ITEM = re.compile(r"[#*|>-]|\d+\.")

#: The kinds of passages.
DOCSTRING, MESSAGE, COMMENT = PASSAGES = ("docstring", "message", "comment")
PARAGRAPH = "paragraph"

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file of the package, or a page or manifest beside it."""

    path: pathlib.PurePosixPath  # from the top of the tree
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        """Its syntax; parsing is slow, so it waits until a reader needs it."""
        return ast.parse(self.text)

    @functools.cached_property
    def lines(self) -> list[str]:
        """The text line by line."""
        return self.text.splitlines()

    @property
    def package(self) -> str:
        """The folder below slurm_bridge; a dot for what lies beside the folders. Elsewhere the suite, or hack."""
        if self.path.parts[0] != ROOT:
            return "/".join(self.path.parts[: 2 if self.path.parts[0] == "tests" else 1])
        folders = self.path.parts[1:-1]
        depth = 2 if folders and folders[0] in FAMILIES else 1
        return "/".join(folders[:depth]) or "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A docstring, a comment or a message, with every run of blanks as one blank."""

    kind: str
    line: int
    text: str


def modules(tree: pathlib.Path, folder: str = ROOT) -> tuple[Module, ...]:
    """Every module below a folder of a tree, by path."""
    found = []
    for file in sorted((tree / folder).rglob("*.py")):
        path = pathlib.PurePosixPath(file.relative_to(tree).as_posix())
        found.append(Module(path=path, text=file.read_text()))
    return tuple(found)


def pages(tree: pathlib.Path, folders: Iterable[str]) -> tuple[Module, ...]:
    """Every page at the top of a tree, and every page and manifest below some of its folders, by path."""
    found = [*tree.glob("*.md")]
    found += [file for folder in folders for end in ("md", "yaml") for file in (tree / folder).rglob(f"*.{end}")]
    return tuple(
        Module(path=pathlib.PurePosixPath(file.relative_to(tree).as_posix()), text=file.read_text())
        for file in sorted(found)
    )


def passages(module: Module) -> Iterator[Passage]:
    """The texts of a module, of a page (its paragraphs) or of a manifest (its comments)."""
    if module.path.suffix == ".py":
        return _texts(module)
    return _paragraphs(module) if module.path.suffix == ".md" else _remarks(module)


def _paragraphs(module: Module) -> Iterator[Passage]:
    """The paragraphs, items, rows and headings of a page, without blocks of code and without targets of links."""
    text = CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), module.text)
    start, lines = 1, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if lines and (not line.strip() or ITEM.match(line.lstrip())):
            yield Passage(kind=PARAGRAPH, line=start, text=TARGET.sub("]", " ".join(" ".join(lines).split())))
            lines = []
        if line.strip():
            start = start if lines else number
            lines.append(line)


def _remarks(module: Module) -> Iterator[Passage]:
    """The comments of a manifest; those in lines that follow each other are one text."""
    start, lines = 0, list[str]()
    for number, line in enumerate([*module.lines, ""], start=1):
        comment = re.search(r"(?:^|\s)#(.*)", line)
        if lines and (comment is None or not line.lstrip().startswith("#")):
            yield Passage(kind=COMMENT, line=start, text=" ".join(" ".join(lines).split()))
            lines = []
        if comment:
            start = start if lines else number
            lines.append(comment[1])


def _texts(module: Module) -> Iterator[Passage]:
    """The docstrings, messages and comments of a module; what is written in several pieces is one text."""
    kind, start, end, pieces = "", 0, 0, list[str]()
    for match in TEXT.finditer(module.text):
        this = _kind(module.text, match)
        if pieces and (module.text[end : match.start()].strip() or this != kind or kind == DOCSTRING):
            yield _passage(module, kind, start, pieces)
            pieces = []
        if not pieces:
            kind, start = this, match.start()
        pieces.append(_plain(match))
        end = match.end()
    if pieces:
        yield _passage(module, kind, start, pieces)


def about_persons(module: Module) -> Iterator[tuple[Passage, re.Match[str]]]:
    """Each word for a person, with the text around; most modules are without and cost no more than one search."""
    if PERSON.search(ESCAPE.sub(" ", module.text)):
        for passage in passages(module):
            if " " in passage.text:  # a text of one word is no message
                for word in PERSON.finditer(passage.text):
                    yield passage, word


def class_names(module: Module) -> Iterator[tuple[str, int]]:
    """The name and line of every class at the top of a module."""
    for line, text in enumerate(module.lines, start=1):
        if match := CLASS.match(text):
            yield match[1], line


def functions(module: Module) -> Iterator[Function]:
    """Every function and method, nested ones too."""
    return (node for node in ast.walk(module.tree) if isinstance(node, Function))


def described(node: Documented) -> bool:
    """Whether it has a docstring."""
    return ast.get_docstring(node, clean=False) is not None


def body_lines(module: Module, function: Function) -> int:
    """How many lines of a function's body hold code: no docstring, no blank line, no line that is only a comment."""
    body = function.body[1:] if described(function) else function.body
    if not body:
        return 0
    lines = module.lines[body[0].lineno - 1 : body[-1].end_lineno]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def _passage(module: Module, kind: str, start: int, pieces: list[str]) -> Passage:
    line = module.text.count("\n", 0, start) + 1
    glue = " " if kind == COMMENT else ""
    return Passage(kind=kind, line=line, text=" ".join(glue.join(pieces).split()))


def _kind(text: str, match: re.Match[str]) -> str:
    if match["comment"]:
        return COMMENT
    first = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
    return DOCSTRING if first and len(match["quote"]) > 1 else MESSAGE


def _plain(match: re.Match[str]) -> str:
    if match["comment"]:
        return match["comment"].lstrip("#:")
    text = ESCAPE.sub(" ", match["text"])
    return VALUE.sub("{}", text) if "f" in (match["prefix"] or "").lower() else text
