"""A part that is one server process, described by its command line and a question it answers when it is up."""

import dataclasses
import hashlib
import pathlib
import signal
from collections.abc import Callable, Mapping, Sequence

from localcluster import certs, gomodules, process
from localcluster.config import Config
from localcluster.part import PartError, Row

#: How long a server that runs but does not answer may take to do so before it is replaced.
_RECOVERY_SECONDS = 5.0


def _directly(_config: Config) -> Sequence[str]:
    return ()


def _nothing(_config: Config) -> Mapping[pathlib.Path, str]:
    return {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A binary of ours, its arguments, the files it reads, and how to ask it.

    A running server whose arguments, files or binary changed counts as not running: `up` restarts it.
    """

    name: str
    binary: str
    arguments: Callable[[Config], Sequence[str]]
    probe: Callable[[Config], str]
    address: Callable[[Config], str]
    files: Callable[[Config], Mapping[pathlib.Path, str]] = _nothing
    seconds: float = 60.0
    #: What it is started through: a command that becomes the one behind it, in the same process.
    through: Callable[[Config], Sequence[str]] = _directly

    def places(self, config: Config) -> process.Places:
        return process.Places(
            pid=config.pids / f"{self.name}.json",
            log=config.logs / f"{self.name}.log",
            home=config.directory / "home",
        )

    def state(self, config: Config) -> str | None:
        return None if self.why_down(config) else "running"

    def why_down(self, config: Config) -> str:
        """Empty when it runs."""
        if not self._is_current(config):
            return "its process does not run, or was started with another configuration"
        return self.probe(config)

    def start(self, config: Config) -> None:
        if self._is_current(config) and self._recovers(config):
            return
        places = self.places(config)
        process.stop(places.pid)
        for file, text in self.files(config).items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        process.spawn(self._command(config), places, self._fingerprint(config))
        process.await_answer(places, lambda: self.probe(config), self.seconds)

    def stop(self, config: Config) -> None:
        """What it wrote lies in the cluster's folder and goes with it, so that tests can stop and start it."""
        process.stop(self.places(config).pid)

    def signal(self, config: Config, number: signal.Signals) -> None:
        if not process.send(self.places(config).pid, number):
            raise PartError(f"{self.name} does not run")

    def row(self, config: Config) -> Row:
        places = self.places(config)
        record = process.running(places.pid)
        return Row(pid=record.pid if record else None, address=self.address(config), log=str(places.log))

    def _is_current(self, config: Config) -> bool:
        record = process.running(self.places(config).pid)
        return record is not None and record.fingerprint == self._fingerprint(config)

    def _recovers(self, config: Config) -> bool:
        """A frozen server goes on, one that lost its neighbour finds it again; both sooner than a new one starts."""
        places = self.places(config)
        process.send(places.pid, signal.SIGCONT)
        try:
            process.await_answer(places, lambda: self.probe(config), _RECOVERY_SECONDS)
        except PartError:
            return False
        return True

    def _command(self, config: Config) -> list[str]:
        return [*self.through(config), str(gomodules.binary(config, self.binary)), *self.arguments(config)]

    def _fingerprint(self, config: Config) -> str:
        binary = gomodules.binary(config, self.binary)
        built = binary.stat().st_mtime_ns if binary.exists() else 0
        credentials = certs.authority(config).decode()
        files = (f"{file}\n{text}" for file, text in self.files(config).items())
        parts = [str(built), credentials, *self._command(config), *files]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()
