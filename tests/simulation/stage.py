"""Where troupes play: the few things that their users and administrators do, in the pocket world or on real servers."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from slurm_bridge.model import kinds, names
from tests.simulation import job_runs
from tests.simulation.play import Play
from tests.simulation.troupes import Manifest
from tests.simulation.world import NAMESPACE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """A living job of ours, or one component of it."""

    job_id: int
    leader: int
    started: bool

    @property
    def component(self) -> bool:
        """It is not the one that stands for all."""
        return self.job_id != self.leader


class Stage(Protocol):
    """What is gone already, or there already, is no mistake: worlds go on while users make up their minds."""

    scheduler: str

    def create(self, kind: kinds.Kind[Any], manifest: Manifest) -> None: ...

    def merge(self, kind: kinds.Kind[Any], name: str, changes: Mapping[str, Any]) -> None: ...

    def delete(self, kind: kinds.Kind[Any], name: str, grace: int | None = None) -> None: ...

    def all(self, kind: kinds.Kind[Any]) -> Sequence[Manifest]:
        """Everything of that kind, in order of names."""

    def fail(self, pod: str) -> None:
        """The pod's container ends badly, now."""

    def placeholders(self) -> Sequence[Placeholder]:
        """Those that are not over, in order of their ids."""

    def cancel(self, job_id: int) -> None: ...

    def note(self, text: str) -> None:
        """A line for the readers of the journal."""


class PocketStage:
    """The world of the simulation."""

    scheduler = names.SCHEDULER_NAME

    def __init__(self, play: Play) -> None:
        self._world = play.world

    def create(self, kind: kinds.Kind[Any], manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        self.note(f"user creates {kind.kind} {name}")
        if self._world.kube.get(kind, NAMESPACE, name) is None:
            self._world.kube.create(kind, manifest)

    def merge(self, kind: kinds.Kind[Any], name: str, changes: Mapping[str, Any]) -> None:
        self.note(f"user changes {kind.kind} {name}: {changes}")
        if self._world.kube.get(kind, NAMESPACE, name) is not None:
            self._world.kube.merge(kind, (NAMESPACE, name), dict(changes))

    def delete(self, kind: kinds.Kind[Any], name: str, grace: int | None = None) -> None:
        self.note(f"user deletes {kind.kind} {name} grace={grace}")
        if self._world.kube.get(kind, NAMESPACE, name) is not None:
            self._world.kube.delete(kind, (NAMESPACE, name), grace=grace)

    def all(self, kind: kinds.Kind[Any]) -> Sequence[Manifest]:
        return self._world.kube.list(kind, NAMESPACE)

    def fail(self, pod: str) -> None:
        self.note(f"pod {pod} fails")
        found = self._world.kube.get(kinds.PODS, NAMESPACE, pod)
        if found is not None and found["status"].get("phase") == "Running":
            self._world.kube.merge(kinds.PODS, (NAMESPACE, pod), {"status": {"phase": "Failed"}}, "status")

    def placeholders(self) -> Sequence[Placeholder]:
        found = self._world.ours("PENDING", "RUNNING", "SUSPENDED")
        return [Placeholder(job_id=job.job_id, leader=job_runs.family(job), started=job.running) for job in found]

    def cancel(self, job_id: int) -> None:
        jobs = self._world.slurm.world.jobs
        leads = jobs[job_id].leader in (0, job_id)
        for job in self._world.slurm.world.family(jobs[job_id]) if leads else [jobs[job_id]]:
            if not job.over:
                self._world.end_job(job)

    def note(self, text: str) -> None:
        self._world.weather.note(text)
