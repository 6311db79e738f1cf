"""One size: pods run and others wait, the daemon starts anew, nothing changes, and some more pods come."""

import dataclasses
import pathlib
import time
from collections.abc import Iterator, Mapping

from clusterbench import contestants, idle_cost, processes
from clusterbench.contestants import OURS, Running
from cpubench.turns import NAMESPACE, Stage, daemon, servers

#: Words on waiting pods come as fast as the daemon can write them: what is measured is the time after them.
SETTINGS: Mapping[str, object] = {"status": {"conditions_per_second": 5000, "events_per_second": 400}}
#: The pods that come last, in one burst, and their namespace: it has its share where another one has filled the window.
BURST, LATE = 1000, "late"

#: A daemon that finds hundreds of thousands of pods may take so long until it is ready.
_READY_SECONDS = 600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Nodes of 64 cpus, pods that run on them, and pods for a partition that is down."""

    nodes: int
    running: int
    waiting: int

    @property
    def pods(self) -> int:
        """All of them."""
        return self.running + self.waiting


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What it took to bind so many pods: by the clock, and of the daemon's processor time."""

    pods: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """Pods per second."""
        return self.pods / self.seconds

    @property
    def ms_per_pod(self) -> float:
        """Processor time of the daemon for one pod in milliseconds."""
        return 1000 * self.cpu / self.pods


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one size gave. The start is that of a daemon that finds all pods and jobs there."""

    size: Size
    filled: Bound
    start_seconds: float
    start_cpu: float
    quiet_seconds: float
    quiet_cpu: float
    quiet_calls: float
    memory_mib: float
    burst: Bound

    def figures(self) -> Iterator[tuple[str, float]]:
        """In the order of the table."""
        yield "pods/s until those that run were bound", self.filled.rate
        yield "CPU ms per pod, until then", self.filled.ms_per_pod
        yield "s of a cold start until it is ready", self.start_seconds
        yield "CPU s of a cold start until it is ready", self.start_cpu
        yield "% of a processor while nothing changes", 100 * self.quiet_cpu / self.quiet_seconds
        yield "calls/s while nothing changes", self.quiet_calls / self.quiet_seconds
        yield "MiB of memory, at most", self.memory_mib
        yield f"pods/s of {BURST} more", self.burst.rate
        yield f"CPU ms per pod, of {BURST} more", self.burst.ms_per_pod


def measure(size: Size, quiet_seconds: float, folder: pathlib.Path) -> Found:
    """Fill the cluster, start the daemon anew, watch it, and let it bind some more pods."""
    with servers(size.nodes, (NAMESPACE, LATE)) as world:
        with daemon(world, SETTINGS, folder) as first:
            stage = Stage(world, first)
            filled = _bind(stage, first, size.running, "running")
            stage.create(size.waiting, "waiting", idle_cost.PARTITION)
            idle_cost.settle(first)
        began = time.monotonic()
        with daemon(world, SETTINGS, folder, _READY_SECONDS) as second:
            start_seconds, start_cpu = time.monotonic() - began, processes.cpu(second.pid)
            idle_cost.settle(second)
            calls, meter, began = _calls(second), processes.Meter({OURS.name: second.pid}), time.monotonic()
            time.sleep(quiet_seconds)
            quiet_cpu, quiet_calls, quiet = meter.read()[OURS.name], _calls(second) - calls, time.monotonic() - began
            burst = _bind(Stage(world, second, LATE), second, BURST, "burst")
            return Found(
                size=size,
                filled=filled,
                start_seconds=start_seconds,
                start_cpu=start_cpu,
                quiet_seconds=quiet,
                quiet_cpu=quiet_cpu,
                quiet_calls=quiet_calls,
                memory_mib=processes.memory(second.pid)["most"],
                burst=burst,
            )


def _bind(stage: Stage, running: contestants.Running, pods: int, prefix: str) -> Bound:
    meter, began = processes.Meter({OURS.name: running.pid}), time.monotonic()
    stage.bind(pods, prefix)
    return Bound(pods=pods, seconds=time.monotonic() - began, cpu=meter.read()[OURS.name])


def _calls(running: Running) -> float:
    """To both sides together, as the daemon counts them."""
    return sum(sum(side.values()) for side in running.calls().values())
