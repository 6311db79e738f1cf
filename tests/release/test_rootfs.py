"""The last stage of the image: what deploy/rootfs.py copies is enough to run the daemon, and has no other program."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from hack.release import archives
from tests.release import support_release
from tests.release.support_release import PROJECT, SECONDS

#: Programs with which an intruder would go on.
TOOLS = ("sh", "bash", "dash", "busybox", "pip", "pip3", "apt", "apt-get", "dpkg", "curl", "wget", "perl", "ld", "cc")

CONFIGURATION = """\
cluster_id: here
slurm: {url: "http://127.0.0.1:9", token_file: /token}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The file system of the image, made on this machine's Python."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the root of a process")
    folder, out = tmp_path_factory.mktemp("rootfs"), tmp_path_factory.mktemp("wheel")
    archives.distributions(out, tmp_path_factory.mktemp("build"), epoch=1_700_000_000)
    (wheel,) = out.glob("*.whl")
    environment = support_release.environment(folder, wheel)
    made = folder / "root"
    base = getattr(sys, "_base_executable", sys.executable)
    support_release.said(base, PROJECT / "deploy" / "rootfs.py", made, environment, cwd=folder)
    (made / "config.yaml").write_text(CONFIGURATION)
    (made / "token").write_text("x")
    (made / "dev" / "null").touch()
    # As the image's PATH has it.
    (made / "environment").write_text(str(environment))
    return made


def inside(root: pathlib.Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """A program in the image, as its user; the file system is its only world."""
    program = f"{(root / 'environment').read_text()}/bin/{words[0]}"

    def confined() -> None:
        os.chroot(root)
        os.chdir("/")
        os.setgroups([])
        os.setgid(65532)
        os.setuid(65532)

    return subprocess.run(
        [program, *words[1:]],
        preexec_fn=confined,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.timeout(300)
def test_the_program_runs_as_a_user_without_rights(root: pathlib.Path) -> None:
    """It says its version, and it reads a configuration: every module that it needs is there."""
    done = inside(root, "slurm-bridge", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    checked = inside(root, "slurm-bridge", "check-config", "--config", "/config.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.timeout(300)
def test_the_demo_runs_in_it(root: pathlib.Path) -> None:
    """The daemon, both clients, and all hooks of the shipped configuration, with pods that come to an end."""
    done = inside(root, "slurm-bridge", "demo", "--once", "--pods", "8")
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert "jobs left in Slurm: 0" in done.stdout


@pytest.mark.timeout(300)
def test_every_extension_module_finds_its_libraries(root: pathlib.Path) -> None:
    """Also those that the demo does not load."""
    names = "ssl, hashlib, sqlite3, ctypes, lzma, bz2, zlib, decimal, uuid, numpy.linalg, numpy.random, msgspec, yaml"
    done = inside(root, "python3", "-c", f"import {names}; ssl.create_default_context()")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.timeout(300)
def test_there_is_no_shell_and_no_installer(root: pathlib.Path) -> None:
    """Whatever the base has."""
    found = {file.name for file in root.rglob("*") if os.access(file, os.X_OK) and not file.is_dir()}
    assert not found.intersection(TOOLS)
    assert inside(root, "python3", "-m", "pip").returncode != 0
    assert inside(root, "python3", "-c", "import os; assert os.system('true')").returncode == 0


@pytest.mark.timeout(300)
def test_no_file_gives_rights_to_its_caller(root: pathlib.Path) -> None:
    """No program changes its user, and the daemon's user can write nothing but /tmp."""
    for file in root.rglob("*"):
        if not file.is_symlink():
            mode = file.stat().st_mode
            assert not mode & 0o6000, file
            assert not mode & 0o002 or file == root / "tmp", file


@pytest.mark.timeout(300)
def test_it_has_a_record_of_its_packages(root: pathlib.Path) -> None:
    """Of the interpreter, and where Debian's packages own files, of these."""
    record = json.loads((root / "usr/share/slurm-bridge/packages.json").read_text())
    assert record["python"] == ".".join(map(str, sys.version_info[:3]))
    assert not record["debian"] or any(name.startswith("libc6") for name in record["debian"])
