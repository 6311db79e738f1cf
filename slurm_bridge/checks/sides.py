"""Checks that compare both servers: the same nodes, under known names, with the same resources."""

import collections
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.checks.findings import Remark, advice, failure, named, ok, warning
from slurm_bridge.model import names, quantity
from slurm_bridge.model.node import Node
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.model.texts import counted

_KEEPS_PODS_AWAY = ("NoSchedule", "NoExecute")


def same_nodes(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Every node that Slurm allocates exists in Kubernetes, and the other way round."""
    ours, theirs = facts.by_slurm_name, {node.name: node for node in facts.slurm_nodes}
    both = ours.keys() & theirs.keys()
    if not both:
        yield failure(
            f"no node is in both Kubernetes and Slurm: {counted(len(facts.nodes), 'node')} in Kubernetes, "
            f"{counted(len(theirs), 'node')} in Slurm"
        )
        return
    alone = [node.name for node in facts.slurm_nodes if node.external and node.name not in ours]
    unknown = [node.metadata.name for name, node in ours.items() if name not in theirs and _takes_pods(node)]
    if alone:
        yield warning(f"external nodes of Slurm without a node in Kubernetes: {named(alone)}")
    if unknown:
        yield warning(f"nodes of Kubernetes that Slurm does not know: {named(unknown)}")
    if not (alone or unknown):
        mapped = sum(ours[name].metadata.name != name for name in both)
        yield ok(f"{counted(len(both), 'node')} on both sides, {mapped} of them with another name in Slurm")


def names_once(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Two Kubernetes nodes with one name in Slurm would share its capacity."""
    claims: dict[str, list[str]] = collections.defaultdict(list)
    for node in facts.nodes:
        claims[node.slurm_name].append(node.metadata.name)
    twice = {name: nodes for name, nodes in claims.items() if len(nodes) > 1}
    for name, nodes in sorted(twice.items()):
        yield failure(f"{' and '.join(sorted(nodes))} are both mapped to {name} in Slurm")
    if not twice:
        yield ok("every node of Kubernetes has a name of its own in Slurm")


def same_resources(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """If Slurm counts more than the kubelet, the kubelet refuses a pod that Slurm placed."""
    larger: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    for node, slurm in pairs(facts, facts.slurm_nodes):
        for what, here, there in _amounts(node, slurm, wanted):
            if there > here:
                larger[what].append((slurm.name, f"{_plain(there)} against {_plain(here)}"))
    for what, found in larger.items():
        which = named(name for name, _ in found)
        yield warning(f"Slurm has more {what} than Kubernetes can give on {which} ({found[0][0]}: {found[0][1]})")
    if not larger:
        yield ok("Slurm counts no more than Kubernetes can give")


def resources_known(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Slurm has to count, as generic resources, the extended resources that pods may request."""
    missing: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for node, slurm in pairs(facts, facts.slurm_nodes):
        known = {gres.name.lower() for gres in slurm.gres}
        for resource, gres in wanted.gres.items():
            if _amount(node, resource) and _bare(gres) not in known:
                missing[resource, gres].append(slurm.name)
    for (resource, gres), nodes in missing.items():
        yield warning(f"{resource} of {named(nodes)} is no generic resource {gres} in Slurm")
    types = facts.conf.gres_types if facts.conf else None
    absent = sorted({_bare(gres) for gres in wanted.gres.values()} - {name.lower() for name in types or ()})
    if types is not None and absent and not missing:
        yield advice(f"GresTypes does not name {', '.join(absent)}: pods that ask for it are refused")
    elif not missing:
        yield ok("every configured extended resource of these nodes is counted by Slurm")


def typed_devices(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Typed static devices leak if a job requests them per task; our jobs never do."""
    typed = [(node.name, gres) for node in facts.external for gres in node.gres if gres.type]
    if typed:
        kinds = ", ".join(sorted({f"{gres.name}:{gres.type}" for _, gres in typed}))
        yield advice(f"{named(name for name, _ in typed)}: typed devices ({kinds}), which are asked for by node")
    else:
        yield ok("no external node has typed devices")


def pairs(facts: CheckFacts, machines: Iterable[SlurmNode]) -> Iterator[tuple[Node, SlurmNode]]:
    """Those of Slurm's nodes that Kubernetes has, too."""
    ours = facts.by_slurm_name
    return ((ours[slurm.name], slurm) for slurm in machines if slurm.name in ours)


def sizes(amounts: Mapping[str, str | int | float], slurm: SlurmNode) -> Iterator[tuple[str, Fraction, Fraction]]:
    """CPUs and memory: the name, the amount among these of a kubelet, and what Slurm counts for jobs."""
    yield "cpus", quantity.parse(amounts.get("cpu", 0)), Fraction(slurm.cpus)
    yield "memory (MiB)", quantity.parse(amounts.get("memory", 0)) / quantity.MIB, Fraction(slurm.memory_mib)


def plugged(node: Node, slurm: SlurmNode, wanted: Expectations) -> Iterator[str]:
    """The resources whose devices a device plugin has on this node, and Slurm counts there."""
    known = {gres.name.lower() for gres in slurm.gres if gres.count}
    return (name for name, gres in wanted.gres.items() if _amount(node, name) > 0 and _bare(gres) in known)


def _amounts(node: Node, slurm: SlurmNode, wanted: Expectations) -> Iterator[tuple[str, Fraction, Fraction]]:
    """The resource, what the kubelet can give, and what Slurm counts.

    Devices of DRA drivers are not the kubelet's, unless a device plugin has some of them on this node. Where native
    jobs run, devices may be theirs alone.
    """
    gres = wanted.gres
    yield from sizes(node.status.allocatable, slurm)
    published = {_bare(text) for text in (*wanted.device_gres.values(), *wanted.claimed_gres)}
    for name in sorted({_bare(text) for text in gres.values()}):
        devices = sum((_amount(node, resource) for resource, text in gres.items() if _bare(text) == name), Fraction())
        if devices or not (slurm.native or name in published):
            yield name, devices, Fraction(sum(one.count for one in slurm.gres if one.name.lower() == name))


def _amount(node: Node, resource: str) -> Fraction:
    return quantity.parse(node.status.allocatable.get(resource, 0))


def _bare(gres: str) -> str:
    return gres.partition(":")[0].lower()


def _plain(amount: Fraction) -> str:
    return f"{float(amount):.10g}"


def _takes_pods(node: Node) -> bool:
    """Nodes that run no ordinary pods need not be in Slurm."""
    return not (node.spec.unschedulable or any(taint.effect in _KEEPS_PODS_AWAY for taint in node.spec.taints))


#: Used in remedies.
LABEL = names.LABEL_SLURM_NODE_NAME
