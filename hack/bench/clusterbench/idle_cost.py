"""What workloads cost that wait: thousands of pods for a partition that is down, and nothing changes.

First everything that has to be said once is said (placeholders, conditions); then the daemon is watched for a minute.
"""

import dataclasses
import pathlib
import time
from collections.abc import Iterator

import bench_history
from clusterbench import contestants, processes, samples, turns
from clusterbench.testbed import Bed

#: Slurm accepts jobs for it and starts none.
PARTITION = "closed"

#: As many words as fit, so that the minute of quiet comes sooner; what is measured is the time after them.
SETTINGS = {"status": {"conditions_per_second": 400, "events_per_second": 400}}

_LOOK_SECONDS = 10.0
#: Settled: for so many looks nothing was written on any pod.
_LOOKS = 3
_SETTLE_SECONDS = 1200.0
_WRITES = ("event", "patch_pods_status")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """One minute in which nothing happens."""

    workloads: int
    settled: bool
    settled_seconds: float
    seconds: float
    calls: dict[str, dict[str, float]]
    cpu: dict[str, float]
    memory_mib: dict[str, float]

    @property
    def calls_per_second(self) -> float:
        """To both sides together, as the daemon counts them."""
        return sum(sum(side.values()) for side in self.calls.values()) / self.seconds

    def document(self) -> dict[str, object]:
        """With what is computed from the rest."""
        return {**dataclasses.asdict(self), "calls_per_second": round(self.calls_per_second, 2)}

    def values(self, who: str) -> Iterator[bench_history.Values]:
        """Calls, processor and memory of the daemon: all of one round."""
        yield who, "calls/s", [self.calls_per_second]
        yield who, "% of a processor", [100 * self.cpu[who] / self.seconds]
        yield who, "MiB of memory, at most", [self.memory_mib["most"]]

    def __str__(self) -> str:
        per_second = {
            f"{side} {operation}": count / self.seconds
            for side, calls in self.calls.items()
            for operation, count in calls.items()
        }
        listed = ", ".join(f"{name} {count:.2f}" for name, count in sorted(per_second.items(), key=lambda one: -one[1]))
        used = ", ".join(f"{name} {100 * spent / self.seconds:.1f} %" for name, spent in self.cpu.items())
        return (
            f"{self.workloads} waiting workloads; {self.seconds:.0f} s of quiet, "
            f"{self.settled_seconds:.0f} s after the first was created"
            f"{'' if self.settled else ', though something was still being said'}\n"
            f"  calls/s   {self.calls_per_second:.2f}  ({listed})\n"
            f"  CPU       {used}\n"
            f"  memory    {self.memory_mib['now']:.0f} MiB, at most {self.memory_mib['most']:.0f} MiB"
        )


def measure(bed: Bed, workloads: int, seconds: float, folder: pathlib.Path) -> Quiet:
    """Create them, wait until all is said, watch."""
    contestant = contestants.ours_with(**SETTINGS)
    with turns.staged(bed, contestant, folder) as stage:
        begin = time.monotonic()
        stage.create(workloads, "waiting", PARTITION).wait()
        settled = settle(stage.running)
        settled_seconds = time.monotonic() - begin
        before, meter = stage.running.calls(), bed.meter({contestant.name: stage.running.pid})
        watched = _pass(seconds)
        after = stage.running.calls()
        quiet = Quiet(
            workloads=workloads,
            settled=settled,
            settled_seconds=settled_seconds,
            seconds=watched,
            calls={side: samples.growth(before[side], after[side]) for side in after},
            cpu=meter.read(),
            memory_mib=processes.memory(stage.running.pid),
        )
        stage.clear()
        return quiet


def settle(running: contestants.Running) -> bool:
    """Until everything is said that has to be said once; False when that does not end."""
    begin = time.monotonic()
    silent, before = 0, _written(running)
    while silent < _LOOKS:
        if time.monotonic() - begin > _SETTLE_SECONDS:
            return False
        _pass(_LOOK_SECONDS)
        now = _written(running)
        silent = silent + 1 if now == before else 0
        before = now
    return True


def _written(running: contestants.Running) -> float:
    calls = running.calls()["kubernetes"]
    return sum(calls.get(operation, 0) for operation in _WRITES)


def _pass(seconds: float) -> float:
    """Time alone is waited for: there is nothing to look for when nothing is to happen."""
    begin = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - begin
