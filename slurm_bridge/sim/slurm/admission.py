"""Whether slurmctld accepts a job: the checks in their order, each with its error number.

The order was observed: a refusal of `place` has used up a job id, one of `examine` has not.
"""

import dataclasses
from collections.abc import Callable, Iterable

from slurm_bridge.model import hostlist
from slurm_bridge.sim.slurm import features, prospects, requested_job, state, tres
from slurm_bridge.sim.slurm.world import World

_MOST_COMMENT = 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobApplication:
    """A job to be accepted: the parsed fields, the caller, and the user the job is for."""

    values: requested_job.Values
    caller: str
    user: str
    operator: bool
    external: bool = True


def examine(world: World, application: JobApplication) -> state.RequestedJob | int:
    """The requested job, or the number of the first error that does not depend on nodes."""
    for check in _CHECKS:
        number = check(world, application)
        if number:
            return number
    return complete(world, requested_job.apply(state.RequestedJob(), application.values), application.values)


def place(world: World, ask: state.RequestedJob, application: JobApplication) -> str | int:
    """The reason for which the job waits; an error number if it could never run."""
    number = reservation(world, ask.reservation, application.user)
    if number:
        return number
    partitions = [world.partitions[name] for name in ask.partitions]
    if ask.hold or ask.priority == 0:
        return state.NO_REASON  # nodes are not checked before the job is released
    if all(not partition.starts_jobs for partition in partitions):
        return "PartitionDown"
    outlook = prospects.best(world, ask, external=application.external)
    if outlook is prospects.Outlook.NEVER:
        return 2014
    return _REASONS.get(outlook, state.NO_REASON)


#: Only warnings: the job is accepted and waits.
PARTITION_DOWN, TOO_LARGE, NODE_NOT_AVAILABLE = 2069, 2015, 2061

_REASONS = {prospects.Outlook.TOO_LARGE: "PartitionConfig", prospects.Outlook.STRANDED: "ReqNodeNotAvail"}


def complete(world: World, ask: state.RequestedJob, values: requested_job.Values) -> state.RequestedJob:
    """Fill in what the request leaves to Slurm."""
    default = world.default_partition()
    if not ask.partitions and default is not None:
        ask = dataclasses.replace(ask, partitions=(default.name,), default_partition=True)
    if "time_limit" not in values:
        ask = dataclasses.replace(ask, minutes=_default_minutes(world, ask))
    nodes = max(ask.minimum_nodes, 1 if _minimum_given(values) else len(ask.required))
    tasks = ask.tasks if ask.tasks_given else max(ask.tasks, nodes)
    cpus = tasks * ask.cpus_per_task if "minimum_cpus" not in values else ask.minimum_cpus
    # Node lists are shown compressed after a submit, and as written after an update.
    lists = {"required_nodes": ask.required, "excluded_nodes": ask.excluded}
    compressed = {name: hostlist.compress(listed) for name, listed in lists.items() if listed}
    texts = {**ask.texts, **compressed}
    return dataclasses.replace(ask, minimum_nodes=nodes, tasks=tasks, minimum_cpus=cpus, texts=texts)


def _default_minutes(world: World, ask: state.RequestedJob) -> int | None:
    partition = world.partitions.get(ask.partitions[0]) if ask.partitions else None
    if partition is None:
        return None
    return partition.maximum_minutes if partition.default_minutes is None else partition.default_minutes


def _minimum_given(values: requested_job.Values) -> bool:
    return "nodes" in values or "minimum_nodes" in values


# -- checks of the request alone -------------------------------------------------------------------------------------


def _permission(_: World, application: JobApplication) -> int:
    values = application.values
    if application.operator:
        return 0
    if application.user != application.caller:
        return 2010
    if "job_id" in values:
        return 2017
    if values.get("nice", 0) < 0:
        return 2123
    return 2002 if values.get("admin_comment") else 0


def _partition(world: World, application: JobApplication) -> int:
    names = [name for name in application.values.get("partition", "").split(",") if name]
    partitions = [world.partitions.get(name) for name in names]
    if any(partition is None for partition in partitions) or not (names or world.default_partition()):
        return 2000
    if not application.operator and any(partition is not None and partition.root_only for partition in partitions):
        return 2002
    return 2070 if any(partition is not None and not partition.accepts_jobs for partition in partitions) else 0


def _form(_: World, application: JobApplication) -> int:
    if len(application.values.get("comment", "").encode()) > _MOST_COMMENT:
        return 2012
    return 2081 if application.values.get("array") else 0


def _gres(world: World, application: JobApplication) -> int:
    try:
        for name in ("tres_per_node", "tres_per_task", "tres_per_job", "memory_per_tres"):
            if any(wanted.name not in world.known_gres for wanted in tres.parse_gres(application.values.get(name, ""))):
                return 2072
    except tres.BadAmount:
        return 2115
    return 0


def _nodes(world: World, application: JobApplication) -> int:
    values = application.values
    number = hosts(world, values, empty_clears=False)
    if number:
        return number
    try:
        ask = requested_job.apply(state.RequestedJob(), {name: values[name] for name in _COUNTS if name in values})
    except ValueError:
        return 2006
    least = max(ask.minimum_nodes, 1 if _minimum_given(values) else len(ask.required))
    if values.get("minimum_nodes") == 0 or (ask.maximum_nodes is not None and ask.maximum_nodes < least):
        return 2006
    if ask.tasks_given and least > ask.tasks:
        return 2025
    # Blocks are filled in segments, which have to divide the number of nodes.
    size = values.get("segment_size", 0)
    return 2178 if size and ask.minimum_nodes % size else 0


_COUNTS = ("tasks", "nodes", "minimum_nodes", "maximum_nodes", "required_nodes")


def _wishes(world: World, application: JobApplication) -> int:
    values = application.values
    number = constraints(world, values)
    if not number and features.names(values.get("prefer", "")) - world.known_features:
        number = 2133
    number = number or licenses(world, values)
    return number or (2038 if values.get("dependency") else 0)


def _room(world: World, application: JobApplication) -> int:
    if len(world.jobs) >= world.config.maximum_job_count:
        return 2007
    return 2011 if application.values.get("job_id") in world.jobs else 0


_CHECKS: tuple[Callable[[World, JobApplication], int], ...] = (
    _permission,
    _partition,
    _form,
    _gres,
    _nodes,
    _wishes,
    _room,
)


# -- checks that updates share ---------------------------------------------------------------------------------------


def hosts(world: World, values: requested_job.Values, *, empty_clears: bool) -> int:
    """Every listed node exists; an empty name clears on update; at submit it is an error if required."""
    for name in ("required_nodes", "excluded_nodes"):
        entries = values.get(name, [])
        if entries and not any(entries):
            if name == "required_nodes" and not empty_clears:
                return 2006
            continue
        try:
            listed: Iterable[str] = hostlist.expand(",".join(entries)) if entries else ()
        except ValueError:
            return 2018
        if any(host not in world.nodes for host in listed):
            return 2018
    return 0


def constraints(world: World, values: requested_job.Values) -> int:
    """Every feature exists, and the expression is valid."""
    expression = values.get("constraints", "")
    try:
        for alternative in features.alternatives(expression):
            features.parse(alternative)
    except features.BadFeatureExpression:
        return 2029
    return 2029 if features.names(expression) - world.known_features else 0


def licenses(world: World, values: requested_job.Values) -> int:
    """Every license exists, in the requested number."""
    try:
        wanted = tres.parse_licenses(values.get("licenses", ""))
    except tres.BadAmount:
        return 2048
    return 2048 if any(count > world.licenses.get(name, 0) for name, count in wanted.items()) else 0


# -- checks that look at the nodes -----------------------------------------------------------------------------------


def reservation(world: World, name: str, user: str) -> int:
    """The reservation exists and admits this user; no reservation is always valid."""
    if not name:
        return 0
    found = world.reservations.get(name)
    if found is None:
        return 2053
    return 0 if found.admits(user) else 2052
