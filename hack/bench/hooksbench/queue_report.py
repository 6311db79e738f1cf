"""What was measured of the queue core, for people, pages and programs, and whether its goal is reached. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from hooksbench.admission import Admitted
from hooksbench.queues import APPLICATIONS, QUEUES, Timing

#: Sorting all applications with a pass over them, and a pass after a change, take fewer milliseconds of processor time.
GOAL_MS = 100.0

#: Below that, tenths are told.
_FEW_MS = 10.0

_TITLE = f"a pass over {APPLICATIONS} applications in {QUEUES} queues"
_PASSES: Mapping[str, str] = {
    "anew": "all sorted anew",
    "one_ended": "one has ended",
    "unchanged": "no news",
}


def line(timing: Timing) -> str:
    """One measurement, as it ends."""
    told = ", ".join(f"{words} {1000 * getattr(timing, field):.1f} ms" for field, words in _PASSES.items())
    return f"{timing.nodes:>6} nodes, {_name(timing):<24} {told}"


def table(timings: Sequence[Timing], admitted: Sequence[Admitted]) -> str:
    """Passes, then admissions: a row for each kind and size."""
    heads = "".join(f"{words:>18}" for words in _PASSES.values())
    rows = (
        f"{_name(one):<24} {one.nodes:>6}" + "".join(f"{1000 * getattr(one, field):>15.1f} ms" for field in _PASSES)
        for one in timings
    )
    passes = "\n".join([f"{_TITLE}, processor time", f"{'short are; order':<24} {'nodes':>6}{heads}", *rows])
    head = f"{'admission by the queue core':<40} {'nodes':>6} {'workloads/s':>12} {'per CPU second':>15}"
    lines = (f"{_behind(one):<40} {one.nodes:>6} {one.rate:>12.0f} {one.cpu_rate:>15.0f}" for one in admitted)
    return "\n\n".join([passes, "\n".join([head, *lines])])


def markdown(timings: Sequence[Timing], admitted: Sequence[Admitted]) -> str:
    """For a page: a table of passes and one of admissions, a column for each size."""
    sizes = sorted({one.nodes for one in timings})
    milliseconds = {
        (f"{words}; {_name(one)}", one.nodes): _short(1000 * getattr(one, field))
        for field, words in _PASSES.items()
        for one in timings
    }
    rates = {(_behind(one), one.nodes): f"{one.rate:.0f}" for one in admitted}
    return "\n\n".join(
        [
            _page_table(f"{_TITLE}, ms of CPU", sizes, milliseconds),
            _page_table("admission by the queue core, workloads/s", sizes, rates),
        ]
    )


def document(timings: Sequence[Timing], admitted: Sequence[Admitted]) -> Mapping[str, object]:
    """Everything."""
    return {
        "applications": APPLICATIONS,
        "queues": QUEUES,
        "goal_milliseconds": GOAL_MS,
        "passes": [dataclasses.asdict(one) for one in timings],
        "admission": [{**dataclasses.asdict(one), "rate": one.rate} for one in admitted],
    }


def missed(timings: Iterable[Timing], tolerance: float) -> list[Timing]:
    """Those over the goal."""
    return [one for one in timings if 1000 * one.longest > GOAL_MS * (1 + tolerance)]


def judgement(timings: Iterable[Timing], tolerance: float) -> str:
    """The goal, line by line."""
    timings = list(timings)
    over = missed(timings, tolerance)
    return "\n".join(
        f"{'MISSED' if one in over else 'reached':<8} {_TITLE}, short are {_name(one)}, {one.nodes} nodes: "
        f"{1000 * one.longest:.0f} ms, goal {GOAL_MS:.0f} ms"
        for one in timings
    )


def _name(timing: Timing) -> str:
    return f"{timing.shortage}; {timing.policy}"


def _behind(one: Admitted) -> str:
    return f"{one.what}, {one.behind} others wait" if one.behind else one.what


def _short(milliseconds: float) -> str:
    return f"{milliseconds:.1f}" if milliseconds < _FEW_MS else f"{milliseconds:.0f}"


def _page_table(title: str, sizes: Sequence[int], values: Mapping[tuple[str, int], str]) -> str:
    names = dict.fromkeys(name for name, _ in values)
    rows = (f"| {name} | " + " | ".join(values.get((name, size), "") for size in sizes) + " |" for name in names)
    heads = " | ".join(f"{size} nodes" for size in sizes)
    return "\n".join([f"| {title} | {heads} |", "|---" * (len(sizes) + 1) + "|", *rows])
