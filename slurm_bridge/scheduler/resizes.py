"""Pods that were resized in place: the kubelet gives them what they ask for now, and Slurm goes on counting the old.

Slurm changes neither the cpus (2073) nor the memory (2036) of a job that runs, and taking nodes from a job spoils them.
So an event tells the pod's owner, metrics tell operators, and the job stays as it is. An annotation of the binding says
what Slurm counts; on a pod without it a resize is noticed only at the moment when it happens.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from slurm_bridge.model import names, quantity
from slurm_bridge.model.pod import Pod, PodSpec
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.workload_pods import job_id_of
from slurm_bridge.translate import resources

REASON: Final = "ResizeNotCounted"

_WRITTEN: Final = re.compile(r"cpu=([0-9]{1,18})m,memory=([0-9]{1,18})")


class Amounts(NamedTuple):
    """All that can be resized: thousandths of a cpu, and bytes."""

    cpu: int
    memory: int

    def __str__(self) -> str:
        return f"{self.cpu / 1000:g} cpus and {quantity.mebibytes(Fraction(self.memory))} MiB"


@dataclasses.dataclass(frozen=True, slots=True)
class _Resized:
    """A pod that asks for something else than what is counted."""

    pod: Pod
    counted: Amounts
    asked: Amounts


class Resizes:
    """Fed with every change of our pods, by any thread; nearly all of them are no resize."""

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._standing: dict[str, _Resized] = {}
        #: Pods whose resize has no event yet.
        self._untold: dict[str, None] = {}

    @property
    def standing(self) -> int:
        """How many pods ask for something else than what Slurm counts."""
        return len(self._standing)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod of ours appeared, changed or went."""
        if new is None or not new.bound or new.terminal:
            gone = new or old
            if gone is not None:
                self._over(gone.uid)
        elif old is None or not old.bound or not _alike(old.spec, new.spec):
            self._look(old, new)

    def begin(self) -> None:
        """A leadership begins: the previous leader may not have written all events."""
        self._untold = dict.fromkeys(self._standing)

    def tell(self) -> None:
        """Write the events that are due."""
        while self._untold:
            uid, _ = self._untold.popitem()
            one = self._standing.get(uid)
            if one is not None:
                self._context.counters.resized()
                self._context.status.event(one.pod, REASON, _words(one), warning=True)

    def _look(self, old: Pod | None, new: Pod) -> None:
        asked, before = _amounts(new), self._standing.get(new.uid)
        if before is not None:
            counted: Amounts | None = before.counted
        else:
            counted = _noted(new) or (_amounts(old) if old is not None and old.bound else None)
        if asked is None or counted is None or job_id_of(new) is None:
            return
        if asked == counted:
            self._over(new.uid)
        elif before is None or before.asked != asked:
            self._standing[new.uid] = _Resized(new, counted, asked)
            self._untold[new.uid] = None

    def _over(self, uid: str) -> None:
        """The pod asks for what is counted again, or is over; the same resize later has an event again."""
        if self._standing.pop(uid, None) is not None:
            self._context.status.forget(uid)


def written(pod: Pod) -> str:
    """What is counted for a pod, as its annotation says it."""
    asked = _amounts(pod)
    return f"cpu={asked.cpu}m,memory={asked.memory}" if asked is not None else ""


def _noted(pod: Pod) -> Amounts | None:
    """What the annotation says, None when it cannot be read."""
    found = _WRITTEN.fullmatch(pod.metadata.annotations.get(names.ANNOTATION_COUNTED, ""))
    return Amounts(int(found[1]), int(found[2])) if found else None


def _amounts(pod: Pod) -> Amounts | None:
    try:
        asked: Mapping[str, Fraction] = resources.requests_of(pod)
    except ValueError:
        # Amounts that cannot be read are no resize; the translator says what is wrong with them.
        return None
    nothing = Fraction(0)
    return Amounts(math.ceil(asked.get("cpu", nothing) * 1000), math.ceil(asked.get("memory", nothing)))


def _alike(one: PodSpec, other: PodSpec) -> bool:
    """Whether both ask for the same."""
    return (one.containers, one.init_containers, one.resources) == (
        other.containers,
        other.init_containers,
        other.resources,
    )


def _words(one: _Resized) -> str:
    pod = "/".join(one.pod.key)
    less = one.asked.cpu <= one.counted.cpu and one.asked.memory <= one.counted.memory
    then = (
        "Slurm keeps the difference allocated until the pod ends"
        if less
        else "Slurm may allocate the difference to other jobs; resize the pod back, or recreate it with these requests"
    )
    return (
        f"Pod {pod} asks for {one.asked} since it was resized, and Slurm job {job_id_of(one.pod)} stands for "
        f"{one.counted}, because Slurm cannot change a running job: {then}"
    )
