"""The tables of metrics for docs/metrics.md and docs/agents.md, from the instruments themselves."""

from slurm_bridge.telemetry.agents import AgentMetrics
from slurm_bridge.telemetry.instruments import Instruments
from slurm_bridge.telemetry.metrics import Metrics


def table() -> str:
    """Of the daemon."""
    return _table(Metrics())


def agents_table() -> str:
    """Of an agent."""
    return _table(AgentMetrics())


def _table(of: Instruments) -> str:
    """One row for each metric: name, type, labels, meaning."""
    rows = [
        f"| `{row.name}` | {row.type} | {' '.join(f'`{label}`' for label in row.labels)} | {row.meaning} |"
        for row in sorted(of.described, key=lambda row: row.name)
    ]
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *rows]) + "\n"
