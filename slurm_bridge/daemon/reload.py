"""The configuration while the daemon runs: read again when the file changes, checked as a whole, swapped at once.

What cannot work changes nothing: the last good configuration stays, and the problem is said in the log, as a metric
and as an event. A ConfigMap is swapped by a symbolic link, so the content is compared and not the file's date. Files
that hooks keep a part of their configuration in are looked at likewise: every replica follows them, also one that does
not lead yet.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.settings import shown
from slurm_bridge.settings.model import Settings

#: How often the files are looked at.
PERIOD = 2.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where settings come from when they change."""

    fingerprint: Callable[[], str]
    load: Callable[[], Settings]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file of a hook in force: its version as the hook has read it, and as it is now."""

    file: str
    read: str
    now: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What is stored is not what is in force: since when, and why."""

    at: float
    problem: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is done with settings. `apply` raises BadConfiguration, and then nothing has changed."""

    apply: Callable[[Settings], None]
    told: Callable[[str, str], None]
    stored: Callable[[], Iterable[Stored]] = lambda: ()


class Reload:
    """One file with what belongs to it, and the settings that were read from it last. Safe to use from any thread."""

    def __init__(self, settings: Settings, source: Source, use: Use, clock: ports.Clock) -> None:
        self._settings, self._source, self._use, self._clock = settings, source, use, clock
        self._lock = threading.Lock()
        self._refusal: Refusal | None = None
        self._seen = self._look(())

    @property
    def refusal(self) -> Refusal | None:
        """Why the last configuration is not in force; None where it is."""
        return self._refusal

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set."""
        while not self._clock.wait(stop, PERIOD):
            self.step()

    def step(self) -> None:
        """Look whether a file has changed."""
        with self._lock:
            self._step(again=False)

    def now(self) -> Refusal | None:
        """Read it all, changed or not; why it is not in force afterwards."""
        with self._lock:
            self._step(again=True)
            return self._refusal

    def _step(self, *, again: bool) -> None:
        try:
            stored = tuple(self._use.stored())
            seen = self._look(stored)
            if seen == self._seen and not again:
                return
            self._seen = seen
            self._take(self._source.load(), [one.file for one in stored if one.read != one.now])
            # The hooks have read their files anew: whoever changes one from now on is noticed.
            self._seen = seen[:1]
        except errors.BadConfiguration as problem:
            self._refuse(str(problem))
        except Exception as surprise:  # noqa: BLE001 - whatever is written there, the daemon goes on as it was told before
            logger.opt(exception=surprise).error("the new configuration could not be dealt with")
            self._refuse(f"it could not be dealt with: {type(surprise).__name__}: {surprise}")
        else:
            self._refusal = None

    def _refuse(self, problem: str) -> None:
        logger.error("the new configuration is not used, the last good one stays: {}", problem)
        self._refusal = Refusal(at=self._clock.wall(), problem=problem)
        self._use.told("refused", problem)

    def _look(self, stored: Iterable[Stored]) -> tuple[str, ...]:
        return (self._source.fingerprint(), *(f"{one.file}:{one.now}" for one in stored if one.read != one.now))

    def _take(self, new: Settings, files: list[str]) -> None:
        now, later = shown.changed(self._settings, new)
        if later:
            logger.warning("these settings take effect with the next start: {}", ", ".join(later))
        if now or files:
            self._use.apply(new)
            logger.info("configuration taken over: {}", ", ".join((*now, *files)))
            self._use.told("ok", ", ".join((*now, *files)))
        self._settings = new
