"""A reporter, its servers and what was written."""

import random
from collections import Counter

from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Condition
from slurm_bridge.model.pod import Pod
from slurm_bridge.sim.kube import pods
from slurm_bridge.status import conditions
from slurm_bridge.status.reporter import ReporterLimits, StatusReporter
from tests.pocketkube import NAMESPACE, Scene


class Desk(Scene):
    """A reporter at work, and what it counted."""

    def __init__(self, limits: ReporterLimits | None = None) -> None:
        super().__init__()
        self.counted: Counter[str] = Counter()
        self.reporter = StatusReporter(
            self.cluster,
            self.clock,
            dice=random.Random(1),
            limits=limits or ReporterLimits(patience_seconds=0),
            count=lambda what, outcome: self.counted.update([f"{what} {outcome}"]),
        )

    def write_all(self) -> int:
        """Steps until nothing is to be done; how many did something."""
        steps = 0
        while self.reporter.step():
            steps += 1
        return steps

    def shown(self, name: str = "pod", type_: str = "PodScheduled") -> Condition | None:
        """The condition as the API server shows it."""
        return conditions.find(self.seen(name), type_)

    def patches(self) -> int:
        """How often a pod's status was written."""
        return self.line.faults.count(method="PATCH", target="/status")

    def events(self) -> list[str]:
        """The reasons of all events."""
        return [event["reason"] for event in self.kube.list(kinds.EVENTS)]

    def bind(self, name: str = "pod") -> None:
        """The pod is bound."""
        pods.bind(self.kube.objects, NAMESPACE, name, {"metadata": {"name": name}, "target": {"name": "n1"}})

    def waits(self, pod: Pod, message: str = "no room", key: str = "") -> None:
        """Ask for the condition."""
        self.reporter.waiting(pod, "SlurmJobPending", message, key=key)
