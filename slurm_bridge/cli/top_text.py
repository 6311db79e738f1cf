"""What `slurm-bridge top` shows, as lines of spans: text, and in which style. Nothing here touches the terminal."""

import datetime as dt
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.cli import live_rows
from slurm_bridge.cli.live_rows import LiveRows, Row, RowChoice
from slurm_bridge.model import texts

#: A text and the name of its style: a stage, or one of these.
Span = tuple[str, str]
Line = Sequence[Span]
PLAIN, DIM, BOLD, HEAD, CHOSEN, OURS, OTHER, NATIVE = ("", "dim", "bold", "head", "chosen", "ours", "other", "native")

VIEWS: Final = ("workloads", "nodes", "queues", "decisions")

#: Columns of workloads: title, width (0: what is left), and whether numbers are aligned at the right.
_COLUMNS: Final = (
    ("STAGE", 9, False),
    ("WORKLOAD", -2, False),
    ("PODS", 7, True),
    ("CPUS", 5, True),
    ("MEMORY", 9, True),
    ("GPUS", 4, True),
    ("JOB", 10, True),
    ("START", 9, True),
    ("AGE", 8, True),
    ("WHY, OR WHERE", -3, False),
)
#: Columns that a narrow terminal leaves out, the first one first.
_NEEDLESS: Final = ("GPUS", "START", "MEMORY", "JOB", "PODS", "CPUS", "AGE")
_NARROWEST: Final = 34
_BAR: Final = 24
#: A cell shows so many letters at most: those that take no cell stand on others.
_LETTERS: Final = 4


def width_of(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(letter) in "WF" else not unicodedata.combining(letter) for letter in text
    )


def fit(text: str, width: int, *, right: bool = False) -> str:
    """The text in just so many cells. Of a text of any length no more letters are looked at than could be shown."""
    most = _LETTERS * max(0, width)
    if len(text) > most or width_of(text) > width:
        text = text[:most]
        while text and width_of(text) > width - 1:
            text = text[:-1]
        text += "…" if width > 0 else ""
    room = " " * max(0, width - width_of(text))
    return room + text if right else text + room


def header(rows: LiveRows, note: str, view: str, choice: RowChoice) -> list[Line]:
    """The first lines: what there is in all, and the views."""
    counted, held = live_rows.stages(rows.workloads.values()), live_rows.totals(rows.nodes.values())
    first: list[Span] = [("slurm-bridge ", BOLD), (f"{rows.about.get('cluster', '')}  ", DIM), (f"{note}   ", DIM)]
    for stage in ("running", "starting", "queued", "held"):
        first += [(f"{counted.get(stage, 0)}", stage), (f" {stage}   ", PLAIN)]
    second: list[Span] = []
    for title, kind in (("CPUs", "cpus"), ("Memory", "memory"), ("GPUs", "gpus")):
        there, used = held[kind]
        if there:
            written = f"{_amount(kind, used)} of {_amount(kind, there)}"
            second += [(f"{title} ", DIM), *_bar((there, used, 0, 0), _BAR // 2), (f" {written}   ", PLAIN)]
    tabs: list[Span] = []
    for number, name in enumerate(VIEWS, start=1):
        tabs += [(f" {number} {name} ", CHOSEN if name == view else DIM), (" ", PLAIN)]
    if view == VIEWS[0]:
        order = f"order: {choice.order}{' (reversed)' if choice.reverse else ''}"
        more = [f"stage: {choice.stages}", order, *([f"reason: {choice.reason}"] if choice.reason else [])]
        tabs.append((f"  {'   '.join([*more, *([f'search: {choice.text}'] if choice.text else [])])}", DIM))
    return [first, second, [(text, DIM) for text in _reasons(rows)], tabs]


def _reasons(rows: LiveRows) -> Iterator[str]:
    found = live_rows.reasons(rows.workloads.values())
    yield "waiting for  " if found else ""
    yield "   ".join(f"{reason} {number}" for reason, number in found[:8])


def workloads(found: Sequence[Row], width: int, now: float) -> tuple[Line, Iterator[Line]]:
    """The head, and a line for each workload."""
    columns = list(_COLUMNS)
    for title in _NEEDLESS:
        if _left(columns, width) >= _NARROWEST:
            break
        columns = [one for one in columns if one[0] != title]
    left = _left(columns, width)
    widths = {title: wide if wide > 0 else max(6, left * -wide // 5) for title, wide, _ in columns}
    head = "  ".join(fit(title, widths[title], right=right) for title, _, right in columns)
    return [(head, HEAD)], (_workload(row, columns, widths, now) for row in found)


def _left(columns: Sequence[tuple[str, int, bool]], width: int) -> int:
    return width - sum(wide for _, wide, _ in columns if wide > 0) - 2 * (len(columns) - 1)


def _workload(row: Row, columns: Sequence[tuple[str, int, bool]], widths: Mapping[str, int], now: float) -> Line:
    kind = "" if row["kind"] == "Pod" else f" {row['kind']}"
    cells = {
        "STAGE": row["stage"],
        "WORKLOAD": f"{row['namespace']}/{row['name']}{kind}",
        "PODS": str(row["pods"]) if row["pods"] == 1 else f"{row['bound']}/{row['pods']}",
        "CPUS": str(row["cpus"]),
        "MEMORY": live_rows.mebibytes(row["memory"]),
        "GPUS": str(row["gpus"] or ""),
        "JOB": str(row["job"] or ""),
        "START": _start(row, now),
        "AGE": texts.span(now - row["created"]) if row["created"] else "",
        "WHY, OR WHERE": why(row),
    }
    spans: list[Span] = []
    for title, _, right in columns:
        style = row["stage"] if title == "STAGE" else PLAIN
        spans += [(fit(cells[title], widths[title], right=right), style), ("  ", PLAIN)]
    return spans[:-1]


def why(row: Row) -> str:
    """Why it waits; of one that runs, where."""
    if row["reason"] or row["message"]:
        return " ".join(one for one in (row["reason"], row["message"]) if one)
    more = f" and {row['node_count'] - len(row['nodes'])} more" if row["node_count"] > len(row["nodes"]) else ""
    return f"on {', '.join(row['nodes'])}{more}" if row["nodes"] else ""


def _start(row: Row, now: float) -> str:
    if row["stage"] != "queued" or not row["starts"]:
        return ""
    return f"in {texts.span(row['starts'] - now)}" if row["starts"] > now else "soon"


def _amount(kind: str, number: int) -> str:
    return live_rows.mebibytes(number) if kind == "memory" else str(number)


def _bar(amounts: Sequence[int], width: int) -> list[Span]:
    """All, held by our pods, by other pods, by other jobs; the letters tell them apart without colours."""
    there, done, spans = amounts[0], 0, list[Span]()
    total = 0
    for number, letter, style in zip(amounts[1:], "█▓▒", (OURS, OTHER, NATIVE), strict=True):
        total += number
        cells = min(width, round(width * total / there)) - done if there else 0
        spans.append((letter * max(0, cells), style))
        done += max(0, cells)
    return [*spans, ("·" * (width - done), DIM)]


def nodes(found: Sequence[Row], width: int) -> tuple[Line, Iterator[Line]]:
    """The head, and a line for each node: what is held, by which holders."""
    name = max([12, *(width_of(row["name"]) for row in found[:200])])
    wide = max(8, min(_BAR, (width - name - 10 - 5 - 3 * 14 - 10) // 3))
    titles = "  ".join(fit(title, wide + 14) for title in ("CPUS █ ours ▓ other pods", "MEMORY ▒ other jobs", "GPUS"))
    head = f"{fit('NODE', name)}  {fit('STATE', 8)}  {fit('PODS', 4, right=True)}  {titles}"
    return [(fit(head, width), HEAD)], (_node(row, name, wide) for row in found)


def _node(row: Row, name: int, wide: int) -> Line:
    spans: list[Span] = [(fit(row["name"], name), PLAIN), ("  ", PLAIN), (fit(row["state"], 8), row["state"])]
    spans.append((f"  {fit(str(row['pods']), 4, right=True)}  ", PLAIN))
    for kind in ("cpus", "memory", "gpus"):
        there = row[kind][0]
        free = _amount(kind, max(0, there - sum(row[kind][1:])))
        if there:
            spans += [*_bar(row[kind], wide), (fit(f" {free} free", 14), DIM), ("  ", PLAIN)]
    return [*spans, (row["why"], DIM)]


def queues(rows: LiveRows) -> Iterator[Line]:
    """The trees of queues, then namespaces."""
    for tree in rows.queues:
        yield [(f"queues of partition {tree['partition']}", BOLD)]
        titles = ("USED", "GUARANTEED", "MAX")
        columns = "".join(f"{fit(title, 26)}  " for title in titles)
        yield [(f"{fit('QUEUE', 30)}  {columns}{fit('RUNS', 6, right=True)}  {fit('WAIT', 6, right=True)}", HEAD)]
        for queue in tree["queues"]:
            path = str(queue["path"])
            name = "  " * int(queue["depth"]) + (path.rpartition(".")[2] if queue["depth"] else path)
            amounts = "".join(f"{fit(_listed(queue[field]), 26)}  " for field in ("used", "guaranteed", "max"))
            numbers = f"{fit(str(queue['running']), 6, right=True)}  {fit(str(queue['waiting']), 6, right=True)}"
            yield [(fit(name, 30), PLAIN), (f"  {amounts}{numbers}", PLAIN)]
        yield []
    yield [("namespaces", BOLD), (f"   at most {rows.about.get('window', 0)} jobs wait in Slurm at a time", DIM)]
    columns = "  ".join(fit(title, 8, right=True) for title in ("RUNNING", "CPUS", "GPUS", "QUEUED", "HELD"))
    yield [(f"{fit('NAMESPACE', 30)}  {columns}", HEAD)]
    for name, counted in sorted(_namespaces(rows).items(), key=lambda one: (-one[1][0], one[0])):
        numbers = "  ".join(fit(str(number), 8, right=True) for number in counted)
        yield [(f"{fit(name, 30)}  {numbers}", PLAIN)]


def _namespaces(rows: LiveRows) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows.workloads.values():
        counted = found.setdefault(row["namespace"], [0, 0, 0, 0, 0])
        if row["stage"] in ("running", "starting"):
            counted[0] += 1
            counted[1] += row["cpus"]
            counted[2] += row["gpus"]
        elif row["stage"] in ("queued", "held"):
            counted[3 if row["stage"] == "queued" else 4] += 1
    return found


def _listed(amounts: Mapping[str, int]) -> str:
    parts = [_resource(name, number) for name, number in amounts.items() if name != "pods"]
    return ", ".join(parts) or "-"


def _resource(name: str, number: int) -> str:
    """An amount as the queues count it: cpus in thousandths, memory in bytes."""
    if name == "vcore":
        return f"{number / 1000:g} CPUs"
    return live_rows.mebibytes(round(number / 2**20)) if name == "memory" else f"{number} {name.rpartition('/')[2]}"


def decisions(rows: LiveRows, width: int) -> tuple[Line, Iterator[Line]]:
    """The head, and the latest decisions."""
    name = max(20, width // 4)
    head = f"{fit('TIME', 8)}  {fit('WORKLOAD', name)}  {fit('REASON', 22)}  MESSAGE"
    lines: Iterator[Line] = (
        [
            (f"{_clock(row['at'])}  ", DIM),
            (f"{fit('{namespace}/{name}'.format(**row), name)}  ", PLAIN),
            (f"{fit(row['reason'], 22)}  ", "failed" if row["warning"] else BOLD),
            (row["message"], PLAIN),
        ]
        for row in rows.decisions
    )
    return [(fit(head, width), HEAD)], lines


def _clock(at: float) -> str:
    return dt.datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def detail(found: Mapping[str, Any], now: float, width: int) -> Iterator[Line]:
    """One workload: why it waits and what to do, its timeline, its members and its jobs."""
    yield [(f"{found['kind']} {found['namespace']}/{found['name']}  ", BOLD), (found["stage"], found["stage"])]
    yield []
    if found["reason"] or found["message"]:
        yield [(found["reason"], BOLD)]
        yield from ([(line, PLAIN)] for line in wrapped(found["message"], width))
    if found["step"]:
        yield from ([(line, "running")] for line in wrapped(f"next step: {found['step']}", width))
    yield []
    yield [("timeline", HEAD)]
    for line in found["timeline"]:
        away = line["at"] - now
        far = f"in {texts.span(away)}" if away > 0 else f"{texts.span(-away)} ago"
        yield [(f"{_clock(line['at'])}  ", DIM), (fit(far, 14), DIM), (line["text"], PLAIN)]
    yield []
    yield [(_pods(found["row"]["pods"]), HEAD)]
    for pod in found["members"]:
        yield [
            (f"{fit(pod['name'], min(60, width // 2))}  ", PLAIN),
            (fit(pod["state"], 10), DIM),
            (pod["node"], PLAIN),
        ]
    if found["jobs"]:
        yield []
        yield [("jobs", HEAD)]
    for job in found["jobs"]:
        yield from ([(line, PLAIN)] for line in wrapped(f"attempt {job['attempt']}: {job['text']}", width))


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def node_detail(row: Row, found: Mapping[str, Any], width: int) -> Iterator[Line]:
    """One node and its pods."""
    yield [(f"node {row['name']}  ", BOLD), (row["state"], row["state"])]
    yield [(row["why"], PLAIN)]
    yield [(f"partitions: {', '.join(row['partitions'])}", DIM)]
    yield []
    for kind in ("cpus", "memory", "gpus"):
        if row[kind][0]:
            there, ours, other, native = (_amount(kind, number) for number in row[kind])
            text = f" {ours} by pods of this bridge, {other} by other pods, {native} by other jobs, of {there}"
            yield [(fit(kind, 8), DIM), *_bar(row[kind], _BAR), (text, PLAIN)]
    yield []
    yield [(_pods(row["pods"]), HEAD)]
    for pod in found["pods"]:
        held = f"{pod['cpus']} CPUs" + (f", {pod['gpus']} GPUs" if pod["gpus"] else "")
        job = f", job {pod['job']}" if pod["job"] else ""
        name = f"{pod['namespace']}/{pod['name']}"
        yield [(f"{fit(name, min(60, width // 2))}  ", PLAIN), (held + job, DIM)]
    if found["unseen"]:
        yield [(f"and {found['unseen']} that are not shown", DIM)]


def explanation(found: Mapping[str, Any], width: int) -> Iterator[Line]:
    """An explanation: all of it where the viewer may see that, else its summary."""
    if found["text"]:
        yield from ([(line, PLAIN)] for line in str(found["text"]).splitlines())
        return
    yield [(found["title"], BOLD)]
    yield from ([(line, PLAIN)] for line in wrapped(f"{found['reason']} {found['message']}", width))
    yield from ([(line, "running")] for line in wrapped(found["step"], width))
    yield [(f"{found['eligible']} nodes are eligible", PLAIN)]
    yield from ([(f"{number} {reason}", DIM)] for reason, number in found["excluded"].items())


def wrapped(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most so many cells."""
    line = ""
    for word in text.split():
        if line and width_of(line) + 1 + width_of(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


def plain(lines: Iterable[Line]) -> Iterator[str]:
    """The lines without styles, for a pipe."""
    return ("".join(text for text, _ in clean(line)).rstrip() for line in lines)


def clean(line: Line) -> Iterator[Span]:
    """The line as it may be written to a terminal, which obeys nothing of it. No other function here sees to that."""
    return ((texts.plain(text), style) for text, style in line)
