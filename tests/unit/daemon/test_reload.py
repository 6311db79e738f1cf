"""Reading the configuration again: only when it changed, as a whole, and never a bad one."""

import threading

from slurm_bridge import errors
from slurm_bridge.daemon.reload import PERIOD, Reload
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.settings.model import Settings


def settings(**values: object) -> Settings:
    """The least that there has to be, and these."""
    return Settings.model_validate({"cluster_id": "here", "slurm": {"url": "http://s", "token_file": "/t"}, **values})


class File:
    """A configuration file whose content is settings, or the problem that it has."""

    def __init__(self) -> None:
        self.content: Settings | errors.BadConfiguration = settings()
        self.version = 0
        self.loads = 0
        self.applied: list[Settings] = []
        self.said: list[tuple[str, str]] = []
        self.unusable = ""
        self.reload = Reload(
            settings(),
            fingerprint=lambda: str(self.version),
            load=self.load,
            apply=self.apply,
            told=lambda result, text: self.said.append((result, text)),
        )

    def write(self, content: Settings | errors.BadConfiguration) -> None:
        """Somebody edits it."""
        self.content = content
        self.version += 1

    def load(self) -> Settings:
        self.loads += 1
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def apply(self, new: Settings) -> None:
        if self.unusable:
            raise errors.BadConfiguration(self.unusable)
        self.applied.append(new)


def test_an_unchanged_file_is_not_read() -> None:
    """Its fingerprint is looked at, and that is all."""
    file = File()
    file.reload.step()
    assert (file.loads, file.applied, file.said) == (0, [], [])


def test_what_may_change_is_applied_and_told() -> None:
    """With the keys."""
    file, new = File(), settings(defaults={"partition": "batch"})
    file.write(new)
    file.reload.step()
    assert file.applied == [new]
    assert file.said == [("ok", "defaults.partition")]


def test_what_takes_a_restart_is_not_applied() -> None:
    """It is written into the log; nothing is claimed to have been taken over."""
    file = File()
    file.write(settings(web={"port": 9090}))
    file.reload.step()
    assert (file.applied, file.said) == ([], [])


def test_a_bad_file_changes_nothing_and_is_told_once() -> None:
    """The last good one stays; the next good one is compared with that."""
    file = File()
    file.write(errors.BadConfiguration("line 3: no such key"))
    file.reload.step()
    file.reload.step()
    assert file.applied == []
    assert file.said == [("refused", "line 3: no such key")]
    file.write(settings(defaults={"partition": "batch"}))
    file.reload.step()
    assert len(file.applied) == 1


def test_settings_that_fit_each_other_and_not_the_daemon_are_refused() -> None:
    """A hook that nobody knows, for example; written again they are tried again."""
    file = File()
    file.unusable = "no such hook"
    file.write(settings(defaults={"partition": "batch"}))
    file.reload.step()
    assert file.said == [("refused", "no such hook")]
    file.unusable = ""
    file.version += 1
    file.reload.step()
    assert len(file.applied) == 1


def test_it_looks_every_few_seconds_until_it_is_told_to_stop() -> None:
    """On the clock that it is given."""
    file, clock, stop = File(), VirtualClock(), threading.Event()
    file.write(settings(defaults={"partition": "batch"}))

    class Stopping(VirtualClock):
        def wait(self, stop: threading.Event, seconds: float) -> bool:
            assert seconds == PERIOD
            if clock.now() > 5 * PERIOD:
                stop.set()
            clock.advance(seconds)
            return stop.is_set()

    file.reload.run(Stopping(), stop)
    assert (file.loads, len(file.applied)) == (1, 1)
