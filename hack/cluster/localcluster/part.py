"""What every part of the local cluster can do, so that one loop can start, repair, show and stop them all.

`Part` is what all of them have. The other protocols are what some have beside it; `main` asks with `isinstance`:

    Prepared      something slow and independent (a build), done in parallel before the first start
    Visible       a row of `status` with more than a name
    Hurtable      takes signals, so that tests can kill or freeze it
    Contributing  lines of `.cluster/env`, the file that tells tests where everything is
"""

import dataclasses
import signal
from typing import Protocol, runtime_checkable

from localcluster.config import Config


class PartError(Exception):
    """A part does not start or answer; the message says what to do or quotes the end of the log."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What `status` shows of one part, beside its name and state."""

    pid: int | None = None
    address: str = ""
    log: str = ""


class Part(Protocol):
    """One thing that runs (or exists): the engine, a container, a server process, a set of applied manifests."""

    @property
    def name(self) -> str:
        """The word for it in progress lines, `status` and `hack/cluster/part`."""

    def state(self, config: Config) -> str | None:
        """A short description when the part runs as configured and answers, None when it has to be started."""

    def start(self, config: Config) -> None:
        """Bring it up from any state (never started, half dead, stale pid file or socket) and wait until it answers."""

    def stop(self, config: Config) -> None:
        """Stop it and remove what it wrote; a no-op when it does not run."""


@runtime_checkable
class Prepared(Protocol):
    """A part with slow work that needs no other part."""

    def prepare(self, config: Config) -> None:
        """Build what `start` needs; safe to run in parallel with every other `prepare`."""


@runtime_checkable
class Visible(Protocol):
    """A part that has a pid, an address or a log file."""

    def row(self, config: Config) -> Row:
        """What is known now, also when it does not run."""


@runtime_checkable
class Explaining(Protocol):
    """A part that says why it does not run."""

    def why_down(self, config: Config) -> str:
        """Empty when it runs."""


@runtime_checkable
class Hurtable(Protocol):
    """A part that tests may kill, freeze and thaw."""

    def signal(self, config: Config, number: signal.Signals) -> None:
        """Send SIGKILL, SIGSTOP or SIGCONT to its process; an error when it does not run."""


@runtime_checkable
class Contributing(Protocol):
    """A part that tests have to find."""

    def environment(self, config: Config) -> dict[str, str]:
        """Its lines of `.cluster/env`; no secrets, only the names of files that hold them."""
