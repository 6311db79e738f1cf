"""Rounds of pods, gangs and native jobs with GPUs, slices, cards and cpus at random.

All say what they were given, and how long they had it.
"""

import collections
import contextlib
import dataclasses
import itertools
import random
import time
from collections.abc import Iterator

from localcluster import hosts
from tests import wait
from tests.e2e import support_given, support_real, support_world
from tests.e2e.support_devices import Claims, results, users
from tests.e2e.support_gate import Gate, Order, When
from tests.e2e.support_given import Given
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json

#: GPUs of a pod -> the template of its claim; likewise of the cpus of a pod.
TEMPLATES = {1: "one", 2: "two"}
CPUS = {1: "core", 2: "cores"}
#: Profile -> the template for a slice of it.
SLICES = {profile: f"slice-{profile.partition('g.')[0]}" for profile in dict.fromkeys(hosts.SLICES)}
#: Profile -> the template for a part of a card.
PARTS = {profile: f"part-{profile}" for profile in ("1g", "2g", "4g")}

#: A round asks for about twice of what there is, for seconds.
SECONDS = 120.0

_LABEL = "round"
#: What a daemon that was killed has tried on its start goes a minute later.
CHECK_SECONDS = 150.0
#: So long a killer waits for its moment: as long as others have the GPUs, nothing is ordered.
_WATCHED = 15.0

#: Of so many jobs most have to be seen in Slurm.
MANY = 10

#: All that the daemon orders in the life of a claim; it dies before or after each of them.
ORDERS = ("submit", "protect", "allocate", "bind", "cancel")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Round:
    """What was asked for at one time: pods that end by themselves, and native jobs."""

    number: int
    pods: int
    gangs: tuple[str, ...]
    native: tuple[int, ...]

    @property
    def selector(self) -> str:
        return f"{_LABEL}={self.number}"


class Rounds:
    """Several of them may be under way."""

    def __init__(self, claims: Claims, gate: Gate, seed: int) -> None:
        self._claims, self._world, self._gate = claims, claims.world, gate
        self._random = random.Random(seed)
        self._prefix = f"r{seed}"
        self._begun = 0
        self._open: list[Round] = []
        self._given: list[Given] = []
        self._native: dict[int, Given] = {}
        #: How many pods had devices and no node when the daemon was killed.
        self.unbound = 0
        #: Moments at which it is killed next; and those that came.
        self._moments: list[tuple[str, When]] = []
        self.deaths: collections.Counter[tuple[str, When]] = collections.Counter()
        #: Name of a pod -> its job.
        self._jobs: dict[str, int] = {}
        #: Job -> what Slurm says that it has.
        self._slurms: dict[int, support_given.Devices] = {}

    # -- what is asked for

    def begin(self, *, killing: bool = False) -> None:
        """One more; the daemon dies while it works for it, and is started again."""
        with self._killed() if killing else contextlib.nullcontext():
            self._open.append(self._ask())
        if killing:
            self._world.daemon.start()

    def _ask(self) -> Round:
        self._begun += 1
        native = [self._submit() for _ in range(self._random.randint(1, 3))]
        singles = [self._single(number) for number in range(self._random.randint(1, 4))]
        gangs = [self._gang(size) for size in self._random.choice([(), (2,), (3,)])]
        native += [self._submit() for _ in range(self._random.randint(0, 1))]
        if self._random.random() < 0.3:
            self._world.delete(singles.pop())
        return Round(
            number=self._begun,
            pods=len(singles) + sum(size for _, size in gangs),
            gangs=tuple(name for name, _ in gangs),
            native=tuple(native),
        )

    def _submit(self) -> int:
        profiles = [f"--gres=gpu:{profile}:1" for profile in SLICES]
        wanted = self._random.choice([*map(support_given.whole, (1, 2, 3)), *profiles, "--gres=card:1", ""])
        cpus = f"--cpus-per-task={self._random.randint(1, 2)}"
        return support_given.submit(self._world, self._seconds(), *filter(None, (wanted, cpus)))

    def _single(self, number: int) -> str:
        name = f"{self._name}-s{number}"
        templates, cpus = self._wish()
        manifest = support_given.pod(self._claims, name, *templates, seconds=self._seconds(), cpus=cpus)
        manifest["metadata"]["labels"] = self._labels
        self._world.create(manifest)
        return name

    def _wish(self) -> tuple[list[str], int]:
        """Claims of GPUs, slices or cards, of cpus, or of both, and as many cpus as they ask for."""
        devices = self._random.choice([*TEMPLATES.values(), *SLICES.values(), *PARTS.values()])
        cpus = self._random.choice([None, *CPUS])
        if cpus is None:
            return [devices], 1
        return ([CPUS[cpus]] if self._random.random() < 0.5 else [devices, CPUS[cpus]]), cpus

    def _gang(self, size: int) -> tuple[str, int]:
        name, marks = f"{self._name}-g", support_real.marks(gang="true")
        templates = self._random.choice([[TEMPLATES[1]], [CPUS[1]], [TEMPLATES[1], CPUS[1]]])
        spec = support_given.spec(*templates, seconds=self._seconds())
        manifest = support_world.job(name, self._world.daemon.scheduler, size, annotations=marks, **spec)
        manifest["metadata"]["annotations"] = marks
        manifest["spec"]["template"]["metadata"]["labels"] = self._labels
        self._world.create_job(manifest)
        return name, size

    @property
    def _name(self) -> str:
        return f"{self._prefix}-{self._begun}"

    @property
    def _labels(self) -> dict[str, str]:
        return {_LABEL: str(self._begun)}

    def _seconds(self) -> str:
        return f"{self._random.uniform(0.1, 3):.1f}"

    @contextlib.contextmanager
    def _killed(self) -> Iterator[None]:
        """The daemon, at one of its orders; later, if none of these comes."""
        if not self._moments:
            self._moments = [(what, when) for what in ORDERS for when in When]
            self._random.shuffle(self._moments)
        what, when = moment = self._moments.pop()
        left = itertools.count(-self._random.randint(0, 2))
        trap = self._gate.trap(
            when, lambda one: one.what == what and self._is_of_pods(one) and next(left) >= 0, self._world.daemon.kill
        )
        yield
        end = time.monotonic() + _WATCHED
        while not trap.snapped.wait(0.1) and time.monotonic() < end:
            self._look()
        self._gate.disarm()
        self.deaths[moment] += trap.snapped.is_set()
        self._world.daemon.kill()
        self.unbound += len(self._allocated_before_binding())

    def _is_of_pods(self, order: Order) -> bool:
        """Not of what the daemon tries when it starts."""
        tried = self._world.slurm.alive(self._world.daemon.cluster_id)
        checks = {str(one.job_id) for one in tried if one.owner.get("kind") == "Check"}
        return order.target not in checks and not order.target.startswith("slurm-bridge-check")

    def _allocated_before_binding(self) -> set[str]:
        having = {user["uid"] for one in self._claims.claims() if results(one) for user in users(one)}
        return having - {pod["metadata"]["uid"] for pod in self._world.pods() if support_world.is_bound(pod)}

    # -- what came of it

    def settle(self, but: int = 0) -> None:
        """Until all have ended but the latest; what they said is kept, and they are deleted."""
        while len(self._open) > but:
            oldest = self._open[0]
            try:
                wait.until(lambda one=oldest: self._is_over(one), f"end of round {oldest}", SECONDS, every=0.3)
            except AssertionError as error:
                lines = [str(error), *map(support_world.told, self._world.pods()), self._world.daemon.last_words(15)]
                raise AssertionError("\n".join(lines)) from error
            self._keep(oldest)
            self._open.pop(0)

    def _is_over(self, one: Round) -> bool:
        self._look()
        pods = self._pods(one)
        states = self._world.slurm.all_shown()
        ended = len(pods) == one.pods and all(map(support_world.is_over, pods))
        return ended and all(states.get(job, {}).get("JobState") not in {"PENDING", "RUNNING"} for job in one.native)

    def _look(self) -> None:
        """What Slurm says of the jobs that run, which it forgets when they end; and no device is in two claims."""
        held = support_real.held_by_all(self._world)
        self._slurms.update({job: support_given.flat(one) for job, one in held.items()})
        devices = collections.Counter(self._claims.held())
        assert set(devices.values()) <= {1}, devices

    def _keep(self, one: Round) -> None:
        pods = self._pods(one)
        failed = [support_world.told(pod) for pod in pods if not support_world.has_succeeded(pod)]
        assert failed == [], failed
        self._jobs.update({pod["metadata"]["name"]: support_world.job_id(pod) for pod in pods})
        # A pod that was deleted may be on its way out, and never says when it ends.
        said = [given for given in support_given.by_pods(self._world, one.selector) if given.name in self._jobs]
        silent = {pod["metadata"]["name"] for pod in pods} - {given.name for given in said}
        assert silent == set(), silent
        self._given += said
        native = support_given.by_native(self._world)
        self._native.update({job: native[job] for job in one.native})
        for name in one.gangs:
            Objects(self._world).delete("Job", name)
        for pod in pods:
            self._world.delete(pod["metadata"]["name"])

    def _pods(self, one: Round) -> list[Json]:
        """Without those that were deleted."""
        chosen = self._world.kube.items(f"{self._world.path}?labelSelector={_LABEL}%3D{one.number}")
        return [pod for pod in chosen if "deletionTimestamp" not in pod["metadata"]]

    def judge(self) -> None:
        """No device was two processes' at a time, and each had what Slurm says of its job, wherever that was seen."""
        twice = support_given.twice([*self._given, *self._native.values()])
        assert twice == [], twice
        found: dict[int, list[Given]] = collections.defaultdict(list)
        for given in self._given:
            found[self._jobs[given.name]].append(given)
        found.update({job: [given] for job, given in self._native.items()})
        seen = found.keys() & self._slurms.keys()
        # A look takes about as long as a job, and longer beside other suites: of a few jobs, most may end between two.
        least = len(found) // 2 if len(found) > 10 * MANY else MANY // 2
        assert len(found) < MANY or len(seen) >= least, f"only {len(seen)} of {len(found)} jobs were seen in Slurm"
        others = [(found[job], self._slurms[job]) for job in seen if not _agree(found[job], self._slurms[job])]
        assert others == [], others


def _agree(given: list[Given], slurms: support_given.Devices) -> bool:
    """Pods without a claim of cpus say nothing of these."""
    told = support_given.union(given)
    return told == slurms or told == support_given.but_cpus(slurms)


def await_nothing(claims: Claims) -> None:
    """Until no device, no claim, no job and no pod is left, and Slurm has all GPUs back."""
    world = claims.world
    wait.until(lambda: not world.pods(), "end of all pods", support_real.SECONDS, every=0.3)
    world.await_nothing_in_slurm(CHECK_SECONDS)
    wait.until(lambda: not claims.claims(), "end of all claims", support_real.SECONDS, every=0.3)
    for node in ("real1", "real2"):
        wait.until(lambda one=node: support_real.allocated(world, one) == 0, f"nothing on {node}", SECONDS)
