"""What a run over other folders shows, seen from outside: one test for each case, and every defect by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance import loading

pytestmark = pytest.mark.thorough

PROJECT = Path(loading.OWN).parents[2]
GOOD = "{id: small, given: {percentage: 0, num_nodes: 10, op: num_feasible_nodes}, expect: {nodes: 10}}"


def run(*folders: Path, options: tuple[str, ...] = (), python_path: str = "") -> str:
    """What pytest says of these folders."""
    told = os.pathsep.join(map(str, folders))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *options, "tests/conformance"],
        cwd=PROJECT,
        env={**os.environ, loading.VARIABLE: told, "PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def cases(folder: Path, name: str, *records: str) -> Path:
    """A folder with a file of these cases."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("cases:\n" + "".join(f"- {record}\n" for record in records), encoding="utf-8")
    return folder


def test_other_folders_are_run_instead(tmp_path: Path) -> None:
    """Each case has its own name; where two folders share a file, each case says whose it is."""
    one = cases(tmp_path / "one", "kube/combine_and_select.yaml", GOOD)
    other = cases(tmp_path / "other", "kube/combine_and_select.yaml", GOOD, GOOD.replace("small", "large"))
    told = run(one, other)
    assert (
        f"PASSED tests/conformance/test_conformance.py::test_conformance[{one}/kube/combine_and_select.yaml::small]"
        in told
    )
    assert "test_conformance[kube/combine_and_select.yaml::large]" in told
    assert "3 passed" in told


COMBINE = "kube/combine_and_select.yaml"
UNKNOWN = {
    "input": (COMBINE, GOOD.replace("num_nodes: 10", "num_nodes: 10, colour: red"), "given.colour"),
    "result": (COMBINE, GOOD.replace("nodes: 10}}", "nodes: 10, colour: red}}"), "expect.colour"),
    "operation": (COMBINE, GOOD.replace("num_feasible_nodes", "guess"), "'guess' is not known here"),
    "value": (COMBINE, GOOD.replace("nodes: 10}}", "nodes: 11}}"), "expect.nodes: is 10, expected 11"),
    "file": ("kube/weather.yaml", GOOD, "kube/weather.yaml: no adapter reads it"),
    "family": ("volcano/combine.yaml", GOOD, "the family volcano is unknown"),
    "half a case": (COMBINE, "{id: small, given: {}}", "case small.expect: is missing"),
}


@pytest.mark.parametrize(("name", "record", "told"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_nobody_knows_fails_loudly(tmp_path: Path, name: str, record: str, told: str) -> None:
    """With the file, the case and the field in the message."""
    said = run(cases(tmp_path, name, record))
    assert told in said
    assert name in said
    assert "1 failed" in said


def test_a_family_without_hooks_is_skipped_by_name(tmp_path: Path) -> None:
    """It is known, and says that nothing has been tested."""
    (tmp_path / "planned.py").write_text(
        "from tests.conformance import adapters\nadapters.FAMILIES['volcano'] = ()\n", encoding="utf-8"
    )
    folder = cases(tmp_path / "cases", "volcano/allocate.yaml", GOOD)
    said = run(folder, options=("-p", "planned"), python_path=str(tmp_path))
    assert "no adapter for the family volcano yet" in said
    assert "1 skipped" in said
