"""Where each page stands in the site. A page that no list names is appended to the last one, so that none is lost."""

import functools
import pathlib
from collections.abc import Iterator, Mapping, Sequence

#: The first page.
ROOT = "docs/README"

#: Folders with pages; other files at the top of the tree that are pages.
FOLDERS = ("deploy", "docs", "examples", "hack")
TOP = ("README", "CHANGELOG")

#: By role, in the order in which a newcomer of that role reads.
PARTS: dict[str, tuple[str, ...]] = {
    "Begin": ("README", "docs/tutorial", "docs/demo"),
    "Researcher": (
        "docs/researchers",
        "docs/workloads",
        "examples/README",
        "docs/annotations",
        "docs/kubectl",
        "docs/explain",
        "docs/explained/README",
        "docs/submission",
    ),
    "Administrator": (
        "docs/administrators",
        "deploy/README",
        "docs/helm",
        "docs/operating",
        "docs/nodes",
        "docs/hybrid",
        "docs/device-claims",
        "docs/admission",
        "docs/admission-policies",
        "docs/security",
        "docs/reliability",
        "docs/performance",
        "docs/benchmarks",
        "docs/migrating",
        "hack/slurm.conf/README",
    ),
    "Hooks that choose nodes": (
        "docs/hooks",
        "docs/kube-scheduler",
        "docs/preemption",
        "docs/vela",
        "docs/agents",
        "deploy/agents/README",
        "docs/kai",
        "docs/yunikorn",
        "examples/hooks/README",
    ),
    "Hook author": ("docs/hook-authors", "examples/custom-hook/README", "docs/queue-core"),
    "Reference": (
        "docs/command-line",
        "docs/configuration",
        "docs/metrics",
        "docs/decisions-table",
        "docs/contract",
        "docs/glossary",
    ),
    "Project": (
        "docs/contributing",
        "docs/architecture",
        "docs/decisions/README",
        "hack/cluster/README",
        "CHANGELOG",
    ),
}

#: Pages below a page: its folder has many of one kind.
BELOW: dict[str, str] = {
    "examples/README": "examples/*/README",
    "docs/explained/README": "docs/explained/*",
    "docs/decisions/README": "docs/decisions/*",
}


def trees(project: pathlib.Path, page: str) -> Iterator[str]:
    """The lists that stand below a page, as Sphinx reads them."""
    if page == ROOT:
        for title, pages in parts(project).items():
            yield _tree(pages, title)
    if page in BELOW:
        yield _tree(below(project, page))


@functools.cache
def parts(project: pathlib.Path) -> Mapping[str, Sequence[str]]:
    """The pages of each part."""
    every = pages(project)
    children = {child for page in BELOW for child in below(project, page)}
    left = [page for page in every if page not in children | _named() | {ROOT}]
    there = {title: [page for page in listed if page in every] for title, listed in PARTS.items()}
    last = list(PARTS)[-1]
    return {**there, last: [*there[last], *left]}


def _named() -> set[str]:
    return {page for listed in PARTS.values() for page in listed}


@functools.cache
def below(project: pathlib.Path, page: str) -> Sequence[str]:
    """The pages below this one that have no place of their own."""
    found = (_name(project, one) for one in project.glob(f"{BELOW[page]}.md"))
    return sorted(name for name in found if name not in {page, *_named()})


def pages(project: pathlib.Path) -> list[str]:
    """Every page, by its path without the ending."""
    found = [*(project / f"{name}.md" for name in TOP)]
    found += [page for folder in FOLDERS for page in (project / folder).rglob("*.md")]
    return sorted(_name(project, page) for page in found)


def _name(project: pathlib.Path, page: pathlib.Path) -> str:
    return page.relative_to(project).with_suffix("").as_posix()


def _tree(pages: Sequence[str], title: str = "") -> str:
    options = [f":caption: {title}"] if title else []
    lines = ["```{toctree}", ":hidden:", ":maxdepth: 1", *options, "", *(f"/{page}" for page in pages), "```"]
    return "\n".join(lines)
