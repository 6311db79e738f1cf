"""All keys, as a whole."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource

from slurm_bridge.model import names
from slurm_bridge.settings import admission as webhook
from slurm_bridge.settings import agents, groups, kinds
from slurm_bridge.settings import web as doors
from slurm_bridge.settings.kinds import Label, Name, ProfileName, SchedulerName, SettingsGroup

_Reloadable = Field(json_schema_extra=kinds.RELOADABLE)

#: Extended resources whose GRES every Slurm cluster with such devices has.
_GPUS = {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}


class Settings(SettingsGroup, BaseSettings):  # type: ignore[misc]  # two kinds of model_config
    """The configuration of one bridge: made of `sources`, or of the values given. The process's environment is none."""

    cluster_id: Label
    """The name of this bridge in its placeholders. Bridges of one Slurm cluster need different names. Do not change \
it while placeholders exist."""
    profile: ProfileName | None = None
    """A set of other defaults; every key that is given wins over it. `slinky`: as SchedMD's bridge, \
`defaults.exclusive: true` (whole nodes), `defaults.one_per_node: true`, `defaults.count: limits`, \
`defaults.partition: slurm-bridge`, `defaults.mcs_label: kubernetes`, `workloads.jobset: pod` and \
`hybrid_devices: whole-node`."""
    scheduler_names: Annotated[tuple[SchedulerName, ...], kinds.SOME, kinds.DIFFERENT] = (names.SCHEDULER_NAME,)
    """Pods with one of these in `spec.schedulerName` are scheduled."""
    slurm: groups.SlurmAccess
    kubernetes: groups.Kubernetes = groups.Kubernetes()
    defaults: Annotated[groups.DefaultsSettings, _Reloadable] = groups.DefaultsSettings()
    gres: Annotated[Mapping[str, Name], _Reloadable] = _GPUS
    """Extended resources of pods, and the generic resource (`name` or `name:type`) that stands for each in Slurm. \
A configured table replaces the default as a whole."""
    hybrid_devices: Annotated[Literal["refuse", "whole-node", "count"], _Reloadable] = "refuse"
    """What happens to pods that request a resource of the table `gres`, on nodes with a kubelet and a slurmd. A \
native job there may hold devices, a device plugin does not know which, and may give a pod the same ones. These nodes \
are excluded (`refuse`); or the workload gets whole nodes, on which no other job runs (`whole-node`); or Slurm only \
counts, as on external nodes (`count`; right only if native jobs use none of these devices)."""
    hooks: Annotated[tuple[groups.HookSettings, ...], _Reloadable] = (
        groups.HookSettings(name="policy"),
        groups.HookSettings(name="eligibility"),
    )
    """The chain of hooks, in order."""
    unhonoured: Annotated[Literal["wait", "ignore"], _Reloadable] = "wait"
    """What happens to a pod with a placement requirement that no hook of the chain honours (spread constraints, host \
ports, …): it waits with `NotHonoured`, or it is submitted without the requirement, and an event reports that. A pod \
that requests devices by claim waits in either case."""
    attempts: Annotated[groups.Attempts, _Reloadable] = groups.Attempts()
    workloads: groups.Workloads = groups.Workloads()
    scheduling: groups.Scheduling = groups.Scheduling()
    mirror: groups.MirrorSettings = groups.MirrorSettings()
    ends: Annotated[groups.EndsSettings, _Reloadable] = groups.EndsSettings()
    status: Annotated[groups.StatusSettings, _Reloadable] = groups.StatusSettings()
    leader_election: groups.LeaderElection = groups.LeaderElection()
    parts: Annotated[groups.PartsSettings, AfterValidator(groups.elected)] = groups.PartsSettings()
    nodes: groups.NodesSettings = groups.NodesSettings()
    web: doors.Web = doors.Web()
    admission: Annotated[webhook.AdmissionSettings, AfterValidator(webhook.served)] = webhook.AdmissionSettings()
    managed_namespaces: Annotated[
        tuple[webhook.Managed, ...], kinds.DIFFERENT, AfterValidator(webhook.unmanaged_of_itself), _Reloadable
    ] = ()
    """Namespaces in which the admission webhook gives pods to this scheduler that name none."""
    managed_namespace_selector: Annotated[webhook.Selector, _Reloadable] = ""
    """The same for the namespaces whose labels match this selector, for example `slurm=yes,tier in (a,b)`. Empty: \
none. The service account of the webhook needs the right to list and watch namespaces."""
    agent: agents.AgentSettings = agents.AgentSettings()
    owners: tuple[groups.OwnerKind, ...] = ()
    """Further kinds of owners of pods whose annotations are read. The service account needs the right to get them."""
    log: groups.LogSettings = groups.LogSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - as it is called
        init_settings: PydanticBaseSettingsSource,
        *_unused: PydanticBaseSettingsSource,
        **_by_name: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Ours, the strongest first."""
        assert isinstance(init_settings, InitSettingsSource)
        given: tuple[PydanticBaseSettingsSource, ...] | None = init_settings.init_kwargs.get("sources")
        return (init_settings,) if given is None else given
