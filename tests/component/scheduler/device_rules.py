"""What has to hold of devices after every call, whatever was lost or killed.

no device is in two claims
a pod with a node has devices for each of its claims, reserved for it, on that node
a claim has only devices that Slurm has given to a job of its pod, as long as that pod runs
"""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.model import cpuset, kinds, names
from tests.component.scheduler.claimed_devices import CAPACITY, CPUS, GROUPS, results_of
from tests.simulation.world import World

_OVER = ("Succeeded", "Failed")


class DeviceRules:
    """Looks at the pocket servers themselves; what is broken raises at once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._bound: set[str] = set()
        self._version = 0

    def watch(self) -> None:
        """From now on after every call."""
        before = self._world.weather.watcher

        def look(who: str) -> None:
            before(who)
            self.look()

        self._world.weather.watcher = look

    def look(self) -> None:
        """Everything as it is now; where nothing has changed, it is as it was."""
        version = self._world.kube.store.version
        if version == self._version:
            return
        self._version = version
        claims = self._world.kube.list(kinds.RESOURCECLAIMS)
        held = [one for claim in claims for one in _devices(claim)]
        assert len(held) == len(set(held)), f"a device is in two claims: {sorted(held)}"
        by_key = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in claims}
        for pod in self._world.kube.list(kinds.PODS):
            asks = pod["spec"].get("resourceClaims") or pod["status"].get("extendedResourceClaimStatus")
            if pod["spec"].get("nodeName") and asks and _ours(pod):
                self._look_at(pod, by_key)

    def _look_at(self, pod: Mapping[str, Any], claims: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        if pod["status"].get("phase") in _OVER:
            return
        made = {one["name"]: one["resourceClaimName"] for one in pod["status"].get("resourceClaimStatuses") or ()}
        extended = pod["status"].get("extendedResourceClaimStatus")
        for entry in [*spec.get("resourceClaims", ()), *([extended] if extended else ())]:
            name = entry.get("resourceClaimName") or made.get(entry["name"])
            claim = claims.get((meta["namespace"], name))
            assert claim is not None, f"pod {meta['name']} runs without claim {name}"
            users = [one["uid"] for one in (claim.get("status") or {}).get("reservedFor") or ()]
            assert meta["uid"] in users, f"claim {name} of pod {meta['name']} is reserved for {users}"
            found = results_of(dict(claim))
            assert found, f"pod {meta['name']} runs, and claim {name} has no devices"
            assert {one["pool"] for one in found} == {spec["nodeName"]}, f"claim {name} is of another node: {found}"
            self._given(meta, spec["nodeName"], _devices(claim))

    def _given(self, meta: Mapping[str, Any], node: str, found: Iterable[tuple[bool, str, int]]) -> None:
        """When the pod is bound Slurm has given its job these very devices."""
        if meta["uid"] in self._bound:
            return
        job = self._world.slurm.world.jobs.get(int(meta["labels"][names.LABEL_JOB_ID]))
        slurm = self._world.fleet.nodes[node]
        shares = job.grant.shares if job is not None and job.grant is not None and job.running else ()
        indices = {number for share in shares if share.node == slurm for part in share.gres for number in part.indices}
        cores = {core for share in shares if share.node == slurm for core in share.cores}
        numbers = {(cpu, number) for cpu, _, number in found}
        had = {(False, number) for number in indices} | {(True, number) for number in cores}
        if shares:
            assert numbers <= had, f"pod {meta['name']} has {numbers}, and its job {had} of {node}"


def _devices(claim: Mapping[str, Any]) -> list[tuple[bool, str, int]]:
    """Whether it is a CPU, its node, and its number; of a group of CPUs those that the driver is told."""
    found = []
    for one in results_of(dict(claim)):
        numbers: Iterable[int] = (
            [int(one["device"].rpartition("-")[2])] if one["driver"] != GROUPS else _told(claim, one)
        )
        found += [(one["driver"] in (CPUS, GROUPS), one["pool"], number) for number in numbers]
    return found


def _told(claim: Mapping[str, Any], one: Mapping[str, Any]) -> frozenset[int]:
    configs = claim["status"]["allocation"]["devices"]["config"]
    (parameters,) = [each["opaque"]["parameters"] for each in configs if each["requests"] == [one["request"]]]
    cpus = cpuset.parse(parameters["cpuConfig"]["cpuset"])
    assert cpus is not None
    assert len(cpus) == int(one["consumedCapacity"][CAPACITY])
    return cpus


def _ours(pod: Mapping[str, Any]) -> bool:
    return bool(pod["spec"].get("schedulerName") == names.SCHEDULER_NAME)
