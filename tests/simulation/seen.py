"""What the observer remembers of pods and jobs. It shares no arithmetic with the daemon that it watches."""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from slurm_bridge.model import names
from slurm_bridge.sim.slurm import state


@dataclasses.dataclass(slots=True, kw_only=True)
class Pod:
    """What is remembered of one incarnation."""

    uid: str
    key: tuple[str, str]
    ours: bool
    cpu: Fraction
    memory_mib: Fraction
    node: str = ""
    job_id: int = 0
    phase: str = "Pending"
    leaving: bool = False
    gone: bool = False
    parked: bool = False
    gated: bool = False
    strange: bool = False

    @property
    def over(self) -> bool:
        return self.gone or self.phase in ("Succeeded", "Failed")


@dataclasses.dataclass(slots=True, kw_only=True)
class Run:
    """The time in which one job held nodes, ready to be used; it ends with `left`."""

    job_id: int
    uid: str
    shares: Mapping[str, state.Share]
    left: float | None = None


def pod(manifest: Mapping[str, Any]) -> Pod:
    """A pod as it is seen first."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    needs = [container.get("resources", {}).get("requests", {}) for container in spec["containers"]]
    return Pod(
        uid=metadata["uid"],
        key=(metadata["namespace"], metadata["name"]),
        ours=spec.get("schedulerName") == names.SCHEDULER_NAME,
        cpu=sum((quantity(need.get("cpu", "0")) for need in needs), Fraction()),
        memory_mib=sum((quantity(need.get("memory", "0")) for need in needs), Fraction()) / 2**20,
    )


_UNITS = {"m": Fraction(1, 1000), "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def quantity(text: str) -> Fraction:
    """The few forms of a quantity that these worlds use; the observer shares no arithmetic with the daemon."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return Fraction(text.removesuffix(unit)) * factor
    return Fraction(text)
