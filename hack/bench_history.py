"""docs/performance.tsv, the history of figures. Every run of three rounds or more adds a line for each figure."""

import csv
import dataclasses
import pathlib
import statistics
from collections.abc import Iterable, Sequence

PROJECT = pathlib.Path(__file__).resolve().parents[1]
HISTORY = PROJECT / "docs" / "performance.tsv"

#: Runs of fewer rounds say little: the speed of a machine varies from turn to turn.
ROUNDS = 3

#: The contestant, the figure, and its value in each round.
Values = tuple[str, str, Sequence[float]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """When one part of the benchmark ran, on which commit, and how large it was. `part`: what was measured."""

    when: str
    commit: str
    processors: int
    part: str
    nodes: int
    workloads: int
    rounds: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of one contestant, or of two that are compared: the median of the rounds, the least and the most."""

    run: Run
    who: str
    what: str
    median: float
    least: float
    most: float


_RUN = tuple(field.name for field in dataclasses.fields(Run))
_COLUMNS = (*_RUN, "who", "what", "median", "least", "most")
_NUMBERS = ("processors", "nodes", "workloads", "rounds")


def add(run: Run, found: Iterable[Values], path: pathlib.Path = HISTORY) -> None:
    """Append a line for each figure that has a value."""
    begun = path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter="\t", lineterminator="\n")
        if not begun:
            lines.writerow(_COLUMNS)
        for who, what, values in found:
            if values:
                spread = (statistics.median(values), min(values), max(values))
                lines.writerow([*dataclasses.astuple(run), who, what, *(f"{value:.4g}" for value in spread)])


def read(path: pathlib.Path = HISTORY) -> list[Figure]:
    """All of them, the oldest first."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_figure(line) for line in csv.DictReader(file, delimiter="\t")]


def newest(figures: Sequence[Figure], part: str) -> list[Figure]:
    """Those of the last run that measured this part."""
    mine = [one for one in figures if one.run.part == part]
    return [one for one in mine if one.run == mine[-1].run]


def _figure(line: dict[str, str]) -> Figure:
    told = {name: int(line[name]) if name in _NUMBERS else line[name] for name in _RUN}
    spread = {name: float(line[name]) for name in ("median", "least", "most")}
    return Figure(run=Run(**told), who=line["who"], what=line["what"], **spread)  # type: ignore[arg-type]
