"""One call of slurmrestd: the caller, the request, the world and the version."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.sim.slurm import replies, state
from slurm_bridge.sim.slurm.world import World


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmCall:
    """What a verb may use."""

    world: World
    version: str
    caller: str
    params: Mapping[str, str] = dataclasses.field(default_factory=dict)
    query: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)
    body: Any = None

    @property
    def operator(self) -> bool:
        """Whether the caller is an operator."""
        return self.caller in self.world.config.operators

    def asked(self, name: str) -> str | None:
        """The first value of a query parameter."""
        return next(iter(self.query.get(name, ())), None)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The body, if it is an object."""
        return self.body if isinstance(self.body, Mapping) else {}

    def job(self) -> state.SlurmJob | None:
        """The job in the path; `12+1` is the component of job 12 whose id is one more."""
        leader, _, distance = self.params["job_id"].partition("+")
        job = self.world.jobs.get(int(leader))
        if job is None or not distance:
            return job
        wanted = int(leader) + int(distance)
        return self.world.jobs.get(wanted) if wanted in job.components else None


Verb = Callable[[SlurmCall], replies.SlurmReply | replies.Plain]
"""Does one thing, or says why not."""
