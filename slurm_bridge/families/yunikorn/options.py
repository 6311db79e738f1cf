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
    """Patterns of namespaces that it is about."""
    service_accounts: tuple[_Glob, ...] = ("*",)
    """Patterns of the service accounts that pods run under."""
    user: str = ""
    """The user; empty: the service account, as Kubernetes writes it."""
    groups: tuple[_Name, ...] = ()
    """Groups of the user, beside those that Kubernetes gives to service accounts."""


class YunikornOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """The queues, what they are in Slurm, and which of the two decides."""

    mode: Literal["local", "slurm", "off"] = "local"
    """What decides on order and limits: the queues, or Slurm, where queues only map; `off` only shows them."""
    configuration: Any = None
    """The queues as YuniKorn's configuration has them, beginning with `partitions`."""
    file: str = ""
    """A file with them instead, such as a mounted ConfigMap; when it changes it is read again."""
    partition: _Name = "default"
    """The partition of that configuration whose queues workloads are put into, unless `partitions` is `slurm`."""
    partitions: Literal["one", "slurm"] = "one"
    """`slurm`: each partition of that configuration has the queues of the Slurm partition of its name."""
    one_place: bool = True
    """A queue's name has one place, the same in every partition; `false` allows one name below several parents."""
    ahead: Annotated[int, pydantic.Field(ge=0)] = 16
    """So many workloads are with Slurm without having started; the others wait in their queues. 0: any number."""
    order: bool = True
    """Workloads line up to be submitted in the order in which queues let them in; `false` leaves it to another hook."""
    evict_seconds: Annotated[float, pydantic.Field(gt=0)] = 120.0
    """A workload that is to make room and that the API server does not let go stays after so many seconds."""
    reservations: Annotated[int, pydantic.Field(ge=0)] = 1
    """For so many workloads at once nodes are kept when smaller ones pass them; 0: for none."""
    reserve_after: Annotated[float, pydantic.Field(ge=0)] = 60.0
    """A workload waits in Slurm for so many seconds before nodes are kept for it."""
    reserve_seconds: Annotated[float, pydantic.Field(gt=0)] = 600.0
    """Nodes that it has not used within so many seconds are for all again, and others have their turn."""
    users: tuple[UserOptions, ...] = ()
    """The users of workloads; the first entry that matches counts."""
    map: Mapping[str, TargetOptions] = {}
    """What queues are in Slurm, by path; it holds for all below that have no entry of their own."""
    slurm_limits: bool = False
    """Slurm has limits or fair share of its own on what queues are mapped to: with mode `local` that is refused."""
    gres: Mapping[str, str] = {"gpu": "nvidia.com/gpu"}
    """As which resource of a queue the annotation `gres` counts, by Slurm's name; others count as `gres/NAME`."""

    @pydantic.model_validator(mode="after")
    def _given_once(self) -> Self:
        if (self.configuration is None) == (not self.file):
            there = "both" if self.file else "none"
            raise ValueError(f"configuration and file: {there} of them is given; allowed is one")
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
