"""Detached processes: recognised, watched, stopped, and never mistaken for another."""

import json
import os
import pathlib
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from localcluster import process
from localcluster.part import PartError

#: Processes of these tests end by themselves after so many seconds.
LIFE = 60
IGNORES_TERM = (
    f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep({LIFE})"
)


@pytest.fixture(name="places")
def _places(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[process.Places]:
    children: list[int] = []
    posix_spawn = os.posix_spawn

    def spawn(*given: Any, **more: Any) -> int:
        children.append(posix_spawn(*given, **more))
        return children[-1]

    monkeypatch.setattr(os, "posix_spawn", spawn)
    places = process.Places(pid=tmp_path / "pids" / "x.json", log=tmp_path / "x.log", home=tmp_path / "home")
    yield places
    process.send(places.pid, signal.SIGKILL)
    for child in children:
        os.waitpid(child, os.WNOHANG)


def start(places: process.Places, code: str = f"import time; time.sleep({LIFE})") -> process.Record:
    """A process that runs and is recorded."""
    process.spawn([sys.executable, "-c", code], places, "print")
    process.await_answer(places, lambda: "", 10)
    record = process.running(places.pid)
    assert record is not None
    return record


def test_started_process_is_recognised(places: process.Places) -> None:
    """The pid file tells of the command itself, in a session of its own."""
    record = start(places)
    assert record.fingerprint == "print"
    assert os.getsid(record.pid) == record.pid != os.getsid(0)


def test_recycled_pid_is_not_ours(places: process.Places) -> None:
    """A pid that now belongs to another program is neither reported nor signalled."""
    places.make()
    stale = process.Record(pid=os.getpid(), identity="another boot/1", fingerprint="")
    stale.write(places.pid)
    assert process.running(places.pid) is None
    assert not process.send(places.pid, signal.SIGKILL)
    assert process.is_of_another_boot(places.pid)
    process.stop(places.pid)
    assert not places.pid.exists()


def test_torn_pid_file_is_no_process(places: process.Places) -> None:
    """Half a record, as a power cut leaves it, is no obstacle."""
    places.make()
    places.pid.write_text(json.dumps({"pid": 1})[:-3])
    assert process.running(places.pid) is None


def test_kill_is_awaited(places: process.Places) -> None:
    """After a SIGKILL returned, the process is gone, also as a zombie child."""
    start(places)
    assert process.send(places.pid, signal.SIGKILL)
    assert process.running(places.pid) is None


def test_frozen_process_is_stopped(places: process.Places) -> None:
    """A SIGSTOP does not keep it from ending."""
    start(places)
    process.send(places.pid, signal.SIGSTOP)
    process.stop(places.pid)
    assert process.running(places.pid) is None


def test_deaf_process_is_killed(places: process.Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ignores SIGTERM gets SIGKILL in bounded time."""
    monkeypatch.setattr(process, "TERM_SECONDS", 0.3)
    process.spawn([sys.executable, "-c", IGNORES_TERM], places, "")
    process.await_answer(places, lambda: "" if "deaf" in places.log.read_text() else "not yet", 10)
    begin = time.monotonic()
    process.stop(places.pid)
    assert time.monotonic() - begin < LIFE


def test_end_during_start_quotes_the_log(places: process.Places) -> None:
    """A server that ends by itself fails the wait at once, with its last words."""
    process.spawn([sys.executable, "-c", "raise SystemExit('port is taken')"], places, "")
    with pytest.raises(PartError, match="port is taken"):
        process.await_answer(places, lambda: "silent", 30)


def test_silence_is_bounded(places: process.Places) -> None:
    """A server that never answers is an error with the probe's complaint."""
    start(places)
    with pytest.raises(PartError, match="no answer in 0 s: refused"):
        process.await_answer(places, lambda: "refused", 0.2)


def test_servers_see_no_proxy_and_no_secret() -> None:
    """The environment of a server is what it needs and nothing else."""
    assert process.server_environment({"PATH": "/bin", "HTTPS_PROXY": "x", "TOKEN": "x"}) == {
        "PATH": "/bin",
        "GOGC": "400",
    }
