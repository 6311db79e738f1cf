"""ResourceClaims on the pocket cluster: a DRA driver's devices, and users who claim them.

devices = Devices(bridge)           a DeviceClass, and the GPUs of each node in ResourceSlices
devices.template("one")             a template of claims for one GPU
devices.publish_cpus()              a second driver, of the CPUs of each node
devices.held("a")                   the devices that the claims of a pod hold, as NODE/DEVICE
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from slurm_bridge.model import cpuset, kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import NAMESPACE, World

DRIVER = "gpu.example.com"
ROW = {"device_class": DRIVER, "gres": "gpu", "index": "index"}
CPUS = "cpu.example.com"
CPUS_ROW = {"device_class": CPUS, "cpus": True, "index": "cpuID"}
GROUPS = "group.example.com"
CAPACITY = f"{GROUPS}/cpu"
GROUPS_ROW = {"device_class": GROUPS, "cpus": True, "capacity": CAPACITY}
TEMPLATES: Kind[Object] = Kind(
    group="resource.k8s.io",
    versions=("v1",),
    plural="resourceclaimtemplates",
    kind="ResourceClaimTemplate",
    record=Object,
)

Json = dict[str, Any]


def hooks(*rows: Json, **row: Any) -> list[Json]:
    """A chain with the hook: GPUs, in whose row some keys differ from the usual ones, and CPUs; or with these rows."""
    classes = list(rows) or [{**ROW, **row}, CPUS_ROW, GROUPS_ROW]
    return [{"name": "policy"}, {"name": "eligibility"}, {"name": "device-claims", "options": {"classes": classes}}]


def bridge_of(folder: pathlib.Path, world: World | None = None, *rows: Json, **row: Any) -> Bridge:
    """A daemon on hybrid nodes."""
    made = world or World(1, folder / "token", fleet=fleet.HYBRID)
    return Bridge(folder, world=made, hooks=hooks(*rows, **row))


def exactly(name: str = "gpu", count: int = 1, *conditions: str, **more: Any) -> Json:
    """A request for so many devices that meet these conditions."""
    selectors = [{"cel": {"expression": one}} for one in conditions]
    return {"name": name, "exactly": {"deviceClassName": DRIVER, "count": count, "selectors": selectors, **more}}


def cpus_of_a_group(count: int | str, *conditions: str, key: str = CAPACITY, **more: Any) -> Json:
    """A request for so many CPUs of one group."""
    asked = {"deviceClassName": GROUPS, "capacity": {"requests": {key: str(count)}}, **more}
    return exactly("cpus", 1, *conditions, **asked)


def using(*templates: str, **claims: str) -> Json:
    """The spec of a pod with a claim of each template, and with these claims by the names of their entries."""
    entries: list[Json] = [{"name": one, "resourceClaimTemplateName": one} for one in templates]
    return {"resourceClaims": entries + [{"name": key, "resourceClaimName": value} for key, value in claims.items()]}


class DeviceObjects:
    """What a driver publishes, and what users ask for, in a world."""

    def __init__(self, world: World) -> None:
        self.kube = world.kube
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        self.kube.create(kinds.DEVICECLASSES, {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}})
        for node, slurm in world.fleet.nodes.items():
            self.publish(node, world.fleet.gpus.get(slurm, 0))

    def named(self, resource: str) -> None:
        """Pods may ask for devices of the class by this extended resource."""
        self.kube.merge(kinds.DEVICECLASSES, ("", DRIVER), {"spec": {"extendedResourceName": resource}})

    def publish(self, node: str, count: int, *models: str) -> None:
        """The GPUs of a node, of these models in turn; those of n1 are small."""
        sorts = models or ("small" if node == "n1" else "big",)
        found = [
            {
                "name": f"gpu-{number}",
                "attributes": {"index": {"int": number}, "model": {"string": sorts[number * len(sorts) // count]}},
            }
            for number in range(count)
        ]
        self._slice(node, DRIVER, found)

    def publish_cpus(self, threads: int = 1) -> None:
        """With so many threads in a core, as Linux numbers them: first the first threads of all cores."""
        self.kube.create(kinds.DEVICECLASSES, {"metadata": {"name": CPUS}, "spec": {}})
        for node in self.bridge.world.fleet.nodes:
            count = self.bridge.world.fleet.cpus

            def place(one: int, cores: int = count // threads) -> dict[str, int]:
                return {"cpuID": one, "coreID": one % cores, "socketID": 0, "numaNodeID": 0}

            found = [
                {
                    "name": f"cpu-{one}",
                    "attributes": {name: {"int": number} for name, number in place(one).items()},
                }
                for one in range(count)
            ]
            self._slice(node, CPUS, found)

    def publish_groups(self, groups: int = 1, threads: int = 1, **capacity: Any) -> None:
        """A driver of CPUs that publishes one device for each of so many NUMA nodes."""
        self.kube.create(kinds.DEVICECLASSES, {"metadata": {"name": GROUPS}, "spec": {}})
        for node in self.bridge.world.fleet.nodes:
            self.publish_groups_of(node, groups, threads, **capacity)

    def publish_groups_of(self, node: str, groups: int = 1, threads: int = 1, **capacity: Any) -> None:
        """Those of one node; the first threads of all cores come first."""
        count = self.bridge.world.fleet.cpus
        cores = count // threads
        layout = f"0-{count - 1}" + (f">{cores}" if threads > 1 else "")
        found = []
        for group in range(groups):
            mine = [one for one in range(count) if one % cores * groups // cores == group]
            attributes = {
                "cpuIDs": {"string": cpuset.write(mine)},
                "smtLayout": {"string": layout},
                "socketID": {"int": 0},
                "resource.kubernetes.io/numaNode": {"int": group},
            }
            amount = {CAPACITY: {"value": str(len(mine)), **capacity}}
            one = {"name": f"numa{group}", "attributes": attributes, "capacity": amount}
            found.append({**one, "allowMultipleAllocations": True})
        self._slice(node, GROUPS, found)

    def _slice(self, node: str, driver: str, found: list[Json]) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": found}
        self.kube.create(kinds.RESOURCESLICES, {"metadata": {"name": f"{node}-{driver}"}, "spec": spec})

    def retract(self, node: str) -> None:
        """The driver of a node is gone."""
        self.kube.delete(kinds.RESOURCESLICES, ("", f"{node}-{DRIVER}"))

    def template(self, name: str = "one", *requests: Json, **spec: Any) -> None:
        """For one GPU, or for these requests."""
        made = {"spec": {"devices": {"requests": list(requests) or [exactly()], **spec}}}
        self.kube.create(TEMPLATES, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": made})

    def claim(self, name: str, *requests: Json, **spec: Any) -> None:
        """A claim that a user names in pods."""
        made = {"devices": {"requests": list(requests) or [exactly()], **spec}}
        self.kube.create(kinds.RESOURCECLAIMS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": made})

    def allocate(
        self, name: str, node: str, *devices: str, driver: str = DRIVER, pods: Mapping[str, str] | None = None
    ) -> None:
        """Another scheduler gives these devices to a claim, for pods by name and uid."""
        results = [{"request": "gpu", "driver": driver, "pool": node, "device": one} for one in devices]
        users = [{"resource": "pods", "name": pod, "uid": uid} for pod, uid in (pods or {}).items()]
        status = {"allocation": {"devices": {"results": results}}, **({"reservedFor": users} if users else {})}
        self.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, name), {"status": status}, subresource="status")

    def clear(self, name: str) -> None:
        """It gives them back."""
        status = {"allocation": None, "reservedFor": None}
        self.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, name), {"status": status}, subresource="status")

    def claims(self) -> list[Json]:
        """All of them."""
        return self.kube.list(kinds.RESOURCECLAIMS)


class Devices(DeviceObjects):
    """The same, and what the pods of a bridge have of it."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge.world)
        self.bridge = bridge

    def of(self, pod: str) -> list[Json]:
        """The claims of a pod."""
        manifest = self.bridge.manifest(pod)
        made = [one.get("resourceClaimName") for one in manifest["status"].get("resourceClaimStatuses") or ()]
        named = [one.get("resourceClaimName") for one in manifest["spec"].get("resourceClaims") or ()]
        named.append((manifest["status"].get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
        return [one for one in self.claims() if one["metadata"]["name"] in {*made, *named}]

    def held(self, pod: str) -> list[str]:
        """The devices of a pod."""
        return sorted(f"{one['pool']}/{one['device']}" for claim in self.of(pod) for one in results_of(claim))


def results_of(claim: Json) -> list[Json]:
    """What a claim holds."""
    found: list[Json] = ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", [])
    return found
