"""Runs a suite on real servers; a case that fails runs once more, alone, after all others.

    hack/suite.py NAME [--with "pytest options"] --run "pytest arguments" [--run "…"]

A case that passes the second time is a flake: it is printed with the output of its first failure and listed in
build/flakes.json. The suite fails when a case fails twice, when there are more than three flakes, or when pytest could
not run. `hack/suite.py --verdict` judges the flakes of all suites together.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence

PROJECT = pathlib.Path(__file__).resolve().parents[1]
LIST = PROJECT / "build" / "flakes.json"

#: More of them mean that something is wrong with the code or with the machine.
MOST_FLAKES = 3

PASSED, FAILED = 0, 1


def main() -> int:
    """Run the suite, or judge the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="of the suite, as in build/flakes.json")
    parser.add_argument("--with", dest="options", default="", help="pytest options of each run and of each repetition")
    parser.add_argument("--run", dest="runs", action="append", default=[], help="pytest arguments of one run")
    parser.add_argument("--list", type=pathlib.Path, default=LIST, help="where flakes are listed")
    parser.add_argument("--verdict", action="store_true", help="run nothing; fail when too many flakes are listed")
    asked = parser.parse_args()
    if asked.verdict:
        return verdict(asked.list)
    if not asked.name or not asked.runs:
        parser.error("a suite needs a name and at least one --run")
    return suite(asked.name, shlex.split(asked.options), [shlex.split(run) for run in asked.runs], asked.list)


def suite(name: str, options: Sequence[str], runs: Sequence[Sequence[str]], list_: pathlib.Path) -> int:
    """Every run, then each failed case once more."""
    failed: dict[str, str] = {}
    for run in runs:
        status, cases = pytest([*options, *run])
        if status not in (PASSED, FAILED) or (status == FAILED and not cases):
            print(f"{name}: pytest ended with {status} and names no failed case; nothing is repeated", flush=True)
            return status
        failed |= cases
    if len(failed) > MOST_FLAKES:
        remember(name, {}, list_)
        print(f"{name}: {len(failed)} cases failed, more than the {MOST_FLAKES} that are repeated", flush=True)
        return FAILED
    flakes = {case: said for case, said in failed.items() if passes_now(name, case, options)}
    remember(name, flakes, list_)
    for case, said in flakes.items():
        print(f"== flake in {name}: {case} failed and then passed alone; its first failure:\n{said}", flush=True)
    return FAILED if len(flakes) < len(failed) else PASSED


def passes_now(name: str, case: str, options: Sequence[str]) -> bool:
    """Whether the case passes alone."""
    print(f"== {name}: {case} failed; once more, alone", flush=True)
    status, _ = pytest([*options, case])
    return status == PASSED


def pytest(arguments: Sequence[str]) -> tuple[int, dict[str, str]]:
    """The exit status, and the failed cases with what they said."""
    with tempfile.TemporaryDirectory() as folder:
        failed = pathlib.Path(folder) / "failed.json"
        paths = os.pathsep.join(filter(None, (str(PROJECT / "hack"), os.environ.get("PYTHONPATH", ""))))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "failed_cases",
            "--failed-cases",
            str(failed),
            *arguments,
        ]
        status = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": paths}).returncode
        return status, json.loads(failed.read_text()) if failed.is_file() else {}


def remember(name: str, flakes: dict[str, str], list_: pathlib.Path) -> None:
    """List the flakes of this suite in place of those that it had before."""
    listed = json.loads(list_.read_text()) if list_.is_file() else {}
    list_.parent.mkdir(exist_ok=True)
    list_.write_text(json.dumps({**listed, name: flakes}, indent=2) + "\n")


def verdict(list_: pathlib.Path) -> int:
    """Whether the flakes of all suites together are few enough."""
    listed: dict[str, dict[str, str]] = json.loads(list_.read_text()) if list_.is_file() else {}
    flakes = [f"{name}: {case}" for name, cases in listed.items() for case in cases]
    print(f"{len(flakes)} flakes, at most {MOST_FLAKES} are allowed", *flakes, sep="\n  ")
    return FAILED if len(flakes) > MOST_FLAKES else PASSED


if __name__ == "__main__":
    sys.exit(main())
