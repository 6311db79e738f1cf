"""What the administrator chose."""

import dataclasses
import enum
from collections.abc import Mapping
from fractions import Fraction

from slurm_bridge.controllers.nodes.availability import Marking
from slurm_bridge.model.node import Taint


class Managed(enum.Enum):
    """Which Kubernetes nodes the controller looks after, beside those that it registered itself."""

    LABELLED = "labelled"
    ALL = "all"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """Options of the node controller. Reserves are taken off what a node offers to Slurm."""

    cluster_id: str
    managed: Managed = Managed.LABELLED
    drain: bool = True
    register: bool = True
    poll_seconds: float = 5.0
    settle_seconds: float = 30.0
    threads_per_core: int = 1
    reserved_cpus: Fraction = Fraction(0)
    reserved_memory: Fraction = Fraction(0)
    #: Extended resource -> GRES (`name` or `name:type`).
    gres: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: DRA driver -> GRES, likewise; ResourceSlices are not read if it is empty.
    device_gres: Mapping[str, str] = dataclasses.field(default_factory=dict)
    feature_labels: tuple[str, ...] = ()
    taint: Taint | None = None
    #: How Slurm's state is shown on Kubernetes nodes, None for not at all.
    marking: Marking | None = None
