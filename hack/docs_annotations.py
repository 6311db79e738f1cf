"""The table of docs/annotations.md, from the rows that the program itself reads annotations by."""

from slurm_bridge.translate import annotations


def table() -> str:
    """One row for each key."""
    rows = [_row(row) for row in sorted(annotations.ANNOTATIONS, key=lambda row: (row.hint, row.key))]
    return "\n".join(["| key | allowed is | becomes | example | note |", "|---|---|---|---|---|", *rows]) + "\n"


def _row(row: annotations.AnnotationRow) -> str:
    becomes = row.becomes if row.hint else f"`{row.field}`"
    note = f"{row.note} (policy)" if row.guarded else row.note
    cells = (f"`{row.key}`", row.form.words, becomes, f"`{row.example}`", note)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
