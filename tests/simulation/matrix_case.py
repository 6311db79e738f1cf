"""One workload on one cluster with one chain: it comes, and step by step all that is in its way is taken away."""

import dataclasses
import functools
import pathlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import kinds
from slurm_bridge.sim.slurm.state import SlurmJob
from tests.simulation import daemon, families, matrix_judge, matrix_park, matrix_wishes
from tests.simulation.broken_promise import Broken
from tests.simulation.matrix_park import Park, ParkWorld
from tests.simulation.matrix_wishes import Shape, Wish
from tests.simulation.play import Play

#: Whatever fits has started after so many seconds; what does not says why after so many.
PATIENCE, EXPLAINED = 150, 40

#: For so long a job may run before its pods have their nodes, or it is given back.
IDLING = 30.0

#: What is in the way, in the words of a pod's message.
WORDS: Mapping[str, Sequence[str]] = {
    "disk": ("selector",),
    "zones": ("selector",),
    "tolerates": ("taint",),
    "few": ("partition",),
    "spread": ("topology spread",),
    "apart": ("anti-affinity",),
    "near": ("affinity",),
    "port": ("free ports",),
    "required": ("has required one",),
    "busy": ("Slurm job", "has room", "root.all"),
    "quota": ("root.all",),
}

#: Said of groups of which some pods would fit.
GENERAL = ("room for", "too few nodes", "no node for pod", "suitable for all")


class Case:
    """See above; the seed chooses the cluster, the workload and the order of the steps."""

    def __init__(self, seed: int, token: pathlib.Path, chain: Sequence[str], shape: Shape) -> None:
        self._dice = random.Random(f"matrix {seed} {chain} {shape}")
        machines = matrix_park.drawn(self._dice)
        self.world = ParkWorld(seed, token, fleet=Park(nodes={name: name for name in machines}, machines=machines))
        self._chain = chain
        self._quota = self._dice.choice(families.QUOTAS) if "quotas" in chain else families.QUOTAS[-1]
        self._site = daemon.Site(daemon.Variant(families=self._families()))
        self._play = Play(self.world, daemon.build(self._site))
        self.wish = matrix_wishes.drawn(self._dice, shape, chain)
        self._native: list[int] = []
        self.world.weather.note(f"{chain}, quota {self._quota}: {self.wish}")

    def _families(self) -> tuple[str, ...]:
        return tuple(f"quotas of {self._quota}" if name == "quotas" else name for name in self._chain)

    # -- what happens ------------------------------------------------------------------------------------------------

    def play_all(self, *, full: bool) -> None:
        """On an idle cluster, or on one that is full of native jobs, which end one by one."""
        self._run(2)
        if full:
            self._fill()
        self._create()
        self._run(2)
        self._settle()
        for step in self._steps():
            if not self.unbound():
                break
            step()
            self._settle()

    def _run(self, seconds: int) -> None:
        for _ in range(seconds):
            self._play.step(1.0)

    def _fill(self) -> None:
        for name, machine in self.world.fleet.machines.items():
            cpus = machine.cpus - self._dice.choice((0, 0, 0, 1))
            self._native.append(self.world.submit("native", required_nodes=[name], cpus_per_task=cpus))
        self._run(2)

    def _create(self) -> None:
        if self.wish.near_whom == "anchor" and self._dice.random() < 0.7:
            self._anchor()
        for kind, manifest in matrix_wishes.manifests(self.wish, self._dice):
            self.world.kube.create(kind, manifest)

    def _anchor(self) -> None:
        """A pod of another scheduler, which the workload wants to be near; it takes nothing."""
        node = self._dice.choice(sorted(self.world.fleet.machines))
        self.world.weather.note(f"an anchor on {node}")
        metadata = {"name": f"anchor-{node}", "labels": dict(matrix_wishes.ANCHOR)}
        spec = {"nodeName": node, "schedulerName": "another", "containers": [{"name": "c", "image": "none"}]}
        if self.world.find(f"anchor-{node}") is None:
            self.world.kube.create(kinds.PODS, {"metadata": metadata, "spec": spec})

    def _steps(self) -> Iterator[Callable[[], object]]:
        """In any order, after the native jobs have ended."""
        self._dice.shuffle(self._native)
        for job_id in self._native:
            yield functools.partial(self._end, job_id)
        remedies = [
            self.world.remove_taints,
            functools.partial(self.world.label_all, disk="ssd"),
            functools.partial(self.world.join, "spare", matrix_park.SPARE),
            *([self._raise_quota] if "quotas" in self._chain else []),
            *([self._anchor] if self.wish.near_whom == "anchor" else []),
        ]
        self._dice.shuffle(remedies)
        yield from remedies

    def _end(self, job_id: int) -> None:
        """What is asked of Slurm may follow the room that moves only where sets or samples of nodes are tried."""
        self.world.end_job(self.world.slurm.control.job(job_id), "COMPLETED")
        if {"places", "samples"} & {*self._chain}:
            self.world.updates.happened()

    def _raise_quota(self) -> None:
        self._quota = families.QUOTAS[-1]
        self.world.weather.note("operator raises the quota")
        self._site.write(families=self._families())
        self.world.updates.configured()

    # -- what has to be ----------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """What fits starts; what does not says why."""
        for _ in range(PATIENCE):
            if not (self.unbound() and self.fits(self.wish)):
                break
            self._run(1)
        else:
            raise Broken(f"it fits, and has not started after {PATIENCE} s: {_said(self.unbound())}")
        if self.unbound():
            self._run(EXPLAINED)
            self._check_waiting()

    def _check_waiting(self) -> None:
        """No job runs for nothing, and the message names what is in the way, where that is one thing."""
        if self.fits(self.wish):
            # A pod that has started since has made it fit.
            self._settle()
            return
        late = self.world.clock.wall() - IDLING
        idle = [job.job_id for job in self.world.ours("RUNNING") if job.started < late and not self._serves(job)]
        if idle:
            raise Broken(f"jobs {idle} run without pods")
        obstacles = self.obstacles()
        words = [word for one in obstacles for word in WORDS[one]] if len(obstacles) == 1 else []
        words += [*GENERAL, *(WORDS["required"] if self.wish.required else ())]
        words += ["near each other"] if self.wish.near_whom in ("app", "leader") else []
        # What an empty cluster would take waits in Slurm, whatever it asks for.
        words += WORDS["busy"] if self.wish.shape is Shape.HET or self.fits(self.wish, empty=True) else ()
        for pod, reason, message in _said(self.unbound()):
            if not (reason and message):
                raise Broken(f"{pod} does not say why it waits")
            if len(obstacles) == 1 and not any(word in message for word in words):
                raise Broken(f"{obstacles[0]} is in the way, and {pod} says: {message}")

    def _serves(self, job: SlurmJob) -> bool:
        """Pods of its workload have their nodes."""
        owner = self.world.observer.owner(job)
        bound = [pod for _, pod in self.world.pods() if pod["spec"].get("nodeName")]
        return owner is not None and any(self.world.observer.pods[_uid(pod)].group == owner.uid for pod in bound)

    # -- what is true ------------------------------------------------------------------------------------------------

    def unbound(self) -> list[dict[str, Any]]:
        """The pods of the workload that have no node."""
        return [pod for _, pod in self.world.pods() if not pod["spec"].get("nodeName")]

    def fits(self, wish: Wish, *, empty: bool = False, unlimited: bool = False) -> bool:
        """What is left of it finds a place now; or it would, were it not for what runs, or for the quota."""
        owners = [self.world.observer.owner(job) for job in self.world.ours("PENDING", "RUNNING")]
        bound = {_uid(pod) for _, pod in self.world.pods() if pod["spec"].get("nodeName")}
        ground = matrix_judge.spots(self.world, {owner.uid for owner in owners if owner is not None} - bound)
        if empty:
            ground = [dataclasses.replace(spot, free=spot.cpus) for spot in ground]
        started = wish.pods - len(self.unbound())
        asked = (started + 1) * wish.cpus if wish.shape is Shape.SINGLES else sum(wish.sizes)
        return (unlimited or asked <= self._quota) and matrix_judge.fits(wish, ground)

    def obstacles(self) -> list[str]:
        """Each thing without which it would fit."""
        found = [name for name in self.wish.asked() if self.fits(self.wish.without(name))]
        tolerant = dataclasses.replace(self.wish, tolerates=True)
        found += ["tolerates"] if not self.wish.tolerates and self.fits(tolerant) else []
        found += ["quota"] if self.fits(self.wish, unlimited=True) else []
        return found + (["busy"] if self.fits(self.wish, empty=True) else [])


def _uid(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def _said(pods: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Pod, reason and message; empty ones where it says nothing."""
    found = []
    for pod in pods:
        conditions = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
        said = conditions[0] if conditions and conditions[0]["status"] == "False" else {}
        found.append((str(pod["metadata"]["name"]), str(said.get("reason", "")), str(said.get("message", ""))))
    return found
