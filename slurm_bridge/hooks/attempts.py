"""Which nodes are tried, how long, and what then: the ordered attempts in which a chain ends.

    sets and scores ─► course: attempt 0, 1, … ─► the window of one is over ─► the next ─► widen (any eligible node)
                                                                                        or stay (a required set)

A window counts only from the moment at which Slurm has looked at the job after the attempt was written: before that
nothing was tried. Each set gives at most `candidates` attempts, all sets together at most `total`; of required sets the
whole ones are gone through again until `total` is used up. With one candidate that is all there is: one attempt, no
window.

Scores cut a set into tiers, the best nodes first. Whether they do is settled when the job is submitted: one that has
been offered all nodes is not kept from them later because some are better by now, and one that began with the best goes
on. Of equal nodes other workloads get others. A tier is written once and not again when the scores move.
"""

import dataclasses
import enum
import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from slurm_bridge.hooks.base import Nodes, NodeSet, Tiers
from slurm_bridge.hooks.combined import Ranking
from slurm_bridge.runtime import frozen_records

#: A first candidate set holds at least so many nodes: fewer would only make the job wait longer than others.
FEWEST = 10


class Then(enum.Enum):
    """What follows when an attempt's window is over."""

    NEXT = "next"
    STAY = "stay"
    WIDEN = "widen"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLimits:
    """How many candidate sets of one node set, how long each, how many attempts in all, and the last step."""

    candidates: int = 3
    window_seconds: float = 45.0
    total: int = 10
    then: Then = Then.WIDEN


DEFAULTS = AttemptLimits()


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Nodes to try, None for all that are eligible; without a window it is not left. `most` is a node maximum.

    `within`: the set of which `nodes` are the best, and equal to it where they are not chosen by their scores.
    `parts`: of a job of several components, which of them each may have. `each`: all of `nodes` are taken, and at most
    so many pods come on each. `lacking`: it is left only while Slurm says that it lacks resources for the job.
    """

    nodes: Nodes | None = None
    within: Nodes | None = None
    most: int | None = None
    name: str = ""
    window_seconds: float | None = None
    then: Then = Then.STAY
    parts: tuple[Nodes, ...] = ()
    each: int | None = None
    lacking: bool = False


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All attempts in order. `version` is equal for courses through the same sets."""

    attempts: tuple[Attempt, ...]
    version: str


class Reached(Protocol):
    """The nodes that are left for a workload."""

    @property
    def every(self) -> Nodes: ...

    @property
    def count(self) -> int:
        """How many of them it takes, as far as it says."""

    @property
    def partial(self) -> bool:
        """Others were not looked at: there is more to try than these."""

    @property
    def changeable(self) -> bool:
        """Slurm can be told of other nodes later."""

    def suits(self, nodes: Nodes) -> bool:
        """Whether it could start on these alone: others would only use up a window."""


#: What `PlanState.text` writes.
_WRITTEN = re.compile(r"(?P<version>[^:]+):(?P<attempt>[0-9]+):(?P<started>[0-9]+)(?::(?P<memo>[^:]+))?", re.ASCII)

#: Nothing prefers any nodes: one attempt, at all of them.
PLAIN = Course(attempts=(Attempt(),), version="0")


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """Which attempt of which course runs since when (Unix time); `seen` is when we saw that Slurm had looked at it.

    `read` is when Slurm had last looked at the job, by its own clock, when we first read this attempt from it; `memo`
    is what hooks noted of their sets. The text goes into the owner record. A restart reads it and resumes; only the
    rest is lost, which lengthens a window.
    """

    version: str
    attempt: int
    started: float
    seen: float | None = None
    read: float | None = None
    memo: str = ""

    @property
    def text(self) -> str:
        """`version:attempt:start`, and the memo where there is one."""
        return f"{self.version}:{self.attempt}:{int(self.started)}{self.memo and f':{self.memo}'}"

    def follows(self, course: Course) -> bool:
        """It is an attempt at the sets of this course, whatever was added to its version."""
        return self.version.partition(".")[0] == course.version.partition(".")[0]

    @classmethod
    def parse(cls, text: str) -> "PlanState | None":
        """What `text` wrote; None for anything else, which is then planned anew."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            return None
        attempt, started = int(found["attempt"]), float(found["started"])
        return cls(version=found["version"], attempt=attempt, started=started, memo=found["memo"] or "")

    @classmethod
    def of_running(cls, text: str) -> "PlanState":
        """Likewise, of a job that lives: one without a readable plan has one that no course knows."""
        return cls.parse(text) or cls(version="", attempt=0, started=0.0)


def memo(notes: Mapping[str, str]) -> str:
    """What hooks note of their sets, by their names, in one word."""
    return ",".join(f"{name}={said}" for name, said in sorted(notes.items()))


def noted(text: str) -> Mapping[str, str]:
    """What `memo` has written."""
    pairs = (one.partition("=") for one in text.split(","))
    return {name: said for name, _, said in pairs if said}


def course(
    sets: Iterable[NodeSet],
    ranking: Ranking,
    reached: Reached,
    limits: AttemptLimits = DEFAULTS,
    previous: PlanState | None = None,
) -> Course:
    """The attempts for these node sets, best first, and where scores tell their nodes apart, the best of them first."""
    chosen = tuple(sets)
    if not (reached.changeable or any(one.required for one in chosen)):
        # There is no second attempt: whatever it begins with it has to do with, however long others have these nodes.
        return PLAIN
    before = previous.version.partition(".")[0] if previous is not None else None
    plain = _course((_whole(one) for one in chosen), chosen, reached, limits, before)
    # A single tier is all of the nodes, whatever their scores.
    single = ranking.scores.tiers is not None and ranking.scores.tiers.count == 1
    if single or not (ranking.scores.nodes and reached.changeable) or before == plain.version:
        return plain
    differ = any(ranking.differ(one.nodes) for one in chosen)
    if before is None and not differ:
        return plain
    tiered = _course((_tiered(one, ranking, reached, limits) for one in chosen), chosen, reached, limits, before)
    return tiered if differ or before == tiered.version else plain


def sizes(first: int, every: int, count: int) -> list[int]:
    """How many nodes the tiers have, the last of so many being all; each is larger by about the same factor."""
    steps = count - 1
    return [min(every, round(first * (every / first) ** (step / steps))) for step in range(steps)]


def _whole(one: NodeSet) -> tuple[Attempt, ...]:
    return (
        Attempt(
            nodes=one.nodes,
            within=one.nodes,
            name=one.name,
            window_seconds=one.seconds,
            parts=one.parts,
            each=one.each,
        ),
    )


def _tiered(one: NodeSet, ranking: Ranking, reached: Reached, limits: AttemptLimits) -> tuple[Attempt, ...]:
    """How many there are depends on the configuration: neither a node that comes nor scores start the course anew.

    A tier on which the job could never start is the next one that will do, and takes no time. A set of which all nodes
    are taken has no best ones.
    """
    if one.each is not None:
        return _whole(one)
    tiers = ranking.scores.tiers or Tiers(count=min(2, limits.candidates), widen_after=limits.window_seconds)
    first = tiers.first or max(2 * reached.count, FEWEST)
    within = None if _same(one.nodes, reached.every) else one.nodes
    cut, following = list(_whole(one)), one.nodes
    every = ranking.best(one.nodes, sizes(first, len(one.nodes), tiers.count))
    for number, best in reversed([*enumerate(every, 1)]):
        does = reached.suits(best)
        following = best if does else following
        # One that is no smaller than the whole set is the whole set: there is nothing to try.
        nodes = within if len(following) == len(one.nodes) else following
        window = tiers.widen_after if does and nodes is best else 0.0
        name = f"{one.name}/tier {number}".lstrip("/")
        cut.append(Attempt(nodes=nodes, within=within, name=name, window_seconds=window))
    return tuple(reversed(cut))


def _course(
    candidates: Iterable[tuple[Attempt, ...]],
    chosen: tuple[NodeSet, ...],
    reached: Reached,
    limits: AttemptLimits,
    before: str | None,
) -> Course:
    """A set that is all there is ends it, unless it was chosen from a part of all, or the course runs already."""
    required = any(one.required for one in chosen)
    found = [one for several in candidates for one in several if one.nodes is None or reached.suits(one.nodes)]
    found = found[: limits.total]
    whole = _made(found, limits, required=required)
    more = reached.partial and any(one.name for one in chosen)
    if required or more or whole.version == before:
        return whole
    every = reached.every
    less = list(itertools.takewhile(lambda one: one.each is not None or not _same(one.within, every), found))
    # A plan that stays with its last attempt needs all nodes as the last one.
    stays = bool(less) and limits.then is Then.STAY
    return whole if stays or len(less) == len(found) else _made(less, limits, required=required)


def _made(found: list[Attempt], limits: AttemptLimits, *, required: bool) -> Course:
    if not found:
        return PLAIN
    if required or limits.then is Then.STAY:
        attempts = _staying(found, limits)
    else:
        tried = [_timed(one, limits) for one in found[:-1]]
        attempts = (*tried, _timed(found[-1], limits, Then.WIDEN), Attempt(name="any"))
    words = "\0".join([f"{attempt.name}\1{attempt.then.value}" for attempt in attempts])
    return Course(attempts=attempts, version=hashlib.blake2s(words.encode(), digest_size=4).hexdigest())


def _same(nodes: Nodes | None, every: Nodes) -> bool:
    """Identity first: sets of thousands are compared name by name."""
    return nodes is every or nodes == every


def _staying(found: list[Attempt], limits: AttemptLimits) -> tuple[Attempt, ...]:
    """Through all of them, and then through the whole sets again; the last one is for good, and so a whole set too."""
    wholes = [one for one in found if one.window_seconds is None] or found[-1:]
    again = itertools.cycle(wholes) if len(wholes) > 1 else ()
    tried = [_timed(one, limits) for one in itertools.islice(itertools.chain(found, again), limits.total)]
    last = dataclasses.replace(tried[-1], nodes=tried[-1].within, window_seconds=None, then=Then.STAY)
    return (*tried[:-1], last)


def _timed(one: Attempt, limits: AttemptLimits, then: Then = Then.NEXT) -> Attempt:
    window = limits.window_seconds if one.window_seconds is None else one.window_seconds
    return rewritten(one, window, then, one.most)


def rewritten(one: Attempt, window: float | None, then: Then, most: int | None) -> Attempt:
    """With these in place of its own. Every workload has some: `dataclasses.replace` takes three times as long."""
    return Attempt(
        nodes=one.nodes,
        within=one.within,
        most=most,
        name=one.name,
        window_seconds=window,
        then=then,
        parts=one.parts,
        each=one.each,
        lacking=one.lacking,
    )


def resume(course: Course, previous: PlanState | None, now: float, memo: str = "") -> PlanState:
    """The attempt that runs already, when it belongs to this course and hooks note the same of it; else the first."""
    same = previous is not None and (previous.version, previous.memo) == (course.version, memo)
    if previous is not None and same and previous.attempt < len(course.attempts):
        return previous
    return PlanState(version=course.version, attempt=0, started=now, memo=memo)


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
    return PlanState(version=state.version, attempt=state.attempt + 1, started=now, memo=state.memo)
