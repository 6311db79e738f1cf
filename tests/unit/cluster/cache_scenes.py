"""Pods on nodes, and what the cluster cache says of them."""

from fractions import Fraction

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources
from tests.unit.hooks.builders import partition, pod, slurm_node


def keeper(*nodes: Node) -> ClusterCache:
    """One that knows these nodes, and Slurm's counterparts."""
    made = ClusterCache(resources.requests_of)
    for one in nodes:
        made.on_node(None, one)
    found = tuple(one.slurm_name for one in nodes)
    made.set_slurm(map(slurm_node, found), [partition("debug", *found)])
    return made


def bound(name: str, where: str, cpu: str = "1", phase: str = "Running") -> Pod:
    """A pod that runs somewhere."""
    return pod(name, requests={"cpu": cpu}, node_name=where, phase=phase)


ONE = {"cpu": Fraction(1), "pods": Fraction(1)}
