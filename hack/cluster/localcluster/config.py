"""Where the local cluster lives and how big it is: everything that can be chosen, in one frozen record.

`cluster-up` writes the record beside the pid files, so that `status` and `down` see the cluster that was started.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any, Self

PROJECT = pathlib.Path(__file__).resolve().parents[3]

#: Offsets from `port_base`; a second cluster beside the first needs only another CLUSTER_DIR and PORT_BASE.
PORTS = {
    "apiserver": 0,
    "etcd-client": 1,
    "etcd-peer": 2,
    "controller-manager": 3,
    "scheduler": 4,
    "kwok": 5,
    "jobset-webhook": 6,
    "jobset-metrics": 7,
    "jobset-health": 8,
    "lws-webhook": 9,
    "lws-metrics": 10,
    "lws-health": 11,
    "trainer-health": 12,
    "kuberay-health": 13,
    "kueue-health": 14,
    "kueue-webhook": 15,
    "slurmctld": 20,
    "slurmrestd": 21,
    "slurmdbd": 22,
    "mariadb": 23,
    "slurmrestd-accounting": 24,
    "slurmd": 25,  # of the first real node; the next ones follow
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The parameters of one local cluster."""

    directory: pathlib.Path = PROJECT / ".cluster"
    cache: pathlib.Path = pathlib.Path.home() / ".cache" / "slurm-bridge"
    port_base: int = 26440
    nodes: int = 20
    cpus: int = 64
    memory_mib: int = 256_000
    gpus: int = 8
    accounting: bool = False
    real_nodes: int = 0
    frameworks: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """What the variables choose (see `_VARIABLES`), and the defaults for the rest."""
        return cls(**_chosen(os.environ if environment is None else environment))

    @classmethod
    def resolve(cls, environment: Mapping[str, str]) -> Self:
        """What is asked for; what is not said stays as it was started, so that a repair never resizes a cluster."""
        asked = cls.from_environment(environment)
        stored = cls.load(asked.directory)
        if stored is None:
            return asked
        return dataclasses.replace(stored, **_chosen(environment))

    def port(self, name: str) -> int:
        """The loopback port of one server."""
        return self.port_base + PORTS[name]

    @property
    def pids(self) -> pathlib.Path:
        return self.directory / "pids"

    @property
    def logs(self) -> pathlib.Path:
        return self.directory / "logs"

    @property
    def binaries(self) -> pathlib.Path:
        """Built servers: kept over a `down`, because they are build products and not part of the cluster."""
        return self.cache / "bin"

    def save(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        fresh = self.directory / "config.json.new"
        fresh.write_text(json.dumps(dataclasses.asdict(self), default=str, indent=2) + "\n")
        fresh.replace(self.directory / "config.json")

    @classmethod
    def load(cls, directory: pathlib.Path) -> Self | None:
        """The record of the cluster that was started in this folder, or None."""
        file = directory / "config.json"
        if not file.exists():
            return None
        stored = json.loads(file.read_text())
        return cls(**{**stored, "directory": pathlib.Path(stored["directory"]), "cache": pathlib.Path(stored["cache"])})


#: Which variable chooses which field.
_VARIABLES = {
    "CLUSTER_DIR": "directory",
    "CLUSTER_CACHE": "cache",
    "PORT_BASE": "port_base",
    "NODES": "nodes",
    "CPUS": "cpus",
    "MEMORY_MIB": "memory_mib",
    "GPUS": "gpus",
    "ACCOUNTING": "accounting",
    "REAL_NODES": "real_nodes",
    "FRAMEWORKS": "frameworks",
}


def _chosen(environment: Mapping[str, str]) -> dict[str, Any]:
    names = {name: variable for variable, name in _VARIABLES.items() if environment.get(variable)}
    return {name: _parse(name, environment[variable]) for name, variable in names.items()}


def _parse(name: str, text: str) -> object:
    kind = Config.__dataclass_fields__[name].type
    if kind is pathlib.Path:
        return pathlib.Path(text).resolve()
    if kind is bool:
        return text.lower() in ("1", "true", "yes")
    return int(text)
