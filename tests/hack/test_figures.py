"""hack/figures.py: what each figure about the tree counts."""

import pathlib

import figures
import pytest
import source_tree

JOBS = '''"""Jobs, and who asks for them."""

from pods import table
from slurm_bridge.pods import names
from slurm_bridge import errors


class Table:
    """By job."""

    seen: set[names.WorkloadKey]

    def __init__(self) -> None:
        self._jobs: dict[WorkloadKey, str] = {}
        self._pairs: OrderedDict[tuple[str, names.WorkloadKey], int] = OrderedDict()
        self._by_workload: dict[str, int] = {}
        self._by_node: dict[str, set[WorkloadKey]] = {}
        self._fixed: Mapping[WorkloadKey, str] = {}

    def forget(self, uid: WorkloadKey) -> None:
        # Nobody asks again.
        self._drop(uid)
        self._count(uid)
        self._count("")

    def _drop(self, uid: str) -> None:
        """Of a job."""
        del self._jobs[uid]

    def _count(self, uid: str) -> None:
        """Twice."""

        one = uid
        # A comment.

        return (
            one
        )
'''
PODS = '''"""Pods. A JobSet has many."""


class Table:
    KIND = "jobset"


class Pods:
    def get(self) -> None: ...
'''


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A tree with three packages and one module beside them."""
    for path, text in {
        "jobs/__init__.py": JOBS,
        "pods/names.py": PODS,
        "sim/one.py": "\n" * 5,
        "errors.py": "",
    }.items():
        file = tmp_path / "slurm_bridge" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.fixture
def modules(tree: pathlib.Path) -> tuple[source_tree.Module, ...]:
    """What the figures read of it."""
    return source_tree.modules(tree)


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("modules", "4, without sim and demo 3"),
        ("lines", "52, without sim 47, without sim and demo 47"),
        ("class names in more than one package", "1"),
        ("words for persons", "2: 1 in docstrings, 0 in messages, 1 in comments"),
        ("lines of a function's body", "median 3, 95 of 100 at most 5, longest 5; 4 functions"),
        ("private functions of at most 3 lines that are called once", "1"),
        ("containers keyed by a workload", "4: 4 in jobs"),
        ("functions named forget", "1"),
        ("parameters named uid that are a WorkloadKey", "1"),
        ("modules whose code names a JobSet", "1"),
        ("modules whose code names a LeaderWorkerSet", "0"),
    ],
)
def test_each_figure_counts_what_it_says(modules: tuple[source_tree.Module, ...], figure: str, value: str) -> None:
    """Docstrings and blank lines are no body, a value is no container, a stub is no function."""
    assert dict(figures.figures(modules))[figure] == value


def test_imports_are_counted_between_packages(modules: tuple[source_tree.Module, ...]) -> None:
    """What a package imports is counted once, and what is not of the tree is not."""
    rows = [row.split() for row in figures.packages(modules)]
    assert rows == [
        ["package", "modules", "lines", "imports", "imported", "by"],
        [".", "1", "0", "0", "1"],
        ["jobs", "1", "38", "2", "0"],
        ["pods", "1", "9", "0", "1"],
        ["sim", "1", "5", "0", "0"],
    ]


def test_every_figure_is_printed(tree: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each figure, and the table of packages for those who ask for it."""
    assert figures.main(["--tree", str(tree)]) == 0
    short = capsys.readouterr().out.splitlines()
    assert figures.main(["--tree", str(tree), "--packages"]) == 0
    assert capsys.readouterr().out.splitlines()[: len(short) + 1] == [*short, ""]


def test_a_folder_without_the_package_is_refused(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong folder gives no figures of nothing."""
    with pytest.raises(SystemExit):
        figures.main(["--tree", str(tmp_path)])
    assert "has no slurm_bridge" in capsys.readouterr().err
