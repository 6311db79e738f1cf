"""How soon one side ends when the other does: many jobs cancelled at once, then many pods deleted, of many that run.

Before that the daemon is watched while all of them run and nothing changes: what it costs to notice an end soon. At the
end the daemon is paused and its two calls for each pod whose job was cancelled are made for as many others: how fast
the servers of this machine can be.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import bench_history
from clusterbench import bare, figures, idle_cost, samples, turns
from clusterbench.contestants import OURS
from clusterbench.testbed import Bed, until

PREFIX = "ends"
#: The goal for the slowest in a hundred.
GOAL_SECONDS = 1.5
#: What watching may cost slurmctld and the daemon together, as a part of one processor.
GOAL_SHARE = 0.03
#: Where the servers need longer than that for the calls alone: at most so many times as long.
GOAL_RATIO = 1.3

_HANDS = 4
#: As many calls at once as the daemon makes.
_WORKERS = 8
_LOOK_SECONDS = 0.1
_MOST_SECONDS = 120.0
_LIVING = frozenset({"RUNNING", "PENDING", "SUSPENDED"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """One side ended so many at once. `seconds`: until the last of the other side had ended."""

    what: str
    number: int
    latency: figures.Percentiles | None
    first: float
    seconds: float
    cpu: Mapping[str, float]
    calls: Mapping[str, Mapping[str, float]]

    def __str__(self) -> str:
        used = ", ".join(f"{name} {spent:.2f}" for name, spent in self.cpu.items())
        spread = self.latency
        latency = "" if spread is None else f"p50 {spread.p50:.0f} ms, p95 {spread.p95:.0f} ms, p99 {spread.p99:.0f} ms"
        rate = self.number / (self.seconds - self.first) if self.seconds > self.first else 0.0
        return (
            f"{self.what}: {latency} (goal for p99: {1000 * GOAL_SECONDS:.0f} ms)\n"
            f"  the first after {self.first:.2f} s, the last after {self.seconds:.2f} s, {rate:.0f}/s between them\n"
            f"  CPU s     {used}"
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What it costs to watch jobs that run on."""

    seconds: float
    cpu: Mapping[str, float]
    calls: Mapping[str, Mapping[str, float]]

    @property
    def share(self) -> float:
        """Of one processor, slurmctld and the daemon together."""
        return (self.cpu["slurmctld"] + self.cpu[OURS.name]) / self.seconds

    def __str__(self) -> str:
        used = ", ".join(f"{name} {100 * spent / self.seconds:.1f} %" for name, spent in self.cpu.items())
        listed = ", ".join(
            f"{side} {operation} {count / self.seconds:.2f}"
            for side, calls in self.calls.items()
            for operation, count in calls.items()
        )
        return (
            f"watching for {self.seconds:.0f} s: {100 * self.share:.1f} % of a processor, slurmctld and the daemon "
            f"together (goal: {100 * GOAL_SHARE:.0f} %)\n  CPU       {used}\n  calls/s   {listed}"
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """All of it."""

    running: int
    bound_per_second: float
    watch: Watch
    cancelled: Burst
    deleted: Burst
    bare: Burst

    @property
    def ratio(self) -> float:
        """The slowest deletions beside those that the servers alone need as long for."""
        ours, theirs = self.cancelled.latency, self.bare.latency
        return ours.p99 / theirs.p99 if ours is not None and theirs is not None else 0.0

    def document(self) -> dict[str, object]:
        """For programs."""
        return {"ends": dataclasses.asdict(self)}

    def values(self) -> Iterator[bench_history.Values]:
        """What the goals are about: all of one round."""
        for what, burst in (("jobs cancelled", self.cancelled), ("pods deleted", self.deleted)):
            if burst.latency is not None:
                yield OURS.name, f"ms {what} to the other side's end, p99", [burst.latency.p99]
        if self.bare.latency is not None:
            yield "bare calls", "ms jobs cancelled to the other side's end, p99", [self.bare.latency.p99]
        yield f"{OURS.name} / bare calls", "jobs cancelled, p99", [self.ratio]
        yield OURS.name, "% of a processor to watch, with slurmctld", [100 * self.watch.share]

    def __str__(self) -> str:
        begun = f"{self.running} pods run, {self.bound_per_second:.0f}/s from the first creation to the last binding"
        goal = f"(goal: {GOAL_RATIO}, or {GOAL_SECONDS} s)"
        ratio = f"deletions of the daemon beside the bare calls, p99: {self.ratio:.2f} {goal}"
        return f"{begun}\n{self.watch}\n{self.cancelled}\n{self.deleted}\n{self.bare}\n{ratio}"


def measure(bed: Bed, running: int, number: int, seconds: float, folder: pathlib.Path) -> Ends:
    """Run pods, watch them for so many seconds, cancel the jobs of so many, delete as many others, twice."""
    if running < 3 * number:
        raise ValueError(f"--running {running}: at least {3 * number}, three times --ends, have to run")
    with turns.staged(bed, OURS, folder) as stage:
        created = stage.create(running, PREFIX)
        stage.await_bound(running, PREFIX, 60 + running / turns.SLOWEST)
        created.wait()
        rate = running / figures.seconds(created.at, stage.observer.bound_of(PREFIX))
        _settle(stage)
        watch = _watch(bed, stage, seconds)
        names = sorted(stage.observer.bound_of(PREFIX))
        # From all over the cluster, as an administrator's choice may be.
        step = len(names) // (3 * number)
        mine, theirs, others = (names[first * step :: 3 * step][:number] for first in range(3))
        cancelled = _cancel(bed, stage, mine)
        _settle(stage)
        deleted = _delete(bed, stage, theirs)
        _settle(stage)
        alone = _end_bare(bed, stage, others)
        stage.clear()
        return Ends(
            running=running, bound_per_second=rate, watch=watch, cancelled=cancelled, deleted=deleted, bare=alone
        )


def _settle(stage: turns.Stage) -> None:
    """After a burst conditions and events are written at their own rates: until all of them are."""
    if not idle_cost.settle(stage.running):
        raise RuntimeError("the daemon does not stop writing conditions and events")


def _watch(bed: Bed, stage: turns.Stage, seconds: float) -> Watch:
    before, meter, begin = stage.running.calls(), bed.meter({OURS.name: stage.running.pid}), time.monotonic()
    time.sleep(seconds)
    cpu, watched, after = meter.read(), time.monotonic() - begin, stage.running.calls()
    return Watch(seconds=watched, cpu=cpu, calls=_growth(before, after))


def _cancel(bed: Bed, stage: turns.Stage, names: Sequence[str]) -> Burst:
    """One order for all of these jobs; it is over when an observer has seen that each pod is being deleted."""
    observer = stage.observer
    body = json.dumps({"jobs": [str(observer.jobs[name]) for name in names]}).encode()

    def order() -> dict[str, float]:
        bed.slurm.call("DELETE", "/jobs/", body)
        return dict.fromkeys(names, time.time())

    burst = _burst(bed, stage, f"{len(names)} jobs cancelled, their pods being deleted", order, observer.leaving)
    others = observer.leaving.keys() - set(names)
    if others:
        raise RuntimeError(f"{len(others)} pods of other jobs were deleted, such as {min(others)}")
    return burst


def _delete(bed: Bed, stage: turns.Stage, names: Sequence[str]) -> Burst:
    """One request for each of these pods; it is over when no job of them lives."""
    server = bare.kubernetes(pathlib.Path(bed.env["KUBECONFIG"]), _HANDS)
    path = f"/api/v1/namespaces/{stage.arena.namespace}/pods/"
    over = _Over(bed, {stage.observer.jobs[name]: name for name in names})

    def order() -> dict[str, float]:
        def delete(name: str) -> tuple[str, float]:
            server.call("DELETE", path + name)
            return name, time.time()

        with concurrent.futures.ThreadPoolExecutor(_HANDS + 1) as pool:
            looking = pool.submit(over.run)
            deleted = dict(pool.map(delete, names))
            looking.result()
        return deleted

    return _burst(bed, stage, f"{len(names)} pods deleted, their jobs over", order, over.at)


def _end_bare(bed: Bed, stage: turns.Stage, names: Sequence[str]) -> Burst:
    """The daemon's two calls for each of these pods, made without it."""
    server = bare.kubernetes(pathlib.Path(bed.env["KUBECONFIG"]), _WORKERS)
    path, leaving = f"/api/v1/namespaces/{stage.arena.namespace}/pods/", stage.observer.leaving
    line = {"type": "DisruptionTarget", "status": "True", "reason": "Bench", "message": "Slurm job 1 was cancelled"}
    condition = json.dumps({"status": {"conditions": [line]}}).encode()

    def end(name: str) -> None:
        server.call("PATCH", f"{path}{name}/status", condition, "application/strategic-merge-patch+json")
        server.call("DELETE", path + name)

    def order() -> dict[str, float]:
        began = time.time()
        with _paused(stage.running.pid), concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(end, names))
            until(lambda: leaving.keys() >= set(names), _MOST_SECONDS, "pods being deleted", pause=_LOOK_SECONDS)
        return dict.fromkeys(names, began)

    return _burst(bed, stage, f"{len(names)} pods ended by bare calls, {_WORKERS} at once", order, leaving)


@contextlib.contextmanager
def _paused(pid: int) -> Iterator[None]:
    """This process does nothing meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class _Over:
    """When each of these jobs was first seen to be over: asked for often, and only as long as it lives."""

    def __init__(self, bed: Bed, names: Mapping[int, str]) -> None:
        self._bed, self._names = bed, names
        self.at: dict[str, float] = {}

    def run(self) -> None:
        """Until all of them are."""
        until(self._look, _MOST_SECONDS, "jobs of deleted pods over", pause=_LOOK_SECONDS)

    def _look(self) -> bool:
        left = [job for job, name in self._names.items() if name not in self.at]
        query = "&".join(f"job_id={job}" for job in left)
        rows = json.loads(self._bed.slurm.call("GET", f"/jobs/state/?{query}"))["jobs"]
        living = {int(row["job_id"]) for row in rows if _LIVING & set(row["state"])}
        now = time.time()
        self.at |= {self._names[job]: now for job in left if job not in living}
        return len(self.at) == len(self._names)


def _burst(
    bed: Bed, stage: turns.Stage, what: str, order: Callable[[], Mapping[str, float]], ended: Mapping[str, float]
) -> Burst:
    before, meter, begin = stage.running.calls(), bed.meter({OURS.name: stage.running.pid}), time.time()
    own = turns.own_cpu()
    ordered = order()
    until(lambda: ordered.keys() <= ended.keys(), _MOST_SECONDS, what, pause=_LOOK_SECONDS)
    cpu = {**meter.read(), "observer": turns.own_cpu() - own}
    late = sorted(figures.between(ordered, ended))
    return Burst(
        what=what,
        number=len(ordered),
        latency=figures.Percentiles.of(late),
        first=min(ended[name] for name in ordered) - begin,
        seconds=max(ended[name] for name in ordered) - begin,
        cpu=cpu,
        calls=_growth(before, stage.running.calls()),
    )


def _growth(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    return {side: samples.growth(before[side], after[side]) for side in after}
