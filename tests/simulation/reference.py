"""The reference run: twelve pods and a Job, of which some end, one is deleted, and one loses its placeholder."""

import collections
from collections.abc import Callable, Mapping

from slurm_bridge.model import kinds
from tests.simulation.play import Play
from tests.simulation.world import NAMESPACE, World

RUN = ("a1", "a2", "a3")
SUCCEED = ("b1", "b2", "b3", "b4")
DELETED, CANCELLED = "c1", "c2"

Summary = Mapping[str, object]


def begin(world: World) -> None:
    """What users ask for at once."""
    for name in RUN:
        world.pod(name, outcome="run")
    for name in SUCCEED:
        world.pod(name, outcome="succeed", seconds="3")
    world.pod("b5", outcome="fail", seconds="4")
    world.pod(DELETED, outcome="run", terminating="2s")
    world.pod(CANCELLED, outcome="run")
    world.pod("wide", cpu="3", outcome="succeed", seconds="5")
    world.pod("loop", outcome="crash-loop", seconds="1")
    world.job("job", completions=4, parallelism=2, outcome="succeed", seconds="2")


class Script:
    """What users and administrators do later, each thing once, as soon as its moment has come."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scenes: list[Callable[[], bool]] = [self._delete, self._cancel]

    def __call__(self) -> None:
        """Look whether a moment has come."""
        self._scenes = [scene for scene in self._scenes if not scene()]

    @property
    def over(self) -> bool:
        return not self._scenes

    def _delete(self) -> bool:
        if not self._runs(DELETED):
            return False
        self._world.delete_pod(DELETED)
        return True

    def _cancel(self) -> bool:
        job = self._world.job_of(CANCELLED, "RUNNING") if self._runs(CANCELLED) else None
        if job is None:
            return False
        self._world.end_job(job)
        return True

    def _runs(self, name: str) -> bool:
        pod = self._world.find(name)
        return pod is not None and pod["status"]["phase"] == "Running"


def play(play: Play) -> Summary:
    """From the beginning to the rest, and what there is then."""
    begin(play.world)
    script = Script(play.world)
    play.run_to_rest(script)
    assert script.over, "the script did not come to its end"
    return summary(play.world)


def summary(world: World) -> Summary:
    """The end state, without what may differ from run to run: node names, job ids, generated names."""
    pods = {name: pod["status"]["phase"] for name, pod in world.pods() if not name.startswith("job-")}
    of_job = collections.Counter(pod["status"]["phase"] for name, pod in world.pods() if name.startswith("job-"))
    job = world.kube.get(kinds.JOBS, NAMESPACE, "job") or {}
    jobs = {world.observer.owner(each).name: each.state for each in world.ours("PENDING", "RUNNING", "SUSPENDED")}  # type: ignore[union-attr]
    return {"pods": pods, "job pods": of_job, "succeeded": job["status"].get("succeeded"), "placeholders": jobs}
