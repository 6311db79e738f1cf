"""Whole daemons between the pocket servers, with a namespace whose users mean harm and one whose users do not.

The same world is played twice, once without the hostile namespace: what becomes of the other one's workloads has to be
the same. They have a partition of their own, so that nothing that is shared by right makes a difference.
"""

import dataclasses
import pathlib
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import kinds, marks, names
from slurm_bridge.sim.kube.refusals import StatusError
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import TOKENS_OF_SLURM
from tests.component.scheduler.whole_core import Bridge
from tests.fuzz import generators, recorded_core, rules, runner, strangers
from tests.fuzz.generators import Json
from tests.fuzz.runner import Watch
from tests.fuzz.strangers import HOSTILE, VICTIM
from tests.simulation.fleet import Fleet
from tests.simulation.observer import CLUSTER_ID, Observer
from tests.simulation.update_rules import Updates
from tests.simulation.world import World

#: Half of the machines are for each side.
_MACHINES = 12
_FLEET = Fleet(
    nodes={f"n{number:02}": f"n{number:02}" for number in range(1, _MACHINES + 1)}, cpus=16, memory_mib=64_000
)
_NODES = tuple(_FLEET.nodes)
OPEN, OWN = "debug", "batch"
#: The name of pods whose marks of a binding were written by their user alone.
FORGED = "forged"

#: What the API server would not take from them as it is made here, or what only administrators give: a priority.
_REFUSED = ("priority", "containers", "initContainers", "overhead", "resources")
#: Amounts that it takes.
_TAKEN = ("100m", "1", "0", "65534", "5000000000", "9223372036854775807", "100Mi")

#: Seconds in which the hostile users act, and in which what they have done has its effect.
_ACTING, _AFTERWARDS = 30, 30


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One world, and how many hostile acts there are in a second of it."""

    chain: str
    seed: int
    pace: int


class Daemons:
    """The target."""

    name = "daemons"

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._calm: dict[str, Mapping[str, object]] = {}

    def make(self, dice: random.Random) -> Case:
        """Each chain of hooks in its turn."""
        return Case(
            chain=dice.choice(list(recorded_core.CHAINS)), seed=dice.randrange(2**32), pace=dice.choice((1, 2, 4))
        )

    def check(self, case: Case, _watch: Watch) -> Iterable[str]:
        """Play it twice."""
        if case.chain not in self._calm:
            calm = Play(case, self._folder, hostile=False)
            assert not list(calm.run()), f"the calm world of {case.chain} is broken"
            self._calm[case.chain] = calm.ends()
        play = Play(case, self._folder, hostile=True)
        yield from play.run()
        if play.ends() != self._calm[case.chain]:
            yield "neighbours: workloads of the other namespace end up otherwise than without the hostile one"


class Play:
    """One world and one daemon in it."""

    def __init__(self, case: Case, folder: pathlib.Path, *, hostile: bool) -> None:
        self._dice, self._case = random.Random(case.seed), case
        token = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "token"
        self._world = World(7, token, fleet=_FLEET)
        self._slurm = self._world.slurm
        self._close_its_eyes()
        for name, nodes in ((OPEN, _NODES[: _MACHINES // 2]), (OWN, _NODES[_MACHINES // 2 :])):
            known = self._slurm.world.partitions[name]
            self._slurm.world.partitions[name] = dataclasses.replace(known, nodes=nodes)
        hooks = recorded_core.settings(case.chain).model_dump()["hooks"]
        self._bridge = Bridge(token.parent, world=self._world, hooks=hooks)
        self._kube = self._world.kube
        for name in strangers.NAMESPACES:
            self._kube.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        self._hostile = _Hostile(self._dice, self) if hostile else None
        self._seen: dict[int, state.SlurmJob] = {}

    def _close_its_eyes(self) -> None:
        """The simulation's own observer believes what pods say of whose they are; here that is not true."""
        world = self._world
        world.observer = _Blind(world.kube, world.slurm, {slurm: kube for kube, slurm in _FLEET.nodes.items()})
        world.updates = Updates(world.kube.store, world.slurm, world.observer)
        world.weather.watcher = world.observer.look

    @property
    def kube(self) -> Any:
        """The API server."""
        return self._kube

    def run(self) -> Iterator[str]:
        """The users of both sides come; then only time passes."""
        recorded_core.ERRORS.caught.clear()
        self._friends(range(3))
        for second in range(_ACTING + _AFTERWARDS):
            if second == _ACTING // 2:
                self._friends(range(3, 6))
            if self._hostile is not None and second < _ACTING:
                self._hostile.act(self._case.pace)
            try:
                self._step()
            except Exception as crash:  # noqa: BLE001 - a daemon that dies is what is looked for
                yield f"death: {runner.place(crash)}"
                return
            self._remember()
        yield from (f"caught: {place}" for place in dict.fromkeys(recorded_core.ERRORS.caught))
        yield from self._accepted()

    def _step(self) -> None:
        self._bridge.step(1.0)
        self._bridge.core.preempt_step()
        self._bridge.settle()

    def _remember(self) -> None:
        self._seen.update(self._slurm.world.jobs)

    def _accepted(self) -> Iterator[str]:
        """What Slurm was given, the pods that were bound by it, and all messages."""
        owned = {number: owner for number, job in self._seen.items() if (owner := _owner(job)) is not None}
        for number, owner in owned.items():
            yield from self._given(self._seen[number], owner)
        for pod in self._kube.list(kinds.PODS):
            owner = owned.get(_job_of(pod))
            forged = pod["metadata"]["name"].startswith(FORGED)
            if owner is not None and not forged and owner.namespace != pod["metadata"]["namespace"]:
                yield "acceptance: a job binds a pod of another namespace"
            for line in pod["status"].get("conditions", ()):
                yield from rules.message("condition", line.get("message", ""))
        for event in self._kube.list(kinds.EVENTS):
            yield from rules.message("event", event.get("note", ""))

    def _given(self, job: state.SlurmJob, owner: marks.Owner) -> Iterator[str]:
        if rules.unprintable(job.ask.name):
            yield "acceptance: control characters in the job's name"
        charged = job.ask.text("account") or job.ask.text("wckey")
        if owner.namespace == HOSTILE and (charged or OWN in job.ask.partitions):
            yield "acceptance: a job of the hostile namespace has what policy refuses to it"
        if owner.namespace == HOSTILE and job.user not in TOKENS_OF_SLURM.values():
            yield "acceptance: a job of the hostile namespace runs as another user"

    def ends(self) -> Mapping[str, object]:
        """What became of the other namespace's pods, and of their jobs."""
        found: dict[str, object] = {}
        for pod in self._kube.list(kinds.PODS, VICTIM):
            metadata, job = pod["metadata"], self._seen.get(_job_of(pod))
            told = (job.ask.name, job.ask.text("account"), job.ask.tasks, job.over) if job is not None else None
            where = bool(pod["spec"].get("nodeName")), pod["status"]["phase"], "deletionTimestamp" in metadata
            found[_plain(metadata)] = (*where, told)
        return found

    def _friends(self, numbers: Iterable[int]) -> None:
        """Pods alone, groups, Jobs and JobSets of the namespace that minds its own business."""
        account = {names.JOB_PREFIX + "account": "physics", names.JOB_PREFIX + "partition": OWN}
        template = {"metadata": {"annotations": account}, "spec": {**_spec(), "restartPolicy": "Never"}}
        job = {"parallelism": 2, "completions": 2, "template": template}
        for number in numbers:
            self.put(kinds.PODS, f"alone-{number}", spec=_spec(), annotations=account)
            for place in range(3):
                group = {names.GROUP: f"crew-{number}", names.GROUP_SIZE: "3"}
                self.put(kinds.PODS, f"crew-{number}-{place}", spec=_spec(), annotations=account | group)
            self.put(kinds.JOBS, f"job-{number}", spec=job, annotations={names.ANNOTATION_GANG: "true"})
            self.put(kinds.JOBSETS, f"set-{number}", spec={"replicatedJobs": [_part(job)]})

    def put(self, kind: kinds.Kind[Any], name: str, *, spec: Json, annotations: Json | None = None) -> None:
        """One object of the friendly namespace."""
        metadata = {"name": name, "namespace": VICTIM, "annotations": annotations or {}}
        self._kube.create(kind, {"metadata": metadata, "spec": spec})


class _Blind(Observer):
    """Knows whose job is whose, and never looks."""

    def look(self, by: str = "") -> None:
        """At nothing."""


class _Hostile:
    """Users that may do what they like in one namespace, and read everything."""

    def __init__(self, dice: random.Random, play: Play) -> None:
        self._dice, self._play = dice, play
        self._made: list[str] = []

    def act(self, times: int) -> None:
        """Some things at once; what the API server refuses has not happened."""
        for _ in range(times):
            try:
                generators.one(
                    self._dice,
                    (5.0, self._pods),
                    (3.0, self._forged_pod),
                    (1.0, self._job),
                    (2.0, self._annotate),
                    (1.0, self._delete),
                    (0.5, self._podgroup),
                )
            except StatusError:
                continue

    def _pods(self) -> None:
        for manifest in strangers.pods(self._dice, self._dice.randrange(10**6)):
            self._create(manifest)

    def _create(self, manifest: Json, name: str = "") -> None:
        metadata = manifest["metadata"]
        name = name or f"h{len(self._made)}"
        kept = {key: metadata[key] for key in ("labels", "annotations", "ownerReferences")}
        spec = {key: value for key, value in manifest["spec"].items() if key not in _REFUSED}
        spec["containers"] = [{"name": "main", "image": "none", "resources": _amounts(self._dice)}]
        if "nodeName" in spec:
            spec["nodeName"] = self._dice.choice(_NODES[: _MACHINES // 2])
        self._play.kube.create(kinds.PODS, {"metadata": {"name": name, "namespace": HOSTILE, **kept}, "spec": spec})
        self._made.append(name)

    def _forged_pod(self) -> None:
        """With the marks of a real pod of the other namespace, and perhaps a version that does not exist."""
        theirs = self._play.kube.list(kinds.PODS, VICTIM)
        if not theirs:
            return
        model = self._dice.choice(theirs)["metadata"]
        owners = [dict(one) for one in model.get("ownerReferences", ())]
        for one in owners:
            one["apiVersion"] = self._dice.choice(("batch/v9", "x.example/v1", one["apiVersion"]))
        labels = dict(model.get("labels", {}))
        node: Json = {}
        if generators.chance(self._dice, 0.3):
            node = {"nodeName": self._dice.choice(_NODES)}
        else:
            labels.pop(names.LABEL_JOB_ID, None)
        annotations = {**model.get("annotations", {}), **generators.said(self._dice)}
        manifest = {"labels": labels, "annotations": annotations, "ownerReferences": owners}
        self._create({"metadata": manifest, "spec": {**_spec("100m"), **node}}, f"{FORGED}-{len(self._made)}")

    def _job(self) -> None:
        """A Job that calls itself a part of a JobSet of the other namespace, and has nearly done its work."""
        sets = self._play.kube.list(kinds.JOBSETS, VICTIM)
        if not sets:
            return
        uid, name = (self._dice.choice(sets)["metadata"][key] for key in ("uid", "name"))
        labels = {names.LABEL_JOBSET_NAME: name, names.LABEL_JOBSET_UID: uid, names.LABEL_JOBSET_ATTEMPT: "0"}
        metadata = {"name": f"j{len(self._made)}", "namespace": HOSTILE, "labels": labels}
        template = {"metadata": {"labels": labels}, "spec": {**_spec("100m"), "restartPolicy": "Never"}}
        body = {"parallelism": self._dice.choice((1, 3)), "completions": 4, "template": template}
        self._play.kube.create(kinds.JOBS, {"metadata": metadata, "spec": body})
        self._made.append(f"j{len(self._made)}")

    def _podgroup(self) -> None:
        metadata = {"name": "set", "namespace": HOSTILE, "annotations": generators.said(self._dice)}
        self._play.kube.create(kinds.COSCHEDULING_PODGROUPS, {"metadata": metadata, "spec": {"minMember": 2}})

    def _annotate(self) -> None:
        """Garbage where the bridge itself takes notes."""
        name = self._dice.choice(self._made or ["none"])
        if self._play.kube.get(kinds.PODS, HOSTILE, name) is not None:
            said = {
                key: None if generators.chance(self._dice, 0.1) else value
                for key, value in generators.said(self._dice).items()
            }
            notes = (names.ANNOTATION_PARKED, names.ANNOTATION_ROOM, names.ANNOTATION_MAKES_ROOM)
            if generators.chance(self._dice, 0.3):
                said[self._dice.choice(notes)] = "[" * 60_000
            self._play.kube.merge(kinds.PODS, (HOSTILE, name), {"metadata": {"annotations": said}})

    def _delete(self) -> None:
        name = self._dice.choice(self._made or ["none"])
        if self._play.kube.get(kinds.PODS, HOSTILE, name) is not None:
            self._play.kube.delete(kinds.PODS, (HOSTILE, name), grace=0)


def _spec(cpu: str = "1") -> Json:
    needs = {"requests": {"cpu": cpu, "memory": "500Mi"}}
    return {
        "schedulerName": names.SCHEDULER_NAME,
        "containers": [{"name": "main", "image": "none", "resources": needs}],
    }


def _part(job: Json) -> Json:
    """Two Jobs of a JobSet."""
    return {"name": "w", "replicas": 2, "template": {"spec": job}}


def _amounts(dice: random.Random) -> Json:
    wanted = ("cpu", "memory", "nvidia.com/gpu", "example.com/thing")
    return {"requests": {kind: dice.choice(_TAKEN) for kind in wanted if generators.chance(dice, 0.3)}}


def _owner(job: state.SlurmJob) -> marks.Owner | None:
    found = marks.read(job.ask.text("admin_comment"))
    return found if found is not None and found.cluster == CLUSTER_ID else None


def _job_of(pod: Mapping[str, Any]) -> int:
    """The job that the pod's label names, -1 where that is none."""
    text = pod["metadata"].get("labels", {}).get(names.LABEL_JOB_ID, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else -1


#: No job id has as many.
_DIGITS = 12


def _plain(metadata: Mapping[str, Any]) -> str:
    """A name without what controllers draw by lot."""
    owners: Sequence[Mapping[str, Any]] = metadata.get("ownerReferences", ())
    index = metadata.get("annotations", {}).get(names.ANNOTATION_COMPLETION_INDEX, "")
    return f"{owners[0]['name']}/{index}" if owners else metadata["name"]
