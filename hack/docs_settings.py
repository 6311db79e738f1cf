"""Tables of the documentation that are made from the settings and the checks."""

from slurm_bridge.checks import table
from slurm_bridge.settings import keys


def reference() -> str:
    """Every key, by group, for docs/configuration.md."""
    rows = [
        f"| `{key.name}` | {key.type} | {key.default} | {'yes' if key.reloadable else ''} | {_cell(key.meaning)} |"
        for key in keys.every()
    ]
    return "\n".join(["| key | type | default | reloaded | meaning |", "|---|---|---|---|---|", *rows]) + "\n"


def checks_table() -> str:
    """Every assumption with its reason and remedy, for docs/operating.md."""
    rows = [f"| {check.name} | {_cell(check.why)} | {_cell(check.fix)} |" for check in table.CHECKS]
    return "\n".join(["| check | why | fix |", "|---|---|---|", *rows]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
