"""A pocket Kubernetes and a pocket Slurm over real HTTP on loopback, with the same nodes: the demo's cluster."""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterator

from slurm_bridge import app, ports
from slurm_bridge.kube import config as kube_config
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.sim import faults, twins
from slurm_bridge.sim.kube import world as pocket_kube
from slurm_bridge.sim.slurm import defaults
from slurm_bridge.sim.slurm import pocket as pocket_slurm


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PocketWorld:
    """Both running pocket servers, and what a daemon or kubectl needs to reach them over HTTP."""

    cluster: ports.Cluster
    clock: ports.Clock
    kube_url: str
    slurm_url: str
    kube_calls: faults.Faults
    slurm_calls: faults.Faults
    kube: pocket_kube.PocketKube
    slurmctld: pocket_slurm.PocketSlurm
    folder: pathlib.Path

    @property
    def kubeconfig(self) -> pathlib.Path:
        """For kubectl and the daemon."""
        return self.folder / "kubeconfig"

    @property
    def token_file(self) -> pathlib.Path:
        """An operator's token of the pocket Slurm."""
        return self.folder / "token"

    @property
    def overrides(self) -> tuple[str, ...]:
        """The configuration for these servers, as `--set` would give it."""
        return (
            f"slurm.url={self.slurm_url}",
            f"slurm.token_file={self.token_file}",
            f"kubernetes.kubeconfig={self.kubeconfig}",
            "web.host=127.0.0.1",
            "web.port=0",
            "web.probes_port=0",
        )


@contextlib.contextmanager
def world(*, nodes: int, cpus: int = 64) -> Iterator[PocketWorld]:
    """A pocket Kubernetes and a pocket Slurm with the same nodes; they stop at the end of the block."""
    clock, machines = SystemClock(), defaults.nodes(nodes, cpus=cpus)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-bridge-")))
        slurm = pocket_slurm.PocketSlurm(
            clock=clock, nodes=machines, reservations=(), tokens=pocket_slurm.TOKENS_OF_SLURM
        )
        slurm_server = stack.enter_context(pocket_slurm.PocketSlurmServer(slurm))
        kube = pocket_kube.PocketKube(clock=clock)
        twins.join(kube, machines)
        kube_server = stack.enter_context(pocket_kube.PocketKubeServer(kube))
        kube_server.write_kubeconfig(folder / "kubeconfig")
        (folder / "token").touch(mode=0o600)
        (folder / "token").write_text(slurm.secret)
        yield PocketWorld(
            cluster=app.cluster_client(stack, kube_config.from_kubeconfig(folder / "kubeconfig"), clock),
            clock=clock,
            kube_url=kube_server.url,
            slurm_url=slurm_server.url,
            kube_calls=kube_server.faults,
            slurm_calls=slurm_server.faults,
            kube=kube,
            slurmctld=slurm,
            folder=folder,
        )
