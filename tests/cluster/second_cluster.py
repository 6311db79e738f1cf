"""A second local cluster beside the one that may be in use: other folder, other ports, other temporary files."""

import json
import os
import pathlib
import subprocess
import time
from collections.abc import Mapping
from typing import Any

import machine

from localcluster import envfile, slurm_files
from localcluster.config import PROJECT, Config

#: Below the range from which the system picks ports for clients, and far from the default cluster.
PORT_BASE = 25440
#: Of a warm cache; without one the servers are built first.
COMMAND_SECONDS = 1800.0


class Cluster:
    """The commands of hack/cluster on a cluster that nobody else knows."""

    def __init__(self, home: pathlib.Path) -> None:
        self.directory = home / "cluster"
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        self._variables = {
            "CLUSTER_DIR": str(self.directory),
            "PORT_BASE": str(PORT_BASE),
            "TMPDIR": str(self.temporary),
        }
        self.before = self.traces()

    def run(self, *command: str, text: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command of hack/cluster, whatever its end."""
        name, *arguments = command
        return subprocess.run(
            [PROJECT / "hack" / "cluster" / name, *arguments],
            env={**os.environ, **self._variables, **variables},
            group=machine.GROUP,
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def do(self, *command: str, text: str | None = None, **variables: str) -> str:
        """What a command says that has to work."""
        done = self.run(*command, text=text, **variables)
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def up(self, **variables: str) -> float:
        """Seconds that it took; afterwards everything runs."""
        begin = time.monotonic()
        self.do("up", **variables)
        took = time.monotonic() - begin
        self.do("status")
        return took

    def variables(self) -> Mapping[str, str]:
        """What it tells its users."""
        return envfile.read(self.directory)

    def pids(self) -> dict[str, int]:
        """The processes that it started on this machine, by the names of their pid files."""
        files = (self.directory / "pids").iterdir()
        return {file.stem: json.loads(file.read_text())["pid"] for file in files}

    def objects(self, *what: str) -> list[dict[str, Any]]:
        """Kubernetes objects of a kind."""
        items: list[dict[str, Any]] = json.loads(self.do("kubectl", "get", *what, "--output=json"))["items"]
        return items

    def slurm(self, *command: str) -> list[str]:
        """The lines that a Slurm command says."""
        return self.do("slurm-exec", *command).splitlines()

    def traces(self) -> machine.Traces:
        """What there is of it on the machine, outside the cache."""
        config = Config.from_environment({**os.environ, **self._variables})
        prefix = slurm_files.prefix(config)
        home = self.directory.parent
        return machine.traces(home.name, PORT_BASE, prefix, except_below=[config.cache, home])
