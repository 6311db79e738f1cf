"""hack/words.py: which words, names and missing docstrings `make check` refuses."""

import pathlib

import pytest

import source_tree
import words

SIX_LINES = "\n".join(f"    value = {number}" for number in range(6))


class Project:
    """A tree with a few modules, as hack/words.py sees it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        (folder / "hack").mkdir()

    def module(self, path: str, text: str) -> None:
        """Write one module below slurm_bridge."""
        self.file(f"slurm_bridge/{path}", text)

    def file(self, path: str, text: str) -> None:
        """Write one module anywhere."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def allow(self, *rows: tuple[str, str, str, str]) -> None:
        """Write the allow-list."""
        lines = [words.ALLOWED_HEADER, *("\t".join(row) for row in rows)]
        (self.folder / words.ALLOWED).write_text("\n".join(lines) + "\n")

    def check(self) -> int:
        """Run the check, and return its exit status."""
        return words.main(self.folder)


@pytest.fixture
def project(tmp_path: pathlib.Path) -> Project:
    """An empty tree."""
    return Project(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '"""Whoever asks first is served."""\n',
        "# The pods\n# and those who wait for them.\n",
        'raise ValueError("nobody answers")\n',
        'said = f"{pod} tells him"\n',
        'said = (\n    "the pod says that "\n    "he waits"\n)\n',
        'class Job:\n    """A job."""\n\n    name: str\n    """For whom it is."""\n',
        'line = "first\\nwho comes next"\n',
    ],
)
def test_a_word_for_a_person_is_refused(project: Project, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Docstrings, comments and messages do not speak of things as persons."""
    project.module("jobs/one.py", text)
    assert project.check() == 1
    assert "slurm_bridge/jobs/one.py:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "who = 1\n",
        'field = record["who"]\n',
        '"""The shepherd, whose pods these are."""\n',
        'said = f"for {who}"\n',
        'said = "is it here"  # The history of the job.\n',
    ],
)
def test_other_words_are_no_words_for_persons(project: Project, text: str) -> None:
    """Names, keys of one word, values inside a message and longer words are not read."""
    project.module("jobs/one.py", text)
    assert project.check() == 0


def test_a_sentence_about_people_is_allowed(project: Project) -> None:
    """A fragment that is allowed for a file allows the words inside it, wherever the line breaks."""
    project.module("jobs/one.py", '"""For users who\nsubmit jobs themselves."""\n')
    project.allow(("person", "slurm_bridge/jobs/one.py", "users who submit jobs", "users are people"))
    assert project.check() == 0


def test_an_allowance_holds_for_its_fragment_only(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The same word elsewhere in the sentence is refused."""
    project.module("jobs/one.py", '"""For users who submit, and for jobs who wait."""\n')
    project.allow(("person", "slurm_bridge/jobs/one.py", "users who submit", "users are people"))
    assert project.check() == 1
    assert "jobs who wait" in capsys.readouterr().out


def test_an_allowance_that_nothing_needs_is_refused(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The allow-list shrinks with the sentences."""
    project.module("jobs/one.py", '"""For users."""\n')
    project.allow(("person", "slurm_bridge/jobs/one.py", "users who submit", "users are people"))
    assert project.check() == 1
    assert "nothing needs: person slurm_bridge/jobs/one.py users who submit" in capsys.readouterr().out


@pytest.mark.parametrize(
    "rows",
    [
        [
            ("person", "slurm_bridge/b.py", "users who", "people"),
            ("person", "slurm_bridge/a.py", "users who", "people"),
        ],
        [("person", "slurm_bridge/a.py", "users who", " ")],
        [("person", "slurm_bridge/a.py", "", "people")],
        [("length", "slurm_bridge/a.py", "", "people")],
        [("module", "slurm_bridge/a.py", "people")],
    ],
)
def test_the_allow_list_is_sorted_and_complete(project: Project, rows: list[tuple[str, str, str, str]]) -> None:
    """Each line has a known rule, a place, a reason, and a fragment where it is about a sentence."""
    project.allow(*rows)
    assert project.check() == 1


def test_a_module_is_not_named_with_a_verb(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Modules and packages are nouns, or stand in the allow-list."""
    project.module("jobs/waiting.py", "")
    project.module("asking/__init__.py", "")
    assert project.check() == 1
    said = capsys.readouterr().out
    assert "slurm_bridge/jobs/waiting.py: module: is named in -ing" in said
    assert "slurm_bridge/asking: module: is named in -ing" in said
    project.allow(
        ("module", "slurm_bridge/asking", "", "the noun"), ("module", "slurm_bridge/jobs/waiting.py", "", "the noun")
    )
    assert project.check() == 0


def test_a_class_name_stands_in_one_package(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The same name in two packages is refused in both, unless it is the same concept."""
    for path in ("jobs/one.py", "jobs/two.py", "pods/one.py"):
        project.module(path, "class Table(dict):\n    pass\n")
    assert project.check() == 1
    said = capsys.readouterr().out
    assert "slurm_bridge/jobs/one.py:1: class: Table stands in pods too" in said
    assert "slurm_bridge/pods/one.py:1: class: Table stands in jobs too" in said
    project.allow(("class", "Table", "", "same concept: rows by key"))
    assert project.check() == 0


def test_each_family_of_hooks_is_a_package(project: Project) -> None:
    """Two families that use one class name for different things are refused as two packages are."""
    project.module("families/kai/one.py", "class Table:\n    pass\n")
    project.module("families/kai/parts/two.py", "class Table:\n    pass\n")
    assert project.check() == 0
    project.module("families/vela/one.py", "class Table:\n    pass\n")
    assert project.check() == 1


def test_tools_and_suites_are_read_too(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """For words and for names of modules, and not for names of classes or docstrings."""
    project.module("jobs/one.py", "class Table:\n    pass\n")
    project.file(
        "tests/e2e/waiting.py", f"# Who waits.\nclass Table:\n    pass\n\n\ndef long() -> None:\n{SIX_LINES}\n"
    )
    project.file("tests/unit/jobs/waiting.py", "# Who waits.\n")
    assert project.check() == 1
    assert [line.split(": ")[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["tests/e2e/waiting.py:1", "person"],
        ["tests/e2e/waiting.py", "module"],
    ]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("CHANGELOG.md", "# Changes\n\n- A pod that waits\n  is told who\n  runs.\n", 3),
        ("docs/operating.md", "| a | b |\n|---|---|\n| a pod | nobody binds it |\n", 3),
        ("examples/job/README.md", "# job\n\nIt [waits](a.md) for whoever\nis first.\n", 3),
        ("deploy/rbac.yaml", "kind: Role\n# One rule\n# for anybody.\nrules: []  # none\n", 2),
    ],
)
def test_pages_and_manifests_are_read_too(
    project: Project, capsys: pytest.CaptureFixture[str], path: str, text: str, line: int
) -> None:
    """A finding names the line at which the paragraph, item, row or comment begins."""
    project.file(path, text)
    assert project.check() == 1
    assert capsys.readouterr().out.startswith(f"{path}:{line}: person: ")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "Run\n\n```\nwho\n```\n\nand see [it](by-whoever.md).\n"),
        ("docs/decisions/0001-first.md", "Whoever decided.\n"),
        ("docs/waiting.md", "A page may be named in -ing.\n"),
        ("deploy/config.yaml", "limit: nobody alone\n"),
    ],
)
def test_code_links_and_decisions_are_not_read(project: Project, path: str, text: str) -> None:
    """Names of files in links, blocks of code, values of manifests, and records of earlier decisions."""
    project.file(path, text)
    assert project.check() == 0


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (f"def long() -> None:\n{SIX_LINES}\n", True),
        (f"async def long(\n    one: int,\n) -> None:\n{SIX_LINES}\n", True),
        (f'def long() -> None:\n    """Set a value."""\n{SIX_LINES}\n', False),
        (f"def _long() -> None:\n{SIX_LINES}\n", False),
        ("def short() -> int:\n\n    # Five.\n\n\n    return 5\n", False),
    ],
)
def test_a_long_public_function_has_a_docstring(project: Project, text: str, *, refused: bool) -> None:
    """Private functions, and those of few lines, may go without."""
    project.module("jobs/one.py", text)
    assert project.check() == refused


def test_every_finding_is_printed(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """With file, line and sentence."""
    project.module("jobs/one.py", '\n"""Said by whom."""\n')
    project.module("pods/one.py", "# Who waits.\n")
    assert project.check() == 1
    assert capsys.readouterr().out.splitlines() == [
        "slurm_bridge/jobs/one.py:2: person: 'whom' in: Said by whom.",
        "slurm_bridge/pods/one.py:1: person: 'Who' in: Who waits.",
    ]


def test_texts_are_read_in_one_piece_and_told_apart(project: Project) -> None:
    """Strings that follow each other are one message, lines of comments one comment, each with its first line."""
    project.module(
        "jobs/one.py",
        '"""A module."""\n# One\n# two.\nx = 1  # 3.\ny = ("four "\n     f"and {five} six")\nz = "it\'s \\"that\\""\n',
    )
    (module,) = source_tree.modules(project.folder)
    assert [(one.kind, one.line, one.text) for one in source_tree.passages(module)] == [
        ("docstring", 1, "A module."),
        ("comment", 2, "One two."),
        ("comment", 4, "3."),
        ("message", 5, "four and {} six"),
        ("message", 7, 'it\'s \\"that\\"'),
    ]
