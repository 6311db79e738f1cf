"""The results of checks, and the form of a check."""

import dataclasses
import enum
from collections.abc import Callable, Iterator

from slurm_bridge.checks.facts import CheckFacts, Expectations


class Level(enum.Enum):
    """The severity. An info is worth knowing, or could not be seen."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    FAILURE = "failure"


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """One observation of a check."""

    level: Level
    message: str


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
            fix = "" if remark.level is Level.OK else self.fix
            yield Finding(level=remark.level, check=self.name, message=remark.message, fix=fix)


def ok(message: str) -> Remark:
    """The requirement is met."""
    return Remark(Level.OK, message)


def info(message: str) -> Remark:
    """Not visible, or worth knowing."""
    return Remark(Level.INFO, message)


def warning(message: str) -> Remark:
    """Some pods will not run."""
    return Remark(Level.WARNING, message)


def failure(message: str) -> Remark:
    """Nothing, or not enough, will work."""
    return Remark(Level.FAILURE, message)
