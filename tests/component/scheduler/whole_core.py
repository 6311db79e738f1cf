"""A small cluster on both sides with the daemon's own brain between them, moved by hand: no thread, no socket.

    bridge = Bridge(tmp_path)           four nodes of four cpus, three foreign jobs, a foreign pod, and a core
    bridge.pod("a")                     a user creates a pod
    bridge.settle()                     everything that is to be done at this moment is done
    bridge.run(30)                      time passes, and what it brings is done as well

An observer looks after every call: a broken promise (two jobs, a wrong node, a foreign job touched) fails any test.
"""

import dataclasses
import json
import pathlib
import random
import threading
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge import ports
from slurm_bridge.daemon import assembly, hook_observer
from slurm_bridge.hooks import needs, services
from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import kinds, names
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.overlays.fenced import FencedCluster, FencedSlurm
from slurm_bridge.settings.model import Settings
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.workloads import kind_table, known
from tests.direct_kube import DirectAccess
from tests.direct_line import Line
from tests.direct_pool import DirectPool
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.threadless_watch import Feed
from tests.simulation.weather import Side
from tests.simulation.world import NAMESPACE, World

#: More steps at one moment mean that something spins.
MOST_STEPS = 600


class Told:
    """Remembers what was counted."""

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.bindings: list[str] = []
        self.ends: list[str] = []
        self.resizes = 0
        self.surprises: list[str] = []

    def looked(self, seconds: float) -> None:
        assert seconds >= 0

    def attempt(self, result: str) -> None:
        self.attempts.append(result)

    def surprise(self, where: str) -> None:
        self.surprises.append(where)

    def bound(self, pod: Pod, by: Placeholder) -> None:
        assert by.owner.namespace == pod.metadata.namespace
        self.bindings.append(pod.metadata.name)

    def ended(self, reason: str) -> None:
        self.ends.append(reason)

    def resized(self) -> None:
        self.resizes += 1


class Bridge:
    """One process of the daemon in a world; `slurm_calls` and `kube_calls` break calls and count them."""

    def __init__(self, folder: pathlib.Path, *, world: World | None = None, name: str = "d1", **settings: Any) -> None:
        self.folder, self.name, self._given = folder, name, settings
        self.world = world or World(1, folder / "token")
        self.kube, self.slurm, self.clock = self.world.kube, self.world.slurm, self.world.clock
        # Only the cases that are about it have nodes that take time to come up.
        self.slurm.world.config = dataclasses.replace(self.slurm.world.config, configuring_seconds=0.0)
        self.leads = True
        self.start()

    # -- the process -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A new process in the same world: it knows nothing yet."""
        self.slurm_calls, self.kube_calls, self.told = faults.Faults(), faults.Faults(), Told()
        cluster, slurm = self._cluster(), self._slurm()
        self.settings = configured(self.folder, **self._given)
        dice = random.Random(7)
        self._groups = {kind: self._feed(cluster, kind, self._on_owner) for kind in kind_table.WATCHED}
        metrics = Metrics(version="test")
        around = hook_observer.surroundings(self.settings, self.clock, dice, metrics, services.nowhere)
        # A hook's own thread would move the clock that stands still for everybody else.
        around = dataclasses.replace(around, threads=False)
        self.seen: dict[needs.Need, Feed[Any]] = {}

        def views(wanted: frozenset[needs.Need]) -> Mapping[needs.Need, needs.View]:
            every = sorted(wanted | needs.OPTIONAL, key=lambda need: need.value)
            self.seen.update({need: self._feed(cluster, needs.KINDS[need], self._on_surroundings) for need in every})
            return {need: feed.store for need, feed in self.seen.items()}

        outside = assembly.CoreInputs(
            cluster=FencedCluster(cluster, lambda: self.leads),
            slurm=FencedSlurm(slurm, lambda: self.leads),
            clock=self.clock,
            dice=dice,
            known=known.Stores({kind: feed.store for kind, feed in self._groups.items()}),
            counters=self.told,
            around=around,
            views=views,
        )
        made = assembly.build(self.settings, outside)
        self.core, self.reporter = made.core, made.reporter
        self.feeds: tuple[Feed[Any], ...] = (
            *self.seen.values(),
            self._feed(cluster, kinds.NODES, self.core.on_node),
            *self._groups.values(),
            self._feed(cluster, kinds.PODS, self._on_pod),
        )
        self._recovered = False

    def _cluster(self) -> KubeClient:
        handler = self.world.weather.before(self.kube.handler, Side.KUBE, self.name)
        line = Line(handler, clock=self.clock, faults=self.kube_calls)
        access = DirectAccess(line, token=self.kube.token)
        return KubeClient(access, clock=self.clock, dice=random.Random(1), instance=self.name)

    def _slurm(self) -> SlurmClient:
        handler = self.world.weather.before(self.slurm.handler, Side.SLURM, self.name)
        line = Line(handler, clock=self.clock, faults=self.slurm_calls)
        token = self.folder / "token"
        settings = SlurmSettings(url="http://slurm", token_file=token, api_versions=("v0.0.45",), cache_ttl=0.0)
        return SlurmClient(settings, clock=self.clock, stop=threading.Event(), connect=lambda _: DirectPool(line))

    def _feed(self, cluster: ports.Cluster, kind: kinds.Kind[Any], handler: Callable[[Any, Any], object]) -> Feed[Any]:
        return Feed(cluster, kind, handler, news=self.world.news(kind))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        ours = pod is not None and pod.spec.scheduler_name in self.settings.scheduler_names
        (self.core.on_pod if ours else self.core.on_other_pod)(old, new)

    def _on_owner(self, old: Any, new: Any) -> None:
        """The core is younger than the feed that it reads Jobs from."""
        self.core.on_owner(old, new)

    def _on_surroundings(self, old: Any, new: Any) -> None:
        self.core.on_surroundings(old, new)

    def hear(self) -> None:
        """What Kubernetes has to tell arrives."""
        for feed in self.feeds:
            feed.pump()

    def recover(self) -> None:
        """What the daemon does first."""
        self.hear()
        self.core.recover()
        self._recovered = True

    def settle(self) -> None:
        """Do all that there is to do, without any time passing."""
        if not self._recovered:
            self.recover()
        for _ in range(MOST_STEPS):
            self.hear()
            if not (self.core.schedule_step() or self.reporter.step()):
                return
        raise AssertionError(f"still busy after {MOST_STEPS} steps:\n" + "\n".join(self.world.journal[-20:]))

    def step(self, seconds: float = 0.5) -> None:
        """Let time pass in one piece; then do what there is to do."""
        self.world.pass_time(seconds)
        if not self._recovered:
            self.recover()
        self.core.mirror_step()
        self.settle()
        self.core.tell_step()

    def run(self, seconds: float, *, step: float = 0.5) -> None:
        """Let time pass bit by bit."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.step(min(step, end - self.clock.now()))

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Let time pass until it holds."""
        end = self.clock.now() + seconds
        while not condition():
            assert self.clock.now() < end, "it never came to that:\n" + "\n".join(self.world.journal[-30:])
            self.step()

    # -- users -------------------------------------------------------------------------------------------------------

    def pod(self, name: str = "a", namespace: str = NAMESPACE, /, *, cpu: str = "1", **changes: Any) -> str:
        """A pod of ours; `spec`, `annotations` and `labels` are laid over it. Its uid."""
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "500Mi"}}}
        spec = {"schedulerName": names.SCHEDULER_NAME, "terminationGracePeriodSeconds": 3, "containers": [container]}
        metadata = {"name": name, "namespace": namespace, "annotations": changes.pop("annotations", {})}
        metadata |= {key: changes.pop(key) for key in ("labels", "ownerReferences", "finalizers") if key in changes}
        made = self.kube.create(kinds.PODS, {"metadata": metadata, "spec": {**spec, **changes.pop("spec", {})}})
        assert not changes, changes
        return str(made["metadata"]["uid"])

    def bound(self, name: str = "a", **changes: Any) -> state.SlurmJob:
        """A pod that has a node, and its job."""
        self.pod(name, **changes)
        self.until(lambda: self.node_of(name))
        return self.job(name)

    def waiting(self, name: str = "a", **changes: Any) -> state.SlurmJob:
        """A pod whose job pends, because Slurm starts nothing."""
        self.slurm.control.pause()
        self.pod(name, **changes)
        self.step()
        return self.job(name)

    def annotate(self, name: str, **values: str | None) -> None:
        """A user writes annotations; `retry` is ours, others are Slurm's keys with dashes."""
        keys = {_key(key): value for key, value in values.items()}
        self.kube.merge(kinds.PODS, (NAMESPACE, name), {"metadata": {"annotations": keys}})

    def delete(self, name: str, grace: int | None = None) -> None:
        """A user deletes a pod."""
        self.kube.delete(kinds.PODS, (NAMESPACE, name), grace=grace)

    def status(self, name: str, **status: Any) -> None:
        """A kubelet says how a pod is."""
        self.kube.merge(kinds.PODS, (NAMESPACE, name), {"status": status}, subresource="status")

    def steal(self, name: str, node: str) -> None:
        """Another scheduler binds a pod."""
        access = DirectAccess(Line(self.kube.handler, clock=self.clock), token=self.kube.token)
        other = KubeClient(access, clock=self.clock, dice=random.Random(1))
        other.bind(ports.Binding(namespace=NAMESPACE, pod=name, uid=self.uid(name), node=node))

    # -- looking -----------------------------------------------------------------------------------------------------

    def manifest(self, name: str = "a", namespace: str = NAMESPACE) -> Mapping[str, Any]:
        """A pod as it is."""
        found = self.kube.get(kinds.PODS, namespace, name)
        assert found is not None, f"no pod {name}"
        return found

    def uid(self, name: str) -> str:
        """The uid of a pod that is there."""
        return str(self.manifest(name)["metadata"]["uid"])

    def key(self, name: str) -> names.WorkloadKey:
        """Of the workload that is this one pod."""
        return names.workload_key(kinds.PODS.kind, NAMESPACE, name, self.uid(name))

    def exists(self, name: str) -> bool:
        """Whether the pod is still there."""
        return self.kube.get(kinds.PODS, NAMESPACE, name) is not None

    def leaving(self, name: str) -> bool:
        """It is gone, or its deletion was asked for."""
        return not self.exists(name) or "deletionTimestamp" in self.manifest(name)["metadata"]

    def phase(self, name: str) -> str:
        """What its kubelet says, "" when it is gone."""
        return str(self.manifest(name)["status"]["phase"]) if self.exists(name) else ""

    def node_of(self, name: str) -> str:
        """Where it is bound, "" while it is not."""
        return str(self.manifest(name)["spec"].get("nodeName", "")) if self.exists(name) else ""

    def condition(self, name: str, kind: str = "PodScheduled") -> tuple[str, str]:
        """Reason and message of a condition."""
        found = [one for one in self.manifest(name)["status"].get("conditions", ()) if one["type"] == kind]
        return (found[0].get("reason", ""), found[0].get("message", "")) if found else ("", "")

    def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of each event about a pod of this name."""
        found = self.kube.list(kinds.EVENTS)
        return [(one["reason"], one.get("note", "")) for one in found if one["regarding"]["name"] == name]

    def park_note(self, name: str) -> Mapping[str, Any]:
        """What the pod says of its being parked, empty when it is not."""
        found = json.loads(
            (self.manifest(name)["metadata"].get("annotations") or {}).get(names.ANNOTATION_PARKED, "{}")
        )
        assert isinstance(found, dict)
        return found

    def jobs(self, uid: str = "") -> list[state.SlurmJob]:
        """All jobs of ours that Slurm remembers, the oldest first; of one pod when its uid is given."""
        every = sorted(self.slurm.world.jobs.values(), key=lambda one: (one.submitted, one.job_id))
        owned = [(job, self.world.observer.owner(job)) for job in every]
        return [job for job, owner in owned if owner is not None and uid in ("", owner.uid)]

    def job(self, name: str = "a") -> state.SlurmJob:
        """The one living job of a pod that is there."""
        living = [job for job in self.jobs(self.uid(name)) if not job.over]
        assert len(living) == 1, f"{len(living)} living jobs of {name}: {living}"
        return living[0]

    def of(self, job: state.SlurmJob) -> state.SlurmJob:
        """The same job, as it is now."""
        return self.slurm.world.jobs[job.job_id]

    def note(self, job: state.SlurmJob) -> str:
        """The last word in the owner record of a job."""
        owner = self.world.observer.owner(self.of(job))
        return owner.note if owner is not None else ""

    def known(self, job: state.SlurmJob) -> Placeholder | None:
        """What the daemon knows of a job."""
        return self.core.context.table.get(JobId(job.job_id))

    def submits(self) -> int:
        """How many jobs were asked for."""
        return self.slurm_calls.count(method="POST", target="/job/submit")

    def deletes(self) -> int:
        """How many pods were asked to go."""
        return self.kube_calls.count(method="DELETE", target="/pods/")


def configured(folder: pathlib.Path, **given: Any) -> Settings:
    """The daemon's settings: as they are shipped, except for these groups and keys."""
    slurm = {"url": "http://slurm:6820", "plain_http": True, "token_file": folder / "token", **given.pop("slurm", {})}
    status = {"patience_seconds": 0.0, "conditions_per_second": 1000, "events_per_second": 1000}
    status |= given.pop("status", {})
    return Settings.model_validate({"cluster_id": CLUSTER_ID, "slurm": slurm, "status": status, **given})


def _key(key: str) -> str:
    return names.ANNOTATION_RETRY if key == "retry" else names.JOB_PREFIX + key.replace("_", "-")
