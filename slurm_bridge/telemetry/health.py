"""Liveness and readiness: what the probes answer, with reasons.

A process is alive while its threads make progress. It is ready while its data is complete and recent: every cache has
a full list, and, on the leader, Slurm has answered a real request lately. A ping proves nothing: slurmctld answers it
while it serves nothing else.
"""

import dataclasses
import threading
from collections.abc import Callable
from typing import Final

#: Returns what is wrong as text; empty if nothing is.
Check = Callable[[], str]

_FINE: Final = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to a probe: good or not, and one line per check."""

    good: bool
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


class Health:
    """Written by the loops, read by the probes; `now` is the monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._beats: dict[str, tuple[float, float]] = {}
        self._reads: dict[str, float] = {}
        self._alive: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def expect(self, loop: str, *, within: float) -> None:
        """From now on this loop has to beat at least every `within` seconds."""
        with self._lock:
            self._beats[loop] = (self._now(), within)

    def beat(self, loop: str) -> None:
        """The loop made progress; ignored for a loop that is not expected to."""
        with self._lock:
            if loop in self._beats:
                self._beats[loop] = (self._now(), self._beats[loop][1])

    def read(self, source: str) -> None:
        """This source has just answered a real request."""
        with self._lock:
            self._reads[source] = self._now()

    def age(self, source: str) -> float | None:
        """Seconds since the last good answer, None before the first."""
        with self._lock:
            last = self._reads.get(source)
        return None if last is None else self._now() - last

    def alive_while(self, name: str, check: Check) -> None:
        """Add a condition of liveness."""
        with self._lock:
            self._alive[name] = check

    def ready_while(self, name: str, check: Check) -> None:
        """Add a condition of readiness."""
        with self._lock:
            self._ready[name] = check

    def fresh(self, source: str, *, within: float, needed: Callable[[], bool]) -> None:
        """Ready only while this source has answered within so many seconds, if that is needed."""
        self.ready_while(source, lambda: overdue(self.age(source), within) if needed() else _FINE)

    def livez(self) -> Verdict:
        """Whether the process is alive; if not, a restart helps."""
        with self._lock:
            checks, beats = dict(self._alive), dict(self._beats)
        now = self._now()
        silent = {
            loop: f"silent for {now - last:.1f} s, at most {within:.1f} s are normal" if now - last > within else _FINE
            for loop, (last, within) in beats.items()
        }
        return _verdict({**{name: check() for name, check in checks.items()}, **silent})

    def readyz(self) -> Verdict:
        """Whether the process is ready."""
        with self._lock:
            checks = dict(self._ready)
        return _verdict({name: check() for name, check in checks.items()})


def overdue(age: float | None, within: float) -> str:
    """What is wrong with the last good answer of this age; None means no answer yet; empty if nothing is wrong."""
    if age is None:
        return "no good answer yet"
    return f"last good answer {age:.1f} s ago, at most {within:.1f} s are normal" if age > within else _FINE


def _verdict(found: dict[str, str]) -> Verdict:
    lines = tuple(f"{'bad' if problem else 'ok '} {name}{problem and ': '}{problem}" for name, problem in found.items())
    return Verdict(good=not any(found.values()), lines=lines or ("ok",))
