"""The tables of docs/workloads.md, one row for each kind of workload."""

from slurm_bridge.workloads.kind_table import KINDS


def kinds() -> str:
    """Which pods are of a kind, and what one workload of it is."""
    rows = [
        f"| {page.title} | {page.pods} | {page.one} | {page.minimum}{' ' if page.minimum else ''}|"
        for page in (spec.page for spec in KINDS)
    ]
    return "\n".join(["| kind | which pods | one workload is | starts from |", "|---|---|---|---|", *rows]) + "\n"


def sources() -> str:
    """Whose annotations count for a workload of a kind, the weakest first."""
    rows = [f"| {spec.page.title} | {spec.page.sources} |" for spec in KINDS]
    return "\n".join(["| workload | annotations of |", "|---|---|", *rows]) + "\n"
