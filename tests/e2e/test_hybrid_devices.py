"""GPUs of a device plugin on nodes that pods share with native jobs: no pod is there beside a job that may have one.

The plugin is simulated: the node says that it has the resource, and the kubelet gives no devices.
"""

import copy
import pathlib
import sys
from collections.abc import Iterator, Mapping

import pytest
import yaml

from tests import wait
from tests.e2e import support_given, support_real, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json, Kubernetes
from tests.e2e.support_world import World

pytestmark = pytest.mark.real

GPU = "example.com/gpu"
NODE = "real1"
#: Whole ones and slices.
COUNT = "7"


@pytest.fixture(scope="module")
def plugged(cluster: Mapping[str, str], kube: Kubernetes) -> Iterator[None]:
    """One of the real nodes has as many GPUs of a device plugin as Slurm counts."""
    support_real.require(cluster)
    _advertise(kube, COUNT)
    wait.until(lambda: _allocatable(kube) == COUNT, f"{GPU} of {NODE}", support_real.SECONDS)
    yield
    _advertise(kube, None)


@pytest.fixture(scope="module")
def world(plugged: None, open_world: OpenWorld) -> World:  # noqa: ARG001 - the node has the resource
    """A daemon for which these GPUs are those that Slurm counts."""
    return open_world("plugin", defaults={"partition": support_real.PARTITION}, gres={GPU: "gpu"})


@pytest.fixture(autouse=True)
def forgotten(world: World) -> Iterator[None]:
    """No native job outlives the test that asked for it."""
    yield
    support_given.forget(world)


def test_a_pod_is_told_and_has_the_node_for_itself_when_that_is_allowed(world: World) -> None:
    """With `whole-node` it waits for the native job that holds a GPU, and the next native job waits for the pod.

    Pods without devices share the node all the time.
    """
    native = _native(world)
    support_real.await_state(world, native, "RUNNING")
    uid = world.create(_pod(world, "asks"))[0]["metadata"]["uid"]
    told = world.await_pod("asks", "a reason", support_world.waits_for("Unschedulable"), support_real.SECONDS)
    assert f"had {GPU} that native Slurm jobs may hold" in support_world.told(told)
    assert world.placeholders(uid) == []
    support_real.running(world, "plain", node=NODE)

    world.daemon.configure({**copy.deepcopy(world.daemon.settings), "hybrid_devices": "whole-node"})
    job = world.await_placeholder(uid, support_real.SECONDS)
    assert world.slurm.shown(job.job_id)["JobState"] == "PENDING"
    world.slurm.cancel(native)
    world.delete("plain")
    bound = world.await_pod("asks", "a process", support_real.runs, support_real.SECONDS)
    assert bound["spec"]["nodeName"] == NODE
    after = _native(world)
    wait.until(lambda: support_real.state(world, after) == "PENDING", "next native job", 10)
    assert support_real.allocated(world, NODE) == 4
    world.delete("asks")
    support_real.await_state(world, after, "RUNNING")


def test_the_check_tells_what_native_jobs_share(world: World) -> None:
    """The nodes, and the resource that pods cannot have there; GPUs that only native jobs have are no mistake."""
    program = pathlib.Path(sys.executable).with_name("slurm-bridge")
    said = support_servers.said(program, "check", "--config", _refusing(world))
    assert "native jobs share real[1-2] with pods" in said
    assert f"{GPU} of {NODE}: pods that request it get no node" in said
    assert not [line for line in said.splitlines() if "same-resources" in line and "real" in line]


def _refusing(world: World) -> pathlib.Path:
    """The daemon's configuration as it was at first."""
    made = world.daemon.configuration.with_name("refusing.yaml")
    made.write_text(yaml.safe_dump({**world.daemon.settings, "hybrid_devices": "refuse"}))
    return made


def _pod(world: World, name: str) -> Json:
    containers = support_real.script("sleep infinity")
    for amounts in containers[0]["resources"].values():
        amounts[GPU] = "1"
    return support_real.pod(world, name, "", containers=containers)


def _native(world: World) -> int:
    return support_given.submit(world, "infinity", "--gres=gpu:1", f"--nodelist={NODE}")


def _advertise(kube: Kubernetes, amount: str | None) -> None:
    """As a device plugin's kubelet would; None takes it away."""
    amounts = {GPU: amount}
    body = {"status": {"capacity": amounts} if amount else {"capacity": amounts, "allocatable": amounts}}
    kube.merge(f"/api/v1/nodes/{NODE}/status", body)


def _allocatable(kube: Kubernetes) -> str:
    return str(kube.get(f"/api/v1/nodes/{NODE}")["status"]["allocatable"].get(GPU, ""))
