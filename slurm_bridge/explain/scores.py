"""The scores of nodes: a table as text, and JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge.hooks.base import Matrix, Row

#: The table shows this many of the best nodes.
MOST = 8


def lines(matrix: Matrix, *, most: int = MOST) -> Iterator[str]:
    """A row for each priority, a column for each of the best nodes, and the combined row."""
    nodes = sorted(matrix.combined, key=lambda name: (-matrix.combined[name], name))
    shown = nodes[:most]
    rows = [*matrix.rows, Row(name="combined", weight=0, scores=matrix.combined)]
    heads = ["priority (weight)", *(f"{row.name} ({_number(row.weight)})" for row in matrix.rows), "combined"]
    columns = [[name, *(_number(row.scores.get(name, 0.0)) for row in rows)] for name in shown]
    widths = [max(map(len, column)) for column in columns]
    for number, head in enumerate(heads):
        cells = (f"{column[number]:>{width}}" for column, width in zip(columns, widths, strict=True))
        yield f"{head:<{max(map(len, heads))}}  {'  '.join(cells)}"
    if len(nodes) > most:
        yield f"and {len(nodes) - most} more nodes with lower or equal scores"


def machine(matrix: Matrix) -> Mapping[str, Any]:
    """The JSON document, with all nodes."""
    rows = [{"priority": row.name, "weight": row.weight, "scores": dict(row.scores)} for row in matrix.rows]
    return {"priorities": rows, "combined": dict(matrix.combined)}


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
