"""Another bridge on the same Slurm and the same Kubernetes: its jobs, its pods, and its sweep over all jobs."""

import contextlib
import dataclasses
import json
import threading
from collections.abc import Iterator
from typing import Self

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_foreign, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_world import World

FINALIZER = "scheduler.slinky.slurm.net/finalizer"

#: How often the stand-in looks at all jobs; the real one takes half a minute.
PERIOD = 2.0


class Sweep:
    """Cancels every job whose `admin_comment` is JSON, and in which it finds no pod that exists."""

    def __init__(self, slurm: support_servers.Slurm, kube: support_servers.Kubernetes) -> None:
        self._slurm, self._kube = slurm, kube
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)
        self.turns = 0
        self.cancelled: set[int] = set()
        #: Turns that came to nothing, because a server did not answer.
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def await_turns(self, count: int) -> None:
        """Until it has looked so many times more."""
        wanted = self.turns + count
        wait.until(lambda: self.turns >= wanted, f"{count} turns of the sweep: {self.failures}", 90.0, every=0.2)

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            try:
                self._turn()
            except (OSError, ValueError) as problem:
                self.failures.append(str(problem))
            else:
                self.turns += 1

    def _turn(self) -> None:
        for one in self._slurm.jobs():
            if one.alive and self._is_dangling(one.text.get("admin_comment") or ""):
                self._slurm.end(one.job_id)
                self.cancelled.add(one.job_id)

    def _is_dangling(self, comment: str) -> bool:
        try:
            record = json.loads(comment)
        except ValueError:
            return False
        listed = (record.get("pods") if isinstance(record, dict) else None) or ()
        pairs = (str(key).partition("/") for key in listed)
        return not any(self._kube.find(f"/api/v1/namespaces/{space}/pods/{name}") for space, _, name in pairs)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Theirs:
    """Pods that another bridge has bound, and the running jobs that they name."""

    world: World
    jobs: dict[str, int]

    def now(self) -> dict[str, tuple[object, ...]]:
        """What of both sides only its own bridge may change."""
        jobs = {one.job_id: one for one in self.world.slurm.jobs()}
        return {name: (*_of_job(jobs.get(job_id)), *self._of_pod(name)) for name, job_id in self.jobs.items()}

    def _of_pod(self, name: str) -> tuple[object, ...]:
        pod = self.world.pod(name)
        if pod is None:
            return ("no pod",)
        meta = pod["metadata"]
        kept = {key: meta.get(key) for key in ("uid", "labels", "annotations", "finalizers", "deletionTimestamp")}
        ends = support_servers.condition(pod, "DisruptionTarget")
        return (json.dumps(kept, sort_keys=True), pod["spec"]["nodeName"], json.dumps(ends))


def _of_job(job: support_servers.SlurmJob | None) -> tuple[object, ...]:
    return ("no job",) if job is None else (*sorted(job.states), job.nodes, job.text["admin_comment"])


@contextlib.contextmanager
def theirs(world: World, farm: Farm, count: int) -> Iterator[Theirs]:
    """So many of them on these machines: with its record, label, annotation and finalizer, and our schedulerName."""
    found = Theirs(world=world, jobs={})
    try:
        for number in range(count):
            _bind(found, farm, f"theirs-{number}")
        yield found
    finally:
        for name in found.jobs:
            world.kube.merge(f"{world.path}/{name}", {"metadata": {"finalizers": None}})
            world.delete(name)
        world.slurm.cancel(*found.jobs.values())


def _bind(found: Theirs, farm: Farm, name: str) -> None:
    world = found.world
    record = json.dumps({"pods": [f"{world.namespace}/{name}"]})
    wanted = {"name": name, "partition": farm.partition, "admin_comment": record}
    job_id = found.jobs[name] = world.slurm.submit({**support_foreign.EXTERNAL, **wanted})
    nodes: list[str] = []

    def runs() -> bool:
        nodes[:] = [one.nodes for one in world.slurm.jobs() if one.job_id == job_id and "RUNNING" in one.states]
        return bool(nodes)

    wait.until(runs, f"job of {name}", 60.0, every=0.5)
    node = farm.nodes[farm.slurm_nodes.index(nodes[0])]
    # As it is when the other bridge has bound it, which cannot be told from a pod that was created so.
    pod = support_world.pod(name, world.daemon.scheduler, annotations=support_world.FOREVER, nodeName=node)
    pod["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE] = node
    pod["metadata"] |= {"labels": {names.LABEL_JOB_ID: str(job_id)}, "finalizers": [FINALIZER]}
    world.create(pod)
