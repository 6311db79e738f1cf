"""Reading the configuration again: only when it changed, as a whole, and never a bad one."""

import threading
from collections.abc import Iterator

import pytest
from loguru import logger

from slurm_bridge import errors
from slurm_bridge.daemon.reload import PERIOD, Reload, SettingsReader, StoredFile, Use
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.settings.model import Settings


def settings(**values: object) -> Settings:
    """The least that there has to be, and these."""
    return Settings.model_validate(
        {"cluster_id": "here", "slurm": {"url": "http://localhost", "token_file": "/t"}, **values}
    )


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Lines of the log: level and message."""
    lines: list[str] = []
    number = logger.add(lambda one: lines.append(one.strip()), format="{level} {message}", level="INFO")
    yield lines
    logger.remove(number)


class File:
    """A configuration file whose content is settings, or the problem that it has."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.content: Settings | errors.BadConfiguration = settings()
        self.version = 0
        self.loads = 0
        self.applied: list[Settings] = []
        self.said: list[tuple[str, str]] = []
        self.unusable = ""
        self.surprise: Exception | None = None
        #: What the hook in force has read of a file of its own, and what is there now.
        self.read = self.now = "1"
        self.clock = clock or VirtualClock()
        source = SettingsReader(fingerprint=lambda: str(self.version), load=self.load)
        told = self.said
        use = Use(
            apply=self.apply,
            told=lambda result, text: told.append((result, text)),
            stored=lambda: [StoredFile(file="queues.yaml", read=self.read, now=self.now)],
        )
        self.reload = Reload(settings(), source, use, self.clock)

    def write(self, content: Settings | errors.BadConfiguration) -> None:
        """Edit it."""
        self.content = content
        self.version += 1

    def load(self) -> Settings:
        self.loads += 1
        if self.surprise is not None:
            raise self.surprise
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def apply(self, new: Settings) -> None:
        if self.unusable:
            raise errors.BadConfiguration(self.unusable)
        self.applied.append(new)
        self.read = self.now


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


def test_what_takes_a_restart_is_warned_of_once_and_said_to_be_as_it_runs_when_it_is_taken_back(
    log: list[str],
) -> None:
    """What counts is what the daemon runs with, not what the file said before."""
    file = File()
    file.write(settings(web={"port": 9090}))
    file.reload.step()
    file.write(settings(web={"port": 9090}, defaults={"partition": "batch"}))
    file.reload.step()
    file.write(settings(defaults={"partition": "batch"}))
    file.reload.step()
    assert log == [
        "WARNING these settings take effect at the next start: web.port",
        "INFO configuration reloaded: defaults.partition",
        "INFO no setting waits for the next start any more",
    ]


def test_a_repaired_file_is_told_also_where_nothing_else_has_changed(log: list[str]) -> None:
    """Whoever repairs it sees that it was read."""
    file = File()
    file.write(errors.BadConfiguration("line 3: no such key\nline 4: no such key"))
    file.reload.step()
    file.write(settings())
    file.reload.step()
    assert file.said == [("refused", "line 3: no such key; line 4: no such key"), ("ok", "valid again, as it runs")]
    assert log[-1] == "INFO configuration reloaded: valid again, as it runs"


def test_settings_that_fit_each_other_and_not_the_daemon_are_refused() -> None:
    """An unknown hook, for example; written again they are tried again."""
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
    stop = threading.Event()

    class Stopping(VirtualClock):
        def wait(self, stop: threading.Event, seconds: float) -> bool:
            assert seconds == PERIOD
            if self.now() > 5 * PERIOD:
                stop.set()
            self.advance(seconds)
            return stop.is_set()

    file = File(Stopping())
    file.write(settings(defaults={"partition": "batch"}))
    file.reload.run(stop)
    assert (file.loads, len(file.applied)) == (1, 1)


def test_a_file_that_a_hook_has_read_is_followed_too() -> None:
    """Although no key has changed: the hook is made anew and reads it; after that it is not looked into again."""
    file = File()
    file.now = "2"
    for _ in range(3):
        file.reload.step()
    assert (file.loads, len(file.applied), file.said) == (1, 1, [("ok", "queues.yaml")])
    assert file.reload.refusal is None


def test_a_bad_file_of_a_hook_is_tried_once_and_forgiven_when_it_is_as_before() -> None:
    """Why it is not in force is known meanwhile, and since when."""
    file = File()
    file.now, file.unusable = "2", "no such queue"
    file.clock.advance(60)
    for _ in range(2):
        file.reload.step()
    refusal = file.reload.refusal
    assert refusal is not None
    assert (file.loads, file.said, refusal.problems) == (1, [("refused", "no such queue")], ["no such queue"])
    assert refusal.at == file.clock.wall()
    file.now = "1"
    file.reload.step()
    assert (file.applied, file.reload.refusal) == ([], None)


def test_whoever_asks_has_it_read_at_once() -> None:
    """Changed or not; nothing is applied that is in force already, and what is refused is answered."""
    file = File()
    assert (file.reload.now(), file.loads, file.applied) == (None, 1, [])
    file.now = "2"
    assert (file.reload.now(), len(file.applied)) == (None, 1)
    file.unusable, file.now = "no such queue", "3"
    for _ in range(2):
        refusal = file.reload.now()
        assert refusal is not None
        assert refusal.problems == ["no such queue"]
    file.unusable = ""
    assert (file.reload.now(), len(file.applied)) == (None, 2)


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "surprise", [ValueError("day is out of range for month"), KeyError("maybe"), RecursionError("too deep")]
)
def test_whatever_is_wrong_with_a_file_the_last_good_configuration_stays(surprise: Exception) -> None:
    """A configuration that cannot be read never ends the running daemon: the last valid one stays in effect."""
    file = File()
    file.surprise = surprise
    file.write(settings(defaults={"partition": "batch"}))
    file.reload.step()
    assert file.applied == []
    assert file.said == [("refused", f"it could not be processed: {type(surprise).__name__}: {surprise}")]
    file.surprise = None
    file.write(settings(defaults={"partition": "batch"}))
    file.reload.step()
    assert len(file.applied) == 1
