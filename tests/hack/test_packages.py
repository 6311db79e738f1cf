"""What the machine has to have is told exactly."""

import concurrent.futures
import contextlib
import os
import pathlib
import subprocess
import sys

import pytest

from localcluster import packages
from localcluster.part import PartError
from tests import wait

ABSENT = packages.Tool(program="no-such-program", packages=("newer-name", "older-name"))


def test_advice_names_programs_and_packages() -> None:
    """A person learns what is missing, and what to type; no package is named twice."""
    text = packages.advice([packages.DOCKER, packages.DOCKERD, packages.OPENSSL])
    assert "not installed: docker, dockerd, openssl." in text
    assert "apt-get install docker.io openssl " in text


def test_what_is_there_is_not_asked_for() -> None:
    """A program on PATH, or something else that is as good, needs no installation."""
    packages.require(packages.Tool(program="sh", packages=("dash",)))
    packages.require(packages.Tool(program="no-such-program", packages=("x",), otherwise=lambda: True))


def test_people_without_rights_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to install, the advice is an error."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(PartError, match=r"no-such-program.*apt-get install older-name"):
        packages.require(ABSENT)


def test_machines_without_apt_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed where the package manager is another one."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PartError, match="not installed: no-such-program"):
        packages.require(ABSENT)


#: Something else may be installed on this machine meanwhile.
SECONDS = 100.0

#: Like the real one on its lists: it does not wait for another that works, and fails.
IMPATIENT = """#!/bin/sh
mkdir "$HERE/busy" || exit 100
for package; do :; done
printf '#!/bin/sh\n' > "$HERE/$package" && chmod +x "$HERE/$package"
read -r _ < "$HERE/slow"
rmdir "$HERE/busy"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_processes_that_need_packages_take_turns(tmp_path: pathlib.Path) -> None:
    """Each gets its own, although the package manager refuses to work for two at once."""
    (tmp_path / "apt-get").write_text(IMPATIENT)
    (tmp_path / "apt-cache").write_text("#!/bin/sh\n")
    for program in ("apt-get", "apt-cache"):
        (tmp_path / program).chmod(0o755)
    os.mkfifo(tmp_path / "slow")
    variables = {**os.environ, "HERE": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def require(name: str) -> str:
        code = f"from localcluster import packages as p; p.require(p.Tool(program={name!r}, packages=({name!r},)))"
        variables["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = subprocess.run(
            [sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return done.stderr if done.returncode else ""

    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = [pool.submit(require, name) for name in ("one-program", "another-program")]

        def are_over() -> bool:
            _let_go(tmp_path / "slow")
            return all(one.done() for one in asked)

        wait.until(are_over, "end of both", SECONDS)
        assert [one.result() for one in asked] == ["", ""]


def _let_go(slow: pathlib.Path) -> None:
    """One that works comes to its end, if any does."""
    with contextlib.suppress(OSError), os.fdopen(os.open(slow, os.O_WRONLY | os.O_NONBLOCK), "wb", 0) as file:
        file.write(b"\n")
