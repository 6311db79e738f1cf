"""Refuses words, names and missing docstrings that docs/contributing.md advises against; a part of `make check`.

It prints every finding with its place and fails if there is one.

The rules:

    person   "who", "nobody", "he" and the like speak of people, not of pods, jobs or parts of the program. Docstrings,
             comments and messages are read; a text of one word is no message. Paragraphs of pages and comments of
             manifests are read too
    module   a module is named after what it holds or does, not with a verb in -ing
    class    a class name stands in one package only, unless it names the same concept in each
    missing  a public function of more than five lines has a docstring

The first two hold for the tools and suites of TOO as well; pages are those at the top of the tree and below PAGES. A
decision (docs/decisions) is not changed later, so only the list of them is read.

What is right all the same is listed in hack/words-allowed.tsv with the reason: the rule, the path of the file (for
`class` the name of the class), the words around (for `person` only, a fragment of the sentence).
"""

import collections
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import source_tree

PROJECT = pathlib.Path(__file__).resolve().parents[1]
ALLOWED = pathlib.PurePosixPath("hack/words-allowed.tsv")

ALLOWED_HEADER = "rule\twhere\tfragment\treason"

PERSON, MODULE, CLASS, MISSING = "person", "module", "class", "missing"
RULES = (PERSON, MODULE, CLASS, MISSING)

#: Read beside slurm_bridge, for persons and verbs.
TOO = ("hack", "tests/chaos", "tests/e2e", "tests/fuzz", "tests/simulation")

#: Folders with pages and manifests.
PAGES = ("deploy", "docs", "examples", "hack")
DECISION = re.compile(r"docs/decisions/\d+-.*")

#: A shorter function is its own description.
LONG_ENOUGH = 5

#: A public function at the top of a module whose first line is no docstring.
UNDESCRIBED = re.compile(r'^(async )?def [^_](.*[^:\n]\n)*.*:\n(?! *r?""")', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place that breaks a rule."""

    rule: str
    package: str
    where: str  # path and line
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """One line of hack/words-allowed.tsv."""

    rule: str
    where: str
    fragment: str
    reason: str


class Allowed:
    """The allow-list, which remembers what of it was needed."""

    def __init__(self, allowances: Iterable[Allowance]) -> None:
        self._by_place: dict[tuple[str, str], list[Allowance]] = collections.defaultdict(list)
        self._needless = set(allowances)
        for allowance in self._needless:
            self._by_place[allowance.rule, allowance.where].append(allowance)

    def whole(self, rule: str, where: str) -> bool:
        """Whether a module or class name is allowed."""
        allowances = self._by_place.get((rule, where), [])
        self._needless.difference_update(allowances)
        return bool(allowances)

    def word(self, path: str, text: str, start: int, end: int) -> bool:
        """Whether the word between two positions of a text lies in a fragment that is allowed in this file."""
        for allowance in self._by_place.get((PERSON, path), []):
            at = text.find(allowance.fragment, max(0, end - len(allowance.fragment)), start + len(allowance.fragment))
            if at >= 0:
                self._needless.discard(allowance)
                return True
        return False

    def needless(self) -> list[str]:
        """The allowances that nothing needs any more."""
        return sorted(f"{item.rule} {item.where} {item.fragment}".rstrip() for item in self._needless)


def main(tree: pathlib.Path = PROJECT) -> int:
    """Check; the exit status says whether nothing was found."""
    try:
        allowed = Allowed(read_allowed(tree / ALLOWED))
    except ValueError as refused:
        print(refused)
        return 1
    beside = [module for folder in TOO for module in source_tree.modules(tree, folder)]
    pages = [page for page in source_tree.pages(tree, PAGES) if not DECISION.match(str(page.path))]
    found = findings(source_tree.modules(tree), allowed, beside, pages)
    problems = [f"{one.where}: {one.rule}: {one.what}" for one in found]
    problems += [f"{ALLOWED}: nothing needs: {what}" for what in allowed.needless()]
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


def findings(
    modules: tuple[source_tree.Module, ...],
    allowed: Allowed,
    beside: Iterable[source_tree.Module] = (),
    pages: Iterable[source_tree.Module] = (),
) -> Iterator[Finding]:
    """Every place that breaks a rule and is not allowed.

    Modules beside the package are only read for two rules, and pages for persons alone.
    """
    for page in pages:
        yield from persons(page, allowed)
    for module in (*modules, *beside):
        yield from persons(module, allowed)
        yield from verbs(module, allowed)
    for module in modules:
        yield from undescribed(module)
    yield from namesakes(modules, allowed)


def persons(module: source_tree.Module, allowed: Allowed) -> Iterator[Finding]:
    """Words for people where no people are meant."""
    path = str(module.path)
    for passage, word in source_tree.about_persons(module):
        text, (start, end) = passage.text, word.span()
        if not allowed.word(path, text, start, end):
            what = f"{word[0]!r} in: {text[max(0, start - 40) : end + 40]}"
            yield Finding(rule=PERSON, package=module.package, where=f"{path}:{passage.line}", what=what)


def verbs(module: source_tree.Module, allowed: Allowed) -> Iterator[Finding]:
    """Modules and packages named with a verb in -ing."""
    path = module.path.parent if module.path.name == "__init__.py" else module.path
    if path.stem.endswith("ing") and not allowed.whole(MODULE, str(path)):
        yield Finding(rule=MODULE, package=module.package, where=str(path), what="is named in -ing")


def undescribed(module: source_tree.Module) -> Iterator[Finding]:
    """Public functions at the top of a module that are long and say not what they do."""
    if not UNDESCRIBED.search(module.text):
        return  # parsing is slow
    for node in module.tree.body:
        if not isinstance(node, source_tree.Function) or node.name.startswith("_") or source_tree.described(node):
            continue
        if source_tree.body_lines(module, node) > LONG_ENOUGH:
            where = f"{module.path}:{node.lineno}"
            yield Finding(rule=MISSING, package=module.package, where=where, what=f"{node.name} has no docstring")


def namesakes(modules: tuple[source_tree.Module, ...], allowed: Allowed) -> Iterator[Finding]:
    """Class names of several packages, once for each of them."""
    places: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for module in modules:
        for name, line in source_tree.class_names(module):
            places[name].setdefault(module.package, f"{module.path}:{line}")
    for name, by_package in sorted(places.items()):
        if len(by_package) > 1 and not allowed.whole(CLASS, name):
            for package, where in by_package.items():
                others = ", ".join(sorted(by_package.keys() - {package}))
                yield Finding(rule=CLASS, package=package, where=where, what=f"{name} stands in {others} too")


def read_allowed(file: pathlib.Path) -> list[Allowance]:
    """The allow-list: it is sorted, and each line has a known rule and a reason."""
    rows = _rows(file, ALLOWED_HEADER) if file.exists() else []
    if rows != sorted(rows):
        wrong = next(after for before, after in zip(rows, sorted(rows), strict=True) if before != after)
        message = f"{ALLOWED} is not sorted, {' '.join(wrong)!r} is out of place: sort the lines below the header"
        raise ValueError(message)
    allowances = []
    for rule, where, fragment, reason in rows:
        if rule not in RULES or not where or not reason.strip() or bool(fragment) != (rule == PERSON):
            message = f"{ALLOWED}: this line lacks a rule, a place, a fragment or a reason: {rule} {where} {fragment}"
            raise ValueError(message)
        allowances.append(Allowance(rule=rule, where=where, fragment=fragment, reason=reason))
    return allowances


def _rows(file: pathlib.Path, header: str) -> list[list[str]]:
    first, *rest = file.read_text().splitlines() or [""]
    rows = [row.split("\t") for row in rest]
    if first != header or any(len(row) != len(header.split("\t")) for row in rows):
        message = f"hack/{file.name}: each line has these columns, separated by tabs: {', '.join(header.split())}"
        raise ValueError(message)
    return rows


if __name__ == "__main__":
    sys.exit(main())
