"""From turns to medians, ratios and goals. Pure."""

import dataclasses
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence

#: From so many nodes on a contestant has to reach so many workloads per second, by how alike they are.
GOAL_NODES = 20_000
GOALS: Mapping[str, float] = {"equal": 500.0, "different": 100.0}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One contestant, once: so many workloads on a cluster of so many nodes."""

    who: str
    shapes: str
    nodes: int
    round: int
    workloads: int
    seconds: float
    cpu_seconds: float
    waits: int = 0
    inside: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Workloads per second."""
        return self.workloads / self.seconds

    @property
    def cpu_rate(self) -> float:
        """Workloads per second of processor time: the same on a machine that does nothing else."""
        return self.workloads / self.cpu_seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """All turns of a contestant with one kind of workloads on one size of cluster.

    `ratio` is to another contestant; `parts` are milliseconds of one workload in each phase of each hook.
    """

    who: str
    shapes: str
    nodes: int
    rate: float
    cpu_rate: float
    lowest: float
    highest: float
    ratio: float | None
    parts: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def milliseconds(self) -> float:
        """Of one workload."""
        return 1000 / self.rate


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a row reaches its goal; `allowed` is the goal after the tolerance."""

    row: Row
    goal: float
    allowed: float

    @property
    def met(self) -> bool:
        """By the machine's clock, or by processor time where others kept it busy."""
        return max(self.row.rate, self.row.cpu_rate) >= self.allowed


def rows(turns: Sequence[Turn], beside: str) -> list[Row]:
    """Medians, in the order in which the turns were first played."""
    keys = dict.fromkeys((turn.who, turn.shapes, turn.nodes) for turn in turns)
    return [_row(key, turns, beside) for key in keys]


def verdicts(found: Iterable[Row], judged: Collection[str], tolerance: float) -> list[Verdict]:
    """Of all rows that a goal is set for."""
    return [
        Verdict(row=row, goal=GOALS[row.shapes], allowed=GOALS[row.shapes] * (1 - tolerance))
        for row in found
        if row.nodes >= GOAL_NODES and row.shapes in GOALS and row.who in judged
    ]


def order(names: Sequence[str], round_: int) -> list[str]:
    """Every round begins with another one, so that none always has the same neighbour in time."""
    start = round_ % len(names)
    return [*names[start:], *names[:start]]


def _row(key: tuple[str, str, int], turns: Sequence[Turn], beside: str) -> Row:
    who, shapes, nodes = key
    mine = {turn.round: turn for turn in turns if (turn.who, turn.shapes, turn.nodes) == key}
    theirs = {turn.round: turn for turn in turns if (turn.who, turn.shapes, turn.nodes) == (beside, shapes, nodes)}
    rates = [turn.rate for turn in mine.values()]
    ratios = [turn.rate / theirs[number].rate for number, turn in mine.items() if number in theirs]
    return Row(
        who=who,
        shapes=shapes,
        nodes=nodes,
        rate=statistics.median(rates),
        cpu_rate=statistics.median(turn.cpu_rate for turn in mine.values()),
        lowest=min(rates),
        highest=max(rates),
        ratio=statistics.median(ratios) if ratios and who != beside else None,
        parts=_parts(list(mine.values())),
    )


def _parts(turns: Sequence[Turn]) -> dict[str, float]:
    names = dict.fromkeys(name for turn in turns for name in turn.inside)
    each = ((name, [1000 * turn.inside.get(name, 0.0) / turn.workloads for turn in turns]) for name in names)
    return {name: statistics.median(values) for name, values in each}
