"""What users do to their pods and Jobs, and strangers to the pods of others."""

from slurm_bridge.model import kinds, names
from tests.simulation.play import Act, Play
from tests.simulation.world import NAMESPACE

#: What fits beside the foreign jobs with any fragmentation, however long it runs.
MOST_CPUS = 9
MOST_PODS = 9

#: What users write on pods: a name that an update can change, a partition that it cannot, and a mistake.
_WORDS = (
    ("job-name", "other"),
    ("job-name", "third"),
    ("partition", "batch"),
    ("partition", "debug"),
    ("timelimit", "x"),
)

#: How long a user waits before asking for yet another try.
_BETWEEN_HELPS = 40.0

_OUTCOMES = (("run", ""), ("succeed", "3"), ("succeed", "8"), ("fail", "3"), ("crash-loop", "2"), ("reject", ""))


class Users:
    """Many of them."""

    def __init__(self, play: Play) -> None:
        self._play, self._world, self._dice = play, play.world, play.world.dice
        self._names = iter(range(10_000))
        self._helped: dict[str, float] = {}
        self.acts: tuple[tuple[int, Act], ...] = (
            (12, self.create_pod),
            (3, self.create_job),
            (4, self.delete_pod),
            (2, self.recreate_pod),
            (1, self.delete_job),
            (2, self.nudge_pod),
            (4, self.change_pod),
            (1, self.bind_pod),
        )

    def create_pod(self) -> None:
        """A pod, while there is room for all at once."""
        cpu = self._dice.choice((1, 1, 1, 2))
        if self._wanted() + cpu > MOST_CPUS or sum(1 for _ in self._world.pods()) >= MOST_PODS:
            return
        outcome, seconds = self._dice.choice(_OUTCOMES)
        wishes = {"outcome": outcome} | ({"seconds": seconds} if seconds else {})
        if self._dice.random() < 0.3:
            wishes["terminating"] = self._dice.choice(("1s", "15s"))
        name, gated = f"p{next(self._names)}", self._dice.random() < 0.1
        self._world.pod(name, cpu=str(cpu), gated=gated, **wishes)
        if gated:
            self._play.later(self._dice.uniform(1, 20), lambda: self.open_gate(name))

    def open_gate(self, name: str) -> None:
        """The user that held the pod back lets it go."""
        pod = self._world.find(name)
        if pod is not None and pod["spec"].get("schedulingGates"):
            self._world.open_gate(name)

    def create_job(self) -> None:
        """A Job of one or two pods at a time."""
        if self._wanted() + 2 <= MOST_CPUS:
            self._world.job(f"j{next(self._names)}", completions=self._dice.randint(1, 3), parallelism=2, seconds="3")

    def delete_pod(self) -> None:
        """Any pod, at any time."""
        name = self._any_pod()
        if name is not None:
            self._world.delete_pod(name, self._dice.choice((None, None, 20, 0)))

    def recreate_pod(self) -> None:
        """The same name, another incarnation, within the same moment."""
        name = self._any_pod()
        if name is None or name.startswith("j"):
            return
        self._world.delete_pod(name, 0)
        if self._world.find(name) is None:
            self._world.pod(name, outcome="succeed", seconds="4")

    def delete_job(self) -> None:
        """A Job with all that it made."""
        jobs = self._world.kube.list(kinds.JOBS, NAMESPACE)
        if jobs:
            name = self._dice.choice(jobs)["metadata"]["name"]
            self._world.weather.note(f"user deletes job {name}")
            self._world.kube.delete(kinds.JOBS, (NAMESPACE, name))

    def nudge_pod(self) -> None:
        """Ask for another try, or change something without a meaning."""
        name = self._any_pod()
        if name is not None:
            self._world.annotate(name, self._dice.choice((names.ANNOTATION_RETRY, "colour")), str(self._dice.random()))

    def change_pod(self) -> None:
        """Ask for something else: what an update can change, what only a new job can, or nonsense."""
        name = self._any_pod()
        if name is not None:
            key, value = self._dice.choice(_WORDS)
            self._world.annotate(name, names.JOB_PREFIX + key, value)

    def bind_pod(self) -> None:
        """A user binds a pod of ours by hand."""
        waiting = [name for name, pod in self._world.pods() if not pod["spec"].get("nodeName") and not _leaving(pod)]
        if waiting and self._world.kube.get(kinds.NODES, "", "n1") is not None:
            name = self._dice.choice(waiting)
            self.open_gate(name)
            self._world.bind(name, "n1")

    def _any_pod(self) -> str | None:
        there = [name for name, _ in self._world.pods()]
        return self._dice.choice(there) if there else None

    def _wanted(self) -> int:
        """CPUs of all that is alive, or may be made by a Job."""
        alive = [pod for _, pod in self._world.pods() if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        bare = sum(int(p["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for p in alive if not _made(p))
        return bare + 2 * len(self._world.kube.list(kinds.JOBS, NAMESPACE))

    def correct(self) -> None:
        """What was held back is let go, and what was a mistake is taken back."""
        for name, pod in list(self._world.pods()):
            self.open_gate(name)
            if (pod["metadata"].get("annotations") or {}).get(names.JOB_PREFIX + "timelimit"):
                self._world.annotate(name, names.JOB_PREFIX + "timelimit", None)

    def help(self) -> None:
        """Users retry, every now and then, what is parked; the observer may not have seen yet that a pod is gone."""
        now = self._world.clock.now()
        for pod in list(self._world.observer.pods.values()):
            waits = pod.parked and not (pod.over or pod.node or self._world.observer.living(pod.uid))
            due = waits and now >= self._helped.get(pod.uid, 0.0) + _BETWEEN_HELPS
            namespace, name = pod.key
            if due and self._world.kube.get(kinds.PODS, namespace, name) is not None:
                self._helped[pod.uid] = now
                self._world.annotate(name, names.ANNOTATION_RETRY, str(now), namespace=namespace)


def _leaving(pod: dict[str, object]) -> bool:
    return "deletionTimestamp" in pod["metadata"]  # type: ignore[operator]


def _made(pod: dict[str, object]) -> bool:
    return bool(pod["metadata"].get("ownerReferences"))  # type: ignore[attr-defined]
