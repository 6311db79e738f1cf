"""Turns as a table for people and a document for programs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import bench_history
from clusterbench import figures, turns
from clusterbench.contestants import ALL, KUBE_SCHEDULER, OURS, RATED, RAW
from localcluster.config import Config

_WHO = (OURS.name, RATED.name, ALL.name, RAW.name, KUBE_SCHEDULER.name)

#: Each contestant and the one that it is compared with.
_PAIRS = ((OURS.name, RAW.name), (OURS.name, KUBE_SCHEDULER.name), (RATED.name, OURS.name), (ALL.name, OURS.name))

_CPU = "CPU ms per pod"
#: The contestant's own process.
OWN = "the contestant"

#: Percentiles of these two, one figure for each of the rest.
_FIGURES: Sequence[tuple[str, Callable[[figures.Turn], float | None]]] = (
    ("pods/s, created to bound", lambda turn: turn.rate),
    ("ms created to bound, p50", lambda turn: turn.created_to_bound.p50 if turn.created_to_bound else None),
    ("ms created to bound, p95", lambda turn: turn.created_to_bound.p95 if turn.created_to_bound else None),
    ("ms created to bound, p99", lambda turn: turn.created_to_bound.p99 if turn.created_to_bound else None),
    ("ms RUNNING to bound, p50", lambda turn: turn.running_to_bound.p50 if turn.running_to_bound else None),
    ("ms RUNNING to bound, p95", lambda turn: turn.running_to_bound.p95 if turn.running_to_bound else None),
    ("ms RUNNING to bound, p99", lambda turn: turn.running_to_bound.p99 if turn.running_to_bound else None),
    ("messages to slurmctld per pod", lambda turn: turn.calls_per_pod("slurmctld")),
    ("requests to apiserver per pod", lambda turn: turn.calls_per_pod("apiserver")),
    ("seconds until all was gone", lambda turn: turn.emptied_seconds),
    ("processors busy with something else", lambda turn: turn.elsewhere),
    (f"{_CPU}, all processes", lambda turn: turn.cpu_per_pod),
)

#: Speed is what counts; pods per second of CPU is what it would be on a machine that does nothing else.
_COMPARED: Mapping[str, Callable[[figures.Turn], float]] = {
    "pods/s": lambda turn: turn.rate,
    "pods per CPU second": lambda turn: 1000 / turn.cpu_per_pod,
}


def line(turn: figures.Turn) -> str:
    """One turn, as it ends."""
    return (
        f"{turn.who:<16} {turn.rate:7.1f} pods/s, {turn.cpu_per_pod:6.2f} ms of CPU per pod, "
        f"{turn.elsewhere:.2f} processors busy elsewhere"
    )


def table(played: Sequence[figures.Turn]) -> str:
    """Medians of every contestant, and how they compare."""
    return "\n\n".join(filter(None, (_table(played), "\n".join(_ratios(played)))))


def values(played: Sequence[figures.Turn]) -> Iterable[bench_history.Values]:
    """Each figure of each contestant and of each comparison, with its value in every round."""
    for who in dict.fromkeys(turn.who for turn in played):
        some = [turn for turn in played if turn.who == who]
        told = {what: [figure(turn) for turn in some] for what, figure in _FIGURES}
        told |= {f"{_CPU}, {OWN}": [_own(turn) for turn in some]}
        told |= {f"{_CPU}, {name}": [_of(turn, name) for turn in some] for name in _processes(some) if name != who}
        for what, found in told.items():
            yield who, what, [value for value in found if value is not None]
    for who, beside in _PAIRS:
        for what, compared in _COMPARED.items():
            yield f"{who} / {beside}", what, figures.ratios(played, who, beside, compared)
        yield f"{who} - {beside}", f"{_CPU}, {OWN}", figures.differences(played, who, beside, _own)


def document(config: Config, played: Sequence[figures.Turn]) -> dict[str, object]:
    """The same, with every turn."""
    ratios = {
        f"{who} by {beside}: {what}": figures.spread(figures.ratios(played, who, beside, figure))
        for who, beside in _PAIRS
        for what, figure in _COMPARED.items()
    }
    return {"throughput": {"nodes": config.nodes, "turns": [turns.as_json(turn) for turn in played], "ratios": ratios}}


def _table(played: Sequence[figures.Turn]) -> str:
    present = [who for who in _WHO if any(turn.who == who for turn in played)]
    by_who = [[turn for turn in played if turn.who == who] for who in present]
    rows = [["median of the turns", *present]]
    rows += [[what, *(cell(figures.median(some, figure)) for some in by_who)] for what, figure in _FIGURES]
    for process in _processes(played):
        rows.append([f"{_CPU}, {process}", *(cell(_cpu(some, process)) for some in by_who)])
    return "\n".join(f"{row[0]:<40}" + "".join(f"{cell:>16}" for cell in row[1:]) for row in rows)


def _processes(played: Sequence[figures.Turn]) -> list[str]:
    """The contestants last: each has its own column."""
    found = list(dict.fromkeys(name for turn in played for name in turn.cpu))
    return sorted(found, key=lambda name: name in _WHO)


def _cpu(some: Sequence[figures.Turn], process: str) -> float | None:
    return figures.median(some, lambda turn: _of(turn, process))


def cell(value: float | None) -> str:
    """A figure with three digits."""
    return "-" if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}"  # noqa: PLR2004 - three digits


def _own(turn: figures.Turn) -> float | None:
    """Milliseconds of the contestant itself per pod."""
    return _of(turn, turn.who)


def _of(turn: figures.Turn, process: str) -> float | None:
    """Milliseconds of one process per pod."""
    return 1000 * turn.cpu[process] / turn.pods if process in turn.cpu else None


def _ratios(played: Sequence[figures.Turn]) -> Iterable[str]:
    for who, beside in _PAIRS:
        for what, figure in _COMPARED.items():
            if spread := figures.spread(figures.ratios(played, who, beside, figure)):
                yield (
                    f"{who} / {beside}, {what} within a round: "
                    f"{spread['median']:.2f} (from {spread['least']:.2f} to {spread['most']:.2f})"
                )
        if beside == OURS.name and (more := figures.spread(figures.differences(played, who, beside, _own))):
            yield (
                f"{who} - {beside}, ms of its own CPU per pod within a round: "
                f"{more['median']:.2f} (from {more['least']:.2f} to {more['most']:.2f})"
            )
