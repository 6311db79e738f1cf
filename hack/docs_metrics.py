"""The table of metrics for docs/metrics.md, from the instruments themselves."""

from slurm_bridge.telemetry.metrics import Metrics


def table() -> str:
    """One row for each metric: name, type, labels, meaning."""
    rows = [
        f"| `{row.name}` | {row.type} | {' '.join(f'`{label}`' for label in row.labels)} | {row.meaning} |"
        for row in sorted(Metrics().described, key=lambda row: row.name)
    ]
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *rows]) + "\n"
