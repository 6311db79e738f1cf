"""The pocket Kubernetes has one node for each machine of the pocket Slurm."""

from slurm_bridge.model import kinds, names
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim import twins
from slurm_bridge.sim.kube.world import PocketKube
from slurm_bridge.sim.slurm import defaults

MACHINES = {machine.name: machine for machine in defaults.nodes(20)}


def nodes() -> dict[str, dict[str, object]]:
    """By the name in Slurm: the Kubernetes node."""
    kube = PocketKube(clock=VirtualClock())
    twins.join(kube, MACHINES.values())
    listed = kube.list(kinds.NODES)
    return {one["metadata"]["labels"].get(names.LABEL_SLURM_NODE_NAME, one["metadata"]["name"]): one for one in listed}


def test_every_machine_has_exactly_one_node() -> None:
    """Also those that are called otherwise in Kubernetes, whose label says which machine they are."""
    assert nodes().keys() == MACHINES.keys()


def test_both_sides_agree_on_what_a_machine_has() -> None:
    """Cpus, memory and GPUs."""
    for name, node in nodes().items():
        allocatable, machine = node["status"]["allocatable"], MACHINES[name]  # type: ignore[index]
        gpus = sum(gres.count for gres in machine.gres)
        assert allocatable["cpu"] == str(machine.cpus)
        assert allocatable["memory"] == f"{machine.memory_mib}Mi"
        assert allocatable.get("nvidia.com/gpu", "0") == str(gpus)


def test_labels_tell_where_a_machine_stands() -> None:
    """Its rack is its zone, as on the local cluster."""
    for name, node in nodes().items():
        labels = node["metadata"]["labels"]  # type: ignore[index]
        assert labels["topology.kubernetes.io/zone"] == f"zone-{MACHINES[name].switch}"


def test_only_machines_of_another_name_are_tainted() -> None:
    """For pods that tolerate it, as on the local cluster."""
    tainted = {name for name, node in nodes().items() if node["spec"].get("taints")}  # type: ignore[attr-defined]
    assert tainted == {name for name, machine in MACHINES.items() if "mapped" in machine.features}
