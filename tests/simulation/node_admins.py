"""Cordons, drains, deletions, renames and new nodes by administrators of both sides, at random, and an observer.

The observer looks at Slurm after every call of the controller, and knows what each administrator did: a drain that was
ended, a reason that was overwritten, a node of others that changed or went is a broken promise.
"""

import pathlib
import random
from collections.abc import Callable

from slurm_bridge.controllers.nodes import marks
from slurm_bridge.model import kinds, names
from slurm_bridge.model.node import Node
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import node_updates, state
from tests.component.nodes.node_world import EXTERNAL, PREFIX, NodeWorld

FAULTS: tuple[faults.Fault, ...] = (
    faults.Drop(),
    faults.Reset(),
    faults.Hang(acted=True),
    faults.Hang(),
    faults.Answer(status=502),
    faults.Answer(status=500),
)

BEATS = 60
#: Long enough for every pause after a lost answer.
REST = 120.0


class Broken(AssertionError):
    """The controller did what it must not do."""


class Killed(BaseException):
    """The process is no more."""


class NodeAdmins:
    """One seeded run."""

    def __init__(self, seed: int, folder: pathlib.Path) -> None:
        self.dice, self.journal = random.Random(seed), list[str]()
        self.world = NodeWorld(folder, feature_labels=("pool",), after_call=self.look)
        self.others = {name: node for name, node in self.world.slurm.world.nodes.items() if name != "ext020"}
        #: What an administrator of Slurm has decided, by node and its incarnation.
        self.decided: dict[str, tuple[float, str]] = {}
        self.jobs: list[int] = []
        self.serial = 0
        # One node of the configuration is managed, under another name.
        self.world.add("k20", labels={names.LABEL_SLURM_NODE_NAME: "ext020"})
        self.world.add("k1", "ext001", labels={})

    def run(self) -> None:
        for _ in range(BEATS):
            name, act = self.dice.choice(self._acts())
            self.journal.append(f"{self.world.clock.now():.0f} {name}: {act() or ''}")
            if self.dice.random() < 0.25:
                self.world.line.faults.plan(self.dice.choice(FAULTS), method=self.dice.choice(["*", "POST", "DELETE"]))
            if self.dice.random() < 0.1:
                self.world.line.faults.plan(faults.Meanwhile(_die), method="POST", nth=self.dice.randint(1, 3))
            self._passes(self.dice.randint(0, 3))
            self.world.clock.advance(self.dice.choice([0.5, 1.0, 5.0, 20.0]))
        self._rest()
        self.judge()

    def _passes(self, count: int) -> None:
        for _ in range(count):
            try:
                self.world.controller.step()
            except Killed:
                self.journal.append("the process is killed")
                self.world.restart()

    def _rest(self) -> None:
        """All is well, all jobs end, and time goes by."""
        self.world.line.faults.clear()
        for job_id in self.jobs:
            if not self.world.slurm.control.job(job_id).over:
                self.world.slurm.control.end(job_id)
        for _ in range(4):
            self.world.settle(REST)

    # -- what they do

    def _acts(self) -> list[tuple[str, Callable[[], object]]]:
        return [(act.__name__, act) for act in (*self._of_kubernetes(), *self._of_slurm())]

    def _of_kubernetes(self) -> tuple[Callable[[], object], ...]:
        return (
            self.add,
            self.add,
            self.remove,
            self.cordon,
            self.uncordon,
            self.label,
            self.rename,
            self.resize,
            self.mark,
        )

    def _of_slurm(self) -> tuple[Callable[[], object], ...]:
        return (self.drain, self.drain, self.resume, self.down, self.wipe, self.occupy, self.vacate, self.crash)

    def add(self) -> str:
        """New nodes, or one that was there before."""
        fresh = [f"w{self.serial + number}" for number in range(self.dice.randint(1, 4))]
        self.serial += len(fresh)
        old = [f"w{self.dice.randrange(self.serial)}"]
        chosen = [name for name in self.dice.choice([fresh, fresh, old]) if self._kube(name) is None]
        if chosen:
            self.world.add(*chosen, labels=self.dice.choice([EXTERNAL, EXTERNAL, {**EXTERNAL, "pool": "fast"}, {}]))
        return ",".join(chosen)

    def remove(self) -> str:
        return self._with_kube(self.world.delete)

    def cordon(self) -> str:
        return self._with_kube(self.world.cordon)

    def uncordon(self) -> str:
        return self._with_kube(lambda name: self.world.cordon(name, wanted=False))

    def label(self) -> str:
        value = self.dice.choice([None, "true", "false"])
        return self._with_kube(lambda name: self.world.label(name, names.LABEL_EXTERNAL_NODE, value))

    def rename(self) -> str:
        """Also to names that others have, and back."""
        value = self.dice.choice([None, "w1", "ext002", f"other{self.dice.randrange(4)}", "ALL"])
        return self._with_kube(lambda name: self.world.label(name, names.LABEL_SLURM_NODE_NAME, value))

    def resize(self) -> str:
        cpus = self.dice.choice(["4", "8", "16"])
        return self._with_kube(lambda name: self.world.resize(name, cpu=cpus))

    def mark(self) -> str:
        key, values = self.dice.choice(
            [
                (names.ANNOTATION_EXTERNAL_PARTITIONS, [None, "dynamic", "nowhere"]),
                (names.ANNOTATION_NODE_TOPOLOGY, [None, "racks:core:rack1", "nowhere:x"]),
            ]
        )
        value = self.dice.choice(values)
        return self._with_kube(lambda name: self.world.annotate(name, key, value))

    def drain(self) -> str:
        return self._with_slurm("DRAIN", "bad fan")

    def down(self) -> str:
        return self._with_slurm("DOWN", "on fire")

    def resume(self) -> str:
        return self._with_slurm("RESUME", "")

    def wipe(self) -> str:
        """Another administrator deletes a node that the bridge has added."""
        name = self.dice.choice(sorted(self.world.slurm.world.nodes))
        node = self.world.node(name)
        if node.dynamic and not self.world.slurm.world.jobs_on(name):
            self.world.slurm.world.remove_node(name)
            self.decided.pop(name, None)
            return str(name)
        return ""

    def occupy(self) -> str:
        name = self.dice.choice(sorted(self.world.slurm.world.nodes))
        if self.world.node(name).dynamic and self.world.node(name).usable:
            self.jobs.append(self.world.occupy(name))
        return str(name)

    def vacate(self) -> str:
        alive = [job_id for job_id in self.jobs if not self.world.slurm.control.job(job_id).over]
        if alive:
            self.world.slurm.control.end(self.dice.choice(alive))
        return ""

    def crash(self) -> str:
        """kill -9 of slurmctld: what it had not saved is lost, and so are drains of external nodes of slurm.conf."""
        self.world.slurm.control.crash(lose_seconds=self.dice.choice([0.0, 5.0]))
        self.decided = {name: row for name, row in self.decided.items() if name in self._dynamic()}
        self._as_now()
        return ""

    def _with_kube(self, act: Callable[[str], object]) -> str:
        found = sorted(node["metadata"]["name"] for node in self.world.kube.list(kinds.NODES))
        if not found:
            return ""
        name = self.dice.choice(found)
        act(name)
        return name

    def _with_slurm(self, word: str, reason: str) -> str:
        name = self.dice.choice([*self._dynamic(), "ext020", "ext001"])
        if word == "RESUME":
            self.decided.pop(name, None)
            self.world.slurm.control.resume(name)
        else:
            node_updates.change(self.world.slurm.world, name, [word], reason)
            self.decided[name] = (self.world.node(name).created, reason)
        self._as_now()
        return f"{name} {word}"

    def _dynamic(self) -> list[str]:
        return sorted(name for name, node in self.world.slurm.world.nodes.items() if node.dynamic)

    def _kube(self, name: str) -> object:
        return self.world.kube.get(kinds.NODES, "", name)

    def _as_now(self) -> None:
        """What administrators made of the nodes of others is how these are."""
        self.others = {name: node for name in self.others if (node := self.world.node(name)) is not None}

    # -- what the observer sees

    def look(self) -> None:
        """After every call of the controller."""
        for name, node in self.others.items():
            if self.world.node(name) != node and name not in self._claimed():
                raise Broken(f"{name} of others was {node} and is {self.world.node(name)}")
            if self.world.node(name) is None:
                raise Broken(f"{name} of slurm.conf is deleted")
        for name, (created, reason) in self.decided.items():
            node = self.world.node(name)
            if node is None or node.created != created:
                continue
            if node.reason != reason or not (node.drain or node.down):
                raise Broken(f"{name} was taken out of service by an administrator ({reason}), and is {node}")

    def _claimed(self) -> set[str]:
        """Nodes of slurm.conf that a Kubernetes node names, or named: their cordons are the controller's business."""
        return {"ext001", "ext002"}

    def judge(self) -> None:
        """At the end both sides agree."""
        asked = self.world.seen()
        claims: dict[str, list[str]] = {}
        for node in asked:
            claims.setdefault(node.slurm_name, []).append(node.metadata.name)
        for node in asked:
            self._agrees(node, alone=len(claims[node.slurm_name]) == 1, held=self._held(node, claims))
        wanted = {node.slurm_name for node in asked if node.metadata.labels.get(names.LABEL_EXTERNAL_NODE) == "true"}
        left = {name for name in self._dynamic() if name not in wanted and not self._kept(name, claims.get(name, []))}
        if left:
            raise Broken(f"{sorted(left)} are in Slurm, and no Kubernetes node asks for them")

    def _kept(self, name: str, claimants: list[str]) -> bool:
        """Nothing is done for a name that several claim, if the node that it was added for still does."""
        record = marks.read(self.world.node(name).comment)
        return len(claimants) > 1 and (record is None or (record.node or name) in claimants)

    def _held(self, node: Node, claims: dict[str, list[str]]) -> bool:
        """Its former node of Slurm, whose name another node has taken, is an administrator's to give back."""
        return any(
            other.comment
            and (record := marks.read(other.comment)) is not None
            and (record.node or name) == node.metadata.name
            and name != node.slurm_name
            and name in claims
            and (other.drain or other.down)
            and not other.reason.startswith(PREFIX)
            for name, other in self.world.slurm.world.nodes.items()
        )

    def _agrees(self, node: Node, *, alone: bool, held: bool) -> None:
        found, name, labels = self.world.node(node.slurm_name), node.slurm_name, node.metadata.labels
        wrong = "nowhere" in str(node.metadata.annotations)
        registered = labels.get(names.LABEL_EXTERNAL_NODE) == "true"
        if not alone or name == "ALL" or (wrong and found is None):
            return
        if registered and found is None and not held:
            raise Broken(f"{name} is registered and is not in Slurm")
        if found is not None and (registered or names.LABEL_SLURM_NODE_NAME in labels):
            self._in_step(node, found, wrong=wrong)

    def _in_step(self, node: Node, found: state.Node, *, wrong: bool) -> None:
        out, cpus = found.drain or found.down, node.status.allocatable["cpu"]
        if node.spec.unschedulable and not out:
            raise Broken(f"{found.name} is cordoned, and Slurm starts jobs there")
        if not node.spec.unschedulable and found.drain and found.reason.startswith(PREFIX):
            raise Broken(f"{found.name} is not cordoned, and drained: {found.reason}")
        if found.dynamic and not wrong and not out and str(found.cpus) != cpus:
            raise Broken(f"{found.name} has {found.cpus} cpus in Slurm, {cpus} in Kubernetes")


def _die() -> None:
    raise Killed
