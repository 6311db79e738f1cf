"""What pods may ask for, on a node whose kubelet and driver prepare the devices: containers say what they were given.

The first five are what the examples of the bridge in Go ask for, with this cluster's driver for theirs: all of them ask
for one device by the extended resource that every DeviceClass has.
"""

import functools
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from localcluster import hosts, real_dra
from tests import wait
from tests.e2e import support_devices, support_families, support_given, support_real, support_servers
from tests.e2e import support_world as worlds
from tests.e2e.support_devices import GROUP, Claims, results, users
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_given import Given
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

DRIVER = support_given.DEVICE_CLASS
BY_CLASS = "deviceclass.resource.kubernetes.io"
LEASE = {"lease_seconds": 3, "renew_seconds": 2, "retry_seconds": 0.5}

#: A class with a name of its own, whose condition asks whether there is such an attribute at all.
NAMED = f"card-{secrets.token_hex(3)}.example.com"
RESOURCE = f"example.com/{NAMED.partition('.')[0]}"


@pytest.fixture(scope="module")
def claims(cluster: Mapping[str, str], kube: support_servers.Kubernetes, open_world: OpenWorld) -> Iterator[Claims]:
    """A daemon with the hook, and two classes of one driver."""
    support_real.require(cluster, 1)
    found = f"has(device.attributes['{DRIVER}'].uuid)"
    condition = f"device.driver == '{DRIVER}' && {found} && device.attributes['{DRIVER}'].uuid.startsWith('GPU-real1-')"
    spec = {"extendedResourceName": RESOURCE, "selectors": [{"cel": {"expression": condition}}]}
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": NAMED}, "spec": spec}
    kube.create(f"{GROUP}/deviceclasses", manifest)
    gres = f"gpu:{hosts.WHOLE}"
    rows = [{"device_class": name, "driver": DRIVER, "gres": gres, "index": "index"} for name in (DRIVER, NAMED)]
    groups = {"device_class": real_dra.GROUP_DRIVER, "cpus": True, "capacity": real_dra.CAPACITY}
    hooks = [
        {"name": "policy"},
        {"name": "eligibility"},
        {"name": "device-claims", "options": {"classes": [*rows, groups]}},
    ]
    try:
        with support_families.granted(kube, "device-claims"):
            partition = {"partition": support_real.PARTITION}
            world = open_world("asks", hooks=hooks, defaults=partition, leader_election=LEASE)
            yield Claims(world=world, device_class=DRIVER)
    finally:
        kube.delete(f"{GROUP}/deviceclasses/{NAMED}")


@pytest.fixture(autouse=True)
def away(claims: Claims) -> Iterator[None]:
    """After each test all pods and Jobs go, and with them the claims that the bridge made."""
    yield
    world = claims.world
    world.kube.delete(f"/apis/batch/v1/namespaces/{world.namespace}/jobs?propagationPolicy=Background")
    world.kube.delete(f"{world.path}?gracePeriodSeconds=0")
    wait.until(lambda: not world.pods() and not claims.claims(), "the claims to be deleted", 60.0)
    world.await_nothing_in_slurm()


def asking(resource: str, count: int = 1, *, seconds: str = "infinity", requested: bool = True) -> dict[str, Any]:
    """The spec of a pod that asks for so many, and says what it was given."""
    containers = support_real.script(support_given.script(seconds))
    for key in ("limits", "requests") if requested else ("limits",):
        containers[0]["resources"][key] = {**containers[0]["resources"][key], resource: str(count)}
    return {"containers": containers, "terminationGracePeriodSeconds": 1}


def pod(world: World, name: str, **spec: Any) -> Json:
    """Created."""
    (made,) = world.create(worlds.pod(name, world.daemon.scheduler, **spec))
    return made


def told(claims: Claims, name: str) -> Given:
    """What a container says that it was given: just what its claim has, out of what its job has."""
    world = claims.world
    running = world.await_pod(name, "a process", support_real.runs, support_real.SECONDS)
    wait.until(lambda: " began " in support_real.log(world, name), "the container's words", support_real.SECONDS)
    found = support_given.by_pod(world, name)
    assert found.devices <= support_given.slurms(world, worlds.job_id(running))
    assert found.devices == set(claims.of(running))
    return found


def job(claims: Claims, name: str, **spec: Any) -> str:
    """A Job with one pod; the pod's name."""
    world = claims.world
    world.create_job(worlds.job(name, world.daemon.scheduler, 1, **spec))
    world.await_pods("a pod of the Job", lambda _: True, count=1)
    (one,) = [one for one in world.pods() if one["metadata"]["name"].startswith(f"{name}-")]
    return str(one["metadata"]["name"])


def test_a_job_asks_by_the_name_of_a_class(claims: Claims) -> None:
    """A limit is enough. The claim is the pod's own, and goes with the pod."""
    name = job(claims, "first", **asking(f"{BY_CLASS}/{DRIVER}", requested=False))
    assert len(told(claims, name).devices) == 1
    (claim,) = claims.claims()
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert claim["metadata"]["ownerReferences"][0]["name"] == name


def test_a_job_and_a_pod_with_tolerations_have_different_devices(claims: Claims) -> None:
    """Requests as well as limits, where nodes keep other pods away."""
    keep = {"key": "slinky.slurm.net/managed-node", "value": "slurm-bridge-scheduler", "effect": "NoExecute"}
    spec = {**asking(f"{BY_CLASS}/{DRIVER}"), "tolerations": [{"operator": "Equal", **keep}]}
    name = job(claims, "of-a-job", **spec)
    pod(claims.world, "alone", **spec)
    one, other = told(claims, name), told(claims, "alone")
    assert not one.devices & other.devices


def test_a_class_with_a_name_and_a_condition_of_its_own(claims: Claims) -> None:
    """Not all devices of the driver belong to it: the pod comes where they are."""
    name = job(claims, "named", **asking(f"{BY_CLASS}/{NAMED}"))
    assert {node for node, _ in told(claims, name).devices} == {"real1"}


def test_the_pods_of_a_pod_group_start_together(claims: Claims) -> None:
    """Each has its own device, by its own claim."""
    world, named = claims.world, {"scheduling.x-k8s.io/pod-group": "pair"}
    Objects(world).create("CoschedulingPodGroup", "pair", {"minMember": 2})
    for name in ("left", "right"):
        made = worlds.pod(name, world.daemon.scheduler, **asking(f"{BY_CLASS}/{DRIVER}", requested=False))
        made["metadata"]["labels"] = named
        world.create(made)
    one, other = told(claims, "left"), told(claims, "right")
    assert len({worlds.job_id(found) for found in world.pods()}) == 1
    assert not one.devices & other.devices


def test_the_extended_resource_that_a_class_names(claims: Claims) -> None:
    """Two of it; a third pod waits until they are free."""
    pod(claims.world, "two", **asking(RESOURCE, 2))
    pod(claims.world, "one", **asking(RESOURCE, 2))
    assert len(told(claims, "two").devices | told(claims, "one").devices) == 4
    third = pod(claims.world, "third", **asking(RESOURCE))
    claims.world.await_placeholder(third["metadata"]["uid"])
    assert not worlds.is_bound(third)
    claims.world.delete("two")
    told(claims, "third")


def test_the_first_alternative_that_a_node_has(claims: Claims) -> None:
    """No node has nine, and none has devices of this name: two are asked for."""
    options: list[Json] = [
        {"name": "nine", "deviceClassName": DRIVER, "count": 9},
        {"name": "other", "deviceClassName": DRIVER, "selectors": [{"cel": {"expression": "device.driver == 'x'"}}]},
        {"name": "two", "deviceClassName": DRIVER, "count": 2},
    ]
    claims.alternatives("any", *options)
    claims.world.create(support_given.pod(claims, "a", "any"))
    assert len(told(claims, "a").devices) == 2
    (claim,) = claims.claims()
    assert {one["request"] for one in results(claim)} == {"gpu/two"}


def test_all_devices_of_a_node(claims: Claims) -> None:
    """Slurm gives all four, or the pod waits for the last one; then nothing is left for others on that node."""
    world, all_of = claims.world, {"deviceClassName": DRIVER, "allocationMode": "All"}
    claims.exactly("all", all_of)
    native = support_given.submit(world, "infinity", support_given.whole(1), "--nodelist=real1")
    wait.until(lambda: native in support_given.by_native(world), "the native job's words", support_real.SECONDS)
    world.create(support_given.pod(claims, "first", "all"))
    assert told(claims, "first").devices == {("real2", f"gpu-{index}") for index in range(4)}
    world.create(support_given.pod(claims, "second", "all"))
    world.await_placeholder(found_uid(world, "second"))
    support_given.forget(world)
    assert told(claims, "second").devices == {("real1", f"gpu-{index}") for index in range(4)}


def test_a_part_of_a_group_of_cpus(claims: Claims) -> None:
    """The driver prepares just the CPUs that Slurm has given: three pods share the groups with a native job."""
    world = claims.world
    requests = {"requests": {real_dra.CAPACITY: "1"}}
    claims.exactly("part", {"deviceClassName": real_dra.GROUP_DRIVER, "capacity": requests})
    native = support_given.submit(world, "infinity", "--cpus-per-task=1", "--nodelist=real1")
    wait.until(lambda: native in support_given.by_native(world), "the native job's words", support_real.SECONDS)
    taken = support_given.by_native(world)[native].devices
    found = set[tuple[str, str]]()
    for name in ("a", "b", "c"):
        world.create(support_given.pod(claims, name, "part", node="real1"))
        running = world.await_pod(name, "a process", support_real.runs, support_real.SECONDS)
        wait.until(lambda one=name: " began " in support_real.log(world, one), "the words", support_real.SECONDS)
        has = support_given.by_pod(world, name).devices
        assert has == support_given.slurms(world, worlds.job_id(running))
        found |= has
    assert found == {("real1", f"cpu-{number}") for number in range(4)} - taken
    shares = [one for claim in claims.claims() for one in results(claim)]
    assert {one["device"] for one in shares} == {"numa-0", "numa-1"}
    assert len({one["shareID"] for one in shares}) == len(found) == 3
    support_given.forget(world)


def test_cpus_of_two_groups_are_given_back(claims: Claims) -> None:
    """A native job has one of the first group: the next two are of two groups, and no pod gets them."""
    world = claims.world
    claims.exactly(
        "two", {"deviceClassName": real_dra.GROUP_DRIVER, "capacity": {"requests": {real_dra.CAPACITY: "2"}}}
    )
    native = support_given.submit(world, "infinity", "--cpus-per-task=1", "--nodelist=real1")
    wait.until(lambda: native in support_given.by_native(world), "the native job's words", support_real.SECONDS)
    world.create(support_given.pod(claims, "pair", "two", node="real1", cpus=2))
    world.await_pod("pair", "its reason", lambda one: "has no devices for ResourceClaim" in str(one["status"]), 60.0)
    support_given.forget(world)
    world.await_pod("pair", "a process", support_real.runs, 180.0)
    wait.until(lambda: " began " in support_real.log(world, "pair"), "the words", support_real.SECONDS)
    assert support_given.by_pod(world, "pair").devices in (
        {("real1", "cpu-0"), ("real1", "cpu-1")},
        {("real1", "cpu-2"), ("real1", "cpu-3")},
    )


def found_uid(world: World, name: str) -> str:
    """Of a pod that is there."""
    made = world.pod(name)
    assert made is not None
    return str(made["metadata"]["uid"])


def test_pods_of_a_gang_share_a_claim_that_all_of_them_name(claims: Claims) -> None:
    """Slurm is asked for its devices once; both containers are given the same ones, and others ask for what is left."""
    world = claims.world
    claims.claim("ours", 2)
    Objects(world).create("CoschedulingPodGroup", "ours", {"minMember": 2})
    for name in ("left", "right"):
        made = support_given.pod(claims, name)
        made["spec"].update(support_devices.using(claim="ours"))
        made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "ours"}]
        made["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "ours"}
        world.create(made)
    pod(world, "other", **asking(f"{BY_CLASS}/{DRIVER}", 2))
    one, same, other = (told(claims, name) for name in ("left", "right", "other"))
    assert one.devices == same.devices
    assert len(one.devices | other.devices) == 4
    world.kube.delete(f"{claims.path}/ours")


def test_a_daemon_that_is_killed_makes_no_second_claim(claims: Claims) -> None:
    """Ten pods come one after the other, and it dies when a claim was made, has devices, or is named."""
    world, seen = claims.world, set[str]()
    for number in range(10):
        made = worlds.pod(f"k{number}", world.daemon.scheduler, **asking(f"{BY_CLASS}/{DRIVER}", seconds="2"))
        made["metadata"]["labels"] = {"test": "killed"}
        world.create(made)
        if number % 2:
            moment = (bool, results, users)[number % 3]
            wait.until(functools.partial(_some, claims, moment), "a claim", 60.0, every=0.01)
            world.daemon.kill()
            world.daemon.start()
        for claim in claims.claims():
            (owner,) = claim["metadata"]["ownerReferences"]
            seen.add(f"{owner['uid']} {claim['metadata']['name']}")
        held = claims.held()
        assert len(held) == len(set(held)), held
    for number in range(10):
        world.await_pod(f"k{number}", "its end", worlds.has_succeeded, 120.0)
    assert not support_given.twice(support_given.by_pods(world, "test=killed"))
    assert len(seen) == len({one.partition(" ")[0] for one in seen}), "a pod had two claims"


def _some(claims: Claims, moment: Callable[[Json], object]) -> bool:
    return any(map(moment, claims.claims()))
