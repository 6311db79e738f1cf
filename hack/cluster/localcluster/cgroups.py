"""Control groups of real nodes: what runs in one is the node's, and is ended and removed with it.

A process cannot leave its group by itself, so that groups know the pods and shims of a node even when every record of
them is lost. Both versions of control groups are served: one tree, or one per controller.
"""

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator

from localcluster import wait

_MOUNT = pathlib.Path("/sys/fs/cgroup")
_SECONDS = 20.0
#: A new group of the first version has none, and takes no process.
_INHERITED = ("cpuset.cpus", "cpuset.mems")


def make(group: str) -> None:
    """In every tree, with every controller of its parent."""
    for root in _roots():
        folder = root
        for name in pathlib.PurePath(group).parts:
            _delegate(folder)
            folder = folder / name
            folder.mkdir(exist_ok=True)
            _inherit(folder)


def procs(group: str) -> list[pathlib.Path]:
    """The files to which a process writes its pid to belong to the group."""
    return [root / group / "cgroup.procs" for root in _roots()]


def present(group: str) -> bool:
    """Whether the group is there in any tree."""
    return any((root / group).exists() for root in _roots())


def found(prefix: str) -> list[str]:
    """Groups at the top whose names begin so, in all trees."""
    return [str(folder) for root in _roots() for folder in root.glob(f"{prefix}*")]


def end(group: str) -> None:
    """Kill what runs in the group or below it, also what starts meanwhile; then remove the group."""
    wait.until(lambda: _killed(group), _SECONDS, every=0.05)
    wait.until(lambda: _removed(group), _SECONDS, every=0.05)


def _killed(group: str) -> str:
    pids = set(_pids(group))
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return f"processes {', '.join(map(str, sorted(pids)))} of {group} go on" if pids else ""


def _pids(group: str) -> Iterator[int]:
    for root in _roots():
        for folder, _, _ in os.walk(root / group):
            with contextlib.suppress(OSError):  # it was removed while we looked
                yield from map(int, (pathlib.Path(folder) / "cgroup.procs").read_text().split())


def _removed(group: str) -> str:
    """The deepest first; a group whose last process is just ending is busy for a moment."""
    left = []
    for root in _roots():
        for folder, _, _ in os.walk(root / group, topdown=False):
            try:
                pathlib.Path(folder).rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:
                left.append(f"{folder}: {error.strerror}")
    return "\n".join(left)


def _roots() -> list[pathlib.Path]:
    """One tree per controller that can be written; with the second version, the one tree there is."""
    if _is_unified():
        return [_MOUNT]
    folders = {folder.resolve() for folder in _MOUNT.iterdir() if (folder / "cgroup.procs").exists()}
    return sorted(folders)


def _is_unified() -> bool:
    return (_MOUNT / "cgroup.controllers").exists()


def _delegate(folder: pathlib.Path) -> None:
    if _is_unified():
        controllers = (folder / "cgroup.controllers").read_text().split()
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _inherit(folder: pathlib.Path) -> None:
    for name in _INHERITED:
        file = folder / name
        if not _is_unified() and file.exists() and not file.read_text().strip():
            file.write_text((folder.parent / name).read_text())
