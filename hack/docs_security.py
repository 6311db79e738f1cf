"""The list of promises in docs/security.md: one line for each test that is marked as one."""

import ast
import pathlib
from collections.abc import Iterator

PROJECT = pathlib.Path(__file__).resolve().parents[1]

#: The sections in the order of the page, and their headings.
SECTIONS = {
    "identity": "Which workload a pod or a job belongs to",
    "input": "Input from users and servers",
    "fairness": "Fairness between namespaces",
    "rights": "Rights of users and of the daemon",
    "neighbours": "Other bridges and changes on the servers",
}


def promises() -> str:
    """One heading for each section, one line for each of its tests: the sentence, and where it is shown."""
    found: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for file in sorted((PROJECT / "tests").rglob("test_*.py")):
        for section, line in _marked(file):
            found[section].append(line)
    parts = [f"### {SECTIONS[section]}\n\n" + "".join(lines) for section, lines in found.items() if lines]
    return "\n".join(parts)


def _marked(file: pathlib.Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        section = next(_sections(node), None) if isinstance(node, ast.FunctionDef) else None
        if section is not None and isinstance(node, ast.FunctionDef):
            sentence = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            yield section, f"- {sentence} [{node.name}](../{file.relative_to(PROJECT)})\n"


def _sections(function: ast.FunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.security":
            section = ast.literal_eval(decorator.args[0])
            if section not in SECTIONS:
                raise ValueError(f"{function.name}: security({section!r}) is none of {', '.join(SECTIONS)}")
            yield section
