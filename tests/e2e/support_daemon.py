"""The real daemon as a process of the test: its configuration, its start, and every way to end it."""

import http.client
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from tests import wait

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
_PROBE_SECONDS = 5.0
_PROGRAM = pathlib.Path(sys.executable).with_name("slurm-bridge")

Settings = dict[str, Any]


def fresh_name(prefix: str) -> str:
    """A name that is used nowhere else: for cluster ids, scheduler names, namespaces."""
    return f"{prefix}-{secrets.token_hex(4)}"


def free_port() -> int:
    """A port of loopback on which no process listens now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def settings(cluster: Mapping[str, str], name: str, **groups: Any) -> Settings:
    """A daemon that is alone in its name: no other daemon sees its pods, and it sees no other's."""
    usual: Settings = {
        "cluster_id": name,
        "scheduler_names": [name],
        "slurm": {"url": cluster["SLURMRESTD_URL"], "token_file": cluster["SLURM_TOKEN_FILE"]},
        "kubernetes": {"kubeconfig": cluster["KUBECONFIG_DAEMON"]},
        "defaults": {"user": "slurm-bridge", "group": "slurm-bridge"},
        "leader_election": {"namespace": cluster["DAEMON_NAMESPACE"], "name": name},
        "web": {"host": "127.0.0.1", "port": free_port()},
    }
    for group, values in groups.items():
        usual[group] = {**usual.get(group, {}), **values} if isinstance(values, Mapping) else values
    return usual


class Daemon:
    """One `slurm-bridge run`; the log of all its lives is in one file."""

    #: Further words of the command line.
    arguments: tuple[str, ...] = ()

    def __init__(self, folder: pathlib.Path, chosen: Settings, variables: Mapping[str, str] | None = None) -> None:
        self.settings = chosen
        self._variables = dict(variables or {})
        self.configuration = folder / f"{chosen['cluster_id']}.yaml"
        self.log = folder / f"{chosen['cluster_id']}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(chosen)

    def __repr__(self) -> str:
        return f"Daemon({self.cluster_id}, log {self.log})"

    @property
    def cluster_id(self) -> str:
        return str(self.settings["cluster_id"])

    @property
    def scheduler(self) -> str:
        return str(self.settings["scheduler_names"][0])

    @property
    def pid(self) -> int:
        assert self._process is not None, "the daemon was never started"
        return self._process.pid

    def configure(self, chosen: Settings) -> None:
        """Write its configuration, as an administrator's editor would: a new file in the place of the old one."""
        self.settings = chosen
        written = self.configuration.with_suffix(".new")
        written.write_text(yaml.safe_dump(chosen, sort_keys=False))
        written.replace(self.configuration)

    def start(self) -> None:
        """Begin; `await_ready` says when it works."""
        with self.log.open("ab") as log:
            command = [str(_PROGRAM), "run", "--config", str(self.configuration), *self.arguments]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the daemon, and of the commands that run beside it."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_BRIDGE")}
        return variables | self._variables

    def await_ready(self, seconds: float = READY_SECONDS) -> None:
        """Until /readyz says so; a daemon that ended instead is told with the end of its log."""

        def ready() -> bool:
            assert self.alive, f"the daemon ended by itself:\n{self.last_words()}"
            return self.probe("readyz") == 200

        try:
            wait.until(ready, "ready daemon", seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.last_words()}") from late

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def probe(self, path: str) -> int:
        """The status of one page of its web server, 0 while it does not answer."""
        return look(int(self.settings["web"]["port"]), path)[0]

    def kill(self) -> None:
        """SIGKILL: nothing is saved, nothing is said."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            raise

    def end(self) -> None:
        """However it is now."""
        if self.alive:
            self.stop()

    def last_words(self, lines: int = 30) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


def look(port: int, path: str) -> tuple[int, str]:
    """Status and text of one page of a web server on loopback; status 0 while it does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", f"/{path.removeprefix('/')}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()
