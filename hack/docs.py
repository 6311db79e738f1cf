"""Writes the generated pages of docs/ from the code, or with --check says which are out of date.

A table that is written by hand beside the code it describes is wrong after the first change.
"""

import argparse
import ast
import pathlib
import sys
from collections.abc import Iterator

import bench_history
import bench_page
import board_files
import chart_templates
import chart_values
import docs_commands
import docs_diagrams
import docs_explained
import docs_hooks
import docs_reliability
import docs_security
import docs_tables
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions

PROJECT = pathlib.Path(__file__).resolve().parents[1]
EXPLAINED = "explained"
BEGIN, END = "<!-- generated: {} -->\n", "<!-- end -->\n"


def main() -> int:
    """Write or compare every page; the exit status says whether all were current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail when a page is out of date")
    check = parser.parse_args().check
    wanted = pages()
    stale = {page: text for page, text in wanted.items() if not page.is_file() or page.read_text() != text}
    needless = sorted(page for page in (PROJECT / "docs" / EXPLAINED).glob("*.md") if page not in wanted)
    for page, text in stale.items():
        print(f"{page.relative_to(PROJECT)} {'is out of date: run make docs' if check else 'written'}")
        if not check:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
    for page in needless:
        print(f"{page.relative_to(PROJECT)} {'is of no example: run make docs' if check else 'deleted'}")
        if not check:
            page.unlink()
    return 1 if check and (stale or needless) else 0


def pages() -> dict[pathlib.Path, str]:
    """Every page that is generated, or has generated parts, as it should be."""
    docs = PROJECT / "docs"
    figures = bench_history.read()
    generated: tuple[tuple[str, str, str], ...] = (
        ("agents.md", "metrics", docs_tables.agent_metrics()),
        ("annotations.md", "annotations", docs_tables.annotations()),
        ("annotations.md", "environment", docs_tables.environment()),
        ("architecture.md", "packages", packages()),
        ("command-line.md", "commands", docs_commands.commands()),
        ("configuration.md", "settings", docs_tables.settings()),
        ("contract.md", "cases", cases()),
        ("decisions-table.md", "states", docs_tables.states()),
        ("decisions-table.md", "lifecycle", docs_tables.lifecycle()),
        ("decisions-table.md", "rows", docs_tables.decisions()),
        ("decisions-table.md", "actions", docs_tables.actions()),
        ("helm.md", "values", chart_values.table()),
        ("hooks.md", "policy", docs_hooks.options("policy")),
        ("hooks.md", "eligibility", docs_hooks.options("eligibility")),
        ("device-claims.md", "options", docs_hooks.options("device-claims")),
        ("kai.md", "options", docs_hooks.options("kai")),
        ("kube-scheduler.md", "options", docs_hooks.options("kube-scheduler")),
        ("kube-scheduler.md", "predicates", docs_hooks.predicates()),
        ("kube-scheduler.md", "priorities", docs_hooks.ratings()),
        ("kube-scheduler.md", "arguments", docs_hooks.arguments()),
        ("kube-scheduler.md", "plugins", docs_hooks.scheduler_plugins()),
        ("metrics.md", "metrics", docs_tables.metrics()),
        ("migrating.md", "helm", docs_tables.helm()),
        ("monitoring.md", "panels", board_files.panels()),
        ("monitoring.md", "alerts", board_files.alerts()),
        ("operating.md", "checks", docs_tables.checks()),
        ("performance.md", "single pods", bench_page.table(figures)),
        ("performance.md", "others", bench_page.others(figures)),
        ("preemption.md", "options", docs_hooks.options("preemption", ExtenderOptions)),
        ("reliability.md", "failures", docs_reliability.failures()),
        ("reliability.md", "traps", docs_reliability.traps()),
        ("security.md", "promises", docs_security.promises()),
        ("vela.md", "options", docs_hooks.options("vela")),
        ("vela.md", "plugins", docs_hooks.plugins()),
        ("workloads.md", "kinds", docs_tables.kinds()),
        ("workloads.md", "sources", docs_tables.sources()),
        ("yunikorn.md", "options", docs_hooks.options("yunikorn")),
        ("../README.md", "annotations", docs_tables.annotations()),
    )
    parts: dict[pathlib.Path, str] = {}
    for name, section, text in generated:
        page = docs / name
        head, rest = (parts.get(page) or page.read_text()).split(BEGIN.format(section))
        _, tail = rest.split(END, 1)
        parts[page] = f"{head}{BEGIN.format(section)}{text}{END}{tail}"
    parts[docs / "performance.svg"] = bench_page.picture(figures)
    parts[PROJECT / "deploy" / "admission" / "policies.yaml"] = docs_tables.policies()
    parts[chart_templates.CHART / "values.yaml"] = chart_values.document()
    parts[chart_templates.CHART / "values.schema.json"] = chart_values.schema()
    parts |= board_files.files()
    parts |= dict(chart_templates.files(parts))
    parts |= {docs / "diagrams" / name: text for name, text in docs_diagrams.files().items()}
    return {**parts, **{docs / EXPLAINED / name: text for name, text in docs_explained.pages().items()}}


def packages() -> str:
    """One row for each package: its charter's first paragraph."""
    charters = sorted((PROJECT / "slurm_bridge").glob("*/__init__.py"))
    rows = [f"| `{init.parent.name}/` | {_first_paragraph(init)} |" for init in charters]
    return "\n".join(["| package | what it is |", "|---|---|", *rows]) + "\n"


def cases() -> str:
    """One line for each contract case, grouped by file: the fact that it states."""
    sections = []
    for file in sorted((PROJECT / "tests" / "contract").glob("*/test_*.py")):
        lines = [f"### {file.parent.name}: {_first_paragraph(file)}", "", *(f"- {fact}" for fact in _facts(file))]
        sections.append("\n".join(lines) + "\n")
    return "\n".join(sections)


def _facts(file: pathlib.Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            name = node.name.removeprefix("test_").replace("_", " ")
            yield f"{name}: {' '.join((ast.get_docstring(node) or '').split())}"


def _first_paragraph(file: pathlib.Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    return " ".join(docstring.split("\n\n")[0].split())


if __name__ == "__main__":
    sys.exit(main())
