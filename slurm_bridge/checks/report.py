"""Findings as text."""

from collections.abc import Sequence

from slurm_bridge.checks.findings import Finding, Level

_LEAST_URGENT_FIRST = (Level.OK, Level.INFO, Level.WARNING, Level.FAILURE)


def render(findings: Sequence[Finding]) -> str:
    """A table with the remedies, and a last line that counts the findings."""
    wide = max((len(finding.check) for finding in findings), default=0)
    lines = [line for finding in findings for line in _lines(finding, wide)]
    counts = [(level, sum(finding.level is level for finding in findings)) for level in _LEAST_URGENT_FIRST]
    return "\n".join([*lines, ", ".join(f"{count} {level.value}" for level, count in counts if count)])


def status(findings: Sequence[Finding]) -> int:
    """The exit status: 1 if a check failed."""
    return int(any(finding.level is Level.FAILURE for finding in findings))


def _lines(finding: Finding, wide: int) -> list[str]:
    first = f"{finding.level.value:<8}{finding.check:<{wide}}  {finding.message}"
    remedied = finding.fix and finding.level in (Level.WARNING, Level.FAILURE)
    return [first, f"{'':<{8 + wide}}  → {finding.fix}"] if remedied else [first]
