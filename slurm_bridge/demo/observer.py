"""Reads the state of both pocket servers directly, so that no call is counted."""

import collections
from collections.abc import Collection, Iterable, Iterator, Sequence

from slurm_bridge.demo import ownership, scene
from slurm_bridge.demo.pocket import PocketWorld
from slurm_bridge.demo.scene import Calls, Frame, JobSeen, PodSeen, PodStage
from slurm_bridge.demo.work import NAMESPACE, Work
from slurm_bridge.model import kinds, marks, names
from slurm_bridge.model.meta import Manifest
from slurm_bridge.sim.kube import resources
from slurm_bridge.sim.kube.followers import Tail
from slurm_bridge.sim.slurm import state
from slurm_bridge.status import conditions

#: Rates are averages over this many seconds.
_WINDOW = 2.0

#: The number of events that are kept.
_NEWS = 12


class PocketObserver:
    """Remembers the last look. Calls are counted from its creation.

    Only the last `remembered` pods that are gone from Kubernetes are kept, because the demo may run for days.
    """

    def __init__(self, world: PocketWorld, *, remembered: int = 200) -> None:
        self._world, self._remembered = world, remembered
        self._begin = world.clock.now()
        self._base = self._counted()
        self._rates: collections.deque[tuple[float, int, int]] = collections.deque()
        self._events = Tail(world.kube.store, resources.of(kinds.EVENTS))
        self._news: collections.deque[str] = collections.deque(maxlen=_NEWS)
        self._rows: dict[str, scene.PodRow] = {}
        self._forgotten: collections.Counter[PodStage] = collections.Counter()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self._world.clock.now() - self._begin

    def look(self) -> Frame:
        """Read both servers."""
        now, jobs, pods = self.seconds, tuple(self._jobs()), tuple(self._pods())
        slurm = self._world.slurmctld
        with slurm.lock:
            nodes = {node.name: node.cpus for node in slurm.world.nodes.values()}
        rows = scene.rows(self._rows, pods, scene.newest(jobs), now)
        self._remember(rows, {pod.uid for pod in pods})
        return Frame(
            seconds=now,
            rows=tuple(self._rows.values()),
            forgotten=dict(self._forgotten),
            bars=scene.bars(nodes, jobs),
            calls=self._calls(now),
            news=self._told(),
            left=sum(not job.over for job in jobs),
        )

    def outcome(self, work: Work) -> str:
        """`done`, `failed`, `gone`, or nothing while it runs."""
        found = self._world.kube.get(work.kind, work.namespace, work.name)
        if found is None:
            return "gone"
        status = found.get("status", {})
        if work.kind is kinds.PODS:
            return {"Succeeded": "done", "Failed": "failed"}.get(status.get("phase", ""), "")
        lines = {line["type"] for line in status.get("conditions") or () if line["status"] == "True"}
        return "done" if "Complete" in lines else "failed" if "Failed" in lines else ""

    def _remember(self, rows: Sequence[scene.PodRow], there: Collection[str]) -> None:
        """Count rows of pods that were deleted long ago, instead of keeping them."""
        gone = [row for row in rows if row.uid not in there]
        old = {row.uid: row for row in gone[: max(0, len(gone) - self._remembered)]}
        self._forgotten.update(row.stage for row in old.values())
        self._rows = {row.uid: row for row in rows if row.uid not in old}

    def _pods(self) -> Iterator[PodSeen]:
        stored = self._world.kube.store.all(resources.PODS, NAMESPACE)
        for pod in sorted(stored, key=lambda one: (one.uid not in self._rows, one.name)):
            manifest = pod.manifest()
            yield PodSeen(
                uid=pod.uid,
                namespace=pod.namespace,
                name=pod.name,
                phase=pod.fields["status.phase"],
                node=pod.fields["spec.nodeName"],
                job_id=int(label) if (label := pod.labels.get(names.LABEL_JOB_ID, "")).isdecimal() else 0,
                owners=ownership.candidates(manifest),
                why=_obstacle(manifest),
            )

    def _jobs(self) -> Iterator[JobSeen]:
        """A heterogeneous job counts as one job, with all its components."""
        found: dict[int, list[state.SlurmJob]] = collections.defaultdict(list)
        for job in self._world.slurmctld.control.jobs().values():
            found[job.leader or job.job_id].append(job)
        for job_id, parts in found.items():
            owner = marks.read(parts[0].ask.text("admin_comment"))
            if owner is not None:
                yield JobSeen(
                    job_id=job_id,
                    owner=ownership.owner_of(owner),
                    cpus=dict(_held(parts)),
                    over=all(job.over for job in parts),
                    why=next((job.reason for job in parts if job.reason != state.NO_REASON), ""),
                )

    def _told(self) -> tuple[str, ...]:
        for event in self._events.news():
            if not event.gone:
                told = event.new.manifest()
                self._news.append(f"{told['regarding']['name']}  {told['reason']}  {told.get('note', '')}")
        return tuple(self._news)

    def _counted(self) -> tuple[int, int]:
        return self._world.kube_calls.calls, self._world.slurm_calls.calls

    def _calls(self, now: float) -> Calls:
        kube, slurm = (value - base for value, base in zip(self._counted(), self._base, strict=True))
        self._rates.append((now, kube, slurm))
        while self._rates[0][0] < now - _WINDOW:
            self._rates.popleft()
        then, kube_then, slurm_then = self._rates[0]
        passed = max(now - then, 0.001)
        return Calls(
            kube=kube, slurm=slurm, kube_rate=(kube - kube_then) / passed, slurm_rate=(slurm - slurm_then) / passed
        )


def _obstacle(manifest: Manifest) -> str:
    """Reason and message of the condition that says why the pod has no node."""
    for one in manifest.get("status", {}).get("conditions") or ():
        if one["type"] == conditions.SCHEDULED and one["status"] == "False":
            return f"{one.get('reason', '')}: {one.get('message', '')}"
    return ""


def _held(parts: Iterable[state.SlurmJob]) -> collections.Counter[str]:
    """The cpus that running jobs hold on each node."""
    held: collections.Counter[str] = collections.Counter()
    for job in parts:
        for share in job.grant.shares if job.grant and job.running else ():
            held[share.node] += share.cpus
    return held
