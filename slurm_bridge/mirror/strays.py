"""Jobs in Slurm that the table does not have: ours by a submit whose answer was lost, or not ours."""

from collections.abc import Callable, Collection, Iterable, Mapping

from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import JobStates, JobView, Phase
from slurm_bridge.model.names import JobId

#: Whether a job is a placeholder of this bridge.
Ours = Callable[[JobView], bool]


class Strays:
    """Remembers jobs that are not ours, so that each is read once. A job that cannot be read may be ours."""

    def __init__(self, table: Table, ours: Ours) -> None:
        self._table, self._ours = table, ours
        self._strangers: frozenset[JobId] = frozenset()

    def begin(self, views: Iterable[JobView]) -> None:
        """All there is."""
        self._strangers = frozenset(one.job_id for one in views if one.readable and not self._ours(one))

    def among(self, states: Mapping[JobId, JobStates]) -> list[JobId]:
        """Those of these that live and are in neither place."""
        return [
            job_id
            for job_id, seen in states.items()
            if job_id not in self._strangers and self._table.get(job_id) is None and seen.phase is not Phase.ENDED
        ]

    def learn(self, views: Iterable[JobView], listed: Collection[JobId]) -> None:
        """Ids that Slurm no longer lists are forgotten: after a crash they come back for other jobs."""
        strangers = {one.job_id for one in views if one.readable and not self._ours(one)}
        self._strangers = frozenset((self._strangers | strangers).intersection(listed))
