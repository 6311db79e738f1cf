"""Servers of the local cluster that ended or hang are brought back between two cases, and it is told.

They are other projects' programs, started once and not supervised: with one of them dead every case that
needs it fails after a minute of waiting, and none says why. The case that met it stays failed. A server that does not
come back, or dies again and again, is the end of the run.
"""

import dataclasses
import http.client
import os
import pathlib
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

import slurm_http

from localcluster import envfile, kubernetes, process, slurm
from localcluster.config import PROJECT, Config
from localcluster.server import Server

#: How often one server may be brought back in one run.
MOST = 3

#: A server of a busy machine may be silent for so long and yet be well.
PATIENCE = 30.0

_ANSWER_SECONDS = 10.0
_PART_SECONDS = 180.0
_PAUSE = 0.5
_HTTP_OK = 200

#: What slurmctld may still answer while it hangs in one of its locks is no proof: these need those of jobs and nodes.
_READS = ("jobs/state/", "nodes/")


class Lost(Exception):
    """A server cannot be had any more: no case that needs it can say anything."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One server: whether it runs, what is wrong with it ("" when it answers), the end of its log, and its return."""

    name: str
    runs: Callable[[], bool]
    complaint: Callable[[], str]
    log: Callable[[], str]
    bring_back: Callable[[], None]


class Guard:
    """Looks after the servers of one run: at first, and whenever a case suspects them."""

    def __init__(self, watched: Callable[[], Sequence[Watched]], patience: float = PATIENCE) -> None:
        self.stories: list[str] = []
        self._watched = watched
        self._patience = patience
        self._suspicion = "before the first case"
        self._revivals: Counter[str] = Counter()

    def suspect(self, when: str) -> None:
        """Something failed that may be a server's fault."""
        self._suspicion = when

    def look(self) -> Sequence[str]:
        """Bring back what does not answer, and tell of it; raises Lost where that is not possible, or not for long."""
        if not self._suspicion:
            return ()
        when, self._suspicion = self._suspicion, ""
        before = len(self.stories)
        for one in self._watched():
            self.stories += self._revived(one, when)
        return self.stories[before:]

    def _revived(self, one: Watched, when: str) -> Sequence[str]:
        complaint = lasting_complaint(one, self._patience)
        if not complaint:
            return ()
        found = f"{one.name} {'does not answer' if one.runs() else 'has ended'} ({when}): {complaint}"
        self._revivals[one.name] += 1
        if self._revivals[one.name] > MOST:
            raise Lost(f"{found}\nIt was brought back {MOST} times already. {one.log()}")
        log = one.log()
        one.bring_back()
        if complaint := lasting_complaint(one, self._patience):
            raise Lost(f"{found}\nIt was started again and says: {complaint}\n{one.log()}")
        return (f"{found}\nIt was brought back. {log}",)


def lasting_complaint(one: Watched, patience: float = PATIENCE) -> str:
    """What is wrong with it, if that does not pass by itself; a server that does not even run is not waited for."""
    end, pause = time.monotonic() + patience, threading.Event()
    while (complaint := one.complaint()) and one.runs() and time.monotonic() < end:
        pause.wait(_PAUSE)
    return complaint


def of_the_cluster() -> Sequence[Watched]:
    """Each after those that it needs to answer; none where no local cluster was started."""
    try:
        variables = envfile.read()
    except FileNotFoundError:
        return ()
    config = Config.resolve({**os.environ, "CLUSTER_DIR": variables["CLUSTER_DIR"]})
    servers = (_process(config, kubernetes.ETCD), _process(config, kubernetes.APISERVER))
    return (*servers, *of_slurm(config))


def of_slurm(config: Config) -> Sequence[Watched]:
    """slurmrestd by itself, and slurmctld through it."""
    facts = slurm.environment(config)
    token = pathlib.Path(facts["SLURM_TOKEN_FILE"]).read_text().strip()
    door = slurm_http.Door(url=facts["SLURMRESTD_URL"], token=token)
    return (
        _container(config, slurm.SLURMRESTD, lambda: _unheard(door)),
        _container(config, slurm.SLURMCTLD, lambda: _unread(door)),
    )


def _process(config: Config, server: Server) -> Watched:
    return Watched(
        name=server.name,
        runs=lambda: server.row(config).pid is not None,
        complaint=lambda: server.probe(config),
        log=lambda: process.quote(server.places(config).log),
        bring_back=lambda: _bring_back(config, server.name),
    )


def _container(config: Config, server: slurm.Server, complaint: Callable[[], str]) -> Watched:
    return Watched(
        name=server.name,
        runs=lambda: server.row(config).pid is not None,
        complaint=complaint,
        log=lambda: process.quote(config.logs / "slurm" / f"{server.name}.log"),
        bring_back=lambda: _bring_back(config, server.name),
    )


def _unheard(door: slurm_http.Door) -> str:
    """An unknown path is refused without asking slurmctld."""
    try:
        door.ask("GET", "/nothing", seconds=_ANSWER_SECONDS)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    return ""


def _unread(door: slurm_http.Door) -> str:
    """`ping` says that a slurmctld which hangs is well: only reads tell."""
    for path in _READS:
        try:
            answer = door.ask("GET", f"/slurm/{slurm.API_VERSION}/{path}", seconds=_ANSWER_SECONDS)
        except (OSError, http.client.HTTPException) as error:
            return f"{path}: {error}"
        if answer.status != _HTTP_OK:
            return f"{path}: {answer.complaint}"
    return ""


def _bring_back(config: Config, name: str) -> None:
    """A gentle stop may take for ever where something hangs; to kill what has ended already fails, as it should."""
    _part(config, name, "kill")
    done = _part(config, name, "start")
    if done.returncode:
        raise Lost(f"{name} cannot be started again: {done.stdout}{done.stderr}")


def _part(config: Config, name: str, verb: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROJECT / "hack" / "cluster" / "part"), name, verb]
    environment = {**os.environ, "CLUSTER_DIR": str(config.directory)}
    try:
        return subprocess.run(
            command, env=environment, check=False, capture_output=True, text=True, timeout=_PART_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise Lost(f"{name}: {verb} does not end within {_PART_SECONDS:.0f} s") from error
