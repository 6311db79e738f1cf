"""How the hook "yunikorn" is configured."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import pydantic

_Glob = Annotated[str, pydantic.Field(min_length=1)]
_Name = Annotated[str, pydantic.Field(min_length=1)]


class TargetOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """What a queue is in Slurm."""

    account: _Name | None = None
    """The account that is charged."""
    qos: _Name | None = None
    """The quality of service."""
    partition: _Name | None = None
    """Slurm's partition, or several of them with commas between."""


class UserOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """The user of some workloads."""

    namespaces: tuple[_Glob, ...] = ("*",)
    """Patterns of namespaces to which the entry applies."""
    service_accounts: tuple[_Glob, ...] = ("*",)
    """Patterns of the service accounts that pods run under."""
    user: str = ""
    """The user; empty: the service account, as Kubernetes writes it."""
    groups: tuple[_Name, ...] = ()
    """Groups of the user, beside those that Kubernetes gives to service accounts."""
    creators: bool = False
    """Workloads belong to the user that created them, with the groups of that user, where this is known. It needs \
`admission.trust_created_by`."""


class YunikornOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """The queues, what they are in Slurm, and which of the two decides."""

    mode: Literal["local", "slurm", "off"] = "local"
    """What enforces order and limits: `local`, the queues before the submission; `slurm`, Slurm itself, and queues
    only choose partition, account and QOS; `off`, nothing, and queues are only displayed."""
    configuration: Any = None
    """The queues, in the format of YuniKorn's `queues.yaml`, which begins with `partitions`."""
    file: str = ""
    """A file with the queues, in place of `configuration`, such as a mounted ConfigMap; it is read again when it
    changes."""
    partition: _Name = "default"
    """The partition of that configuration whose queues workloads are put into, unless `partitions` is `slurm`."""
    partitions: Literal["one", "slurm"] = "one"
    """`slurm`: each partition of that configuration has the queues of the Slurm partition of its name."""
    one_place: bool = True
    """Each queue name may stand below one parent only, the same in every partition; `false` allows one name below
    several parents."""
    node_sorts: tuple[_Name, ...] = ()
    """Orders of nodes of installed packages that partitions and workloads may name, beside `fair` and `binpacking`."""
    node_sort_seconds: Annotated[float, pydantic.Field(ge=0)] = 5.0
    """On clusters of fewer than 100 nodes a job waits for so long for the nodes that come first, then for any."""
    ahead: Annotated[int, pydantic.Field(ge=0)] = 16
    """How many workloads of the queues may be pending in Slurm at once; the others wait in their queues. 0: no
    limit."""
    order: bool = True
    """The queues decide in which order workloads are submitted; `false` leaves the order to another hook."""
    evict_seconds: Annotated[float, pydantic.Field(gt=0)] = 120.0
    """How long an eviction is tried that the API server refuses; after that the workload keeps running."""
    reservations: Annotated[int, pydantic.Field(ge=0)] = 1
    """For how many workloads nodes are reserved at the same time, so that smaller workloads do not overtake them for
    ever; 0: none."""
    reserve_after: Annotated[float, pydantic.Field(ge=0)] = 60.0
    """How many seconds a workload is pending in Slurm before nodes are reserved for it."""
    reserve_seconds: Annotated[float, pydantic.Field(gt=0)] = 600.0
    """After how many seconds an unused reservation ends; then other workloads have their turn."""
    pods_opt_out: bool = True
    """Pods may opt out of preemption by annotation; `false`: only their PriorityClasses may."""
    users: tuple[UserOptions, ...] = ()
    """The users of workloads; the first entry that matches counts."""
    map: Mapping[str, TargetOptions] = {}
    """The partition, account and QOS of a queue in Slurm, by the path of the queue; an entry holds for all queues
    below that have none."""
    slurm_limits: bool = False
    """Say `true` if Slurm has limits or fair share of its own on these accounts and QOS. With mode `local`, a queue
    with limits that `map` gives an account or QOS is then refused, because both would limit."""
    gres: Mapping[str, str] = {"gpu": "nvidia.com/gpu"}
    """Which resource of a queue a GRES of the annotation `gres` is charged to, by the name in Slurm; others are
    charged to `gres/NAME`."""

    @pydantic.model_validator(mode="after")
    def _given_once(self) -> Self:
        if (self.configuration is None) == (not self.file):
            there = "both" if self.file else "none"
            raise ValueError(f"configuration and file: {there} of them is given; use one")
        return self

    @pydantic.model_validator(mode="after")
    def _chosen_once(self) -> Self:
        if self.partitions == "one":
            return self
        if "partition" in self.model_fields_set:
            raise ValueError(
                "partition: with `partitions: slurm` all partitions of the configuration are used; leave it out"
            )
        mapped = sorted(path for path, target in self.map.items() if target.partition is not None)
        if mapped:
            raise ValueError(
                f"map.{mapped[0]}.partition: with `partitions: slurm` a workload is in the queues of its own "
                f"Slurm partition, and these cannot send it into another one; leave it out"
            )
        return self
