"""All keys, as a whole."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from slurm_bridge.model import names
from slurm_bridge.settings import agents, groups, kinds
from slurm_bridge.settings import web as doors
from slurm_bridge.settings.kinds import Group, Label, Name, SchedulerName

_Reloadable = Field(json_schema_extra=kinds.RELOADABLE)

#: Extended resources whose GRES every Slurm cluster with such devices has.
_GPUS = {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}


class Settings(Group):
    """The configuration of one bridge."""

    cluster_id: Label
    """The name of this bridge in its placeholders. No two bridges of one Slurm cluster may share it, and it must not \
change while placeholders exist."""
    scheduler_names: Annotated[tuple[SchedulerName, ...], kinds.SOME, kinds.DIFFERENT] = (names.SCHEDULER_NAME,)
    """Pods with one of these in `spec.schedulerName` are scheduled."""
    managed_namespaces: Annotated[tuple[Label, ...] | None, _Reloadable, kinds.DIFFERENT] = None
    """Namespaces whose pods the admission webhook gives to this scheduler. A pod that names the scheduler itself is \
scheduled wherever it is."""
    managed_namespace_selector: Annotated[str | None, _Reloadable, kinds.instead_of("managed_namespaces")] = None
    """Instead of a list: a label selector for those namespaces."""
    slurm: groups.Slurm
    kubernetes: groups.Kubernetes = groups.Kubernetes()
    defaults: Annotated[groups.Defaults, _Reloadable] = groups.Defaults()
    gres: Annotated[Mapping[str, Name], _Reloadable] = _GPUS
    """Extended resources of pods, and the generic resource (`name` or `name:type`) that stands for each in Slurm. \
Given, it replaces the whole table."""
    hooks: Annotated[tuple[groups.Hook, ...], _Reloadable] = (
        groups.Hook(name="policy"),
        groups.Hook(name="eligibility"),
    )
    """The chain, in order."""
    unhonoured: Annotated[Literal["wait", "ignore"], _Reloadable] = "wait"
    """What becomes of a pod that asks for what no hook of the chain honours (spread constraints, host ports, …): it \
waits and says so, or it is submitted as if it had not asked, and an event says that. One that asks for devices by \
claim waits in any case."""
    attempts: Annotated[groups.Attempts, _Reloadable] = groups.Attempts()
    workloads: groups.Workloads = groups.Workloads()
    scheduling: groups.Scheduling = groups.Scheduling()
    mirror: groups.Mirror = groups.Mirror()
    ends: Annotated[groups.Ends, _Reloadable] = groups.Ends()
    status: Annotated[groups.Status, _Reloadable] = groups.Status()
    leader_election: groups.LeaderElection = groups.LeaderElection()
    web: doors.Web = doors.Web()
    agent: agents.Agent = agents.Agent()
    owners: tuple[groups.OwnerKind, ...] = ()
    """Further kinds of objects whose annotations are read as a pod's owner. The bridge needs permission to get them."""
    log: groups.Log = groups.Log()
