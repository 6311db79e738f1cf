"""What the observer remembers of pods and jobs. It shares no arithmetic with the daemon that it watches."""

import dataclasses
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Self

from slurm_bridge.model import names
from slurm_bridge.sim.slurm import state
from tests.simulation import membership

GPU = "nvidia.com/gpu"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """Some of everything."""

    cpu: Fraction = Fraction()
    memory_mib: Fraction = Fraction()
    gpus: Fraction = Fraction()

    def __add__(self, other: Self) -> Self:
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("cpu", "memory_mib", "gpus")}
        return dataclasses.replace(self, **sums)

    def within(self, other: Self) -> bool:
        """There is enough of everything."""
        return self.cpu <= other.cpu and self.memory_mib <= other.memory_mib and self.gpus <= other.gpus

    def __str__(self) -> str:
        return f"{self.cpu} cpus, {self.memory_mib} MiB, {self.gpus} GPUs"


def total(amounts: Iterable[Amounts]) -> Amounts:
    """All together."""
    return sum(amounts, start=Amounts())


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Pod:
    """What is remembered of one incarnation. `group` is what a placeholder's record calls its group, or its own uid."""

    uid: str
    key: tuple[str, str]
    ours: bool
    needs: Amounts
    manifest: Mapping[str, Any]
    group: str = ""
    node: str = ""
    job_id: int = 0
    run: "Run | None" = None
    phase: str = "Pending"
    leaving: bool = False
    gone: bool = False
    parked: bool = False
    gated: bool = False
    strange: bool = False
    #: When it stopped being one that has or wants a node.
    left: float | None = None
    born: float = 0.0
    #: When it was over, got its node, and stopped waiting for one.
    ended: float | None = None
    placed: float | None = None
    waited: float | None = None
    #: Its notes about the pods that go for it, and about the workload that it goes for.
    room: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    makes_room: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Which daemon has written or taken back the latter.
    noted_by: str = ""

    @property
    def over(self) -> bool:
        return self.gone or self.phase in ("Succeeded", "Failed")

    @property
    def standing(self) -> bool:
        """It has, or wants, something of ours."""
        return not (self.over or self.strange)

    @property
    def wanting(self) -> bool:
        """It waits for a node."""
        return not (self.node or self.over or self.leaving or self.gated)

    def stays(self, moment: float) -> bool:
        """It has had its node since before then, and still has it."""
        return self.placed is not None and self.placed < moment and not (self.over or self.strange)

    def on(self, run: "Run", node: str) -> bool:
        """This job has put it there, and there it is."""
        return self.run is not None and self.run.job_id == run.job_id and self.node == node and not self.over


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """The time in which one job (all its components) held nodes, ready to be used; it ends with `left`."""

    job_id: int
    uid: str
    shares: Mapping[str, Amounts]
    since: float = 0.0
    left: float | None = None
    #: When it gave the first pod its node.
    begun: float | None = None

    def __str__(self) -> str:
        held = "; ".join(f"{node}: {share}" for node, share in self.shares.items())
        return f"job {self.job_id} of {self.uid} ({held}){'' if self.left is None else f' until {self.left:.1f}'}"


def pod(manifest: Mapping[str, Any], scheduler: str = names.SCHEDULER_NAME, born: float = 0.0) -> Pod:
    """A pod as it is seen first."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    needs = [container.get("resources", {}).get("requests", {}) for container in spec["containers"]]
    return Pod(
        uid=metadata["uid"],
        key=(metadata["namespace"], metadata["name"]),
        ours=spec.get("schedulerName") == scheduler,
        needs=total(amounts(need) for need in needs),
        manifest=manifest,
        group=membership.NOWHERE,
        born=born,
    )


def amounts(listed: Mapping[str, str]) -> Amounts:
    """What a list of resources comes to."""
    return Amounts(
        cpu=quantity(listed.get("cpu", "0")),
        memory_mib=quantity(listed.get("memory", "0")) / 2**20,
        gpus=quantity(listed.get(GPU, "0")),
    )


def shares(grants: Iterable[state.Grant], names_: Mapping[str, str]) -> dict[str, Amounts]:
    """What a job's components hold on each node, by Kubernetes' name of it."""
    held: dict[str, Amounts] = {}
    for grant in grants:
        for share in grant.shares:
            gpus = sum(part.count for part in share.gres if part.name == "gpu")
            mine = Amounts(cpu=Fraction(share.cpus), memory_mib=Fraction(share.memory_mib), gpus=Fraction(gpus))
            node = names_.get(share.node, share.node)
            held[node] = held.get(node, Amounts()) + mine
    return held


_UNITS = {"m": Fraction(1, 1000), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30)}


def quantity(text: str) -> Fraction:
    """The few forms of a quantity that these worlds use; the observer shares no arithmetic with the daemon."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return Fraction(text.removesuffix(unit)) * factor
    return Fraction(text)
