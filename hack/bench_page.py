"""The newest figures of the history as docs/performance.md shows them: tables, and a picture. Pure."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from bench_history import Figure, Run, newest

PART = "single pods"
#: The same on a larger cluster, and what of it is shown.
LARGER = "single pods on more nodes"
_IN_SHORT = ("pods/s, created to bound", "CPU ms per pod, the contestant", "CPU ms per pod, all processes")

#: The rows of the table: how the page calls a figure, and how the history does.
_ROWS = (
    ("pods/s, created to bound", "pods/s, created to bound"),
    ("created to bound, p50, ms", "ms created to bound, p50"),
    ("created to bound, p99, ms", "ms created to bound, p99"),
    ("RUNNING to bound, p50, ms", "ms RUNNING to bound, p50"),
    ("RUNNING to bound, p99, ms", "ms RUNNING to bound, p99"),
    ("messages to slurmctld per pod", "messages to slurmctld per pod"),
    ("requests to the apiserver per pod, all clients", "requests to apiserver per pod"),
    ("CPU per pod, the contestant, ms", "CPU ms per pod, the contestant"),
    ("CPU per pod, all processes, ms", "CPU ms per pod, all processes"),
    ("processors busy with something else", "processors busy with something else"),
)

#: The parts of a bar: what its legend says, its colour, and the processes in it. The last has all that are left.
_PARTS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("the contestant", "#0b6bcb", ("the contestant",)),
    ("kube-apiserver, etcd", "#4c566a", ("kube-apiserver", "etcd")),
    ("slurmctld, slurmrestd", "#c2410c", ("slurmctld", "slurmrestd")),
    ("KWOK, controllers, loader, observer", "#cbd5e1", ()),
)
_CPU = "CPU ms per pod, "
_ALL = "all processes"

_WIDTH, _LEFT, _RIGHT, _TOP, _BAR, _STEP = 920, 150, 190, 60, 22, 34


def table(history: Sequence[Figure]) -> str:
    """Medians with their ranges, a column for each contestant; then the ratios within a round."""
    found = newest(history, PART)
    run = found[0].run
    who = _contestants(found)
    told = {(one.who, one.what): one for one in found}
    rows = [f"| {name} | " + " | ".join(_cell(told.get((one, what))) for one in who) + " |" for name, what in _ROWS]
    ratios = [
        f"| {one.who} | {one.what} | {one.median:.2f} | {one.least:.2f} to {one.most:.2f} |"
        for one in found
        if " / " in one.who
    ]
    lines = [
        f"{run.when[:10]}, commit {run.commit}: {run.nodes} nodes, {run.processors} processors, {run.rounds} rounds of",
        f"{run.workloads} pods of one cpu. Medians of the rounds, and their ranges:",
        "",
        f"| | {' | '.join(who)} |",
        "|---" * (len(who) + 1) + "|",
        *rows,
        "",
        "| within a round | | median | range |",
        "|---|---|---|---|",
        *ratios,
    ]
    return "\n".join(lines) + "\n"


def others(history: Sequence[Figure]) -> str:
    """The other parts of the benchmark: a line for each figure."""
    parts = [part for part in dict.fromkeys(one.run.part for one in history) if part != PART]
    found = [one for part in parts for one in newest(history, part) if part != LARGER or one.what in _IN_SHORT]
    rows = [f"| {_size(one.run)} | {one.who} | {one.what} | {_cell(one)} |" for one in found]
    return "\n".join(["| measured | of | figure | median and range |", "|---|---|---|---|", *rows]) + "\n"


def picture(history: Sequence[Figure]) -> str:
    """An SVG: a bar for each contestant, as long as the CPU that one pod costs all processes."""
    found = newest(history, PART)
    told: dict[str, dict[str, float]] = {}
    for one in found:
        told.setdefault(one.who, {})[one.what] = one.median
    who = _contestants(found)
    per_ms = (_WIDTH - _LEFT - _RIGHT) / max(told[one][_CPU + _ALL] for one in who)
    height = _TOP + _STEP * len(who) + 40
    body = [_text(_LEFT, 28, "CPU per pod by process, and the pods per second that this gives", size=14)]
    for place, name in enumerate(who):
        body += _bar(name, told[name], _TOP + _STEP * place, per_ms)
    x = float(_LEFT)
    for words, colour, _ in _PARTS:
        body += [_box(x, height - 28, 12, 12, colour), _text(x + 18, height - 18, words)]
        x += 40 + 6.6 * len(words)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">\n'
        f'<title>CPU per pod and pods per second</title>\n<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _contestants(found: Sequence[Figure]) -> list[str]:
    """In the order in which the history has them."""
    return list(dict.fromkeys(one.who for one in found if one.what == _CPU + _ALL))


def _size(run: Run) -> str:
    return f"{run.part}: {run.workloads} pods, {run.nodes} nodes, {run.when[:10]}"


def _cell(one: Figure | None) -> str:
    if one is None:
        return ""
    if one.least == one.most:
        return f"**{_number(one.median)}**"
    return f"**{_number(one.median)}** ({_number(one.least)} to {_number(one.most)})"


def _number(value: float) -> str:
    """Three digits; what is larger than that as it is."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2f}"  # noqa: PLR2004


def _bar(name: str, told: Mapping[str, float], top: float, per_ms: float) -> list[str]:
    spent = {what.removeprefix(_CPU): value for what, value in told.items() if what.startswith(_CPU)}
    whole = spent.pop(_ALL)
    drawn, x, left = [_text(_LEFT - 10, top + 15, name, anchor="end")], float(_LEFT), whole
    for _, colour, processes in _PARTS:
        part = sum(spent[one] for one in processes if one in spent) if processes else left
        drawn.append(_box(x, top, max(part, 0) * per_ms, _BAR, colour))
        x, left = x + max(part, 0) * per_ms, left - part
    return [*drawn, _text(x + 10, top + 15, f"{whole:.1f} ms, {told['pods/s, created to bound']:.0f} pods/s")]


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#334155">{escape(words)}</text>'
    )
