"""A namespace whose users write whatever may hurt others: forged marks, garbage, floods, and what can never start."""

import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import names
from tests.e2e import support_servers, support_world
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: What a user of a small quota may still have: enough to fill every queue that is not shared fairly.
STUCK, BUSY, ODD = 450, 20, 3
#: Changes of the busy pods in a second.
PATCHES_PER_SECOND = 10
DEEP = "[" * 60_000

#: Kinds that the API server knows, with a version that it does not have: no garbage collector ever judges them.
UNKNOWN_VERSIONS = {"Job": "batch/v9", "JobSet": "jobset.x-k8s.io/v9", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v9"}


#: By kind: labels and annotations that its controller would write, and that its webhook lets in.
_FORGED: Mapping[str, Callable[[str, str], tuple[dict[str, str], dict[str, str]]]] = {
    "JobSet": lambda name, uid: ({names.LABEL_JOBSET_NAME: name, names.LABEL_JOBSET_UID: uid}, {}),
    "LeaderWorkerSet": lambda name, _uid: (
        {names.LABEL_LWS_NAME: name, names.LABEL_LWS_GROUP: "0", names.LABEL_LWS_WORKER: "1"},
        {names.ANNOTATION_LWS_SIZE: "4"},
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hostile:
    """The hostile namespace beside the world of a victim, and which of the victim's objects it names.

    `scheduler` is that of its pods: the victim's own, or one that does not exist.
    """

    world: World
    namespace: str
    victims: Sequence[Json]
    scheduler: str

    def pods(self) -> list[Json]:
        """What there is of it."""
        return self.world.kube.items(self._pods)

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def create(self, *manifests: Json) -> None:
        """Several pods at once; one that the API server itself refuses is an attempt that failed."""
        support_servers.each(manifests, self._try)

    def _try(self, manifest: Json) -> None:
        with contextlib.suppress(support_servers.Refused):
            self.world.kube.create(self._pods, manifest)

    def settle(self) -> None:
        """Everything at once that stays: what is forged, what is garbage, and what never starts."""
        self.create(*self._forged(), *self._garbage(), *self._stuck(), *self._busy())

    def _pod(self, name: str, *, marks: Mapping[str, str] | None = None, **metadata: Any) -> Json:
        made = support_world.pod(name, self.scheduler, annotations=marks or support_world.FOREVER)
        made["metadata"].update(metadata)
        return made

    def _forged(self) -> Iterator[Json]:
        """Pods that say to belong to the victim's objects, and that its jobs bound them."""
        for number, victim in enumerate(self.victims):
            kind, name, uid = victim["kind"], victim["metadata"]["name"], victim["metadata"]["uid"]
            owner = {"apiVersion": UNKNOWN_VERSIONS[kind], "kind": kind, "name": name, "uid": uid, "controller": True}
            labels, marks = _FORGED[kind](name, uid)
            forged = self._pod(f"forged-{number}", marks={**support_world.FOREVER, **marks}, labels=labels)
            forged["metadata"]["ownerReferences"] = [owner]
            yield forged
        jobs = {names.LABEL_JOB_ID: "1"}
        for number, node in enumerate(self._nodes(BUSY)):
            named = self._pod(f"bound-{number}", labels=jobs)
            named["spec"]["nodeName"] = node
            yield named

    def _nodes(self, count: int) -> list[str]:
        found = self.world.kube.items(f"/api/v1/nodes?limit={count}")
        return [str(one["metadata"]["name"]) for one in found]

    def _garbage(self) -> Iterator[Json]:
        """Texts that are deep, long, many, or of a form that nothing reads."""
        marks = {f"{names.JOB_PREFIX}unknown-{number}": "x" for number in range(2500)}
        notes = dict.fromkeys((names.SCHEDULER_PREFIX + "room-made-by", names.SCHEDULER_PREFIX + "parked"), DEEP)
        wide = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _terms(2500)}}}
        owners = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": f"nobody-{number}", "uid": f"u-{number}"}
            for number in range(2000)
        ]
        for number in range(ODD):
            yield self._pod(f"unknown-keys-{number}", marks=marks)
            yield self._pod(f"deep-notes-{number}", marks=notes)
            yield self._pod(f"owners-{number}", ownerReferences=owners)
            selects = self._pod(f"terms-{number}")
            selects["spec"]["affinity"] = wide
            yield selects

    def _stuck(self) -> Iterator[Json]:
        """Pods whose jobs Slurm accepts and never starts."""
        marks = {names.JOB_PREFIX + "partition": "closed"}
        return (self._pod(f"stuck-{number:03}", marks=marks) for number in range(STUCK))

    def _busy(self) -> Iterator[Json]:
        marks = {names.JOB_PREFIX + "partition": "closed"}
        return (self._pod(f"busy-{number}", marks=marks) for number in range(BUSY))

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Pods with a job change all the time, so that each change is looked at before others have their turn."""
        stop = threading.Event()
        thread = threading.Thread(target=self._change, args=(stop,), name="hostile")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _change(self, stop: threading.Event) -> None:
        for turn in itertools.count():
            if stop.wait(1 / PATCHES_PER_SECOND):
                return
            path, word = f"{self._pods}/busy-{turn % BUSY}", {names.JOB_PREFIX + "job-name": f"turn-{turn}"}
            with contextlib.suppress(support_servers.Refused):
                self.world.kube.merge(path, {"metadata": {"annotations": word}})


def _terms(count: int) -> list[Json]:
    wanted = ({"key": f"no-node-has-{number}", "operator": "In", "values": ["x"]} for number in range(count))
    return [{"matchExpressions": [one]} for one in wanted]


def odd_job_name(slurm: support_servers.Slurm) -> int:
    """A native job of a Slurm user whose name is no UTF-8."""
    words = "sbatch --parsable --uid=alice --hold --chdir=/tmp --job-name=$(printf 'caf\\351') --wrap=true"
    return int(slurm.command("sh", "-c", words).split(";")[0])
