"""Users with troupes: they let them come and go, lose members, change their minds, and administrators cancel things.

Every act takes the dice that it is to use, so that a state machine can choose (and shrink) as well as a seed can.
"""

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slurm_bridge.model import kinds, names
from tests.simulation import troupes
from tests.simulation.stage import Stage
from tests.simulation.troupes import BARE, Form, Manifest, Size, Troupe

Act = Callable[[random.Random], object]

_KINDS: Mapping[Form, kinds.Kind[Any]] = {
    Form.JOB: kinds.JOBS,
    Form.JOBSET: kinds.JOBSETS,
    Form.PARTS: kinds.JOBSETS,
    Form.LWS: kinds.LEADERWORKERSETS,
    Form.PODGROUP: kinds.PODGROUPS,
    Form.COSCHEDULING: kinds.COSCHEDULING_PODGROUPS,
}

_SUSPENDABLE = (Form.JOB, Form.JOBSET, Form.PARTS)

#: A name, which an update can change, and a partition, which only a new job can.
WORDS = (("job-name", "other"), ("job-name", "third"), ("partition", "batch"), ("partition", "debug"))


#: What a hook that knows halls keeps together where it can; to all others it means nothing.
TOGETHER = "kai.scheduler/topology-preferred-placement"

#: How long a user waits before asking for yet another try.
_BETWEEN_HELPS = 40.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the world can bear, so that every troupe gets a turn: troupes at once, and CPUs of those that never end.

    Whatever stays for ever, spread in the worst way over all nodes, has to leave room for every troupe that ends.
    """

    troupes: int = 5
    lasting_cpus: int = 6
    #: Some want that a loss ends all: then pods are deleted whose job lives, and rightly so.
    restarts: bool = True
    #: What users write later on whatever speaks for the group.
    words: tuple[tuple[str, str], ...] = WORDS


class Company:
    """All troupes of one world."""

    def __init__(self, stage: Stage, house: House, prefix: str = "t") -> None:
        self._stage, self._house, self._prefix = stage, house, prefix
        self._troupes: dict[str, Troupe] = {}
        self._late: dict[str, Troupe] = {}
        self._helped: dict[str, float] = {}
        self.entered = 0
        self.acts: tuple[tuple[int, Act], ...] = (
            (14, self.enter),
            (2, self.leave),
            (5, self.lose_member),
            (4, self.fail_member),
            (4, self.join),
            (2, self.arrive),
            (3, self.suspend),
            (2, self.resize),
            (3, self.change_words),
            (5, self.cancel),
            (3, self.tear),
        )

    # -- coming and going --------------------------------------------------------------------------------------------

    def enter(self, dice: random.Random) -> None:
        """A new troupe, while there is room for all; its group object may be late."""
        troupe = self.drawn(dice, f"{self._prefix}{self.entered}")
        if not self._has_room(troupe):
            return
        self.entered += 1
        self._troupes[troupe.name] = troupe
        made = troupes.manifests(troupe, self._stage.scheduler)
        if troupe.form in (Form.PODGROUP, Form.COSCHEDULING) and dice.random() < 0.25:
            self._late[troupe.name] = troupe
            made = made[1:]
        self._stage.note(f"{troupe.name} is {troupe}")
        for kind, manifest in made:
            self._stage.create(kind, manifest)

    def drawn(self, dice: random.Random, name: str) -> Troupe:
        """Any troupe."""
        return a_troupe(dice, name, restarts=self._house.restarts)

    def _has_room(self, troupe: Troupe) -> bool:
        there = self._there()
        lasting = sum(each.cpus for each in there if not each.seconds)
        return len(there) < self._house.troupes and (
            troupe.seconds > 0 or lasting + troupe.cpus <= self._house.lasting_cpus
        )

    def _there(self) -> list[Troupe]:
        """Those that may still want something."""
        alive = {_troupe_of(pod) for pod in self._stage.all(kinds.PODS) if not _over(pod)}
        waiting = {
            each
            for each, troupe in self._troupes.items()
            if self._owner(troupe) is not None and not _ended(self._owner(troupe))
        }
        return [troupe for name, troupe in self._troupes.items() if name in alive | waiting]

    def _owner(self, troupe: Troupe) -> Manifest | None:
        """The object that makes the pods."""
        if troupe.form in BARE:
            return None
        found = (one for one in self._stage.all(_KINDS[troupe.form]) if one["metadata"]["name"] == troupe.name)
        return next(found, None)

    def leave(self, dice: random.Random) -> None:
        """A troupe goes, with everything that belongs to it."""
        if self._troupes:
            self._leave(dice.choice(list(self._troupes.values())))

    def leave_all(self) -> None:
        """The stage is empty."""
        for troupe in list(self._troupes.values()):
            self._leave(troupe)

    def _leave(self, troupe: Troupe) -> None:
        if troupe.form in BARE:
            for pod in self._members(troupe):
                self._stage.delete(kinds.PODS, pod["metadata"]["name"])
        if troupe.form in _KINDS:
            self._stage.delete(_KINDS[troupe.form], troupe.name)
        self._late.pop(troupe.name, None)
        del self._troupes[troupe.name]

    def arrive(self, dice: random.Random) -> None:
        """The object that pods name comes at last."""
        if self._late:
            name = dice.choice(sorted(self._late))
            self._stage.create(*troupes.group_object(self._late.pop(name)))

    # -- members -----------------------------------------------------------------------------------------------------

    def lose_member(self, dice: random.Random) -> None:
        """A user deletes a pod, at any time."""
        there = self._pods()
        if there:
            pod = dice.choice(there)
            self._stage.delete(kinds.PODS, pod["metadata"]["name"], dice.choice((None, None, 20, 0)))

    def fail_member(self, dice: random.Random) -> None:
        """A pod that runs ends badly."""
        running = [pod for pod in self._pods() if pod["status"].get("phase") == "Running"]
        if running:
            self._stage.fail(dice.choice(running)["metadata"]["name"])

    def join(self, dice: random.Random) -> None:
        """A pod that users make by hand comes again, or one more than there were."""
        bare = self._some(BARE)
        if not bare:
            return
        troupe = dice.choice(bare)
        there = {pod["metadata"]["name"] for pod in self._members(troupe)}
        missing = [number for number in range(troupe.size + 1) if f"{troupe.name}-{number}" not in there]
        if missing:
            self._stage.create(*troupes.member(troupe, missing[0], self._stage.scheduler))

    def _members(self, troupe: Troupe) -> list[Manifest]:
        return [pod for pod in self._pods() if _troupe_of(pod) == troupe.name]

    def _pods(self) -> list[Manifest]:
        return [pod for pod in self._stage.all(kinds.PODS) if pod["spec"].get("schedulerName") == self._stage.scheduler]

    # -- changes of mind ---------------------------------------------------------------------------------------------

    def suspend(self, dice: random.Random) -> None:
        """A Job or JobSet may not run any more, or may again."""
        some = [
            (troupe, owner)
            for troupe in self._some(_SUSPENDABLE)
            if (owner := self._owner(troupe)) and not _ended(owner)
        ]
        if some:
            troupe, owner = dice.choice(some)
            wanted = not owner["spec"].get("suspend")
            self._stage.merge(_KINDS[troupe.form], troupe.name, {"spec": {"suspend": wanted}})

    def resize(self, dice: random.Random) -> None:
        """A Job runs with other many pods at once."""
        some = [troupe for troupe in self._some((Form.JOB,)) if self._owner(troupe) is not None]
        if some:
            troupe = dice.choice(some)
            self._stage.merge(kinds.JOBS, troupe.name, {"spec": {"parallelism": dice.randint(1, troupe.size + 1)}})

    def change_words(self, dice: random.Random) -> None:
        """Users write something else on the object that speaks for the group."""
        some = [troupe for troupe in self._some(tuple(_KINDS)) if troupe.name not in self._late]
        if some:
            troupe, (key, value) = dice.choice(some), dice.choice(self._house.words)
            changes = {"metadata": {"annotations": {names.JOB_PREFIX + key: value}}}
            self._stage.merge(_KINDS[troupe.form], troupe.name, changes)

    def _some(self, forms: Sequence[Form]) -> list[Troupe]:
        return [troupe for troupe in self._troupes.values() if troupe.form in forms]

    # -- administrators ----------------------------------------------------------------------------------------------

    def cancel(self, dice: random.Random) -> None:
        """scancel of a job, pending or running."""
        jobs = [one for one in self._stage.placeholders() if not one.component]
        if jobs:
            self._stage.cancel(dice.choice(jobs).job_id)

    def tear(self, dice: random.Random) -> None:
        """scancel of one component of a running job."""
        parts = [one for one in self._stage.placeholders() if one.component and one.started]
        if parts:
            self._stage.cancel(dice.choice(parts).job_id)

    def help(self, now: float) -> None:
        """Users retry, every now and then, what is parked because its job was cancelled."""
        for pod in self._pods():
            name, marks = pod["metadata"]["name"], pod["metadata"].get("annotations") or {}
            waits = names.ANNOTATION_PARKED in marks and not (pod["spec"].get("nodeName") or _over(pod))
            if waits and now >= self._helped.get(name, 0.0) + _BETWEEN_HELPS:
                self._helped[name] = now
                changes = {"metadata": {"annotations": {names.ANNOTATION_RETRY: f"{now:.1f}"}}}
                self._stage.merge(kinds.PODS, name, changes)

    def settle(self) -> None:
        """The last of what was promised comes."""
        for name in sorted(self._late):
            self._stage.create(*troupes.group_object(self._late.pop(name)))


def a_troupe(dice: random.Random, name: str, *, restarts: bool) -> Troupe:
    """Any form, size and shape that leaves room for others."""
    form = dice.choice(list(Form))
    lasts = form is Form.LWS or dice.random() < 0.15
    worker = Size(cpus=dice.randint(1, 2), memory_mib=dice.choice((100, 250, 999)))
    leader = dice.choice((worker, worker, Size(cpus=dice.randint(1, 3), memory_mib=dice.choice((100, 2000)))))
    workers = dice.randint(0, 2) if lasts else dice.randint(0, 7)
    if not lasts and dice.random() < 0.3:
        worker, workers = dataclasses.replace(worker, cpus=1, gpus=dice.randint(0, 1)), min(workers, 3)
        leader = dataclasses.replace(leader, cpus=1, gpus=dice.randint(0, 2))
    elif leader != worker and workers > 2:
        # Either all fit on one node beside whatever stays for ever, or never on one node.
        worker, workers = dataclasses.replace(worker, cpus=2), 8
    size = workers + 1
    return Troupe(
        form=form,
        name=name,
        leader=leader,
        worker=worker,
        workers=workers,
        minimum=dice.choice((size, size, max(1, size - 1))),
        seconds=0 if lasts else dice.choice((2, 6, 15)),
        waves=dice.choice((1, 1, 2)),
        suspended=dice.random() < 0.1,
        slow_end=dice.random() < 0.3,
        indexed=dice.random() < 0.7,
        words=dice.choice(
            ({}, {}, {TOGETHER: "hall"}, {names.ANNOTATION_MEMBER_LOST: "restart-group"} if restarts else {})
        ),
        recreates=dice.random() < 0.6,
    )


def _troupe_of(pod: Manifest) -> str:
    """Every pod's name begins with that of its troupe."""
    return str(pod["metadata"]["name"]).partition("-")[0]


def _over(pod: Manifest) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def _ended(owner: Manifest | None) -> bool:
    status = (owner or {}).get("status") or {}
    lines = status.get("conditions") or ()
    return any(line["type"] in ("Complete", "Completed", "Failed") and line["status"] == "True" for line in lines)
