"""A pocket world whose time stands still."""

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.runtime import clock
from slurm_bridge.sim.kube import pods, world


@pytest.fixture
def time() -> clock.VirtualClock:
    """Moves when told."""
    return clock.VirtualClock()


@pytest.fixture
def kube(time: clock.VirtualClock) -> world.PocketKube:
    """Two nodes and nothing else."""
    made = world.PocketKube(clock=time)
    made.add_nodes("n1", "n2")
    return made


class Scene:
    """Pods as a test needs them."""

    def __init__(self, kube: world.PocketKube) -> None:
        self.kube = kube

    def pod(self, name: str = "pod", *, node: str = "", **metadata: object) -> None:
        """A pod, bound when a node is named."""
        spec = {"containers": [{"name": "main", "image": "pause:1"}]}
        self.kube.create(kinds.PODS, {"metadata": {"name": name, **metadata}, "spec": spec})
        if node:
            self.bind(name, node)

    def bind(self, name: str, node: str = "n1") -> None:
        """Bind it."""
        binding = {"metadata": {"name": name}, "target": {"name": node}}
        pods.bind(self.kube.objects, "default", name, binding)

    def phase(self, name: str = "pod") -> str:
        """Its phase, or "gone"."""
        pod = self.kube.get(kinds.PODS, "default", name)
        return pod["status"]["phase"] if pod else "gone"

    def job(self, **spec: object) -> None:
        """A Job named j."""
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause:1"}]}}
        self.kube.create(kinds.JOBS, {"metadata": {"name": "j"}, "spec": {"template": template, **spec}})
        self.kube.settle()

    def job_status(self) -> dict[str, object]:
        """What the Job says."""
        job = self.kube.get(kinds.JOBS, "default", "j")
        return job["status"] if job else {}

    def waiting(self) -> list[str]:
        """Pods that are neither bound nor ended."""
        found = self.kube.list(kinds.PODS)
        return [
            pod["metadata"]["name"]
            for pod in found
            if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        ]


@pytest.fixture
def scene(kube: world.PocketKube) -> Scene:
    """The means to set one."""
    return Scene(kube)
