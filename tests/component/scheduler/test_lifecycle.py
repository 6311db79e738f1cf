"""Trap T28 on the whole core: a pod in each state, a job in each state, and what both sides show afterwards."""

from collections.abc import Callable

import pytest

from slurm_bridge.model.job import BASE_STATES, Phase
from slurm_bridge.scheduler import lifecycle
from slurm_bridge.scheduler.lifecycle import CellOutcome, JobCase, LifecycleRow, PodCase
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge

SUBMIT = "/job/submit"
WAITING = [{"name": "main", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
STATUS = {
    PodCase.UNSTARTED: {"phase": "Pending"},
    PodCase.FAILING: {"phase": "Pending", "containerStatuses": WAITING},
    PodCase.SUCCEEDED: {"phase": "Succeeded"},
    PodCase.FAILED: {"phase": "Failed"},
}


def cells() -> list[object]:
    """All of them; the short form has one of each row, each time of another column."""
    found = []
    for number, row in enumerate(lifecycle.ROWS):
        possible = [case for case in PodCase if row.cells[case] is not CellOutcome.NEVER]
        short = possible[number % len(possible)]
        for case in possible:
            marks = () if case is short else (pytest.mark.thorough,)
            found.append(pytest.param(row, case, id=f"{row.title}-{case.name}".replace(" ", "-"), marks=marks))
    return found


class Cell:
    """A pod and its job, brought into their states before the daemon hears of either."""

    def __init__(self, bridge: Bridge, row: LifecycleRow, case: PodCase) -> None:
        self.bridge, self.row, self.case = bridge, row, case
        self.placed = case is not PodCase.UNBOUND and row.case is not JobCase.UNANSWERED
        self.job: state.SlurmJob | None = None
        self._begin()
        self._move_job()
        self._move_pod()
        self.uid = bridge.uid("a") if bridge.exists("a") else ""
        self.submits, self.deletes, self.orders = bridge.submits(), bridge.deletes(), self._cancels()

    def _begin(self) -> None:
        bridge = self.bridge
        if self.row.case is JobCase.UNANSWERED:
            bridge.slurm.control.pause()
            bridge.slurm_calls.plan(faults.Drop(), method="POST", target=SUBMIT)
            bridge.pod("a")
            bridge.settle()
        elif self.placed:
            stays = {"kwok.local/terminating": "hang"} if self.case is PodCase.TERMINATING else {}
            self.job = bridge.bound("a", annotations=stays)
            bridge.run(2)
        elif self.row.case is JobCase.UNSENT:
            bridge.pod("a")
        else:
            self.job = bridge.waiting("a")
            bridge.run(2)

    def _move_job(self) -> None:
        bridge, row, control = self.bridge, self.row, self.bridge.slurm.control
        if self.job is None:
            return
        if row.case is JobCase.UNSENT and self.placed:
            self._forget_unless_it_is_looked_up()
        elif row.case is JobCase.FORGOTTEN:
            bridge.world.crash_slurm(1e6)
        elif row.words:
            if row.case in (JobCase.ENDED, JobCase.CANCELLED):
                ended = (word for word in row.words if BASE_STATES.get(word) is Phase.ENDED)
                control.end(self.job.job_id, next(ended, "COMPLETED"))
            control.show(self.job.job_id, *row.words)
        if row.case is not JobCase.QUEUED:
            control.unpause()

    def _forget_unless_it_is_looked_up(self) -> None:
        """Another process of the daemon has begun, which has read no job yet."""
        if self.row.cells[self.case] is not CellOutcome.LOOK_UP:
            self.bridge.world.crash_slurm(1e6)
        self.bridge.start()

    def _move_pod(self) -> None:
        bridge, case = self.bridge, self.case
        if case in STATUS:
            bridge.status("a", **STATUS[case])
        elif case is PodCase.TERMINATING:
            bridge.delete("a")
        elif case in (PodCase.GONE, PodCase.RECREATED):
            bridge.delete("a", grace=0)
        if case is PodCase.RECREATED:
            bridge.pod("a")

    def _cancels(self) -> int:
        return self.bridge.slurm_calls.count(method="DELETE")

    @property
    def old(self) -> state.SlurmJob | None:
        """The first job as Slurm has it now."""
        found = self.job or next(iter(self.bridge.jobs()), None)
        return self.bridge.slurm.world.jobs.get(found.job_id) if found is not None else None

    @property
    def lives(self) -> bool:
        """Slurm has the first job, and it has not ended."""
        return self.old is not None and not self.old.over

    def changed_nothing(self) -> bool:
        """No job was submitted or cancelled, and no pod deleted."""
        now = (self.bridge.submits(), self.bridge.deletes(), self._cancels())
        return now == (self.submits, self.deletes, self.orders)

    def renewed(self) -> bool:
        """The pod that is there now has a job of its own, and one only."""
        return sum(not job.over for job in self.bridge.jobs(self.bridge.uid("a"))) == 1


def _waits(cell: Cell) -> bool:
    return not cell.bridge.node_of("a") and cell.lives and cell.changed_nothing()


def _is_parked(cell: Cell) -> bool:
    return bool(cell.bridge.park_note("a")) and not cell.lives and cell.bridge.submits() == cell.submits


def _is_kept(cell: Cell) -> bool:
    return not cell.bridge.leaving("a") and cell.lives and cell.changed_nothing()


def _is_submitted_again(cell: Cell) -> bool:
    return cell.bridge.submits() > cell.submits - (cell.row.case is JobCase.UNANSWERED) and cell.renewed()


def _is_ended(cell: Cell) -> bool:
    told = "SlurmJobEnded" in dict(cell.bridge.events("a"))
    return cell.bridge.leaving("a") and told and cell.bridge.deletes() == cell.deletes + 1


SEEN: dict[CellOutcome, Callable[[Cell], bool]] = {
    CellOutcome.SUBMIT: lambda cell: cell.renewed() and (cell.job is None or not cell.lives),
    CellOutcome.WAIT: _waits,
    CellOutcome.BIND: lambda cell: bool(cell.bridge.node_of("a")) and cell.lives,
    CellOutcome.RESUBMIT: _is_submitted_again,
    CellOutcome.PARK: _is_parked,
    CellOutcome.KEEP: _is_kept,
    CellOutcome.REGAIN: lambda cell: _is_kept(cell) and bool(cell.bridge.core.context.states.regaining),
    CellOutcome.RESTORE: lambda cell: not cell.bridge.leaving("a") and cell.lives and not cell.bridge.deletes(),
    CellOutcome.END: _is_ended,
    CellOutcome.CANCEL: lambda cell: not cell.lives and cell.bridge.deletes() == cell.deletes,
    CellOutcome.LEAVE: lambda cell: cell.lives and cell.changed_nothing(),
    CellOutcome.NOTHING: Cell.changed_nothing,
    CellOutcome.LOOK_UP: lambda cell: cell.lives and cell.changed_nothing(),
    CellOutcome.RENEW: lambda cell: not cell.lives and cell.renewed(),
}


@pytest.mark.parametrize(("row", "case"), cells())
def test_t28_both_sides_show_what_the_table_says(bridge: Bridge, row: LifecycleRow, case: PodCase) -> None:
    """A minute later, too, where nothing follows; neighbours are watched by the observer all the time."""
    cell, outcome = Cell(bridge, row, case), row.cells[case]
    holds = SEEN[outcome]
    if outcome in (
        CellOutcome.WAIT,
        CellOutcome.KEEP,
        CellOutcome.REGAIN,
        CellOutcome.LEAVE,
        CellOutcome.NOTHING,
        CellOutcome.LOOK_UP,
    ):
        bridge.run(25, step=1)
    else:
        bridge.until(lambda: holds(cell), 25)
    assert holds(cell)
