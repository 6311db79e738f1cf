"""The private container engine: where it lives, how it is started, and how every trace of it is ended.

Two engines on the same images would destroy them, so there is one per cache folder: the first cluster that needs one
has it in its own folder, every other one on the same cache borrows it, and may repair it. A file in the cache says
whose it is.

It has no bridge and no packet filter: all containers use the host network. Its processes are found by the path of its
folder in their command lines, never by a pid file alone: after a reboot or a kill -9 a pid file says nothing.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator

from localcluster import process, waiting
from localcluster.config import Config

START_SECONDS = 60.0
STOP_SECONDS = 30.0


def home(config: Config) -> pathlib.Path:
    """The folder of the engine of this cache; where none runs, the folder that it would get."""
    record = _record(config)
    return pathlib.Path(record.read_text().strip()) if record.exists() else _own_home(config)


def is_own(config: Config) -> bool:
    """Whether it is this cluster that starts and ends the engine, and not a neighbour on the same cache."""
    return home(config) == _own_home(config)


def socket_file(config: Config) -> pathlib.Path:
    """There while it runs, and after it was killed."""
    return home(config) / "docker.sock"


def address(config: Config) -> str:
    """The engine's address, as DOCKER_HOST wants it."""
    return f"unix://{socket_file(config)}"


def images(config: Config) -> pathlib.Path:
    """What it keeps over a `down`."""
    return config.cache / "engine"


def places(config: Config) -> process.Places:
    """Among those of the other servers of the cluster whose engine it is."""
    cluster = home(config).parent
    return process.Places(pid=cluster / "pids" / "engine", log=cluster / "logs" / "engine.log", home=home(config))


def start(config: Config, complaint: Callable[[], str]) -> None:
    """From any state: after a kill -9 or a reboot there may be half-dead daemons, pid files of strangers, sockets."""
    _claim(config)
    _clear_runtime(config)
    process.spawn(_command(config), places(config), "")
    process.await_answer(places(config), complaint, START_SECONDS)


def end(config: Config) -> None:
    """After that nothing of it is left but its images."""
    process.stop(places(config).pid)
    _end_remains(home(config))
    _unmount(config)
    shutil.rmtree(home(config))
    places(config).log.unlink(missing_ok=True)
    _record(config).unlink(missing_ok=True)


def _own_home(config: Config) -> pathlib.Path:
    return config.directory / "engine"


def _record(config: Config) -> pathlib.Path:
    return config.cache / "engine.home"


def _claim(config: Config) -> None:
    """Note whose engine it is; one whose folder was removed without a `down` belongs to the next cluster."""
    if not home(config).exists():
        _end_remains(home(config))
        config.cache.mkdir(parents=True, exist_ok=True)
        _record(config).write_text(f"{_own_home(config)}\n")
    home(config).mkdir(parents=True, exist_ok=True)


def _command(config: Config) -> tuple[str, ...]:
    folder = home(config)
    # The configuration file of this machine's own engine must not mix in: options given twice are refused.
    (folder / "daemon.json").write_text("{}\n")
    # dockerd lets a containerd that is slow to answer write its stacks into the temporary folder: into one that goes.
    (folder / "tmp").mkdir(exist_ok=True)
    return (
        shutil.which("env") or "/usr/bin/env",
        f"TMPDIR={folder / 'tmp'}",
        shutil.which("dockerd") or "dockerd",
        f"--config-file={folder / 'daemon.json'}",
        f"--data-root={images(config)}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'docker.pid'}",
        f"--host={address(config)}",
        "--live-restore",
        "--bridge=none",
        "--iptables=false",
        "--ip-forward=false",
        "--ip-masq=false",
        "--userland-proxy=false",
    )


def _clear_runtime(config: Config) -> None:
    """A containerd that lives on is kept: it holds the containers, and the next dockerd takes it over."""
    folder = home(config)
    process.stop(places(config).pid)
    if not any(command.startswith("containerd ") for _, command in _processes_of(folder)):
        (folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)
    (folder / "docker.pid").unlink(missing_ok=True)
    socket_file(config).unlink(missing_ok=True)


def _processes_of(folder: pathlib.Path) -> tuple[tuple[int, str], ...]:
    """(pid, command line) of dockerd, containerd and shims that work in this folder."""
    marks = (f"{folder}/exec", f"--config-file={folder}/")
    return tuple((pid, line) for pid, line in _processes() if any(mark in line for mark in marks))


def _processes() -> Iterator[tuple[int, str]]:
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended while we looked
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            yield int(entry.name), " ".join([pathlib.Path(words[0]).name, *words[1:]])


def _end_remains(folder: pathlib.Path) -> None:
    """End containerd and the shims of containers, where a killed dockerd left them behind."""
    for pid, _ in _processes_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    waiting.until(lambda: " ".join(line for _, line in _processes_of(folder)), STOP_SECONDS)


def _unmount(config: Config) -> None:
    """Mounts of containers that were killed together with their engine; the deepest first."""
    roots = (f"{home(config)}/", f"{images(config)}/")
    points = [line.split()[1].replace("\\040", " ") for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for point in sorted((point for point in points if f"{point}/".startswith(roots)), reverse=True):
        subprocess.run(("umount", "--lazy", point), check=True)
