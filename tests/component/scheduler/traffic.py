"""Small workloads that keep coming beside a large one, and the nodes that are kept for it."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

from slurm_bridge.model import marks
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.observer import CLUSTER_ID

#: How long a workload waits before nodes are kept for it, and for how long they are.
AFTER, LASTS = 10.0, 120.0


OPTIONS = {"reserve_after": AFTER, "reserve_seconds": LASTS}


#: Small pods are preferred by Slurm, by so much.
PREFERRED = 100


def emptied(tmp_path: pathlib.Path) -> Bridge:
    """Slurm has no job at all."""
    made = Bridge(tmp_path)
    for job in [job for job in made.slurm.world.jobs.values() if not job.over]:
        made.world.end_job(job)
    return made


class Traffic:
    """Small pods that Slurm prefers: each time one ends, the next one has come already."""

    def __init__(self, bridge: Bridge, **options: Any) -> None:
        self.bridge = bridge
        self.queues = Queues(bridge, queue("a"), **(OPTIONS | options))
        self.made: list[str] = []
        for _ in range(7):
            self.come()
        for _ in range(6):
            self.step(0.5)

    def come(self) -> str:
        """One more."""
        name = f"small-{len(self.made)}"
        self.made.append(name)
        self.queues.pod(name, cpu="2")
        return name

    def flow(self, seconds: float) -> None:
        """Every two seconds one comes, and then the oldest one ends."""
        for number in range(round(seconds / 0.5)):
            if number % 4 == 0:
                self.come()
            if number % 4 == 1:
                self.end()
            self.step(0.5)

    def step(self, seconds: float) -> None:
        """Some time passes; what is small comes first in Slurm as soon as it is there."""
        self.bridge.step(seconds)
        self.bridge.core.preempt_step()
        for job in self.bridge.jobs():
            owner = self.bridge.world.observer.owner(job)
            if job.pending and job.priority == 1 and owner is not None and owner.name.startswith("small"):
                self.bridge.slurm.control.prioritise(job.job_id, PREFERRED)

    def end(self) -> None:
        """The oldest one that runs succeeds."""
        running = [name for name in self.made if self.bridge.phase(name) == "Running"]
        for name in running[:1]:
            self.bridge.status(name, phase="Succeeded")

    def until(self, condition: Callable[[], object], seconds: float = 90.0) -> None:
        """Until it holds."""
        end = self.bridge.clock.now() + seconds
        while not condition():
            assert self.bridge.clock.now() < end, "it never came to that:\n" + "\n".join(
                self.bridge.world.journal[-20:]
            )
            self.flow(2)

    def refuse_to_enter(self, number: int) -> dict[str, str]:
        """A large pod waits, and Slurm changes its job no more; which call that would be, uncounted so far."""
        self.queues.pod("large", cpu="4")
        self.until(lambda: self.bridge.jobs(self.bridge.uid("large")))
        call = {"method": "POST", "target": f"/job/{self.bridge.job('large').job_id}"}
        self.bridge.slurm_calls.forget()
        self.bridge.slurm_calls.plan(refused(number), **call, times=1000)
        return call

    def held(self) -> None:
        """A large pod waits, and nodes are kept for it."""
        self.queues.pod("large", cpu="4")
        self.until(lambda: reserved(self.bridge))
        self.bridge.step(0.5)


def reserved(bridge: Bridge) -> list[state.Reservation]:
    """What Slurm keeps for us."""
    mine = node_record.prefix(CLUSTER_ID)
    return [one for one in bridge.slurm.world.reservations.values() if one.name.startswith(mine)]


def record(bridge: Bridge, job: state.SlurmJob) -> marks.Owner:
    """Its owner record, as Slurm has it."""
    found = bridge.world.observer.owner(bridge.of(job))
    assert found is not None
    return found


def refused(number: int) -> faults.Answer:
    """An error of slurmctld."""
    error = {"error_number": number, "error": "Invalid user id", "description": "Error creating", "source": "x"}
    return faults.Answer(422, json.dumps({"errors": [error], "warnings": []}).encode())
