"""An environment with the wheel of a release and the packages of the lock, and nothing else."""

import importlib.metadata
import pathlib
import shutil
import subprocess
import sys

from hack.release import sbom

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LOCK = PROJECT / "requirements" / "run.lock"
SECONDS = 300.0


def said(*command: "str | pathlib.Path", cwd: pathlib.Path) -> str:
    """What a program prints; it has to succeed, without any variable of this process."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def environment(folder: pathlib.Path, wheel: pathlib.Path) -> pathlib.Path:
    """A virtual environment; packages are copied from the one of the tests, which the same lock has made."""
    made = folder / "environment"
    base = getattr(sys, "_base_executable", sys.executable)
    said(base, "-m", "venv", "--without-pip", made, cwd=folder)
    (target,) = made.glob("lib/python*/site-packages")
    for name in sbom.pins(LOCK.read_text()):
        for file in importlib.metadata.files(name) or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                copied = target / file
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), copied)
    installer = (sys.executable, "-m", "pip", f"--python={made / 'bin' / 'python3'}")
    said(*installer, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=folder)
    return made
