"""The runner of suites on real servers: what fails once is told from what fails."""

import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.thorough

RUNNER = pathlib.Path(__file__).resolve().parents[2] / "hack" / "suite.py"

#: Fails the first time that it runs in this folder.
ONCE = """
def test_{name}():
    marker = pathlib.Path(__file__).with_name("{name}")
    ran = marker.exists()
    marker.touch()
    assert ran, "the first time of {name}"
"""
ALWAYS = """
def test_{name}():
    assert False, "{name} fails always"
"""
NEVER = """
def test_{name}():
    pass
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pytest inside is none of this one's workers."""
    for variable in ("PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(variable, raising=False)


class Suite:
    """Files of cases in a folder, and what came of running them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.list = folder, folder / "build" / "flakes.json"
        (folder / "pytest.ini").write_text("[pytest]\n")

    def run(self, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
        """Run files one after the other, as runs of a suite."""
        for name, body in files.items():
            (self.folder / f"test_{name}.py").write_text(f"import pathlib\n{body}")
        runs = [part for name in files for part in ("--run", f"-p no:cacheprovider test_{name}.py")]
        command = [sys.executable, str(RUNNER), *arguments, "--list", str(self.list), *runs]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)

    @property
    def listed(self) -> dict[str, list[str]]:
        """The flakes by suite."""
        return {name: sorted(cases) for name, cases in json.loads(self.list.read_text()).items()}


@pytest.fixture
def suite(tmp_path: pathlib.Path) -> Suite:
    """Made in a folder of its own."""
    return Suite(tmp_path)


def test_a_case_that_passes_the_second_time_is_a_flake(suite: Suite) -> None:
    """The suite passes, prints the first failure, and lists the case; what follows the failure has run, too."""
    done = suite.run("e2e", first=ONCE.format(name="shy") + NEVER.format(name="calm"), second=NEVER.format(name="late"))
    assert done.returncode == 0, done.stdout
    assert "flake in e2e: test_first.py::test_shy" in done.stdout
    assert "the first time of shy" in done.stdout.partition("== flake")[2]
    assert done.stdout.index("1 passed") < done.stdout.index("once more, alone"), "the others come first"
    assert suite.listed == {"e2e": ["test_first.py::test_shy"]}


def test_a_case_that_fails_twice_fails_the_suite(suite: Suite) -> None:
    """It is no flake, and a flake beside it does not hide it."""
    done = suite.run("e2e", cases=ALWAYS.format(name="broken") + ONCE.format(name="shy"))
    assert done.returncode == 1
    assert suite.listed == {"e2e": ["test_cases.py::test_shy"]}


def test_more_than_three_flakes_fail_the_suite(suite: Suite) -> None:
    """Whatever they would do the second time: so many are no accident."""
    done = suite.run("e2e", cases="".join(ONCE.format(name=f"shy_{number}") for number in range(4)))
    assert done.returncode == 1
    assert "4 cases failed" in done.stdout


def test_three_flakes_do_not_fail_the_suite(suite: Suite) -> None:
    """As many as may be accidents."""
    assert suite.run("e2e", cases="".join(ONCE.format(name=f"shy_{number}") for number in range(3))).returncode == 0


def test_more_than_three_flakes_of_all_suites_fail_the_verdict(suite: Suite) -> None:
    """Each suite may have few, and all of them together too many."""
    for name in ("contract", "e2e"):
        files = {f"{name}_cases": "".join(ONCE.format(name=f"{name}_{number}") for number in range(2))}
        assert suite.run(name, **files).returncode == 0
    done = suite.run("--verdict")
    assert done.returncode == 1
    assert "e2e: test_e2e_cases.py::test_e2e_1" in done.stdout


def test_a_suite_without_flakes_takes_its_former_ones_off_the_list(suite: Suite) -> None:
    """The list is of the last run of each suite."""
    suite.run("e2e", cases=ONCE.format(name="shy"))
    assert suite.run("e2e", others=NEVER.format(name="calm")).returncode == 0
    assert suite.listed == {"e2e": []}
    assert suite.run("--verdict").returncode == 0


def test_a_run_that_pytest_could_not_collect_is_not_repeated(suite: Suite) -> None:
    """A case that does not exist cannot pass the second time."""
    done = suite.run("e2e", cases="import no_such_module\n")
    assert done.returncode == 2
    assert "nothing is repeated" in done.stdout
