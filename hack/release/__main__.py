"""Makes the files of a release: hack/release [--out FOLDER] [--base IMAGE] [--dirty].

wheel, sdist, chart, alerts, board, bill of materials, notes, with --base the image, and SHA256SUMS of all of them. The
same commit makes the same bytes, except for the image.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from typing import Any, Final

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import archives
import sbom
from archives import PROJECT

#: Files of the repository that are a part of a release as they are.
AS_THEY_ARE: Final = ("deploy/monitoring/prometheus-rules.yaml", "deploy/monitoring/dashboard.json")
SUMS: Final = "SHA256SUMS"

_VERSION: Final = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_IMAGE_SECONDS: Final = 1800.0


class CannotRelease(Exception):
    """The tree is not ready for a release; the message says why."""


def main() -> int:
    """Make the files, or say why not."""
    parser = argparse.ArgumentParser(prog="hack/release", description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, help="default: build/release/VERSION")
    parser.add_argument("--base", help="build the image on this image of Python, and save it")
    parser.add_argument("--dirty", action="store_true", help="release what is not committed, for a trial")
    asked = parser.parse_args()
    try:
        out = made(asked.out, asked.base, dirty=asked.dirty)
    except CannotRelease as problem:
        print(f"hack/release: {problem}", file=sys.stderr)
        return 1
    for file in sorted(out.iterdir()):
        print(file.relative_to(PROJECT) if file.is_relative_to(PROJECT) else file)
    return 0


def made(out: pathlib.Path | None, base: str | None, *, dirty: bool) -> pathlib.Path:
    """The folder with all files."""
    changed = _git("status", "--porcelain")
    if changed and not dirty:
        raise CannotRelease(f"not committed: {changed.splitlines()[0].strip()}, …; commit it, or try with --dirty")
    version, epoch = current_version(), _epoch()
    text = notes((PROJECT / "CHANGELOG.md").read_text(), version)
    out = out or PROJECT / "build" / "release" / version
    empty(out)
    with tempfile.TemporaryDirectory() as scratch:
        archives.distributions(out, pathlib.Path(scratch), epoch)
    archives.chart(out, version, epoch)
    for name in AS_THEY_ARE:
        shutil.copyfile(PROJECT / name, out / pathlib.Path(name).name)
    system = _image(out, version, base) if base else None
    project, lock = ((PROJECT / name).read_text() for name in ("pyproject.toml", "requirements/run.lock"))
    (out / f"slurm-bridge-{version}.cdx.json").write_text(sbom.document(version, project, lock, system, epoch))
    (out / "NOTES.md").write_text(text)
    (out / SUMS).write_text(sums(out))
    return out


def empty(out: pathlib.Path) -> None:
    """Make the folder, or remove the files of an earlier release from it; CannotRelease for any other folder."""
    if PROJECT.is_relative_to(out.resolve()):
        raise CannotRelease(f"--out {out}: that is the project, or a folder that it is in")
    try:
        out.mkdir(parents=True, exist_ok=True)
        files = sorted(out.iterdir())
        if files and (out / SUMS not in files or not all(file.is_file() for file in files)):
            raise CannotRelease(f"--out {out}: it is not empty, and no earlier release: name another, or remove it")
        for file in files:
            file.unlink()
        # From now on it is known as a release, even if this one fails on the way.
        (out / SUMS).touch()
    except OSError as problem:
        raise CannotRelease(f"--out {out}: {problem.strerror}") from problem


def current_version() -> str:
    """That of the program."""
    found = _VERSION.search((PROJECT / "slurm_bridge" / "__init__.py").read_text())
    if found is None:
        raise CannotRelease("slurm_bridge/__init__.py has no __version__")
    return found[1]


def notes(changelog: str, version: str) -> str:
    """The section of this version."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    found = next((one for one in sections if one.split()[0] == version), "")
    title, _, text = found.partition("\n")
    if not text.strip():
        raise CannotRelease(f"CHANGELOG.md has no text below `## {version}`")
    return f"# slurm-bridge {title.strip()}\n\n{text.strip()}\n"


def sums(folder: pathlib.Path) -> str:
    """A line for each other file, as `sha256sum --check` reads it."""
    files = sorted(file for file in folder.iterdir() if file.name != SUMS)
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def _epoch() -> int:
    """SOURCE_DATE_EPOCH, else the time of the commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))


def _git(*words: str) -> str:
    done = subprocess.run(("git", "-C", str(PROJECT), *words), capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def _image(out: pathlib.Path, version: str, base: str) -> Mapping[str, Any]:
    """Build and save the image; the answer is what it has recorded of itself."""
    tag, file = f"slurm-bridge:{version}", out / f"slurm-bridge-image-{version}.tar"
    options = os.environ.get("PIP_OPTIONS", "")
    build = ("build", "--file=deploy/Dockerfile", f"--build-arg=BASE={base}", f"--build-arg=PIP_OPTIONS={options}")
    for words in ((*build, f"--tag={tag}", "."), ("save", f"--output={file}", tag)):
        subprocess.run(("docker", *words), cwd=PROJECT, timeout=_IMAGE_SECONDS, check=True)
    return recorded(file)


def recorded(image: pathlib.Path) -> Mapping[str, Any]:
    """The record of rootfs.py in a saved image."""
    with tarfile.open(image) as outer:
        manifest: Any = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
        for layer in reversed(manifest[0]["Layers"]):
            with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                name = next((one for one in inner.getnames() if one.endswith("share/slurm-bridge/packages.json")), None)
                if name is not None:
                    found: Mapping[str, Any] = json.load(inner.extractfile(name))  # type: ignore[arg-type]
                    return found
    raise CannotRelease(f"{image.name} has no record of its packages")


if __name__ == "__main__":
    sys.exit(main())
