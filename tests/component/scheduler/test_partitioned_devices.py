"""Parts of GPUs that a driver makes when a claim asks for them: Slurm gives the whole GPU, to one job."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds
from tests.component.scheduler.claimed_devices import DRIVER, ROW, Devices, Json, bridge_of, exactly, using
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.test_device_claims import forget_indices
from tests.component.scheduler.whole_core import Bridge

PROFILE = f'device.attributes["{DRIVER}"].profile'
#: Profile -> how many of it a GPU can be divided into.
PROFILES = {"1g": 4, "2g": 2, "4g": 1}
ON_N1 = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
ROWS = ({**ROW, "partitions": True},)


def part(profile: str, count: int = 1, name: str = "gpu") -> Json:
    """A request for so many parts of this profile."""
    return exactly(name, count, f'{PROFILE} == "{profile}"')


def publish(devices: Devices, node: str, gpus: int) -> None:
    """Every part that a GPU could be divided into; they share the counters of their GPU."""
    found = []
    for gpu in range(gpus):
        for profile, count in PROFILES.items():
            for place in range(count):
                one: Json = {
                    "name": f"gpu-{gpu}-{profile}-{place}",
                    "attributes": {"index": {"int": gpu}, "profile": {"string": profile}},
                    "consumesCounters": [
                        {"counterSet": f"gpu-{gpu}", "counters": {"slices": {"value": str(4 // count)}}}
                    ],
                }
                found.append(one)
    sets = [{"name": f"gpu-{gpu}", "counters": {"slices": {"value": "4"}}} for gpu in range(gpus)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    # Kubernetes refuses a slice that has both.
    for name, there in ((f"{node}-{DRIVER}", {"devices": found}), (f"{node}-{DRIVER}-sets", {"sharedCounters": sets})):
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, **there}
        devices.kube.create(kinds.RESOURCESLICES, {"metadata": {"name": name}, "spec": spec})


def divided(bridge: Bridge) -> Devices:
    """All GPUs can be divided."""
    made = Devices(bridge)
    for node, gpus in (("n1", 4), ("n2", 4), ("n4", 2)):
        made.retract(node)
        publish(made, node, gpus)
    return made


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Slurm counts whole GPUs: four on n1 and n2, two on n4."""
    return bridge_of(tmp_path, None, *ROWS)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """The same GPUs, as the driver publishes their parts."""
    return divided(bridge)


def gpus(devices: Devices, pod: str) -> list[str]:
    """Node and number of the GPUs whose parts a pod has."""
    return [one.rpartition("-")[0].rpartition("-")[0] for one in devices.held(pod)]


def given(bridge: Bridge, pod: str) -> list[str]:
    """The GPUs that Slurm gave to its job."""
    grant = bridge.job(pod).grant
    assert grant is not None
    return [f"{share.node}/gpu-{index}" for share in grant.shares for part in share.gres for index in part.indices]


def test_a_part_costs_a_whole_gpu(bridge: Bridge, devices: Devices) -> None:
    """Of two pods on one node each has a part of a GPU of its own, which is Slurm's."""
    devices.template("small", part("1g"))
    devices.template("large", part("2g"))
    for name, template in (("a", "small"), ("b", "large"), ("c", "small")):
        bridge.pod(name, spec={**using(template), **ON_N1})
    bridge.until(lambda: all(bridge.node_of(name) for name in "abc"))
    assert [gpus(devices, name) for name in "abc"] == [given(bridge, name) for name in "abc"]
    assert [one.split("-")[2] for name in "abc" for one in devices.held(name)] == ["1g", "2g", "1g"]


def test_several_parts_are_of_several_gpus(bridge: Bridge, devices: Devices) -> None:
    """Slurm was asked for as many GPUs as there are parts: no two are of one GPU, whatever their profiles."""
    devices.template("mixed", part("1g", 2, "small"), part("2g", 1, "large"))
    bridge.pod("a", spec=using("mixed"))
    bridge.until(lambda: bridge.node_of("a"))
    assert len(set(gpus(devices, "a"))) == len(devices.held("a")) == 3
    assert sorted(gpus(devices, "a")) == sorted(given(bridge, "a"))


def test_members_of_a_gang_have_different_gpus(bridge: Bridge, devices: Devices) -> None:
    """Although parts of one GPU would be enough for all."""
    devices.template("small", part("1g"))
    for number in range(6):
        member(bridge, f"g-{number}", size=6, spec=using("small"))
    bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(6)))
    assert len({gpu for number in range(6) for gpu in gpus(devices, f"g-{number}")}) == 6


@pytest.mark.security("neighbours")
@pytest.mark.parametrize("theirs", ["gpu-0-4g-0", "gpu-0-1g-3", "gpu-0-1g-0"])
def test_a_part_that_overlaps_another_claims_is_waited_for(bridge: Bridge, devices: Devices, theirs: str) -> None:
    """A claim on its way out has any part of the GPU: it keeps it, and the other one starts when it has gone."""
    devices.claim("others")
    uid = bridge.pod("other", spec={"schedulerName": "other", "nodeName": "n1"})
    devices.allocate("others", "n1", theirs, pods={"other": uid})
    devices.template("small", part("1g"))
    bridge.pod("a", spec={**using("small"), **ON_N1})
    bridge.run(6)
    assert given(bridge, "a") == ["n1/gpu-0"]
    assert bridge.condition("a")[0] == "WaitsForDevices"
    assert bridge.node_of("a") == ""
    devices.clear("others")
    bridge.until(lambda: bridge.node_of("a"))
    assert gpus(devices, "a") == ["n1/gpu-0"]


def test_without_an_index_a_gpu_is_chosen_that_no_claim_has_a_part_of(tmp_path: pathlib.Path) -> None:
    """Slurm counts whole GPUs and says no more."""
    bridge = bridge_of(tmp_path, None, {**ROWS[0], "without_index": "choose"})
    forget_indices(bridge)
    devices = divided(bridge)
    devices.template("small", part("1g"))
    names = [f"p{number}" for number in range(4)]
    for name in names:
        bridge.pod(name, spec={**using("small"), **ON_N1})
    bridge.until(lambda: all(bridge.node_of(name) for name in names))
    assert len({gpu for name in names for gpu in gpus(devices, name)}) == 4


def test_a_profile_that_some_gpus_do_not_have_is_told(bridge: Bridge, devices: Devices) -> None:
    """Slurm may give any GPU of the node."""
    devices.template("odd", exactly("gpu", 1, f'{PROFILE} == "1g" && device.attributes["{DRIVER}"].index > 1'))
    bridge.pod("a", spec={**using("odd"), **ON_N1})
    bridge.run(5)
    assert "do not meet the claims, and Slurm may give these" in bridge.condition("a")[1]


@pytest.mark.parametrize(
    ("more", "words"),
    [({"allocationMode": "All"}, "for all devices"), ({"count": 5}, "do not have the claimed devices")],
)
def test_more_than_the_gpus_is_told(bridge: Bridge, devices: Devices, more: dict[str, Any], words: str) -> None:
    """Five parts would be of five GPUs; all parts overlap each other."""
    asked = part("1g")
    devices.template("many", {**asked, "exactly": {**asked["exactly"], **more}})
    bridge.pod("a", spec=using("many"))
    bridge.run(5)
    assert words in bridge.condition("a")[1]


def test_without_the_option_parts_are_no_devices(tmp_path: pathlib.Path) -> None:
    """As long as the table does not say that Slurm counts whole GPUs."""
    bridge = bridge_of(tmp_path, None, ROW)
    devices = divided(bridge)
    devices.template("small", part("1g"))
    bridge.pod("a", spec=using("small"))
    bridge.run(5)
    assert "do not have the claimed devices" in bridge.condition("a")[1]
