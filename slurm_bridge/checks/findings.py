"""What a judge says, and the form in which all of them are run."""

import dataclasses
import enum
from collections.abc import Callable, Iterator

from slurm_bridge.checks.facts import Expectations, Facts


class Level(enum.Enum):
    """How bad it is. An info is what could not be seen from here, or is worth knowing."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    FAILURE = "failure"


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """One thing that a judge noticed."""

    level: Level
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A remark under its check, with the remedy where one is needed."""

    level: Level
    check: str
    message: str
    fix: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One assumption: why it matters, what to do where it does not hold, which facts it needs, and its judge."""

    name: str
    why: str
    fix: str
    judge: Callable[[Facts, Expectations], Iterator[Remark]]
    needs: tuple[str, ...] = ()

    def run(self, facts: Facts, wanted: Expectations) -> Iterator[Finding]:
        """What is to be said; nobody judges what was not read."""
        unseen = [name for name in self.needs if name in facts.unread]
        if unseen:
            words = ", ".join(name.replace("_", " ") for name in unseen)
            yield Finding(level=Level.INFO, check=self.name, message=f"not tested: no {words} to look at")
            return
        for remark in self.judge(facts, wanted):
            fix = "" if remark.level is Level.OK else self.fix
            yield Finding(level=remark.level, check=self.name, message=remark.message, fix=fix)


def ok(message: str) -> Remark:
    """As it should be."""
    return Remark(Level.OK, message)


def info(message: str) -> Remark:
    """Not visible from here, or worth knowing."""
    return Remark(Level.INFO, message)


def warning(message: str) -> Remark:
    """Something will not work."""
    return Remark(Level.WARNING, message)


def failure(message: str) -> Remark:
    """Nothing, or not enough, will work."""
    return Remark(Level.FAILURE, message)
