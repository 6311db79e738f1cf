"""Detached servers that are recognised again by more than their pid.

A pid alone says little: it may belong to another program after a crash or a reboot. A record therefore also carries
the boot and the moment the process started, and every signal goes through a pidfd that was opened before that was
compared, so that a recycled pid is never taken for ours and never hurt.
"""

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

from localcluster.part import PartError

#: How long a server may take to end after SIGTERM, and then after SIGKILL.
TERM_SECONDS = 10.0
KILL_SECONDS = 10.0
_POLL_SECONDS = 0.05
_START_TIME = 19  # field 22 of /proc/PID/stat, counted after the parenthesised name
_BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
_HERE = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a pid file holds."""

    pid: int
    identity: str
    fingerprint: str

    @classmethod
    def of_self(cls, fingerprint: str) -> Self:
        return cls(pid=os.getpid(), identity=identity(os.getpid()) or "", fingerprint=fingerprint)

    def write(self, file: pathlib.Path) -> None:
        """Atomically: a reader never sees half a record."""
        fresh = file.with_suffix(f".{self.pid}.new")
        fresh.write_text(json.dumps(dataclasses.asdict(self)) + "\n")
        fresh.replace(file)


def identity(pid: int) -> str | None:
    """What tells this process from every other one that ever had the pid; None when it is gone or a zombie."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in "ZX":
        return None
    return f"{_boot()}/{fields[_START_TIME]}"


def running(file: pathlib.Path) -> Record | None:
    """The process that the pid file tells of, if it is still that process."""
    record = _read(file)
    return record if record and identity(record.pid) == record.identity else None


def is_of_another_boot(file: pathlib.Path) -> bool:
    """Whether the machine went down since the recorded process was started."""
    record = _read(file)
    return record is not None and not record.identity.startswith(_boot())


def _read(file: pathlib.Path) -> Record | None:
    try:
        return Record(**json.loads(file.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None  # never started, or a file that was cut off: no process of ours can be told from it


def _boot() -> str:
    return _BOOT_ID.read_text().strip()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a server's traces go, all inside the cluster's folder."""

    pid: pathlib.Path
    log: pathlib.Path
    home: pathlib.Path

    def make(self) -> None:
        for folder in (self.pid.parent, self.log.parent, self.home):
            folder.mkdir(parents=True, exist_ok=True)


def spawn(argv: Sequence[str], places: Places, fingerprint: str) -> None:
    """Start a server in its own session; it writes its own pid file before it becomes the server.

    No moment exists in which it runs unrecorded, not even when the caller is killed right after the fork.
    """
    places.make()
    command = [sys.executable, "-P", "-S", "-m", "localcluster.launch", str(places.pid), fingerprint, *argv]
    # Not subprocess: it warns when a child outlives the object, and these are meant to.
    os.posix_spawn(
        command[0],
        command,
        {**server_environment(os.environ), "HOME": str(places.home), "PYTHONPATH": str(_HERE)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(places.log), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a server may see: no proxies (loopback only), no credentials, nothing a developer happens to export.

    The servers are written in Go; with more garbage they need a fifth less CPU.
    """
    seen = {name: environment[name] for name in ("PATH", "HOME", "TMPDIR") if name in environment}
    return {**seen, "GOGC": "400"}


@contextlib.contextmanager
def _handle(record: Record) -> Iterator[int | None]:
    """A pidfd of exactly this process, or None when it is gone."""
    try:
        descriptor = os.pidfd_open(record.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor if identity(record.pid) == record.identity else None
    finally:
        os.close(descriptor)


def send(file: pathlib.Path, number: signal.Signals) -> bool:
    """Signal the recorded process; False when it does not run."""
    record = running(file)
    if record is None:
        return False
    with _handle(record) as descriptor:
        if descriptor is None:
            return False
        signal.pidfd_send_signal(descriptor, number)
        if number == signal.SIGKILL and not _ended(descriptor, KILL_SECONDS):
            raise PartError(f"pid {record.pid} survived SIGKILL for {KILL_SECONDS:.0f} s")
    return True


def stop(file: pathlib.Path) -> None:
    """End the recorded process, politely first, and forget it."""
    record = running(file)
    if record is not None:
        with _handle(record) as descriptor:
            if descriptor is not None:
                _end(record, descriptor)
    file.unlink(missing_ok=True)


def _end(record: Record, descriptor: int) -> None:
    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    signal.pidfd_send_signal(descriptor, signal.SIGCONT)  # a frozen process would never see the SIGTERM
    if _ended(descriptor, TERM_SECONDS):
        return
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    if not _ended(descriptor, KILL_SECONDS):
        raise PartError(f"pid {record.pid} survived SIGKILL for {KILL_SECONDS:.0f} s")


def _ended(descriptor: int, seconds: float) -> bool:
    """Whether the process ends within this time: a pidfd becomes readable then."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def await_answer(places: Places, probe: Callable[[], str], seconds: float) -> None:
    """Wait until the probe is content; fail at once when the process ends, and in the end with the last complaint."""
    log = places.log
    record = _await_record(places.pid, log)
    deadline = time.monotonic() + seconds
    with _handle(record) as descriptor:
        while complaint := probe():
            if descriptor is None or _ended(descriptor, _POLL_SECONDS):
                raise PartError(f"it ended by itself.\n{quote(log)}")
            if time.monotonic() > deadline:
                raise PartError(f"no answer in {seconds:.0f} s: {complaint}\n{quote(log)}")


def _await_record(file: pathlib.Path, log: pathlib.Path) -> Record:
    """The launcher's record: it takes one start of the interpreter to appear."""
    deadline = time.monotonic() + KILL_SECONDS
    while not file.exists():
        if time.monotonic() > deadline:
            raise PartError(f"it never started.\n{quote(log)}")
        time.sleep(_POLL_SECONDS)
    record = running(file)
    if record is None:
        raise PartError(f"it ended by itself.\n{quote(log)}")
    return record


def quote(log: pathlib.Path, lines: int = 15) -> str:
    """The end of a log file, for an error message."""
    if not log.exists():
        return f"({log} does not exist)"
    with log.open(errors="replace") as text:
        tail = collections.deque(text, maxlen=lines)
    return f"The end of {log}:\n" + "".join(f"  | {line.rstrip()[:400]}\n" for line in tail)
