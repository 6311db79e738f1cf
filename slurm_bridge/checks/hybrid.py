"""Checks on nodes that have a kubelet and a slurmd: pods and native jobs share their CPUs, memory and devices."""

import collections
from collections.abc import Iterator

from slurm_bridge.checks import sides
from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.checks.findings import Remark, advice, info, named, ok, warning

_NOT_VISIBLE = "not visible in this API version"
_NONE = "no node has a kubelet and a slurmd"


def no_stray_slurmd(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """No native job starts on an external node, whatever runs there."""
    found = [node.name for node in facts.slurm_nodes if node.external and node.slurmd]
    if found:
        yield warning(f"external nodes with a slurmd, which gets no jobs: {named(found)}")
    else:
        yield ok("no external node has a slurmd")


def reserved(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Slurm may give all that it counts to native jobs, beside kubelet, slurmd and pods that Slurm does not place."""
    full: dict[str, list[str]] = collections.defaultdict(list)
    rest: dict[str, list[str]] = collections.defaultdict(list)
    for node, slurm in sides.pairs(facts, facts.hybrid):
        for what, has, there in sides.sizes(node.status.capacity, slurm):
            if there >= has:
                full[what].append(slurm.name)
        for what, gives, there in sides.sizes(node.status.allocatable, slurm):
            if gives > there:
                rest[what].append(slurm.name)
    for what, names in full.items():
        yield warning(
            f"Slurm counts all {what} of {named(names)}: none are left for the kubelet, slurmd and DaemonSets"
        )
    for what, names in rest.items():
        yield info(f"on {named(names)} Slurm counts fewer {what} than pods can get: DaemonSets may have the rest")
    if not facts.hybrid:
        yield ok(_NONE)
    elif not full and not rest:
        yield ok(f"something is reserved on {named(node.name for node in facts.hybrid)}, and Slurm leaves it alone")


def confined(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Without control groups a native job may use the CPUs, the memory and the devices of pods."""
    names = [node.name for node in facts.hybrid]
    if not names:
        yield ok(_NONE)
    elif facts.conf is None:
        yield info(f"TaskPlugin and ProctrackType are {_NOT_VISIBLE}")
    elif "task/cgroup" not in facts.conf.task_plugins or facts.conf.proctrack_type != "proctrack/cgroup":
        plugins, tracking = ",".join(facts.conf.task_plugins) or "not set", facts.conf.proctrack_type or "not set"
        yield warning(
            f"native jobs on {named(names)} are not confined to what Slurm gave them: TaskPlugin is {plugins}, "
            f"ProctrackType is {tracking}"
        )
    else:
        yield info(
            f"native jobs on {named(names)} are confined as cgroup.conf says, which is not visible here: it needs "
            "ConstrainCores=yes, ConstrainRAMSpace=yes and ConstrainDevices=yes"
        )


def scripts(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Scripts that take a node for one job's alone harm pods."""
    if facts.conf is None:
        yield info(f"Prolog and Epilog are {_NOT_VISIBLE}")
        return
    names, conf = [node.name for node in facts.hybrid], facts.conf
    beside = [name for name, there in (("Prolog", conf.prolog), ("Epilog", conf.epilog)) if there]
    central = [name for name, there in (("Prolog", conf.prolog_ctld), ("Epilog", conf.epilog_ctld)) if there]
    if beside and names:
        yield info(
            f"{' and '.join(beside)} of native jobs run on {named(names)} beside pods: they must not reset all GPUs, "
            "empty shared folders, or end all processes of a user. They do not run for placeholders"
        )
    if central:
        yield info(f"{' and '.join(f'{one}Slurmctld' for one in central)} run for placeholders, too")
    if not (beside and names) and not central:
        yield ok("no Prolog or Epilog runs beside pods, or for placeholders")


def devices(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """A device plugin chooses devices without asking Slurm, which has given some of them to native jobs."""
    shared: dict[str, list[str]] = collections.defaultdict(list)
    elsewhere: set[str] = set()
    for node, slurm in sides.pairs(facts, facts.slurm_nodes):
        for resource in sides.plugged(node, slurm, wanted):
            if slurm.native:
                shared[resource].append(slurm.name)
            else:
                elsewhere.add(resource)
    for resource, names in shared.items():
        where = f"{resource} of {named(names)}"
        if wanted.hybrid_devices == "count":
            yield warning(f"{where}: pods may get devices that native jobs hold (hybrid_devices: count)")
        elif wanted.hybrid_devices == "whole-node":
            yield info(f"{where}: pods that request it take whole nodes (hybrid_devices: whole-node)")
        elif resource in elsewhere:
            yield info(f"{where}: pods that request it go to other nodes (hybrid_devices: refuse)")
        else:
            yield warning(f"{where}: pods that request it get no node, no other has it (hybrid_devices: refuse)")
    if not shared:
        yield ok("no device plugin has devices that Slurm counts on a node with native jobs")


def labels(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """An MCS label keeps jobs apart only where Slurm selects nodes by it."""
    if facts.conf is None:
        yield info(f"MCSPlugin is {_NOT_VISIBLE}")
    elif not facts.conf.mcs_plugin and wanted.mcs_label:
        yield advice(f"defaults.mcs_label is {wanted.mcs_label}, which has no effect: MCSPlugin is not set")
    elif facts.conf.mcs_plugin and "select" not in facts.conf.mcs_parameters:
        yield advice(f"{facts.conf.mcs_plugin} keeps no jobs apart on nodes: MCSParameters does not have select")
    else:
        yield ok(
            f"nodes are selected by {facts.conf.mcs_plugin}" if facts.conf.mcs_plugin else "no MCS labels are used"
        )
