"""The composition root: the only module that constructs concrete classes and joins them."""

import contextlib
import dataclasses
import pathlib
import random
import tempfile
import threading
from collections.abc import Iterator

from slurm_bridge import ports
from slurm_bridge.kube import client as kube_client
from slurm_bridge.kube import config as kube_config
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube import world as pocket_kube
from slurm_bridge.sim.slurm import defaults
from slurm_bridge.sim.slurm import pocket as pocket_slurm
from slurm_bridge.sim.slurm import server as pocket_slurm_server
from slurm_bridge.slurm import client as slurm_client
from slurm_bridge.slurm import settings


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PocketWorld:
    """Both pocket servers, running, and both adapters that talk to them over HTTP."""

    cluster: ports.Cluster
    slurm: ports.Slurm
    clock: ports.Clock
    kube_url: str
    slurm_url: str
    kube_calls: faults.Faults
    slurm_calls: faults.Faults


@contextlib.contextmanager
def pocket_world(*, nodes: int) -> Iterator[PocketWorld]:
    """A pocket Kubernetes and a pocket Slurm with the same nodes, until the block ends."""
    clock, machines = SystemClock(), defaults.nodes(nodes)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-bridge-")))
        slurm = pocket_slurm.PocketSlurm(clock=clock, nodes=machines, reservations=())
        slurm_server = stack.enter_context(pocket_slurm_server.PocketSlurmServer(slurm))
        kube = pocket_kube.PocketKube(clock=clock)
        kube.add_nodes(*(node.name for node in machines))
        kube_server = stack.enter_context(pocket_kube.PocketKubeServer(kube))
        yield PocketWorld(
            cluster=_cluster(stack, kube_server, folder / "kubeconfig", clock),
            slurm=_slurm(stack, slurm_server, folder / "token", clock),
            clock=clock,
            kube_url=kube_server.url,
            slurm_url=slurm_server.url,
            kube_calls=kube_server.faults,
            slurm_calls=slurm_server.faults,
        )


def _cluster(
    stack: contextlib.ExitStack,
    server: pocket_kube.PocketKubeServer,
    kubeconfig: pathlib.Path,
    clock: ports.Clock,
) -> ports.Cluster:
    server.write_kubeconfig(kubeconfig)
    access = kube_config.from_kubeconfig(kubeconfig)
    client = kube_client.KubeClient(access, clock=clock, dice=random.Random())  # noqa: S311 - jitter is no secret
    stack.callback(client.close)
    return client


def _slurm(
    stack: contextlib.ExitStack,
    server: pocket_slurm_server.PocketSlurmServer,
    token_file: pathlib.Path,
    clock: ports.Clock,
) -> ports.Slurm:
    token_file.touch(mode=0o600)
    token_file.write_text(server.slurm.secret)
    chosen = settings.SlurmSettings(url=server.url, token_file=token_file)
    return stack.enter_context(slurm_client.SlurmClient(chosen, clock=clock, stop=threading.Event()))
