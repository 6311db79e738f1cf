"""The results of checks, the form of a check, and findings as text."""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator, Sequence

from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.model import hostlist

#: A longer list of nodes is cut.
_MOST = 120


class Level(enum.Enum):
    """The severity. An info is worth knowing, or could not be seen."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    FAILURE = "failure"


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """One observation of a check. `to_do`: its remedy is needed."""

    level: Level
    message: str
    to_do: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A remark with the name of its check, and with a remedy if one is needed."""

    level: Level
    check: str
    message: str
    fix: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One requirement: why it matters, its remedy, the facts it needs, and the function that judges them."""

    name: str
    why: str
    fix: str
    judge: Callable[[CheckFacts, Expectations], Iterator[Remark]]
    needs: tuple[str, ...] = ()

    def run(self, facts: CheckFacts, wanted: Expectations) -> Iterator[Finding]:
        """The findings. A check whose facts were not read is not judged."""
        unseen = [name for name in self.needs if name in facts.unread]
        if unseen:
            words = ", ".join(name.replace("_", " ") for name in unseen)
            yield Finding(level=Level.INFO, check=self.name, message=f"not tested: no {words} to look at")
            return
        for remark in self.judge(facts, wanted):
            fix = self.fix if remark.to_do else ""
            yield Finding(level=remark.level, check=self.name, message=remark.message, fix=fix)


def ok(message: str) -> Remark:
    """The requirement is met."""
    return Remark(Level.OK, message, to_do=False)


def info(message: str) -> Remark:
    """Not visible, or worth knowing: nothing has to be done."""
    return Remark(Level.INFO, message, to_do=False)


def advice(message: str) -> Remark:
    """Pods run, and still something should be done."""
    return Remark(Level.INFO, message)


def warning(message: str) -> Remark:
    """Some pods will not run."""
    return Remark(Level.WARNING, message)


def failure(message: str) -> Remark:
    """Nothing, or not enough, will work."""
    return Remark(Level.FAILURE, message)


def named(nodes: Iterable[str]) -> str:
    """Nodes in Slurm's notation, cut to a readable length."""
    found = sorted(nodes)
    text = hostlist.compress(found)
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(found)} nodes)"


def render(findings: Sequence[Finding]) -> str:
    """A table with the remedies, and a last line that counts the findings, the least urgent first."""
    wide = max((len(finding.check) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level.value:<8}{finding.check:<{wide}}  {finding.message}")
        if finding.fix:
            lines.append(f"{'':<{8 + wide}}  → {finding.fix}")
    counts = [(level, sum(finding.level is level for finding in findings)) for level in Level]
    return "\n".join([*lines, ", ".join(f"{count} {level.value}" for level, count in counts if count)])


def status(findings: Sequence[Finding]) -> int:
    """The exit status: 1 if a check failed."""
    return int(any(finding.level is Level.FAILURE for finding in findings))
