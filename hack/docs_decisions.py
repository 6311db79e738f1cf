"""The tables of docs/decisions-table.md, from the rows that the scheduler decides by."""

from collections.abc import Iterable

from slurm_bridge.scheduler import decide
from slurm_bridge.scheduler.decide import Action, DecisionRow, DecisionTable, PlaceholderFact, Pods


def states() -> str:
    """The states of the pods and of the job."""
    pods = [f"| pods | `{one.name}` | {one.value} |" for one in Pods]
    jobs = [f"| job | `{one.name}` | {one.value} |" for one in PlaceholderFact]
    return "\n".join(["| of | state | meaning |", "|---|---|---|", *pods, *jobs]) + "\n"


def rows() -> str:
    """One table for the rows before the view, and one for each view."""
    parts = [_table("Before the view", decide.FIRST)]
    parts += [_table(f"`{view.name}`: {view.value}", decide.ROWS[view]) for view in DecisionTable]
    return "\n".join(parts)


def actions() -> str:
    """What each action is."""
    lines = [f"| `{one.name}` | {one.value} |" for one in Action]
    return "\n".join(["| action | what the scheduler does |", "|---|---|", *lines]) + "\n"


def _table(title: str, found: Iterable[DecisionRow]) -> str:
    lines = [f"| {number} | {row.says} | `{row.action.name}` |" for number, row in enumerate(found, 1)]
    return "\n".join([f"### {title}", "", "| | when | action |", "|---|---|---|", *lines]) + "\n"
