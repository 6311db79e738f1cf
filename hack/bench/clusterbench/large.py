"""A full cluster on real servers: many pods run, more wait, nothing changes, a burst comes, the daemon starts anew."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterator

import bench_history
from clusterbench import contestants, figures, idle_cost, processes, samples, turns
from clusterbench.testbed import Bed

#: For each pod that runs so many wait, as in `make bench-size`.
WAITING_PER_RUNNING = 1.5
#: Of those that run one in so many comes last as a burst, while all others are there.
BURST_OF = 20
#: A daemon that finds so much may take so long until it is ready.
_READY_SECONDS = 600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    """What the daemon needs there. The start is that of a daemon that finds all pods and jobs there."""

    running: int
    waiting: int
    burst: int
    filled_rate: float
    quiet_seconds: float
    quiet_cpu: float
    quiet_calls: float
    burst_rate: float
    burst_cpu: float
    start_seconds: float
    start_cpu: float
    memory_mib: float

    def values(self) -> Iterator[bench_history.Values]:
        """All of one round."""
        found = {
            "pods/s until those that run were bound": self.filled_rate,
            "calls/s": self.quiet_calls / self.quiet_seconds,
            "% of a processor": 100 * self.quiet_cpu / self.quiet_seconds,
            f"pods/s of {self.burst} more": self.burst_rate,
            f"CPU ms per pod, of {self.burst} more": 1000 * self.burst_cpu / self.burst,
            "s of a cold start until it is ready": self.start_seconds,
            "CPU s of a cold start until it is ready": self.start_cpu,
            "MiB of memory, at most": self.memory_mib,
        }
        for what, value in found.items():
            yield contestants.OURS.name, what, [value]

    def __str__(self) -> str:
        lines = [f"  {what:42} {value[0]:10.2f}" for _, what, value in self.values()]
        return "\n".join([f"{self.running} pods run and {self.waiting} wait", *lines])


def measure(bed: Bed, running: int, seconds: float, folder: pathlib.Path) -> Large:
    """Fill the cluster, watch, let some more pods come, and start the daemon anew."""
    waiting, burst = int(running * WAITING_PER_RUNNING), max(1, running // BURST_OF)
    # The burst has a namespace of its own, and with it its share of the window, which the others have filled.
    with turns.arena(bed, folder) as (arena, observer), turns.arena(bed, folder) as (late, watcher):
        with _daemon(arena) as first:
            stage = turns.Stage(arena, first, observer, contestants.OURS.scheduler)
            filled, _ = _bind(stage, running, "running")
            stage.create(waiting, "waiting", idle_cost.PARTITION).wait()
            idle_cost.settle(first)
            before, meter, began = first.calls(), _meter(first), time.monotonic()
            time.sleep(seconds)
            quiet_cpu, quiet, after = meter.read()[contestants.OURS.name], time.monotonic() - began, first.calls()
            rate, cpu = _bind(turns.Stage(late, first, watcher, contestants.OURS.scheduler), burst, "burst")
        began = time.monotonic()
        with _daemon(arena) as second:
            return Large(
                running=running,
                waiting=waiting,
                burst=burst,
                filled_rate=filled,
                quiet_seconds=quiet,
                quiet_cpu=quiet_cpu,
                quiet_calls=sum(sum(samples.growth(before[side], after[side]).values()) for side in after),
                burst_rate=rate,
                burst_cpu=cpu,
                start_seconds=time.monotonic() - began,
                start_cpu=processes.cpu(second.pid),
                memory_mib=_at_most(second, seconds),
            )


def _daemon(arena: contestants.Arena) -> contextlib.AbstractContextManager[contestants.Running]:
    return contestants.ours(arena.bed.env, arena.folder, idle_cost.SETTINGS, _READY_SECONDS)


def _meter(running: contestants.Running) -> processes.Meter:
    return processes.Meter({contestants.OURS.name: running.pid})


def _at_most(running: contestants.Running, seconds: float) -> float:
    """Once it has looked at every workload."""
    time.sleep(seconds)
    return processes.memory(running.pid)["most"]


def _bind(stage: turns.Stage, pods: int, prefix: str) -> tuple[float, float]:
    """Pods per second, and the daemon's processor time."""
    meter = _meter(stage.running)
    created = stage.create(pods, prefix)
    stage.await_bound(pods, prefix, 60 + pods / turns.SLOWEST)
    created.wait()
    seconds = figures.seconds(created.at, stage.observer.bound_of(prefix))
    return pods / seconds, meter.read()[contestants.OURS.name]
