"""What one local cluster occupies on this machine, told apart from everything that others do meanwhile.

The cluster under test has a folder with a name that exists once, and its commands run under a group that nobody else
uses: whatever carries the name or the group is the cluster's, wherever it is.
"""

import contextlib
import dataclasses
import os
import pathlib
import socket
import subprocess
from collections.abc import Iterator, Sequence

from localcluster.config import PORTS, PROJECT

#: Of no group database: files of this group were made by the commands under test.
GROUP = 59_944 if os.geteuid() == 0 else None

#: Where servers and engines write when nobody tells them otherwise, where commands keep things of their users, and
#: where we live ourselves.
ROOTS = (
    *map(pathlib.Path, ("/tmp", "/run", "/var/run", "/var/tmp", "/var/lib", "/var/log", "/etc")),  # noqa: S108
    *(pathlib.Path.home() / name for name in (".kube", ".docker", ".config", ".local")),
    PROJECT,
)

#: 127.0.0.1, ::1, and the first as an address of the second kind, as the kernel writes them.
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Everything that is the cluster's; nothing at all before `up` and after `down`."""

    processes: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()
    kept_by_engines: frozenset[str] = frozenset()
    mounts: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    kernel: frozenset[str] = frozenset()


def traces(mark: str, port_base: int, prefix: str, *, except_below: Sequence[pathlib.Path]) -> Traces:
    """Look at the whole machine; the cache and what is looked at elsewhere may keep files."""
    return Traces(
        processes=frozenset(_processes(mark)),
        ports=frozenset(port for port in range(port_base, port_base + max(PORTS.values()) + 1) if _is_open(port)),
        kept_by_engines=frozenset(name for engine in _engines() for name in _kept(engine, prefix)),
        mounts=frozenset(line for line in _text("/proc/self/mountinfo").splitlines() if mark in line),
        files=frozenset(_files(except_below)),
        kernel=frozenset(_kernel(prefix)),
    )


def _kernel(prefix: str) -> Iterator[str]:
    """Control groups at the top, and links whose names end like the prefix."""
    groups = pathlib.Path("/sys/fs/cgroup")
    yield from map(str, (*groups.glob(f"{prefix}*"), *groups.glob(f"*/{prefix}*")))
    yield from map(str, pathlib.Path("/sys/class/net").glob(f"*-{prefix.rpartition('-')[2]}"))


def _processes(mark: str) -> Iterator[str]:
    """Those that name the folder: in arguments, variables, working directory, or what is mounted into them."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and mark in _description(entry):
            yield f"{entry.name} {_text(entry / 'cmdline')}"


def _description(entry: pathlib.Path) -> str:
    texts = [_text(entry / name) for name in ("cmdline", "environ", "mountinfo")]
    with contextlib.suppress(OSError):
        texts.append(str((entry / "cwd").readlink()))
    if mountinfo := _text("/proc/self/mountinfo"):
        texts[2] = texts[2].replace(mountinfo, "")  # our own view of the machine is no sign of anything
    return "\0".join(texts)


def _text(file: str | pathlib.Path) -> str:
    """Empty when the process has ended, or belongs to somebody else."""
    try:
        return pathlib.Path(file).read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _engines() -> set[str]:
    """Addresses of the machine's engine, the chosen one, and every private one that runs."""
    words = " ".join(_text(entry / "cmdline") for entry in pathlib.Path("/proc").glob("[0-9]*")).split()
    private = {word.removeprefix("--host=") for word in words if word.startswith("--host=unix://")}
    return {"", os.environ.get("DOCKER_HOST", ""), *private}


def _kept(engine: str, prefix: str) -> Iterator[str]:
    address = ("--host", engine) if engine else ()
    for listing in (("ps", "--all", "--format", "{{.Names}}"), ("volume", "ls", "--format", "{{.Name}}")):
        command = ("docker", *address, *listing)
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        yield from (f"{engine}: {name}" for name in done.stdout.split() if name.startswith(prefix))


def _files(except_below: Sequence[pathlib.Path]) -> Iterator[str]:
    """Files of our group, links not followed. Compiled modules of the sources are no part of a cluster."""
    if GROUP is None:
        return
    pending = list(ROOTS)
    while pending:
        folder = pending.pop()
        if folder in except_below or folder.name == "__pycache__":
            continue
        for entry in _entries(folder):
            with contextlib.suppress(OSError):  # it went away while we looked
                if entry.stat(follow_symlinks=False).st_gid == GROUP:
                    yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    pending.append(pathlib.Path(entry.path))


def _entries(folder: pathlib.Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def listens_beyond_loopback(port_base: int) -> list[str]:
    """Addresses in the cluster's range of ports on which others than this machine could reach a server."""
    return [
        address for address in _listening() if _port(address) - port_base in range(32) and not _is_loopback(address)
    ]


def _listening() -> Iterator[str]:
    """Local addresses as the kernel writes them: hexadecimal, with the port after the colon."""
    listen = "0A"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _text(table).splitlines()[1:]:
            fields = line.split()
            if fields[3] == listen:
                yield fields[1]


def _port(address: str) -> int:
    return int(address.partition(":")[2], 16)


def _is_loopback(address: str) -> bool:
    return address.partition(":")[0] in LOOPBACK
