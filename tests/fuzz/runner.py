"""Runs one target on many cases: each is made by dice of its own, watched while it runs, and can be repeated alone.

    target.make(dice)          the input of one case, from the dice and nothing else
    target.check(case, watch)  runs the product on it, and yields what was broken; whatever it raises is a crash

A case is known by the target's name, the seed and its number: the same three make the same case again.
"""

import collections
import dataclasses
import os
import pathlib
import random
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

#: What one step may cost: the scheduler has one thread, and a longer step holds up all workloads.
MOST_SECONDS = 0.05
#: A step that took longer is measured so often again: the machine may have been busy with something else.
AGAIN = 3
#: Of each finding so many cases are shown.
SHOWN = 3
#: So many functions tell where something was raised.
_FRAMES = 2
#: As much of an input as fits into a terminal.
_LETTERS = 240


class Watch:
    """Measures the steps of one case by the time of its own thread: `with watch("decode"): …`."""

    def __init__(self) -> None:
        self.longest, self.step = 0.0, ""
        self._name, self._began = "", 0.0

    def __call__(self, name: str) -> Self:
        self._name = name
        return self

    def __enter__(self) -> None:
        self._began = time.thread_time()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        spent = time.thread_time() - self._began
        if spent > self.longest:
            self.longest, self.step = spent, self._name


class Target(Protocol):
    """Some part of the product, and what must hold whatever it is given."""

    name: str

    def make(self, dice: random.Random, /) -> Any:
        """The input of one case."""

    def check(self, case: Any, watch: Watch, /) -> Iterable[str]:
        """What was broken, in few words that are the same for the same defect."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Which cases: all of a seed up to a number, or one alone."""

    seed: int
    cases: int
    only: int | None = None
    #: What one step may cost.
    most_seconds: float = MOST_SECONDS

    def fewer(self, share: int) -> "Session":
        """For a target whose cases take so many times as long: at least one."""
        return dataclasses.replace(self, cases=max(1, -(-self.cases // share)))

    def numbers(self, shard: int, shards: int) -> Sequence[int]:
        """The cases of one of several equal parts."""
        return range(shard, self.cases, shards) if self.only is None else [self.only]


class Report:
    """What was found, by kind."""

    def __init__(self, target: str, session: Session) -> None:
        self._target, self._session = target, session
        self.counts: collections.Counter[str] = collections.Counter()
        self.examples: dict[str, list[tuple[int, str]]] = {}

    def add(self, number: int, what: str, case: object) -> None:
        """One more of this kind."""
        self.counts[what] += 1
        shown = self.examples.setdefault(what, [])
        if len(shown) < SHOWN:
            shown.append((number, _short(case)))

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __str__(self) -> str:
        seed = self._session.seed
        return "\n".join(
            [f"{self._target}: {sum(self.counts.values())} findings in cases of seed {seed}", *self._lines()]
        )

    def _lines(self) -> Iterator[str]:
        hashes = os.environ.get("PYTHONHASHSEED", "random")
        again = f"PYTHONHASHSEED={hashes} pytest tests/fuzz/test_{self._target}.py --fuzz-seed {self._session.seed}"
        for what, count in self.counts.most_common():
            yield f"  {count:6} x {what}"
            for number, case in self.examples[what]:
                yield f"           {case}"
                yield f"           repeat: {again} --case {number}"


def run(target: Target, session: Session, shard: int = 0, shards: int = 1) -> Report:
    """All cases of one part."""
    report = Report(target.name, session)
    for number in session.numbers(shard, shards):
        case = target.make(random.Random(f"{target.name}:{session.seed}:{number}"))
        for what in dict.fromkeys(_one(target, case, session.most_seconds)):
            report.add(number, what, case)
    return report


def _one(target: Target, case: Any, most_seconds: float) -> Iterator[str]:
    watch = Watch()
    yield from _checked(target, case, watch)
    if watch.longest <= most_seconds:
        return
    again = [Watch() for _ in range(AGAIN)]
    for one in again:
        collections.deque(_checked(target, case, one), maxlen=0)
    if min(one.longest for one in again) > most_seconds:
        yield f"slow: {watch.step} takes more than {most_seconds * 1000:.0f} ms"


def _checked(target: Target, case: Any, watch: Watch) -> Iterator[str]:
    try:
        yield from target.check(case, watch)
    except Exception as crash:  # noqa: BLE001 - whatever is raised is what is looked for
        yield f"crash: {place(crash)}"


def place(crash: BaseException) -> str:
    """The error and the last functions of the product that it came through."""
    frames = traceback.extract_tb(crash.__traceback__)
    ours = [frame for frame in frames if "/slurm_bridge/" in frame.filename] or frames[-1:]
    names = dict.fromkeys(f"{pathlib.Path(frame.filename).name}:{frame.name}" for frame in ours[::-1])
    return f"{type(crash).__name__} at {', '.join(list(names)[:_FRAMES])}"


def _short(case: object) -> str:
    text = ascii(case)
    return (
        text if len(text) <= _LETTERS else f"{text[: _LETTERS // 2]} … {text[-_LETTERS // 2 :]} ({len(text)} letters)"
    )
