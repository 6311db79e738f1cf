"""A pocket Kubernetes whose time stands still, and the real client before it without a socket: for unit tests."""

import random
from collections.abc import Mapping

from slurm_bridge.kube import client
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim.kube import access, resources, world
from tests.direct_kube import DirectAccess
from tests.direct_line import Line

NAMESPACE = "default"


class Scene:
    """One world, one client, and the means to set the scene; `line.faults` breaks calls and counts them."""

    def __init__(
        self,
        *,
        rights: tuple[access.AccessRule, ...] | None = None,
        served: Mapping[str, tuple[str, ...]] = resources.SERVED,
    ) -> None:
        self.clock = VirtualClock()
        tokens = {"token": access.User(name="bridge", rules=rights)}
        self.kube = world.PocketKube(clock=self.clock, tokens=tokens, served=served)
        self.kube.add_nodes("n1", "n2")
        self.line = Line(self.kube.handler, clock=self.clock)
        self.cluster = self.client()

    def client(self) -> client.KubeClient:
        """Another client of the same world, over the same line."""
        return client.KubeClient(DirectAccess(self.line, token="token"), clock=self.clock, dice=random.Random(1))

    def pod(self, name: str = "pod", **metadata: object) -> Pod:
        """A new pod."""
        spec = {"containers": [{"name": "main", "image": "pause:1"}]}
        self.kube.create(kinds.PODS, {"metadata": {"name": name, **metadata}, "spec": spec})
        return self.seen(name)

    def seen(self, name: str = "pod") -> Pod:
        """A pod as a reader sees it now."""
        found = self.cluster.get(kinds.PODS, NAMESPACE, name)
        assert found is not None
        return found
