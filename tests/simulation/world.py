"""Both pocket worlds under one clock that only the simulation moves, and what users and administrators do in them."""

import pathlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from slurm_bridge import ports
from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import kinds, marks, names
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim.kube import pods, resources
from slurm_bridge.sim.kube.world import PocketKube
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import TOKENS_OF_SLURM, PocketSlurm
from slurm_bridge.sim.wire import Handler, Request
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from tests.direct_kube import DirectAccess
from tests.direct_line import Line
from tests.direct_pool import DirectPool
from tests.simulation import fleet as fleets
from tests.simulation import jobsets
from tests.simulation.observer import Observer
from tests.simulation.update_rules import Updates
from tests.simulation.weather import Side, Weather

NAMESPACE = "default"

OTHERS = marks.Owner(cluster="other", kind="Pod", namespace=NAMESPACE, name="a0", uid="of-another-cluster")
LONG_AGO = 60.0


class Wrong:
    """A clock whose wall time is off; what it measures is right."""

    def __init__(self, right: VirtualClock, ahead: float) -> None:
        self._right, self._ahead = right, ahead
        self.now, self.wait = right.now, right.wait

    def wall(self) -> float:
        return self._right.wall() + self._ahead


class World:
    """Some nodes, three foreign jobs, one foreign pod, and time."""

    def __init__(
        self, seed: int, token: pathlib.Path, *, fenced: bool = True, fleet: fleets.Fleet = fleets.SMALL
    ) -> None:
        self.fleet = fleet
        self.dice = random.Random(seed)
        # tenacity's jitter comes from the module's own dice.
        random.seed(seed)
        self.clock = VirtualClock()
        self.kube = PocketKube(clock=self.clock, seed=seed)
        jobsets.employ(self.kube)
        self.slurm = _slurm(self.clock, fleet, configuring=self.dice.choice((0.0, 0.0, 3.0)))
        slurm_names = {slurm: kube for kube, slurm in fleet.nodes.items()}
        self.observer = Observer(self.kube, self.slurm, slurm_names, fenced=fenced)
        self.updates = Updates(self.kube.store, self.slurm, self.observer)
        self.weather = Weather(self.dice, now=self.clock.now, pass_time=self.pass_time)
        #: Between a daemon and each server, the innermost first.
        self.around_kube: list[Callable[[Handler, str], Handler]] = []
        self.around_slurm: list[Callable[[Handler, str], Handler]] = []
        self._token = token
        token.write_text(self.slurm.secret)
        self.furnish()
        self.weather.watcher = self.observer.look

    @property
    def journal(self) -> list[str]:
        """All that happened, line by line."""
        return self.weather.journal

    def furnish(self) -> None:
        """What is there before the daemon comes."""
        for kube in self.fleet.nodes:
            self.add_kube_node(kube)
        foreign = {"image": "none", "name": "main", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}
        self.kube.create(
            kinds.PODS,
            {"metadata": {"name": "foreign"}, "spec": {"nodeName": list(self.fleet.nodes)[2], "containers": [foreign]}},
        )
        self.submit("native", flags=[], priority=0)
        self.submit("brace", admin_comment="{}")
        self.submit("other", admin_comment=marks.write(OTHERS))
        self.pass_time(LONG_AGO)

    def add_kube_node(self, kube: str) -> None:
        """A machine joins Kubernetes."""
        slurm = self.fleet.nodes[kube]
        labels = {names.LABEL_SLURM_NODE_NAME: slurm} if slurm != kube else {}
        self.kube.add_nodes(kube, capacity=self.fleet.capacity(slurm), labels=labels)

    def submit(self, name: str, *, flags: list[str] | None = None, **fields: Any) -> int:
        """A job of another user."""
        body = {
            "name": name,
            "partition": "debug",
            "flags": ["EXTERNAL_JOB"] if flags is None else flags,
            "environment": ["PATH=/bin"],
            "current_working_directory": "/",
            "tasks": 1,
            "cpus_per_task": 1,
            "memory_per_node": {"set": True, "number": 100},
            "script": "#!/bin/sh\n",
            **fields,
        }
        if body["flags"]:
            del body["script"]
        return self._ask_slurm("POST", "/job/submit", {"job": body})

    def _ask_slurm(self, method: str, path: str, body: Any) -> int:
        headers = {"x-slurm-user-token": self.slurm.secret, "content-type": "application/json"}
        target = f"/slurm/v0.0.45{path}"
        request = Request(method=method, path=target, target=target, headers=headers, body=msgspec.json.encode(body))
        answer = msgspec.json.decode(bytes(self.slurm.handler(request).body))  # type: ignore[arg-type]
        assert not answer["errors"], answer
        return int(answer["job_id"])

    # -- time --------------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Let time pass in both worlds, in steps of at most a second."""
        left = seconds
        while left > 0:
            step = min(left, 1.0)
            left -= step
            self.kube.advance(step)
            self.slurm.tick()
            self.observer.look()
        self.kube.settle()
        self.observer.look()

    def clock_of(self, ahead: float) -> ports.Clock:
        """The clock of a machine whose wall clock is wrong."""
        return Wrong(self.clock, ahead)

    # -- ways in -----------------------------------------------------------------------------------------------------

    def cluster(self, who: str, clock: ports.Clock) -> KubeClient:
        """Kubernetes as this daemon reaches it."""
        handler = self.kube.handler
        for around in self.around_kube:
            handler = around(handler, who)
        handler = self.observer.evicted.around(self.weather.before(handler, Side.KUBE, who), who)
        line = Line(handler, clock=clock)
        return KubeClient(DirectAccess(line, token=self.kube.token), clock=clock, dice=random.Random(1), instance=who)

    def jobs_of(self, who: str, clock: ports.Clock) -> SlurmClient:
        """Slurm as this daemon reaches it."""
        handler: Handler = self.slurm.handler
        for around in self.around_slurm:
            handler = around(handler, who)
        handler = self.updates.around(self.weather.before(handler, Side.SLURM, who), who)
        line = Line(handler, clock=clock)
        settings = SlurmSettings(url="http://slurm", token_file=self._token, api_versions=("v0.0.45",))
        stop = threading.Event()
        return SlurmClient(settings, clock=clock, stop=stop, connect=lambda _: DirectPool(line))

    def news(self, kind: kinds.Kind[Any]) -> Callable[[int], bool]:
        """Whether an open watch of that kind would have anything to say beyond some version."""
        resource = resources.of(kind)

        def happened(since: int) -> bool:
            return since < self.kube.store.floor(resource) or bool(self.kube.store.events(resource, since))

        return happened

    # -- users -------------------------------------------------------------------------------------------------------

    def pod(
        self, name: str, *, cpu: str = "1", gated: bool = False, marks: Mapping[str, str] | None = None, **wishes: str
    ) -> None:
        """A pod of ours; wishes are the kubelet's annotations, marks are ours."""
        self.weather.note(f"user creates pod {name} {cpu} {'gated ' if gated else ''}{wishes}{marks or ''}")
        kubelet = {f"kwok.local/{wish}": value for wish, value in wishes.items()}
        metadata = {"name": name, "annotations": kubelet | dict(marks or {})}
        gates = {"schedulingGates": [{"name": "example.com/wait"}]} if gated else {}
        self.kube.create(kinds.PODS, {"metadata": metadata, "spec": {**spec(cpu), **gates}})

    def open_gate(self, name: str) -> None:
        """The user that held the pod back lets it go."""
        self.weather.note(f"user opens the gate of pod {name}")
        self.kube.merge(kinds.PODS, (NAMESPACE, name), {"spec": {"schedulingGates": None}})

    def bind(self, name: str, node: str) -> None:
        """Another client binds a pod of ours."""
        self.weather.note(f"a stranger binds pod {name} to {node}")
        pods.bind(self.kube.objects, NAMESPACE, name, {"metadata": {"name": name}, "target": {"name": node}})

    def job(self, name: str, *, completions: int, parallelism: int, **wishes: str) -> None:
        """A Job of such pods."""
        self.weather.note(f"user creates job {name} {completions}/{parallelism} {wishes}")
        template = {
            "metadata": {"annotations": {f"kwok.local/{wish}": value for wish, value in wishes.items()}},
            "spec": {**spec("1"), "restartPolicy": "Never"},
        }
        body = {"completions": completions, "parallelism": parallelism, "template": template, "backoffLimit": 50}
        self.kube.create(kinds.JOBS, {"metadata": {"name": name}, "spec": body})

    def delete_pod(self, name: str, grace: int | None = None) -> None:
        """A user deletes a pod."""
        self.weather.note(f"user deletes pod {name} grace={grace}")
        self.kube.delete(kinds.PODS, (NAMESPACE, name), grace=grace)

    def annotate(self, name: str, key: str, value: str | None, *, namespace: str = NAMESPACE) -> None:
        """A user writes on a pod."""
        self.weather.note(f"user annotates pod {name}: {key}={value}")
        self.kube.merge(kinds.PODS, (namespace, name), {"metadata": {"annotations": {key: value}}})

    def pods(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Our pods of this moment by name, in order."""
        for pod in self.kube.list(kinds.PODS, NAMESPACE):
            if pod["spec"]["schedulerName"] == names.SCHEDULER_NAME:
                yield pod["metadata"]["name"], pod

    def find(self, name: str) -> dict[str, Any] | None:
        """One pod of ours."""
        return self.kube.get(kinds.PODS, NAMESPACE, name)

    # -- administrators ----------------------------------------------------------------------------------------------

    def ours(self, *states: str) -> list[state.SlurmJob]:
        """Our living jobs in these states, in order."""
        jobs = sorted(self.slurm.world.jobs.values(), key=lambda job: job.job_id)
        return [job for job in jobs if self.observer.owner(job) is not None and job.state in states]

    def job_of(self, name: str, *states: str) -> state.SlurmJob | None:
        """The job of a pod that is there."""
        pod = self.find(name)
        uid = pod["metadata"]["uid"] if pod else ""
        return next((job for job in self.ours(*states) if self.observer.owner(job).uid == uid), None)  # type: ignore[union-attr]

    def end_job(self, job: state.SlurmJob, word: str = "CANCELLED") -> None:
        """scancel, a limit, a more important job, a machine."""
        self.weather.note(f"admin ends job {job.job_id} ({job.state}) as {word}")
        self.slurm.control.end(job.job_id, word)

    def crash_slurm(self, seconds: float) -> None:
        """kill -9 of slurmctld and a start from the state it saved so long ago."""
        self.weather.note(f"slurmctld loses {seconds:.2f} s")
        self.observer.forgetful()
        self.updates.happened()
        self.slurm.control.crash(seconds)

    def wake_slurm(self) -> None:
        """slurmctld is back; what it was told while it hung is done now."""
        self.weather.note("slurmctld is back")
        self.observer.look()
        self.slurm.control.up()
        self.observer.look("a late order")

    def cordon(self, name: str, *, on: bool) -> None:
        """An administrator of Kubernetes closes or opens a node."""
        self.weather.note(f"admin {'closes' if on else 'opens'} {name}")
        self.kube.merge(kinds.NODES, ("", name), {"spec": {"unschedulable": on or None}})


def spec(cpu: str) -> dict[str, Any]:
    """A pod that wants so much."""
    needs = {"requests": {"cpu": cpu, "memory": "500Mi"}}
    container = {"name": "main", "image": "none", "resources": needs}
    return {"schedulerName": names.SCHEDULER_NAME, "containers": [container], "terminationGracePeriodSeconds": 3}


def _slurm(clock: ports.Clock, fleet: fleets.Fleet, *, configuring: float) -> PocketSlurm:
    nodes = [fleet.machine(name) for name in fleet.nodes.values()]
    config = state.PocketConfig(
        minimum_job_age=30.0, hang_delay=0.0, down_delay=0.0, configuring_seconds=configuring, poison_on_shrink=True
    )
    return PocketSlurm(
        clock=clock,
        nodes=nodes,
        partitions=fleet.partitions(),
        reservations=(),
        tokens=TOKENS_OF_SLURM,
        config=config,
    )
