"""From moments to the figures of a turn, and from turns to the figures of a contestant. Pure."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self, TypeVar


class Played(Protocol):
    """Something that one contestant did."""

    @property
    def who(self) -> str:
        """Its name."""


T = TypeVar("T", bound=Played)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Milliseconds."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Self | None:
        """None of nothing."""
        ordered = sorted(seconds)
        if not ordered:
            return None
        p50, p95, p99 = (round(1000 * percentile(ordered, part), 1) for part in (0.50, 0.95, 0.99))
        return cls(p50=p50, p95=p95, p99=p99)


def percentile(ordered: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of all does not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One contestant, once: all workloads from creation to their nodes."""

    who: str
    pods: int
    seconds: float
    created_to_bound: Percentiles | None
    running_to_bound: Percentiles | None
    cpu: Mapping[str, float]
    machine: float
    calls: Mapping[str, Mapping[str, float]]
    emptied_seconds: float

    @property
    def rate(self) -> float:
        """Pods per second, from the first creation to the last binding."""
        return self.pods / self.seconds

    @property
    def cpu_per_pod(self) -> float:
        """Milliseconds of all processes together."""
        return 1000 * sum(self.cpu.values()) / self.pods

    @property
    def elsewhere(self) -> float:
        """Processors that something else kept busy meanwhile: the noise of this turn."""
        return max(0.0, self.machine - sum(self.cpu.values())) / self.seconds

    def calls_per_pod(self, side: str) -> float:
        """Calls that one server counted."""
        return sum(self.calls.get(side, {}).values()) / self.pods


def seconds(created: Mapping[str, float], bound: Mapping[str, float]) -> float:
    """From the first creation to the last binding."""
    return max(bound.values()) - min(created.values())


def between(earlier: Mapping[str, float], later: Mapping[str, float]) -> list[float]:
    """How long each took that has both moments; never below 0, though two readers of a clock may differ by a blink."""
    return [max(0.0, later[name] - earlier[name]) for name in later if name in earlier]


def median(turns: Sequence[T], figure: Callable[[T], float | None]) -> float | None:
    """The middle of what the turns say, None when they say nothing."""
    found = [value for turn in turns if (value := figure(turn)) is not None]
    return statistics.median(found) if found else None


def ratios(turns: Sequence[T], who: str, beside: str, figure: Callable[[T], float | None]) -> list[float]:
    """A figure of one by that of the other, round by round, where both have it: what slows the machine slows both."""
    return [one / other for one, other in _pairs(turns, who, beside, figure)]


def differences(turns: Sequence[T], who: str, beside: str, figure: Callable[[T], float | None]) -> list[float]:
    """How much more one has than the other, likewise."""
    return [one - other for one, other in _pairs(turns, who, beside, figure)]


def _pairs(
    turns: Sequence[T], who: str, beside: str, figure: Callable[[T], float | None]
) -> Iterator[tuple[float, float]]:
    ours, theirs = ([figure(turn) for turn in turns if turn.who == name] for name in (who, beside))
    for one, other in zip(ours, theirs, strict=False):
        if one is not None and other is not None:
            yield one, other


def spread(values: Sequence[float]) -> dict[str, float]:
    """The middle, the least and the most; nothing of nothing."""
    if not values:
        return {}
    found = {"median": statistics.median(values), "least": min(values), "most": max(values)}
    return {name: round(value, 3) for name, value in found.items()}


def order(names: Sequence[str], round_: int) -> list[str]:
    """Each round begins with another one, so that none always comes first."""
    start = round_ % len(names)
    return [*names[start:], *names[:start]]
