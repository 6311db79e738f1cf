"""Which nodes are tried, how long, and what then: the ordered attempts in which a chain ends.

    sets and scores ─► course: attempt 0, 1, … ─► the window of one is over ─► the next ─► widen (any eligible node)
                                                                                        or stay (a required set)

A window counts only from the moment at which Slurm has looked at the job after the attempt was written: before that
nothing was tried. Each set gives at most `candidates` attempts, all sets together at most `total`; required sets are
gone through again until `total` is used up. With one candidate that is all there is: one attempt, no window.

A gang that has room on fewer nodes than Slurm might take tries those few first (`bounded`), where no hook prefers any:

    the first request          the same job later
    with a maximum             keeps one, be it as high as its tasks: Slurm can raise a maximum, not take it away
    without                    never gets one: it could not be taken away again, and the job would have to be a new one
    other number of members    is looked at anew: that is an update in any case
"""

import dataclasses
import enum
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping

from slurm_bridge.hooks.base import Nodes, NodeSet

#: A first candidate set holds at least so many nodes: fewer would only make the job wait longer than others.
FEWEST = 10

#: For how many seconds the fewest nodes alone are tried. Slurm has looked when it begins: what had the room then has
#: started, and what has not waits only for jobs that are just ending. Any longer delays a gang that can start on more.
FEW_SECONDS = 3.0


class Then(enum.Enum):
    """What follows when an attempt's window is over."""

    NEXT = "next"
    STAY = "stay"
    WIDEN = "widen"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many candidate sets of one node set, how long each, how many attempts in all, and the last step."""

    candidates: int = 3
    window_seconds: float = 45.0
    total: int = 10
    then: Then = Then.WIDEN


DEFAULTS = Limits()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Nodes to try, None for all that are eligible; without a window it is not left. `most` is a node maximum."""

    nodes: Nodes | None = None
    most: int | None = None
    name: str = ""
    window_seconds: float | None = None
    then: Then = Then.STAY


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All attempts in order. `version` is equal for courses through the same sets."""

    attempts: tuple[Attempt, ...]
    version: str


#: Nothing prefers any nodes: one attempt, at all of them.
PLAIN = Course(attempts=(Attempt(),), version="0")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """Which attempt of which course runs since when (Unix time); `seen` is when we saw that Slurm had looked at it.

    The text goes into the owner record. A restart reads it and resumes; only `seen` is lost, which lengthens a window.
    """

    version: str
    attempt: int
    started: float
    seen: float | None = None

    @property
    def text(self) -> str:
        """`version:attempt:start`."""
        return f"{self.version}:{self.attempt}:{int(self.started)}"

    @classmethod
    def parse(cls, text: str) -> "PlanState | None":
        """What `text` wrote; None for anything else, which is then planned anew."""
        parts = text.split(":")
        if len(parts) != 3 or not parts[0] or not all(part.isascii() and part.isdigit() for part in parts[1:]):  # noqa: PLR2004
            return None
        return cls(version=parts[0], attempt=int(parts[1]), started=float(parts[2]))

    @classmethod
    def of_running(cls, text: str) -> "PlanState":
        """Likewise, of a job that lives: one without a readable plan has one that no course knows."""
        return cls.parse(text) or cls(version="", attempt=0, started=0.0)


def course(
    sets: Iterable[NodeSet],
    scores: Mapping[str, float],
    eligible: Nodes,
    count: int,
    limits: Limits,
    suits: Callable[[Nodes], bool] = bool,
) -> Course:
    """The attempts for these node sets, best first; `count` is how many nodes the workload needs.

    Nodes among which it could never start do not `suits`: they would only use up a window.
    """
    chosen = tuple(sets)
    required = any(one.required for one in chosen)
    found = [
        Attempt(nodes=nodes, name=one.name)
        for one in chosen
        for nodes in itertools.islice(tiers(one.nodes, scores, count), limits.candidates)
        if suits(nodes)
    ][: limits.total]
    if not required:
        found = list(itertools.takewhile(lambda one: one.nodes is not eligible and one.nodes != eligible, found))
    if not found:
        return PLAIN
    stay = required or limits.then is Then.STAY
    attempts = _staying(found, limits) if stay else _widening(found, limits)
    return Course(attempts=attempts, version=_version(attempts))


def tiers(nodes: Nodes, scores: Mapping[str, float], count: int) -> Iterable[Nodes]:
    """The best nodes first where scores tell them apart, then all."""
    best = max(2 * count, FEWEST)
    values = {scores.get(name, 0.0) for name in nodes} if scores else set()
    if len(values) > 1 and best < len(nodes):
        yield frozenset(sorted(nodes, key=lambda name: (-scores.get(name, 0.0), name))[:best])
    yield nodes


def _widening(found: list[Attempt], limits: Limits) -> tuple[Attempt, ...]:
    window = limits.window_seconds
    tried = [dataclasses.replace(one, window_seconds=window, then=Then.NEXT) for one in found]
    tried[-1] = dataclasses.replace(tried[-1], then=Then.WIDEN)
    return (*tried, Attempt(name="any"))


def _staying(found: list[Attempt], limits: Limits) -> tuple[Attempt, ...]:
    if len(found) == 1:
        return (found[0],)
    rounds = itertools.islice(itertools.cycle(found), limits.total)
    tried = [dataclasses.replace(one, window_seconds=limits.window_seconds, then=Then.NEXT) for one in rounds]
    return (*tried[:-1], dataclasses.replace(tried[-1], window_seconds=None, then=Then.STAY))


def bounded(course: Course, previous: PlanState | None, tasks: int, fewest: Callable[[], int | None]) -> Course:
    """The course for a gang of so many tasks; `fewest` tells on how few nodes it might start, and is asked but once.

    The answer is part of the version: it stands as long as the members do, whatever becomes of the room meanwhile.
    """
    before = _BOUND.search(previous.version) if previous is not None else None
    if previous is not None and before is None:
        return course
    if course is not PLAIN:
        number = None
    elif before is not None and int(before["tasks"]) == tasks:
        number = int(before["most"])
    else:
        number = fewest()
    if number is None and before is None:
        return course
    return _bounded(course, min(number or tasks, tasks), tasks)


#: What `bounded` adds to a version.
_BOUND = re.compile(r"\.(?P<most>[0-9]+)-(?P<tasks>[0-9]+)$")


def _bounded(course: Course, most: int, tasks: int) -> Course:
    first = (Attempt(most=most, name="fewest nodes", window_seconds=FEW_SECONDS, then=Then.WIDEN),)
    others = tuple(dataclasses.replace(one, most=tasks) for one in course.attempts)
    attempts = (*first, *others) if most < tasks else others
    return Course(attempts=attempts, version=f"{course.version}.{most}-{tasks}")


def _version(attempts: tuple[Attempt, ...]) -> str:
    """Of the sets' names, not of their nodes: a node that comes or goes must not start the course anew."""
    words = "\0".join(f"{attempt.name}\1{attempt.window_seconds}\1{attempt.then.value}" for attempt in attempts)
    return hashlib.blake2s(words.encode(), digest_size=4).hexdigest()


def resume(course: Course, previous: PlanState | None, now: float) -> PlanState:
    """The attempt that runs already, when it belongs to this course; else the first."""
    if previous is not None and previous.version == course.version and previous.attempt < len(course.attempts):
        return previous
    return PlanState(version=course.version, attempt=0, started=now)


def advance(course: Course, state: PlanState, *, now: float, last_evaluation: float, updated_at: float) -> PlanState:
    """The state after a look at the clock: a new attempt when the window is over, else the same attempt.

    `last_evaluation` is when Slurm last looked at the job, `updated_at` when the attempt was written, on one clock.
    """
    window = course.attempts[state.attempt].window_seconds
    if window is None or last_evaluation <= updated_at:
        return state
    if state.seen is None:
        return dataclasses.replace(state, seen=now)
    if now - state.seen < window:
        return state
    return PlanState(version=state.version, attempt=state.attempt + 1, started=now)
