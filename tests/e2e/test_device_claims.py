"""ResourceClaims on the real servers: Slurm allocates devices, Kubernetes' own controller makes and frees claims."""

import contextlib
import dataclasses
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_devices,
    support_families,
    support_farm,
    support_groups,
    support_kinds,
    support_servers,
    support_world,
)
from tests.e2e.support_devices import GROUP, Claims
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import FOREVER, SHORT

#: Two machines with four GPUs each.
GPUS = (4, 4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene(Claims):
    """A daemon with the hook, machines with GPUs, and a driver that publishes these."""

    farm: Farm


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """The machines."""
    with support_farm.built(kube, slurm, *GPUS) as built:
        yield built


@pytest.fixture(scope="module")
def driver(kube: support_servers.Kubernetes, farm: Farm) -> Iterator[str]:
    """A class, and what its driver publishes of each machine."""
    name = f"gpu-{secrets.token_hex(3)}.example.com"
    made = [(f"{GROUP}/deviceclasses", {"kind": "DeviceClass", "metadata": {"name": name}, "spec": _selected(name)})]
    for node, count in zip(farm.nodes, GPUS, strict=True):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        size = "80Gi" if node == farm.nodes[-1] else "40Gi"
        devices = [_device(number, size) for number in range(count)]
        spec = {"driver": name, "nodeName": node, "pool": pool, "devices": devices}
        made.append((f"{GROUP}/resourceslices", {"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}))
    with contextlib.ExitStack() as stack:
        for path, manifest in made:
            kube.create(path, {"apiVersion": "resource.k8s.io/v1", **manifest})
            stack.callback(kube.delete, f"{path}/{manifest['metadata']['name']}")
        yield name


def _selected(driver: str) -> Json:
    return {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}


def _device(number: int, size: str) -> Json:
    return {
        "name": f"gpu-{number}",
        "attributes": {"index": {"int": number}},
        "capacity": {"memory": {"value": size}},
    }


@pytest.fixture(scope="module")
def scene(kube: support_servers.Kubernetes, open_world: OpenWorld, farm: Farm, driver: str) -> Iterator[Scene]:
    """Everything there is. Slurm knows no indices on machines without a slurmd."""
    row = {"device_class": driver, "gres": "gpu", "index": "index", "without_index": "choose"}
    hooks = [
        {"name": "policy"},
        {"name": "eligibility"},
        {"name": "device-claims", "options": {"classes": [row]}},
    ]
    with support_families.granted(kube, "device-claims"):
        world = open_world("claims", hooks=hooks, defaults={"partition": farm.partition})
        yield Scene(world=world, farm=farm, device_class=driver)


def pod(scene: Scene, name: str, **spec: Any) -> Json:
    """A pod that runs until it is told to end."""
    (made,) = scene.world.create(support_world.pod(name, scene.world.daemon.scheduler, annotations=FOREVER, **spec))
    return made


@pytest.mark.real
def test_pods_get_devices_that_no_other_pod_has(scene: Scene) -> None:
    """Eight pods of one GPU have all eight; a ninth starts when one of them ends, with the very device."""
    scene.template("one", 1)
    pods = [pod(scene, f"p{number}", **support_devices.using("one")) for number in range(8)]
    for one in pods:
        scene.world.await_pod(one["metadata"]["name"], "a node", support_world.is_bound)
    held = scene.held()
    assert len(held) == len(set(held)) == 8
    for one in pods:
        bound = scene.world.pod(one["metadata"]["name"])
        assert bound is not None
        assert [pool for pool, _ in scene.of(bound)] == [bound["spec"]["nodeName"]]
    pod(scene, "ninth", **support_devices.using("one"))
    first = scene.of(pods[0])
    scene.world.finish(pods[:1])
    ninth = scene.world.await_pod("ninth", "a node", support_world.is_bound, 60.0)
    assert scene.of(ninth) == first
    scene.world.finish([*pods[1:], ninth])
    wait.until(lambda: not scene.held(), "the devices to be given back", 60.0)


@pytest.mark.real
def test_a_gang_gets_devices_that_meet_its_conditions(scene: Scene) -> None:
    """Four members with one large GPU each: all on the machine that has these."""
    large = f'device.capacity["{scene.device_class}"].memory.compareTo(quantity("60Gi")) > 0'
    scene.template("large", 1, large)
    pods = support_kinds.template(scene.world, **support_devices.using("large"))
    Objects(scene.world).create("Job", "gang", support_kinds.job_spec(pods, 4), {names.JOB_PREFIX + "gang": "true"})
    members = support_groups.placed(scene.world, "gang", 4)
    held = scene.held()
    assert len(set(held)) == 4
    assert {pool for pool, _ in held} == {scene.farm.nodes[-1]}
    scene.world.finish(members)
    wait.until(lambda: not scene.held(), "the devices to be given back", 60.0)


@pytest.mark.real
def test_a_claim_by_name_serves_one_pod_after_the_other(scene: Scene) -> None:
    """The second waits without a job."""
    scene.claim("mine", 2)
    pod(scene, "first", **support_devices.using(claim="mine"))
    scene.world.await_pod("first", "a node", support_world.is_bound)
    second = pod(scene, "second", **support_devices.using(claim="mine"))
    scene.world.await_pod("second", "its reason", lambda one: "ResourceClaimInUse" in str(one["status"]))
    assert scene.world.placeholders(second["metadata"]["uid"]) == []
    scene.world.annotate("first", SHORT)
    scene.world.await_pod("second", "a node", support_world.is_bound, 60.0)
    assert len(scene.of(second)) == 2
    scene.world.annotate("second", SHORT)
    wait.until(lambda: not scene.held(), "the devices to be given back", 60.0)


@pytest.mark.real
def test_a_daemon_that_is_killed_gives_no_device_twice(scene: Scene) -> None:
    """While pods come and go it dies three times."""
    scene.template("pair", 2)
    made: list[Json] = []
    for number in range(9):
        made.append(pod(scene, f"k{number}", **support_devices.using("pair")))
        if number % 3 == 1:
            scene.world.daemon.kill()
            scene.world.daemon.start()
        if number >= 4:
            scene.world.annotate(f"k{number - 4}", SHORT)
        held = scene.held()
        assert len(held) == len(set(held)), held
    scene.world.finish(made)
    for one in made:
        scene.world.await_pod(one["metadata"]["name"], "its end", support_world.has_succeeded, 90.0)
    wait.until(lambda: not scene.held(), "the devices to be given back", 60.0)
