"""The table that `status` prints."""

import dataclasses
from collections.abc import Sequence

from localcluster.config import Config
from localcluster.part import Part, Row, Visible


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One part; no state means that it does not run."""

    name: str
    state: str | None
    shown: Row


def line(part: Part, config: Config, state: str | None) -> Line:
    """Ask a part for what is shown of it."""
    shown = part.row(config) if isinstance(part, Visible) else Row()
    return Line(name=part.name, state=state, shown=shown)


def render(lines: Sequence[Line]) -> str:
    """Columns as wide as their widest cell."""
    cells = [("PART", "PID", "STATE", "ADDRESS", "LOG"), *(_cells(line) for line in lines)]
    widths = [max(len(column) for column in columns) for columns in zip(*cells, strict=True)]
    return "\n".join(_padded(texts, widths) for texts in cells)


def _cells(line: Line) -> tuple[str, str, str, str, str]:
    pid = "-" if line.shown.pid is None else str(line.shown.pid)
    return line.name, pid, line.state or "DOWN", line.shown.address or "-", line.shown.log or "-"


def _padded(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip()
