"""The Kubernetes node of each machine of the pocket Slurm, with the labels and capacity of a real cluster.

Both servers have the same machines; those of kind `mapped` have different names on each.
"""

from collections.abc import Iterable, Mapping

from slurm_bridge.model import names
from slurm_bridge.sim.kube.world import PocketKube
from slurm_bridge.sim.slurm import state

#: Machines with a taint: only pods that tolerate it may use them.
_TAINTED = "mapped"


def join(kube: PocketKube, machines: Iterable[state.Node]) -> None:
    """Add a ready node for each machine."""
    for machine in machines:
        taint = {"key": "local-cluster/partition", "value": _TAINTED, "effect": "NoSchedule"}
        gpus = sum(gres.count for gres in machine.gres)
        capacity = {"cpu": str(machine.cpus), "memory": f"{machine.memory_mib}Mi", "pods": "250"}
        kube.add_nodes(
            name(machine),
            capacity=capacity | ({"nvidia.com/gpu": str(gpus)} if gpus else {}),
            labels=_labels(machine),
            taints=(taint,) if _TAINTED in machine.features else (),
        )


def name(machine: state.Node) -> str:
    """Its name in Kubernetes."""
    return f"kube-{machine.name}" if _TAINTED in machine.features else machine.name


def _labels(machine: state.Node) -> Mapping[str, str]:
    labels = {
        "kubernetes.io/hostname": name(machine),
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": f"zone-{machine.switch}",
        "topology.local/rack": machine.switch,
        "topology.local/block": machine.block,
    }
    if name(machine) != machine.name:
        labels[names.LABEL_SLURM_NODE_NAME] = machine.name
    for gres in machine.gres:
        labels["nvidia.com/gpu.present"] = "true"
        if gres.type:
            labels["nvidia.com/gpu.product"] = gres.type
    return labels
