"""Pods that come one after the other to devices that are not enough for all at once."""

import pathlib

from slurm_bridge.model import kinds
from tests.component.scheduler.claimed_devices import (
    CPUS,
    DRIVER,
    Devices,
    bridge_of,
    cpus_of_a_group,
    exactly,
    results_of,
    using,
)
from tests.component.scheduler.device_rules import DeviceRules
from tests.component.scheduler.gang_scenes import member
from tests.simulation import fleet
from tests.simulation.world import NAMESPACE, World

PODS = ("a", "b", "c", "d", "e", "f", "g-0", "g-1", "g-2", "h-0", "h-1")
GPU = "example.com/gpu"
SHORT = {"kwok.local/outcome": "succeed", "kwok.local/seconds": "2"}
#: For members of gangs: what ends before another member has its node leaves a gang that is never whole again.
LONG = {"kwok.local/outcome": "succeed", "kwok.local/seconds": "20"}


class Scene:
    """Pods with claims of templates and by name, one after the other and as a gang, on nodes with ten GPUs.

    Pod a and a gang have CPUs besides. Pod d has two alternatives, of which no node has the first. Pod e asks by an
    extended resource, and pod f has CPUs of a group, where there are no GPUs. Two pods of a gang share a claim.
    """

    def __init__(self, folder: pathlib.Path, seed: int = 1) -> None:
        world = World(seed, folder / "token", fleet=fleet.HYBRID)
        self.bridge = bridge_of(folder, world)
        self.devices = Devices(self.bridge)
        self.rules = DeviceRules(world)
        self.rules.watch()
        self.devices.template("one")
        self.devices.template("two", exactly(count=2))
        self.devices.publish_cpus()
        self.devices.template("cores", exactly("cpus", 2, deviceClassName=CPUS))
        self.devices.claim("mine", exactly(count=2))
        self.bridge.pod("a", spec=using("two", "cores"), annotations=SHORT)
        self.bridge.pod("b", spec=using("one", it="mine"), annotations=SHORT)
        self.bridge.pod("c", spec=using(it="mine"), annotations=SHORT)
        options = [{"name": f"n{count}", "deviceClassName": DRIVER, "count": count} for count in (5, 3)]
        self.devices.template("either", {"name": "gpu", "firstAvailable": options})
        self.bridge.pod("d", spec=using("either"), annotations=SHORT)
        self.devices.named(GPU)
        asking = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1", GPU: "2"}}}
        self.bridge.pod("e", spec={"containers": [asking]}, annotations=SHORT)
        self.devices.publish_groups()
        self.devices.template("part", cpus_of_a_group(2))
        self.bridge.pod(
            "f", spec={**using("part"), "nodeSelector": {"kubernetes.io/hostname": "n3"}}, annotations=SHORT
        )
        for number in range(3):
            member(self.bridge, f"g-{number}", size=3, spec=using("two", "cores"))
        self.devices.claim("shared", exactly(count=2))
        for number in range(2):
            member(self.bridge, f"h-{number}", size=2, group="h", spec=using(it="shared"))
        for name in PODS[-5:]:
            self.bridge.kube.merge(kinds.PODS, (NAMESPACE, name), {"metadata": {"annotations": LONG}})
        #: So many calls were made before it began, and before all were done.
        self.began = self.ended = world.weather.calls

    def done(self) -> bool:
        """Every pod has had its devices, and has ended."""
        return all(self.bridge.phase(name) == "Succeeded" for name in PODS)

    def again(self) -> None:
        """The next daemon in the same world."""
        self.bridge = bridge_of(self.bridge.folder, self.bridge.world)
        self.devices.bridge = self.bridge

    def takeover(self) -> None:
        """The daemon stands still in the middle of a call, another one leads for a while, and then it goes on."""
        self.bridge.leads = False
        bridge_of(self.bridge.folder, self.bridge.world).run(10)

    def told(self) -> None:
        """No device is left with a claim, and no job with Slurm."""
        self.ended = self.bridge.world.weather.calls
        self.bridge.run(10)
        assert not [one["metadata"]["name"] for one in self.devices.claims() if results_of(one)]
        assert not [job for job in self.bridge.jobs() if not job.over]
        self.rules.look()
