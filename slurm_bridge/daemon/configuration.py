"""Translates the settings into the small records of options that the packages take; these know no settings."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge import errors
from slurm_bridge.controllers.nodes.availability import Marking
from slurm_bridge.controllers.nodes.options import Managed, NodeOptions
from slurm_bridge.daemon import slurm_fit
from slurm_bridge.hooks import attempts, calls, registry
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.services import ChainServices, Settle
from slurm_bridge.mirror.breaker import Breaker
from slurm_bridge.mirror.rhythm import Rhythm
from slurm_bridge.model import quantity
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.node import Taint
from slurm_bridge.model.workload import MemberLost
from slurm_bridge.scheduler.context import Config, Ends, Limits
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.settings.groups import NodesSettings
from slurm_bridge.settings.model import Settings
from slurm_bridge.status import reporter
from slurm_bridge.translate.rules import Rules
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.known import Options

_MIB = 2**20

#: Kinds of controllers that own pods; rules that say "default" apply to them.
_CONTROLLERS = (
    *(spec.name for spec in kind_table.SPECS.values() if spec.owner),
    "ReplicaSet",
    "StatefulSet",
    "ReplicationController",
)


def rules(settings: Settings) -> Rules:
    """The rules of translation. BadConfiguration names a default that no job can have."""
    given = settings.defaults
    try:
        return Rules(
            cluster_id=settings.cluster_id,
            partition=given.partition,
            account=given.account,
            qos=given.qos,
            gres=given.gres,
            timelimit=given.timelimit,
            exclusive=given.exclusive,
            one_per_node=given.one_per_node,
            mcs_label=given.mcs_label or None,
            cpus=max(1, math.ceil(quantity.parse(given.cpus))),
            memory_mib=max(1, math.ceil(quantity.parse(given.memory) / _MIB)),
            count=given.count,
            user=given.user,
            group=given.group,
            environment=given.environment,
            gres_names=settings.gres,
        )
    except ValueError as problem:
        raise errors.BadConfiguration(f"defaults: {problem}") from problem


def changeable(settings: Settings, around: ChainServices) -> Config:
    """What can change while the daemon runs. Raises BadConfiguration if any part of it cannot work."""
    translation = rules(settings)
    wanted = tuple(
        registry.HookConfig(
            name=one.name,
            options=one.options,
            on_error=calls.OnError(one.on_error),
            budget_ms=one.budget_ms,
        )
        for one in settings.hooks
    )
    # These options follow from other settings, so that the administrator states them once.
    ignored = sorted({name for one in settings.hooks for name in _ignored(one.options)})
    told = {
        "eligibility": {
            "scheduler_names": list(settings.scheduler_names),
            "ignored_resources": ignored,
            "devices": list(settings.gres),
            "hybrid_devices": settings.hybrid_devices,
        }
    }
    chain = registry.build(wanted, dataclasses.replace(around, strict=settings.unhonoured == "wait"), told=told)
    if settings.parts.own is not None and (counting := _counting(chain)):
        chain.close()
        raise errors.BadConfiguration(
            f"hooks: {', '.join(counting)}: counts what all workloads use, and with `parts` a daemon knows only those "
            "of its own part; leave the hook out, or run one daemon without parts"
        )
    translation = dataclasses.replace(
        translation, parts_of=chain.parts_of, devices_of=chain.devices_of, class_gres=chain.class_gres
    )
    return Config(rules=translation, chain=chain, ends=ends(settings))


def _counting(chain: Chain) -> list[str]:
    """The hooks that need to know all workloads of the cluster."""
    return [one.name for one in chain.hooks if one.can.restores is not None or one.can.reserves is not None]


def claimed_gres(settings: Settings) -> frozenset[str]:
    """The generic resources that pods get by ResourceClaim, as far as the options of the hook can be read."""
    classes = (one.options.get("classes") for one in settings.hooks if one.name == "device-claims")
    rows = (row for given in classes if isinstance(given, list | tuple) for row in given if isinstance(row, Mapping))
    return frozenset(row["gres"] for row in rows if isinstance(row.get("gres"), str))


def _ignored(options: Any) -> Iterator[str]:
    """The resources that some part of a hook's options says to ignore: no other hook may ask for them then."""
    if isinstance(options, Mapping):
        # As this program writes it, and as a KubeSchedulerConfiguration does.
        for said in (options.get("ignored_resources"), options.get("ignoredResources")):
            yield from (one for one in (said if isinstance(said, list | tuple) else ()) if isinstance(one, str))
        if options.get("ignoredByScheduler") is True and isinstance(options.get("name"), str):
            yield options["name"]
        for value in options.values():
            yield from _ignored(value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from _ignored(value)


def ends(settings: Settings) -> Ends:
    """What the daemon does when a placeholder ends."""
    given = dict(settings.ends.after_timeout)
    default = given.pop("default")
    held = {kind for kind in (*_CONTROLLERS, *given) if given.get(kind, default) == "hold"}
    mirror = settings.mirror
    return Ends(
        hold_after_timeout=frozenset(held),
        stuck_seconds=settings.ends.stuck_seconds,
        breaker=Breaker(minimum=mirror.vanished_minimum, fraction=mirror.vanished_fraction),
    )


def limits(settings: Settings) -> Limits:
    """The limits of the scheduler."""
    given, ids = settings.scheduling, settings.slurm.job_ids
    return Limits(
        ids=IdRange(first=ids.first, last=ids.last) if ids is not None else None,
        window=given.unstarted_window,
        bind_tries=given.bind_tries,
        backoff_first=given.backoff_first_seconds,
        backoff_most=given.backoff_most_seconds,
        settle_seconds=settings.workloads.settle_seconds,
        incomplete_seconds=settings.workloads.incomplete_seconds,
        bind_seconds=settings.workloads.bind_seconds,
        volume_seconds=settings.workloads.volume_seconds,
    )


def workloads(settings: Settings) -> Options:
    """The defaults for groups of pods that do not say how they want to be treated."""
    given = settings.workloads
    lost = {"keep": MemberLost.KEEP, "restart-group": MemberLost.RESTART}.get(given.member_lost)
    return Options(job=given.job, jobset=given.jobset, member_lost=lost, creators=settings.admission.trust_created_by)


def rhythm(settings: Settings) -> Rhythm:
    """How often the mirror asks Slurm."""
    given = settings.mirror
    return Rhythm(
        fastest=given.fastest_seconds,
        slowest=given.slowest_seconds,
        share=given.cpu_share,
        details_per_second=given.detail_reads_per_second,
        full_states_above=given.full_list_above,
        sweep=given.sweep_seconds,
    )


def attempt_limits(settings: Settings) -> attempts.AttemptLimits:
    """How many sets of nodes are tried, and for how long."""
    given = settings.attempts
    return attempts.AttemptLimits(
        candidates=given.candidates,
        window_seconds=given.window_seconds,
        total=given.total,
        then=attempts.Then(given.then),
    )


def status(settings: Settings) -> reporter.ReporterLimits:
    """The rates at which conditions and events are written on pods."""
    given = settings.status
    return reporter.ReporterLimits(
        conditions_per_second=given.conditions_per_second,
        events_per_second=given.events_per_second,
        patience_seconds=given.patience_seconds,
    )


def owner_kinds(settings: Settings) -> tuple[Kind[Object], ...]:
    """Additional kinds that may own pods."""
    return tuple(
        Kind(
            group=one.api_version.rpartition("/")[0],
            versions=(one.api_version.rpartition("/")[2],),
            plural=one.plural,
            kind=one.kind,
            record=Object,
        )
        for one in settings.owners
    )


def nodes(settings: Settings) -> NodeOptions:
    """The options of the node controller."""
    given = settings.nodes
    return NodeOptions(
        cluster_id=settings.cluster_id,
        managed=Managed(given.managed),
        drain=given.drain,
        register=given.register_external,
        poll_seconds=given.poll_seconds,
        settle_seconds=given.settle_seconds,
        threads_per_core=given.threads_per_core,
        reserved_cpus=quantity.parse(given.reserved_cpus),
        reserved_memory=quantity.parse(given.reserved_memory),
        gres=settings.gres,
        device_gres=given.device_gres if given.register_external else {},
        feature_labels=given.feature_labels,
        taint=Taint.parse(given.managed_taint) if given.managed_taint else None,
        marking=_marking(given) if given.show_state else None,
    )


def _marking(given: NodesSettings) -> Marking:
    effect = "" if given.state_taint == "none" else given.state_taint
    return Marking(taint=effect, cordon=given.state_cordon, hold=given.hold_scale_down)


def settle(settings: Settings | None = None) -> Settle:
    """The step that fits requests to Slurm's partitions and nodes."""
    return slurm_fit.SlurmFit(components=settings is None or settings.workloads.heterogeneous == "auto")
