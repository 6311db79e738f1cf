"""The demo from beginning to end.

1 the world   both pocket servers, over real HTTP on loopback
2 the work    a namespace, the examples and more pods: created before the daemon starts
3 faults      the requested faults are armed
4 the daemon  started as `slurm-bridge run` starts it
5 frames      several per second, until all work has ended (or, on a terminal, until interrupted)
6 the end     the daemon drains and stops; a summary says whether everything went well
"""

import collections
import contextlib
import dataclasses
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from slurm_bridge import app
from slurm_bridge.daemon.process import Daemon
from slurm_bridge.demo import pocket, scene, troubles, work
from slurm_bridge.demo.observer import PocketObserver
from slurm_bridge.demo.scene import Frame, PodStage
from slurm_bridge.settings import loader
from slurm_bridge.sim.kube import access

#: With fewer nodes none has GPUs, which an example needs.
FEWEST_NODES = 4

#: Seconds between two frames.
PERIOD = 0.1

#: On a terminal, this many new pods arrive every so many seconds; this many finished objects are kept.
_WAVE, _NEXT, _KEPT = 20, 3.0, 32

#: A sweep finds the jobs that a crashed slurmctld brings back; here it runs more often than every five minutes.
_SWEEP = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The options of the command. `once`: end when all work has ended, or after `deadline` seconds.

    `hooks` are further entries of the key `hooks`; one with a name that is in the chain replaces that one.
    """

    pods: int = 40
    nodes: int = 6
    cpus: int = 8
    faults: tuple[str, ...] = ()
    hooks: tuple[Mapping[str, Any], ...] = ()
    once: bool = False
    deadline: float = 120.0


class Display(Protocol):
    """Shows the frames."""

    def begin(self, text: str) -> None:
        """Show what the demo will do."""

    def show(self, frame: Frame) -> None:
        """Show one frame."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result; `left` is the number of placeholders that are still alive in Slurm."""

    seconds: float
    outcomes: tuple[tuple[str, str], ...]
    last: Frame
    faults: tuple[str, ...]
    struck: int
    daemon: int

    @property
    def good(self) -> bool:
        """All work is done, nothing is left, and the daemon ended in order.

        If slurmctld crashes, Slurm takes nodes back; pods without a controller are then deleted, as they have to be.
        """
        fine = {"done", "gone"} if "controller-crash" in self.faults else {"done"}
        ended = all(outcome in fine for _, outcome in self.outcomes)
        return ended and self.last.left == 0 and self.daemon == 0

    def __str__(self) -> str:
        last, calls = self.last, self.last.calls
        each = (calls.kube + calls.slurm) / max(1, last.pods)
        counted = [outcome for _, outcome in self.outcomes]
        words = {"done": "done", "failed": "failed", "gone": "deleted with their node", "": "not ended"}
        counts = [f"{count} {word}" for key, word in words.items() if (count := counted.count(key))]
        ended = ", ".join(counts) or "nothing"
        lines = [
            f"{len(counted)} Jobs and bare pods, {last.pods} pods in all, in {self.seconds:.1f} s: {ended}",
            f"calls of the daemon: {calls.kube} to Kubernetes, {calls.slurm} to Slurm, {each:.1f} for each pod",
            f"faults: {', '.join(self.faults) or 'none ordered'}; {self.struck} times something went wrong on order",
            f"jobs left in Slurm: {last.left}",
        ]
        shared = collections.Counter(row.job_id for row in last.rows if row.members > 1)
        if shared and not last.forgotten:
            lines.insert(1, f"gangs: {sum(shared.values())} of the pods were placed together, by {len(shared)} jobs")
        lines += [f"{name}: {outcome or 'has not ended'}" for name, outcome in self.outcomes if outcome != "done"]
        lines += ["the daemon did not end in order"] if self.daemon else []
        return "\n".join(lines)


def play(options: DemoOptions, audience: Display, stop: threading.Event) -> Summary:
    """Run the demo; `stop` ends it early, from any thread."""
    with pocket.world(nodes=options.nodes, cpus=options.cpus) as world:
        # kubectl sends no token without TLS.
        world.kube.access.anonymous = access.ADMIN
        programme = work.programme(options.pods)
        wanted = work.create(world.cluster, programme.manifests)
        schedule = troubles.Schedule(world, options.faults)
        observer = PocketObserver(world)
        with _running(world, (*work.hooks(programme.examples), *options.hooks)) as engine:
            audience.begin(_introduction(world, programme, options, engine.address))
            stage = _Show(world=world, wanted=wanted, schedule=schedule, observer=observer, engine=engine)
            last = _watch(stage, options, audience, stop)
        return Summary(
            seconds=last.seconds,
            outcomes=tuple((str(one), observer.outcome(one)) for one in wanted),
            last=dataclasses.replace(last, left=observer.look().left),
            faults=options.faults,
            struck=schedule.struck,
            daemon=engine.status,
        )


class _DaemonThread:
    """Runs the daemon in a thread. The status is a failure until the daemon sets it."""

    def __init__(self, daemon: Daemon) -> None:
        self.status = 1
        self._daemon = daemon
        self._thread = threading.Thread(target=self._run, name="daemon", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.status = self._daemon.run()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def address(self) -> str:
        """Where its HTTP server is."""
        return f"http://127.0.0.1:{self._daemon.server.port}"

    def end(self) -> None:
        """Stop the daemon in order."""
        self._daemon.stop()
        self._thread.join()


@contextlib.contextmanager
def _running(world: pocket.PocketWorld, more: Iterable[Mapping[str, Any]]) -> Iterator[_DaemonThread]:
    """The daemon of `slurm-bridge run`, with the shipped configuration adapted to this world, and with more hooks."""
    path = world.folder / "config.yaml"
    path.write_text(work.configuration(), encoding="utf-8")
    overrides = (*world.overrides, f"mirror.sweep_seconds={_SWEEP}", "web.live_view.enabled=true")
    shipped = loader.load(path, {}, overrides).hooks
    hooks = {hook["name"]: hook for hook in (*(one.model_dump(mode="json") for one in shipped), *more)}
    overrides = (*overrides, f"hooks={json.dumps(list(hooks.values()))}")
    with app.daemon(app.Configuration(path=path, environ={}, overrides=overrides)) as daemon:
        engine = _DaemonThread(daemon)
        try:
            yield engine
        finally:
            engine.end()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Show:
    """The parts of a running demo."""

    world: pocket.PocketWorld
    wanted: Sequence[work.Work]
    schedule: troubles.Schedule
    observer: PocketObserver
    engine: _DaemonThread

    def over(self, frame: Frame) -> bool:
        """All work has ended, and so has everything that follows from it."""
        if frame.left or not self.schedule.over or any(row.stage not in scene.OVER for row in frame.rows):
            return False
        return all(self.observer.outcome(one) for one in self.wanted)


def _watch(stage: _Show, options: DemoOptions, audience: Display, stop: threading.Event) -> Frame:
    """Show frames until the end; returns the last one."""
    traffic = _Traffic(stage.world, stage.observer, first=options.pods + 1)
    while True:
        frame = stage.observer.look()
        audience.show(frame)
        stage.schedule.step(frame.seconds)
        if options.once and (stage.over(frame) or frame.seconds > options.deadline):
            return frame
        if not options.once:
            traffic.step(frame)
        if not stage.engine.alive or stage.world.clock.wait(stop, PERIOD):
            return frame


class _Traffic:
    """Creates new pods and removes finished ones while the demo runs on a terminal."""

    def __init__(self, world: pocket.PocketWorld, observer: PocketObserver, *, first: int) -> None:
        self._world, self._observer, self._number = world, observer, first
        self._next = 0.0
        self._made: collections.deque[work.Work] = collections.deque()

    def step(self, frame: Frame) -> None:
        """Create some pods when it is time, unless many wait."""
        waiting = sum(frame.count(one) for one in (PodStage.PENDING, PodStage.QUEUED))
        if frame.seconds < self._next or waiting >= _WAVE:
            return
        self._next = frame.seconds + _NEXT
        for manifest in work.beside(_WAVE, self._number):
            # Directly in the pocket server, so that only the daemon's calls are counted.
            kind = work.kind_of(manifest)
            self._world.kube.create(kind, manifest)
            self._made.append(work.Work(kind=kind, namespace=work.NAMESPACE, name=manifest["metadata"]["name"]))
        self._number += _WAVE
        while len(self._made) > _KEPT and self._observer.outcome(self._made[0]):
            old = self._made.popleft()
            if self._world.kube.get(old.kind, old.namespace, old.name) is not None:
                self._world.kube.delete(old.kind, (old.namespace, old.name))


def _introduction(world: pocket.PocketWorld, programme: work.Programme, options: DemoOptions, address: str) -> str:
    shown = ", ".join(programme.examples) or "none found"
    lines = [
        f"pocket Kubernetes {world.kube_url}   pocket slurmrestd {world.slurm_url}",
        f"look at it: {address}/ui   or: slurm-bridge top --url {address}",
        f"{options.nodes} nodes of {options.cpus} cpus in both",
        f"examples: {shown}; and {options.pods} pods beside them, single ones and gangs",
    ]
    lines += [f"example {name} is left out: {why}" for name, why in programme.left_out.items()]
    lines += [f"fault {name}: {troubles.TROUBLES[name].words}" for name in options.faults]
    if options.hooks:
        lines.append(f"hooks beside the demo's: {', '.join(str(hook['name']) for hook in options.hooks)}")
    if not options.once:
        lines.append(f"use it with: kubectl --kubeconfig {world.kubeconfig} get pods --all-namespaces --watch")
    return "\n".join(lines)
