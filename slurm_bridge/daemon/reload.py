"""Reloads the configuration when its file changes: checked as a whole, then replaced at once.

A configuration that cannot work changes nothing. The last good one stays in force, and the problem is logged, counted
as a metric and reported as an event. A ConfigMap is replaced by a symbolic link, so the content is compared, not the
date of the file. Files in which hooks store a part of their configuration are followed as well; every replica follows
them, also one that does not lead.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.settings import shown
from slurm_bridge.settings.model import Settings
from slurm_bridge.web.administration import RefusedConfiguration

#: The time between two looks at the files.
PERIOD = 2.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SettingsReader:
    """Reads the settings, and a fingerprint that changes with them."""

    fingerprint: Callable[[], str]
    load: Callable[[], Settings]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a hook in force: its version as the hook has read it, and its current version."""

    file: str
    read: str
    now: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What happens with new settings. If `apply` raises BadConfiguration, nothing has changed."""

    apply: Callable[[Settings], None]
    told: Callable[[str, str], None]
    stored: Callable[[], Iterable[StoredFile]] = lambda: ()


class Reload:
    """Follows one file and the files of hooks. Thread-safe."""

    def __init__(self, settings: Settings, source: SettingsReader, use: Use, clock: ports.Clock) -> None:
        self._started = self._settings = settings
        self._source, self._use, self._clock = source, use, clock
        self._later: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._refusal: RefusedConfiguration | None = None
        self._seen = self._look(())

    @property
    def refusal(self) -> RefusedConfiguration | None:
        """Why the stored configuration is not in force; None if it is."""
        return self._refusal

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set."""
        while not self._clock.wait(stop, PERIOD):
            self.step()

    def step(self) -> None:
        """Check whether a file has changed."""
        with self._lock:
            self._step(again=False)

    def now(self) -> RefusedConfiguration | None:
        """Reload everything now, changed or not; returns why it is not in force."""
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
            # The hooks have read their files again: a later change of one is noticed.
            self._seen = seen[:1]
        except errors.BadConfiguration as problem:
            self._refuse(str(problem))
        except Exception as surprise:  # noqa: BLE001 - the last good configuration stays, whatever happens
            logger.opt(exception=surprise).error("the new configuration could not be processed")
            self._refuse(f"it could not be processed: {type(surprise).__name__}: {surprise}")
        else:
            self._refusal = None

    def _refuse(self, problem: str) -> None:
        logger.error("the new configuration is not used, the last good one stays in force: {}", problem)
        self._refusal = RefusedConfiguration(at=self._clock.wall(), problems=problem.splitlines())
        self._use.told("refused", "; ".join(problem.splitlines()))

    def _look(self, stored: Iterable[StoredFile]) -> tuple[str, ...]:
        return (self._source.fingerprint(), *(f"{one.file}:{one.now}" for one in stored if one.read != one.now))

    def _take(self, new: Settings, files: list[str]) -> None:
        _, later = shown.changed(self._started, new)
        if later != self._later:
            self._later = later
            if later:
                logger.warning("these settings take effect at the next start: {}", ", ".join(later))
            else:
                logger.info("no setting waits for the next start any more")
        taken = (*shown.changed(self._settings, new)[0], *files)
        if taken:
            self._use.apply(new)
        self._settings = new
        if taken or self._refusal is not None:
            text = ", ".join(taken) or "valid again, as it runs"
            logger.info("configuration reloaded: {}", text)
            self._use.told("ok", text)
