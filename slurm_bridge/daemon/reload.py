"""The configuration while the daemon runs: read again when the file changes, checked as a whole, swapped at once.

What cannot work changes nothing: the last good configuration stays, and the problem is said in the log, as a metric
and as an event. A ConfigMap is swapped by a symbolic link, so the content is compared and not the file's date.
"""

import threading
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.settings import shown
from slurm_bridge.settings.model import Settings

#: How often the file is looked at.
PERIOD = 2.0


class Reload:
    """One file, and the settings that were read from it last."""

    def __init__(
        self,
        settings: Settings,
        *,
        fingerprint: Callable[[], str],
        load: Callable[[], Settings],
        apply: Callable[[Settings], None],
        told: Callable[[str, str], None],
    ) -> None:
        self._settings = settings
        self._fingerprint, self._load, self._apply, self._told = fingerprint, load, apply, told
        self._seen = fingerprint()

    def run(self, clock: ports.Clock, stop: threading.Event) -> None:
        """Until `stop` is set."""
        while not clock.wait(stop, PERIOD):
            self.step()

    def step(self) -> None:
        """Look whether the file has changed."""
        try:
            seen = self._fingerprint()
            if seen == self._seen:
                return
            self._seen = seen
            self._take(self._load())
        except errors.BadConfiguration as problem:
            logger.error("the new configuration is not used, the last good one stays: {}", problem)
            self._told("refused", str(problem))

    def _take(self, new: Settings) -> None:
        now, later = shown.changed(self._settings, new)
        if later:
            logger.warning("these settings take effect with the next start: {}", ", ".join(later))
        if now:
            self._apply(new)
            logger.info("configuration taken over: {}", ", ".join(now))
            self._told("ok", ", ".join(now))
        self._settings = new
