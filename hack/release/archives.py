"""Archives and wheels whose bytes depend on the content alone."""

import gzip
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from typing import Final

PROJECT: Final = pathlib.Path(__file__).resolve().parents[2]

_SECONDS: Final = 300.0
_FILE, _PROGRAM = 0o644, 0o755


def tracked(folder: str = "") -> tuple[pathlib.Path, ...]:
    """The files that git knows, sorted, relative to the project."""
    command = ("git", "-C", str(PROJECT), "ls-files", "-z", "--", folder or ".")
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return tuple(pathlib.Path(name) for name in sorted(done.stdout.split("\0")) if name)


def copied(target: pathlib.Path, files: Iterable[pathlib.Path]) -> pathlib.Path:
    """A copy of these files, with the same modes on every machine."""
    for file in files:
        made = target / file
        made.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / file, made)
        made.chmod(_PROGRAM if os.access(PROJECT / file, os.X_OK) else _FILE)
    return target


def archive(contents: Mapping[str, bytes], epoch: int) -> bytes:
    """A tar.gz of these files by their names, of no user, and of one time."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(contents):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(contents[name]), epoch, _FILE
            tar.addfile(member, io.BytesIO(contents[name]))
    return packed.getvalue()


def distributions(out: pathlib.Path, scratch: pathlib.Path, epoch: int) -> None:
    """The wheel and the sdist, built of a copy by the pinned setuptools."""
    source = copied(scratch / "source", tracked())
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    for what in ("wheel", "sdist"):
        # The build leaves traces, and each begins with what git has.
        build = shutil.copytree(source, scratch / what)
        code = f"import os, sys; os.umask(0o022); from setuptools import build_meta as b; b.build_{what}(sys.argv[1])"
        command = (sys.executable, "-c", code, str(scratch))
        subprocess.run(command, cwd=build, env=environ, capture_output=True, timeout=_SECONDS, check=True)
    (wheel,), (sdist,) = scratch.glob("*.whl"), scratch.glob("*.tar.gz")
    shutil.copyfile(wheel, out / wheel.name)
    # setuptools writes the times and the user of the build into an sdist.
    with tarfile.open(sdist) as tar:
        members = [one for one in tar if one.isfile()]
        contents = {one.name: tar.extractfile(one).read() for one in members}  # type: ignore[union-attr]
    (out / sdist.name).write_bytes(archive(contents, epoch))


def chart(out: pathlib.Path, version: str, epoch: int) -> None:
    """The Helm chart as `helm package` would pack it."""
    folder = pathlib.Path("deploy/helm/slurm-bridge")
    files = (file for file in tracked(str(folder)) if file.name != ".helmignore")
    contents = {f"slurm-bridge/{file.relative_to(folder)}": (PROJECT / file).read_bytes() for file in files}
    (out / f"slurm-bridge-chart-{version}.tgz").write_bytes(archive(contents, epoch))
