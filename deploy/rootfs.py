"""Copies what the daemon needs at run time, and nothing else, into an empty file system: the last stage of the image.

    python3 rootfs.py ROOT ENVIRONMENT

The interpreter with its standard library, the virtual environment, the shared libraries that both load, certificate
authorities, and an account. No shell, no package manager, no other program. Which packages of Debian the files are from
is written into `usr/share/slurm-bridge/packages.json`.
"""

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from typing import Final

#: Parts of the standard library that no service uses.
_LEFT_OUT: Final = (
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "dist-packages",
    "config-*",
    "__pycache__",
)
#: Of the environment; scripts that only a shell can use, and an installer, stay behind.
_PROGRAMS: Final = ("python", "slurm-bridge")
#: Of the C library: which names and libraries exist, and whom TLS trusts. What is missing is left out.
_CONFIGURATION: Final = (
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/lib/ssl/openssl.cnf",
)
#: Loaded by name when a thread ends.
_BY_NAME: Final = ("libgcc_s.so.1",)
_FOLDERS: Final = ("dev", "etc", "proc", "run", "sys", "tmp", "var/run", "usr/share/slurm-bridge")
_ACCOUNT: Final = "slurm-bridge:x:65532:65532::/:/nonexistent\n"
_GROUP: Final = "slurm-bridge:x:65532:\n"
_SECONDS: Final = 300.0


class RootFs:
    """The file system while it is filled."""

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self.files: set[str] = set()

    def folders(self) -> None:
        """Those that a container mounts into, and the account."""
        for name in _FOLDERS:
            (self._root / name).mkdir(parents=True, exist_ok=True)
        (self._root / "tmp").chmod(0o1777)
        (self._root / "etc" / "passwd").write_text(_ACCOUNT)
        (self._root / "etc" / "group").write_text(_GROUP)

    def take(self, path: pathlib.Path) -> None:
        """A file under its own name, with each symbolic link on the way to it."""
        target = self._inside(path)
        if target.is_symlink() or target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        self.files.add(str(path))
        if path.is_symlink():
            target.symlink_to(path.readlink())
            self.take(_behind(path))
        else:
            shutil.copy2(path, target)

    def take_all(self, folder: pathlib.Path, left_out: Iterable[str] = ()) -> None:
        """A folder with everything below it."""
        ignored = shutil.ignore_patterns(*left_out)
        shutil.copytree(folder, self._inside(folder), symlinks=True, ignore=ignored, dirs_exist_ok=True)
        self.files.add(str(folder))

    def libraries(self, *folders: pathlib.Path) -> None:
        """What programs and modules in these folders load, under the names by which they load it."""
        files = (file for folder in folders for file in (folder.rglob("*") if folder.is_dir() else (folder,)))
        for name in sorted({name for file in files if _is_elf(file) for name in _loaded(file)}):
            self.take_content(pathlib.Path(name))
        for name in _BY_NAME:
            for found in {pathlib.Path(one).parent / name for one in self.files if "/libc.so" in one}:
                if found.exists():
                    self.take_content(found)

    def take_content(self, path: pathlib.Path) -> None:
        """Without links: where `/lib` is one to `/usr/lib`, it would need the whole."""
        target = self._inside(path)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path.resolve(), target)
        self.files |= {str(path), str(path.resolve())}

    def _inside(self, path: pathlib.Path) -> pathlib.Path:
        return self._root / path.relative_to("/")


def _behind(link: pathlib.Path) -> pathlib.Path:
    """Where a link points, which may be another one."""
    return pathlib.Path(os.path.normpath(link.parent / link.readlink()))


def _is_elf(file: pathlib.Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def _loaded(file: pathlib.Path) -> Iterator[str]:
    """The loader, and every library that it would load for this file."""
    done = subprocess.run(("ldd", str(file)), capture_output=True, text=True, timeout=_SECONDS, check=False)
    for line in done.stdout.splitlines():
        words = line.split()
        path = words[2] if len(words) > 2 and words[1] == "=>" else words[0] if words else ""  # noqa: PLR2004
        if path.startswith("/"):
            yield path


def _owners(files: Iterable[str]) -> dict[str, str]:
    """Package of Debian -> version, of those that own some of these files; empty where dpkg is missing."""
    if shutil.which("dpkg-query") is None:
        return {}
    command = ("dpkg-query", "--search", *sorted(files))
    found = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False).stdout
    # `diversion by …` has no package, and a line may name several.
    owned = (line.rpartition(": ")[0] for line in found.splitlines() if not line.startswith("diversion"))
    names = sorted({name for line in owned for name in line.split(", ") if name})
    if not names:
        return {}
    command = ("dpkg-query", "--show", "--showformat=${Package}\t${Version}\n", *names)
    said = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout
    return dict(line.split("\t") for line in said.splitlines())


def fill(root: pathlib.Path, environment: pathlib.Path) -> None:
    """Everything, for this interpreter and the virtual environment."""
    made, paths = RootFs(root), sysconfig.get_paths()
    made.folders()
    made.take_all(environment, ("__pycache__",))
    for file in (root / environment.relative_to("/") / "bin").iterdir():
        if not file.name.startswith(_PROGRAMS):
            file.unlink()
    # The real file, and each link from the environment to it.
    interpreter = environment / "bin" / "python3"
    while interpreter.is_symlink():
        interpreter = _behind(interpreter)
        made.take(interpreter)
    for folder in {pathlib.Path(paths[name]) for name in ("stdlib", "platstdlib")}:
        made.take_all(folder, _LEFT_OUT)
    made.libraries(environment, interpreter, root / pathlib.Path(paths["platstdlib"]).relative_to("/"))
    for name in _CONFIGURATION:
        path = pathlib.Path(name)
        if path.exists():
            made.take_content(path)
    record = {"python": platform.python_version(), "debian": _owners(made.files)}
    (root / "usr/share/slurm-bridge/packages.json").write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    fill(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
