"""When Slurm started each job, from slurmctld's own log: milliseconds, and no question that would slow it down.

Slurm's answers have start times in whole seconds, and polling often enough to do better would load slurmrestd.
"""

import dataclasses
import datetime as dt
import pathlib
import re
from collections.abc import Iterable, Mapping

_START = re.compile(
    r"^\[(?P<when>[\d-]+T[\d:.]+)\] sched(?:/backfill)?: "
    r"(?:Allocate JobId=(?P<main>\d+) NodeList=(?P<main_node>\S+)"
    r"|_start_job: Started JobId=(?P<fill>\d+) in \S+ on (?P<fill_node>\S+))"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """One job got its nodes."""

    when: float
    node: str


def parse(lines: Iterable[str]) -> dict[int, Start]:
    """Every start, by job id; the containers keep UTC."""
    found = (_START.match(line) for line in lines)
    return {
        int(one["main"] or one["fill"]): Start(
            dt.datetime.fromisoformat(one["when"]).replace(tzinfo=dt.UTC).timestamp(),
            one["main_node"] or one["fill_node"],
        )
        for one in found
        if one
    }


class Log:
    """slurmctld's log from this moment on."""

    def __init__(self, file: pathlib.Path) -> None:
        self._file = file
        self._begin = file.stat().st_size

    def starts(self) -> Mapping[int, Start]:
        """Jobs that have started since."""
        with self._file.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._begin)
            return parse(log)
