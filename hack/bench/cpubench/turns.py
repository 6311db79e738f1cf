"""One turn: fresh pocket servers, a daemon between them, pods that warm it up, pods that are measured."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence

from clusterbench import contestants, processes
from clusterbench.contestants import Running
from clusterbench.testbed import until
from clusterbench.turns import SLOWEST
from clusterbench.workload import Load

from cpubench.chains import CHAINS
from slurm_bridge.demo import pocket, work
from slurm_bridge.model import kinds
from slurm_bridge.sim.kube import resources
from slurm_bridge.sim.kube.followers import Tail

#: Pods before those that are measured: connections are open then, and caches filled.
WARM = 100

NAMESPACE = "bench"

_SECONDS = 300.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Seconds of the daemon's processor time, and by the clock, from the first pod created to the last one bound."""

    who: str
    round: int
    pods: int
    cpu: float
    seconds: float

    @property
    def ms_per_pod(self) -> float:
        """Processor time of one pod in milliseconds."""
        return self.cpu / self.pods * 1000

    def __str__(self) -> str:
        return f"{self.who:16} {self.ms_per_pod:5.2f} ms of CPU per pod, {self.pods / self.seconds:.0f} pods/s"


class Stage:
    """A daemon between pocket servers; `check` raises when it has ended."""

    def __init__(self, world: pocket.PocketWorld, running: Running, namespace: str = NAMESPACE) -> None:
        self.running = running
        self._world, self._namespace = world, namespace
        self._pods = Tail(world.kube.store, resources.of(kinds.PODS))
        self._bound: set[str] = set()

    def create(self, pods: int, prefix: str, partition: str = "") -> None:
        """As fast as they come."""
        scheduler = contestants.OURS.scheduler
        load = Load(namespace=self._namespace, scheduler=scheduler, pods=pods, prefix=prefix, partition=partition)
        for name in load.names():
            pod = load.pod(name)
            self._world.kube.create(kinds.PODS, {**pod, "metadata": {**pod["metadata"], "namespace": self._namespace}})

    def bind(self, pods: int, prefix: str) -> None:
        """Create pods, and wait until each has its node."""
        self._bound.clear()
        self.create(pods, prefix)
        until(lambda: self._count(prefix) >= pods, _SECONDS + pods / SLOWEST, f"{pods} pods bound", self.running.check)

    def _count(self, prefix: str) -> int:
        news = (event.new for event in self._pods.news() if not event.gone and event.new.name.startswith(prefix))
        self._bound.update(pod.name for pod in news if pod.fields["spec.nodeName"])
        return len(self._bound)


def play(who: str, round_: int, nodes: int, pods: int, folder: pathlib.Path) -> Turn:
    """Measure one contestant once."""
    with servers(nodes) as world, daemon(world, {"hooks": list(CHAINS[who])}, folder) as running:
        stage = Stage(world, running)
        stage.bind(min(WARM, pods), "warm")
        meter, began = processes.Meter({who: running.pid}), time.monotonic()
        stage.bind(pods, "pod")
        seconds = time.monotonic() - began
        return Turn(who=who, round=round_, pods=pods, cpu=meter.read()[who], seconds=seconds)


@contextlib.contextmanager
def servers(nodes: int, namespaces: Sequence[str] = (NAMESPACE,)) -> Iterator[pocket.PocketWorld]:
    """Pocket servers with the namespaces of the pods and of the daemon."""
    with pocket.world(nodes=nodes) as world:
        for name in (*namespaces, work.DAEMON_NAMESPACE):
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            world.kube.create(work.kind_of(manifest), manifest)
        yield world


@contextlib.contextmanager
def daemon(
    world: pocket.PocketWorld, settings: Mapping[str, object], folder: pathlib.Path, ready_seconds: float = 60.0
) -> Iterator[Running]:
    """A daemon between these servers, which may have had one before."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {
        "SLURMRESTD_URL": world.slurm_url,
        "SLURM_TOKEN_FILE": str(world.token_file),
        "KUBECONFIG_DAEMON": str(world.kubeconfig),
        "DAEMON_NAMESPACE": work.DAEMON_NAMESPACE,
    }
    with contestants.ours(env, folder, settings, ready_seconds) as running:
        yield running
