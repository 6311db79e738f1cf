"""A random run: users, administrators, machines, networks and processes, each doing its worst by the same dice."""

from collections.abc import Callable

from slurm_bridge.model import kinds, names
from tests.simulation.play import Play
from tests.simulation.weather import Odds, Side
from tests.simulation.world import NAMESPACE, NODES, machine

BEATS = 45
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

Act = Callable[[], object]


class Chaos:
    """Everything that may happen beside the daemon."""

    def __init__(self, play: Play) -> None:
        self._play, self._world, self._dice = play, play.world, play.world.dice
        self._names = iter(range(10_000))
        self._helped: dict[str, float] = {}
        self._acts: tuple[tuple[int, Act], ...] = (
            (12, self.create_pod),
            (3, self.create_job),
            (4, self.delete_pod),
            (2, self.recreate_pod),
            (1, self.delete_job),
            (2, self.nudge_pod),
            (4, self.change_pod),
            (1, self.bind_pod),
            (4, self.end_job),
            (2, self.hold_job),
            (1, self.suspend_job),
            (2, self.fail_node),
            (2, self.drain_node),
            (2, self.cordon_node),
            (1, self.remove_node),
            (1, self.remove_slurm_node),
            (1, self.close_partition),
            (2, self.slurm_goes),
            (2, self.slurm_crashes),
            (2, self.kube_goes),
            (1, self.kube_forgets),
            (2, self.watches_stall),
            (1, self.stranger_submits),
            (2, self.kill),
            (2, self.kill_soon),
            (2, self.replace_leader),
            (2, self.freeze_leader),
        )

    def run(self) -> None:
        """Begin, let it rage, then stop and see that all comes right."""
        weather, dice = self._world.weather, self._dice
        for _ in range(4):
            self.create_pod()
        worse = dice.choice((0.0, 1.0, 3.0, 10.0))
        weather.odds = Odds(
            lost=0.01 * worse,
            unanswered=0.015 * worse,
            orders_unanswered=dice.choice((0.0, 0.0, 0.3)),
            slow=0.005 * worse,
            killed=0.003 * worse,
        )
        hectic = dice.choice((0.15, 0.4, 1.0))
        weights, acts = zip(*self._acts, strict=True)
        for _ in range(BEATS):
            if dice.random() < hectic:
                dice.choices(acts, weights)[0]()
            self._play.step(dice.choice((0.1, 0.3, 0.7, 1.5, 4.0)))
        self.heal()
        self._play.run_to_rest(self.help)

    # -- users -------------------------------------------------------------------------------------------------------

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
            self._play.later(self._dice.uniform(1, 20), lambda: self._open_gate(name))

    def _open_gate(self, name: str) -> None:
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
        """Ask for another try, or change something that means nothing to anybody."""
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
        """Somebody binds a pod of ours by hand."""
        waiting = [name for name, pod in self._world.pods() if not pod["spec"].get("nodeName") and not _leaving(pod)]
        if waiting and self._world.kube.get(kinds.NODES, "", "n1") is not None:
            name = self._dice.choice(waiting)
            self._open_gate(name)
            self._world.bind(name, "n1")

    def _any_pod(self) -> str | None:
        there = [name for name, _ in self._world.pods()]
        return self._dice.choice(there) if there else None

    def _wanted(self) -> int:
        """CPUs of all that is alive, or may be made by a Job."""
        alive = [pod for _, pod in self._world.pods() if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        bare = sum(int(p["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for p in alive if not _made(p))
        return bare + 2 * len(self._world.kube.list(kinds.JOBS, NAMESPACE))

    # -- administrators and machines ---------------------------------------------------------------------------------

    def end_job(self) -> None:
        """Somebody or something ends one of our jobs."""
        jobs = self._world.ours("PENDING", "RUNNING", "SUSPENDED")
        if jobs:
            job = self._dice.choice(jobs)
            words = ("CANCELLED", "CANCELLED", "PREEMPTED", "TIMEOUT", "NODE_FAIL", "FAILED") if job.running else ()
            self._world.end_job(job, self._dice.choice(words or ("CANCELLED", "DEADLINE")))

    def hold_job(self) -> None:
        """An administrator holds a pending job, and lets it go later."""
        jobs = self._world.ours("PENDING")
        if jobs:
            job_id = self._dice.choice(jobs).job_id
            self._world.weather.note(f"admin holds job {job_id}")
            self._world.slurm.control.hold(job_id)
            self._play.later(self._dice.uniform(2, 30), self._release)

    def _release(self) -> None:
        for job in self._world.ours("PENDING"):
            if job.held:
                self._world.slurm.control.release(job.job_id)

    def suspend_job(self) -> None:
        """An administrator suspends a running job for a while."""
        jobs = self._world.ours("RUNNING")
        if jobs:
            job_id = self._dice.choice(jobs).job_id
            self._world.weather.note(f"admin suspends job {job_id}")
            self._world.slurm.control.suspend(job_id)
            self._play.later(self._dice.uniform(2, 20), self._resume_jobs)

    def _resume_jobs(self) -> None:
        for job in self._world.ours("SUSPENDED"):
            self._world.slurm.control.resume_job(job.job_id)

    def fail_node(self) -> None:
        """A machine dies for Slurm, and comes back."""
        name = self._slurm_node()
        if name is None:
            return
        self._world.weather.note(f"machine {name} fails")
        self._world.slurm.control.fail_node(name)
        self._play.later(self._dice.uniform(3, 30), lambda: self._resume_node(name))

    def drain_node(self) -> None:
        """An administrator of Slurm closes a node for a while."""
        name = self._slurm_node()
        if name is None:
            return
        self._world.weather.note(f"admin drains {name}")
        self._world.slurm.control.drain(name, "maintenance")
        self._play.later(self._dice.uniform(3, 30), lambda: self._resume_node(name))

    def _slurm_node(self) -> str | None:
        there = list(self._world.slurm.world.nodes)
        return self._dice.choice(there) if there else None

    def _resume_node(self, name: str) -> None:
        if name in self._world.slurm.world.nodes:
            self._world.slurm.control.resume(name)

    def cordon_node(self) -> None:
        """An administrator of Kubernetes closes a node for a while."""
        name = self._dice.choice(list(NODES))
        if self._world.kube.get(kinds.NODES, "", name) is not None:
            self._world.cordon(name, on=True)
            self._play.later(self._dice.uniform(3, 30), lambda: self._open(name))

    def _open(self, name: str) -> None:
        if self._world.kube.get(kinds.NODES, "", name) is not None:
            self._world.cordon(name, on=False)

    def remove_node(self) -> None:
        """A node leaves Kubernetes, and joins again under its name."""
        name = self._dice.choice(list(NODES))
        if self._world.kube.get(kinds.NODES, "", name) is not None:
            self._world.weather.note(f"node {name} leaves")
            self._world.kube.delete(kinds.NODES, ("", name))
            self._play.later(self._dice.uniform(3, 30), lambda: self._join(name))

    def _join(self, name: str) -> None:
        if self._world.kube.get(kinds.NODES, "", name) is None:
            self._world.weather.note(f"node {name} joins")
            self._world.add_kube_node(name, NODES[name])

    def remove_slurm_node(self) -> None:
        """A node leaves Slurm with all its jobs, and joins again."""
        name = self._slurm_node()
        if name is not None:
            self._world.weather.note(f"{name} leaves Slurm")
            self._world.slurm.control.delete_node(name)
            self._play.later(self._dice.uniform(3, 30), lambda: self._join_slurm(name))

    def _join_slurm(self, name: str) -> None:
        if name not in self._world.slurm.world.nodes:
            self._world.weather.note(f"{name} joins Slurm")
            self._world.slurm.control.add_node(machine(name), "debug", "batch")

    def close_partition(self) -> None:
        """An administrator closes a partition for a while."""
        name, how = self._dice.choice(("debug", "batch")), self._dice.choice(("DOWN", "INACTIVE", "DRAIN"))
        self._world.weather.note(f"partition {name} is {how}")
        self._world.slurm.control.set_partition(name, state=how)
        self._play.later(self._dice.uniform(3, 30), lambda: self._world.slurm.control.set_partition(name, state="UP"))

    # -- servers -----------------------------------------------------------------------------------------------------

    def slurm_goes(self) -> None:
        """slurmctld hangs, or is down, or slurmrestd is."""
        how = self._dice.choice(("hang", "down", "hide"))
        self._world.weather.note(f"slurm goes: {how}")
        seconds = self._dice.uniform(1, 25)
        if how == "hide":
            self._world.weather.hide(Side.SLURM)
            self._play.later(seconds, lambda: self._world.weather.show(Side.SLURM))
            return
        (self._world.slurm.control.hang if how == "hang" else self._world.slurm.control.down)()
        self._play.later(seconds, self._world.wake_slurm)

    def slurm_crashes(self) -> None:
        """slurmctld forgets the last seconds; sometimes a stranger is given an id that was ours."""
        if self._world.slurm.control.outage is None:
            self._world.crash_slurm(self._dice.uniform(0.1, 5.0))
            if self._dice.random() < 0.5:
                self.stranger_submits()

    def stranger_submits(self) -> None:
        """Somebody else's job, native or external."""
        open_ = self._world.slurm.world.partitions["debug"].accepts_jobs
        if self._world.slurm.control.outage is None and open_:
            self._world.weather.note("a stranger submits")
            self._world.submit("stranger", flags=[] if self._dice.random() < 0.7 else None, priority=0)

    def kube_goes(self) -> None:
        """The API server is not reached for a while."""
        self._world.weather.note("kube goes")
        self._world.weather.hide(Side.KUBE)
        self._play.later(self._dice.uniform(1, 25), lambda: self._world.weather.show(Side.KUBE))

    def kube_forgets(self) -> None:
        """Its history is compacted: every watch is too old."""
        self._world.weather.note("kube forgets")
        self._world.observer.look()
        self._world.kube.settle()
        self._world.observer.look()
        self._world.kube.compact()
        self._world.observer.skip()

    def watches_stall(self) -> None:
        """A daemon hears nothing of Kubernetes for a while, and does not know."""
        for running in self._play.daemons:
            running.daemon.deaf_until = self._world.clock.now() + self._dice.uniform(1, 30)
            self._world.weather.note(f"{running.daemon.name} hears nothing")

    # -- processes ---------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """kill -9 between two beats; the next one starts after a while."""
        for running in list(self._play.daemons):
            self._play.end(running)
        self._world.pass_time(self._dice.choice((0.5, 5.0, 40.0)))

    def kill_soon(self) -> None:
        """kill -9 in the middle of some call to come."""
        weather = self._world.weather
        number = weather.calls + self._dice.randint(1, 25)
        weather.note(f"to be killed after call {number}")
        weather.after(number, weather.kill)

    def replace_leader(self) -> None:
        """Another process takes the lead; the old one notices, and stays a while without writing."""
        for running in self._play.daemons:
            running.leads = False
            self._play.later(self._dice.uniform(1, 10), lambda old=running: self._play.end(old))  # type: ignore[misc]
        self._play.start()

    def freeze_leader(self) -> None:
        """The leader stands still in the middle of some call to come, another takes over, and then it goes on."""
        weather = self._world.weather
        number = weather.calls + self._dice.randint(1, 25)
        weather.note(f"to be frozen after call {number}")
        weather.after(number, self._play.takeover(self._dice.uniform(5, 20)))

    # -- the end of all evil -----------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Nothing goes wrong any more, and what was broken is mended."""
        world = self._world
        world.weather.note("heal")
        self._play.forget_chores()
        world.weather.calm()
        if world.slurm.control.outage is not None:
            world.wake_slurm()
        for kube, slurm in NODES.items():
            self._join(kube)
            self._open(kube)
            self._join_slurm(slurm)
            self._resume_node(slurm)
        for partition in ("debug", "batch"):
            world.slurm.control.set_partition(partition, state="UP")
        for name, pod in list(world.pods()):
            self._open_gate(name)
            if (pod["metadata"].get("annotations") or {}).get(names.JOB_PREFIX + "timelimit"):
                world.annotate(name, names.JOB_PREFIX + "timelimit", None)
        self._resume_jobs()
        world.slurm.control.reconfigure()
        self._release()
        for old in self._play.daemons[:-1]:
            self._play.end(old)
        for last in self._play.daemons:
            last.leads = True
            last.daemon.deaf_until = 0.0

    def help(self) -> None:
        """Whoever is parked is told by its user to try again, every now and then."""
        now = self._world.clock.now()
        for pod in list(self._world.observer.pods.values()):
            waits = pod.parked and not (pod.over or pod.node or self._world.observer.living(pod.uid))
            if waits and now >= self._helped.get(pod.uid, 0.0) + _BETWEEN_HELPS:
                self._helped[pod.uid] = now
                self._world.annotate(pod.key[1], names.ANNOTATION_RETRY, str(now))


def _leaving(pod: dict[str, object]) -> bool:
    return "deletionTimestamp" in pod["metadata"]  # type: ignore[operator]


def _made(pod: dict[str, object]) -> bool:
    return bool(pod["metadata"].get("ownerReferences"))  # type: ignore[attr-defined]
