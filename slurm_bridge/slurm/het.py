"""Heterogeneous jobs: several rows that are one job, known by the id of its leader.

Slurm gives every component an id, a state, a reason and an allocation of its own, in no order that the ids would tell
when the leader's was chosen. Whatever ended alone is forgotten after MinJobAge while the others run on, be it the
leader. So a job is torn when a component has ended or is missing from the set that the leader still names, and when
the leader is; a component whose leader is forgotten stands for the job that was.
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from slurm_bridge.model.job import JobView, Phase, least_far
from slurm_bridge.model.names import NO_JOB, JobId
from slurm_bridge.slurm import answers, shapes
from slurm_bridge.slurm.rows import ODD, UnreadableRow, named
from slurm_bridge.slurm.shapes import number

#: The first release in which a placeholder can have components.
SINCE = (26, 5, 3)

#: A part of a release, or a job id.
_NUMBER: Final = re.compile(r"[0-9]{1,10}")

#: What a component says that merely waits with the others.
_ONLY_WAITS = ("", "Resources", "Priority")


def served_by(release: str) -> bool:
    """Whether this release of Slurm takes placeholders with components; one that cannot be read does not."""
    numbers = release.partition("-")[0].split(".")
    return all(map(_NUMBER.fullmatch, numbers)) and tuple(map(int, numbers)) >= SINCE


def job(job_id: JobId, rows: Sequence[shapes.JobRow]) -> JobView | None:
    """From GET of one job: the one asked for, and of a leader the whole."""
    row = next((row for row in rows if row.job_id == job_id), None)
    if row is None:
        return None
    first = answers.job(row)
    if _leader(row) != row.job_id:
        return first
    components = parts(job_id, rows)
    ended = [one.state.phase is Phase.ENDED for one in components]
    forgotten = _size(row.het_job_id_set or "") > len(components)
    waiting = [one for one in components if one.state.phase is Phase.PENDING]
    telling = next((one for one in waiting if one.reason not in _ONLY_WAITS), first)
    torn = not all(ended) and (any(ended) or forgotten)
    return dataclasses.replace(
        first,
        state=first.state if torn else least_far(one.state for one in components),
        reason=telling.reason,
        held=any(one.held for one in waiting),
        torn=torn,
    )


def parts(job_id: JobId, rows: Sequence[shapes.JobRow]) -> tuple[JobView, ...]:
    """Likewise, part by part: of a leader all, in order."""
    mine = [row for row in rows if row.job_id == job_id or _leader(row) == job_id]
    return tuple(answers.job(row) for row in sorted(mine, key=lambda row: number(row.het_job_offset) or 0))


def orphan(view: JobView) -> JobView:
    """A component whose leader is forgotten."""
    return dataclasses.replace(view, torn=view.state.phase is not Phase.ENDED)


def jobs(listed: Iterable[shapes.JobRow], odd: list[UnreadableRow]) -> list[JobView]:
    """From a list of all: no components, unless their leader is not there any more.

    A job of which a row is `odd` is unreadable as a whole: without it, it would look as if it had lost a component. A
    row that does not even tell its id stands for job 0: any job may be meant. Rows may become odd while they are read.
    """
    alone: list[JobView] = []
    families: dict[JobId, list[shapes.JobRow]] = {}
    for row in listed:
        leader = _leader(row)
        if leader is not None:
            families.setdefault(leader, []).append(row)
        try:
            view = answers.job(row)
        except ODD as error:
            odd.append(named(msgspec.json.encode(row), "job", error))
        else:
            alone += [view] if leader is None else []
    unread = {JobId(one) for row in odd for one in row.ids or (NO_JOB,)}
    if unread:
        unread |= {
            leader
            for leader, family in families.items()
            if leader in unread or not unread.isdisjoint(row.job_id for row in family)
        }
    found = [view for view in alone if view.job_id not in unread]
    for leader, family in families.items():
        if leader not in unread:
            whole = job(leader, family)
            found += [whole] if whole is not None else [orphan(answers.job(row)) for row in family]
    return [*found, *map(JobView.unreadable, sorted(unread))]


def _leader(row: shapes.JobRow) -> JobId | None:
    return JobId(number(row.het_job_id) or 0) or None


def _size(text: str) -> int:
    """How many ids are in `125-126,20085310`; an unknown form counts as none."""
    size = 0
    for run in filter(None, text.split(",")):
        first, _, last = run.partition("-")
        if not (_NUMBER.fullmatch(first) and _NUMBER.fullmatch(last or first)):
            return 0
        size += int(last or first) - int(first) + 1
    return size
