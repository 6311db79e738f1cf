"""Users of devices, and what other schedulers, other users and the drivers do to their claims meanwhile."""

import dataclasses
from typing import Any

from slurm_bridge.hooks.needs import Need
from slurm_bridge.model import kinds, names
from slurm_bridge.model.devices import FINALIZER
from tests.component.scheduler.claimed_devices import DeviceObjects, exactly, using
from tests.simulation.claim_rules import ClaimRules, claims_of, devices_of, users_of
from tests.simulation.play import Act, Play
from tests.simulation.world import NAMESPACE, spec

#: GPUs of a pod -> the template of its claim.
TEMPLATES = {1: "one", 2: "two"}
NAMED = ("m0", "m1")
#: So many pods with claims are there at once, and so many GPUs may be kept for good.
MOST_PODS, MOST_LASTING = 8, 3

_OTHER = {**spec("1"), "schedulerName": "other"}
_ENTRY = "gpus"


class Claimants:
    """Pods and gangs with claims; `rules` hear of everything that others write to claims."""

    def __init__(self, play: Play, rules: ClaimRules, *, strangers: bool) -> None:
        self._play, self._world, self._dice, self._rules = play, play.world, play.world.dice, rules
        self._kube, self._objects = play.world.kube, DeviceObjects(play.world)
        self._numbers = iter(range(10_000))
        self._lasting = 0
        for count, name in TEMPLATES.items():
            self._objects.template(name, exactly(count=count))
        for name in NAMED:
            self._objects.claim(name, exactly(count=2))
        self.acts: tuple[tuple[int, Act], ...] = (
            (14, self.create_pod),
            (6, self.create_gang),
            (4, self.create_named),
            (3, self.delete_pod),
            (3, self.native_job),
            (3, self.claims_lag),
            (2, self.restart_driver),
            (2, self.kube_refuses),
            *(((4, self.meddle), (8, self.meddle_soon)) if strangers else ()),
        )

    # -- users

    def create_pod(self) -> None:
        """One pod with one or two claims of its own; some stay."""
        chosen = self._dice.choice((("one",), ("one",), ("two",), ("one", "two")))
        gpus = sum(count for count, name in TEMPLATES.items() if name in chosen)
        stays = self._dice.random() < 0.2 and self._lasting + gpus <= MOST_LASTING
        if self._room(1):
            self._lasting += gpus if stays else 0
            self._create(f"c{next(self._numbers)}", using(*chosen), {}, stays=stays)

    def create_named(self) -> None:
        """A pod with a claim that others use, too, one after the other."""
        if self._room(1):
            named = using(*self._dice.choice(((), ("one",))), it=self._dice.choice(NAMED))
            self._create(f"c{next(self._numbers)}", named, {}, stays=False)

    def create_gang(self) -> None:
        """Each member has a claim of its own."""
        size = self._dice.randint(2, 3)
        if self._room(size):
            name, template = f"c{next(self._numbers)}", self._dice.choice(list(TEMPLATES.values()))
            labels = {names.GROUP: name, names.GROUP_SIZE: str(size)}
            for number in range(size):
                self._create(f"{name}-{number}", using(template), labels, stays=False)

    def _create(self, name: str, claims: dict[str, Any], labels: dict[str, str], *, stays: bool) -> None:
        self._world.weather.note(f"user creates pod {name} {claims['resourceClaims']} {labels} {'stays' * stays}")
        ends = {} if stays else {"kwok.local/outcome": "succeed", "kwok.local/seconds": self._dice.choice(("2", "6"))}
        metadata = {"name": name, "labels": labels, "annotations": ends or {"kwok.local/outcome": "run"}}
        self._kube.create(kinds.PODS, {"metadata": metadata, "spec": {**spec("1"), **claims}})

    def _room(self, pods: int) -> bool:
        return len([name for name, _ in self._mine() if name]) + pods <= MOST_PODS

    def _mine(self) -> list[tuple[str, dict[str, Any]]]:
        over = ("Succeeded", "Failed")
        every = [(name, pod) for name, pod in self._world.pods() if pod["spec"].get("resourceClaims")]
        return [(name, pod) for name, pod in every if pod["status"].get("phase") not in over]

    def delete_pod(self) -> None:
        """Any of them, at any time."""
        there = self._mine()
        if there:
            self._world.delete_pod(self._dice.choice(there)[0], self._dice.choice((None, 0, 20)))

    def native_job(self) -> None:
        """A user of Slurm has GPUs for a while."""
        slurm = self._world.slurm
        there = slurm.world.nodes.keys() >= {"n1", "n2"}
        if slurm.control.outage is not None or not slurm.world.partitions["debug"].accepts_jobs or not there:
            return
        self._world.weather.note("a native job takes GPUs")
        gpus = f"gres/gpu:{self._dice.randint(1, 2)}"
        job_id = self._world.submit("native GPUs", tres_per_node=gpus)
        self._play.later(self._dice.uniform(2, 20), lambda: self._end_native(job_id))

    def _end_native(self, job_id: int) -> None:
        job = self._world.slurm.world.jobs.get(job_id)
        if job is not None and not job.over and job.ask.name == "native GPUs":
            self._world.slurm.control.end(job_id, "COMPLETED")

    # -- what is late, or gone for a while

    def claims_lag(self) -> None:
        """The watch of claims, or of devices, says nothing for a while."""
        need = self._dice.choice((Need.RESOURCECLAIMS, Need.RESOURCECLAIMS, Need.RESOURCESLICES))
        for running in self._play.daemons:
            running.daemon.lags[need] = self._world.clock.now() + self._dice.uniform(1, 30)
            self._world.weather.note(f"{running.daemon.name} hears no {need.value}")

    def kube_refuses(self) -> None:
        """Many calls are answered with 409, 429 or 500 for a while."""
        weather = self._world.weather
        weather.note("kube refuses")
        weather.odds = dataclasses.replace(weather.odds, refused=self._dice.choice((0.1, 0.3)))
        self._play.later(self._dice.uniform(2, 20), self._kube_serves)

    def _kube_serves(self) -> None:
        self._world.weather.odds = dataclasses.replace(self._world.weather.odds, refused=0.0)

    def restart_driver(self) -> None:
        """Its slices are gone until it publishes again."""
        node = self._dice.choice(list(self._world.fleet.nodes))
        if self._published(node):
            self._world.weather.note(f"the driver of {node} is gone")
            self._objects.retract(node)
            self._play.later(self._dice.uniform(1, 40), lambda: self._publish(node))

    def _published(self, node: str) -> bool:
        return any(one["spec"]["nodeName"] == node for one in self._kube.list(kinds.RESOURCESLICES))

    def _publish(self, node: str) -> None:
        if not self._published(node):
            self._world.weather.note(f"the driver of {node} is back")
            self._objects.publish(node, self._world.fleet.gpus.get(self._world.fleet.nodes[node], 0))

    # -- other clients of claims

    def meddle(self) -> None:
        """One of these."""
        deeds = (self._allocate, self._touch, self._reserve, self._forge, self._delete, self._unprotect, self._rival)
        self._dice.choice(deeds)()

    def meddle_soon(self) -> None:
        """The same in the middle of some call to come."""
        weather = self._world.weather
        weather.after(weather.calls + self._dice.randint(1, 20), self.meddle)

    def _claim(self) -> dict[str, Any] | None:
        there = [one for one in self._kube.list(kinds.RESOURCECLAIMS, NAMESPACE) if self._is_of_pods(one)]
        return self._dice.choice(there) if there else None

    def _is_of_pods(self, claim: dict[str, Any]) -> bool:
        return not claim["metadata"]["name"].startswith("other")

    def _say(self, deed: str, claim: dict[str, Any]) -> str:
        name = str(claim["metadata"]["name"])
        self._world.weather.note(f"a stranger {deed} claim {name}")
        self._rules.meddle((NAMESPACE, name))
        return name

    def _free(self, node: str) -> list[str]:
        taken = {one for claim in self._kube.list(kinds.RESOURCECLAIMS) for one in devices_of(claim)}
        count = self._world.fleet.gpus.get(self._world.fleet.nodes[node], 0)
        return [f"gpu-{number}" for number in range(count) if (node, f"gpu-{number}") not in taken]

    def _allocate(self) -> None:
        """Another scheduler gives devices to a claim that has none."""
        claim, node = self._claim(), self._dice.choice(list(self._world.fleet.nodes))
        free = self._free(node)
        if claim is not None and free and not devices_of(claim):
            name = self._say(f"gives {free[0]} of {node} to", claim)
            self._objects.allocate(name, node, free[0])
            self._play.later(self._dice.uniform(2, 30), lambda: self._clear(name))

    def _clear(self, name: str) -> None:
        claim = self._kube.get(kinds.RESOURCECLAIMS, NAMESPACE, name)
        if claim is not None and not users_of(claim):
            self._objects.clear(self._say("clears", claim))

    def _touch(self) -> None:
        """A new version, of the same meaning."""
        claim = self._claim()
        if claim is not None:
            changes = {"metadata": {"annotations": {"colour": str(self._dice.random())}}}
            self._kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, self._say("touches", claim)), changes)

    def _reserve(self) -> None:
        """Consumers that do not exist, are no pods, or have ended."""
        claim = self._claim()
        if claim is not None and devices_of(claim):
            user = self._dice.choice(
                (
                    {"resource": "pods", "name": "nobody", "uid": "nobody"},
                    {"apiGroup": "x.example", "resource": "things", "name": "t", "uid": "t"},
                )
            )
            name = self._say(f"reserves for {user['name']}", claim)
            status = {"status": {"reservedFor": [*users_of(claim), user]}}
            self._kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, name), status, subresource="status")
            self._play.later(self._dice.uniform(2, 20), lambda: self._correct(name))

    def _correct(self, name: str) -> None:
        """What nothing else takes out."""
        claim = self._kube.get(kinds.RESOURCECLAIMS, NAMESPACE, name)
        users = [one for one in users_of(claim or {}) if one.get("resource") == "pods"]
        if claim is not None and users != users_of(claim):
            self._say("corrects", claim)
            kept = {"reservedFor": users or None, **({} if users else {"allocation": None})}
            self._kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, name), {"status": kept}, subresource="status")

    def _forge(self) -> None:
        """The owner of a claim is said to be another pod."""
        claim, pods = self._claim(), self._kube.list(kinds.PODS, NAMESPACE)
        if claim is not None and pods:
            meta = self._dice.choice(pods)["metadata"]
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            owners = {"metadata": {"ownerReferences": [{**owner, "controller": self._dice.random() < 0.7}]}}
            self._kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, self._say("forges the owner of", claim)), owners)

    def _delete(self) -> None:
        claim = self._claim()
        if claim is not None and "deletionTimestamp" not in claim["metadata"]:
            self._kube.delete(kinds.RESOURCECLAIMS, (NAMESPACE, self._say("deletes", claim)))

    def _unprotect(self) -> None:
        """The finalizer goes; nothing takes the devices back when the pod has ended."""
        claim = self._claim()
        if claim is not None and claim["metadata"].get("finalizers"):
            changes = {"metadata": {"finalizers": None}}
            self._kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, self._say("unprotects", claim)), changes)

    def _rival(self) -> None:
        """Another scheduler starts a pod with a device that is free."""
        node = self._dice.choice(list(self._world.fleet.nodes))
        free = self._free(node)
        if free and self._kube.get(kinds.NODES, "", node) is not None:
            name = f"other{next(self._numbers)}"
            self._world.weather.note(f"another scheduler starts {name} with {free[-1]} of {node}")
            self._objects.claim(name)
            made = {"metadata": {"name": name}, "spec": {**_OTHER, **using(it=name), "nodeName": node}}
            uid = self._kube.create(kinds.PODS, made)["metadata"]["uid"]
            self._kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, name), {"metadata": {"finalizers": [FINALIZER]}})
            self._objects.allocate(name, node, free[-1], pods={name: uid})
            self._play.later(self._dice.uniform(2, 30), lambda: self._leave(name))

    def _leave(self, name: str) -> None:
        for kind in (kinds.PODS, kinds.RESOURCECLAIMS):
            if self._kube.get(kind, NAMESPACE, name) is not None:
                self._kube.delete(kind, (NAMESPACE, name), grace=0)

    # -- at the end

    def end(self) -> None:
        """Drivers are back, others have left, what they did to claims is undone, and users look after their pods."""
        for running in self._play.daemons:
            running.daemon.lags.clear()
        for node in self._world.fleet.nodes:
            self._publish(node)
        for job in list(self._world.slurm.world.jobs.values()):
            self._end_native(job.job_id)
        for one in self._kube.list(kinds.PODS, NAMESPACE) + self._kube.list(kinds.RESOURCECLAIMS, NAMESPACE):
            if one["metadata"]["name"].startswith("other"):
                self._leave(one["metadata"]["name"])
        for claim in self._kube.list(kinds.RESOURCECLAIMS, NAMESPACE):
            self._correct(claim["metadata"]["name"])
            self._clear(claim["metadata"]["name"])
        self._look_after()

    def _look_after(self) -> None:
        for name in NAMED:
            if self._kube.get(kinds.RESOURCECLAIMS, NAMESPACE, name) is None:
                self._objects.claim(name, exactly(count=2))
        self._give_up()
        self._play.later(5.0, self._look_after)

    def _give_up(self) -> None:
        """Pods whose claims are gone, or said to be another one's, wait for ever."""
        for name, pod in self._mine():
            claims = [self._kube.get(kinds.RESOURCECLAIMS, NAMESPACE, one) for one in claims_of(pod).values()]
            if not pod["spec"].get("nodeName") and not all(one is not None and _is_for(one, pod) for one in claims):
                self._world.delete_pod(name, 0)


def _is_for(claim: dict[str, Any], pod: dict[str, Any]) -> bool:
    """Named in the spec, or made for this pod."""
    named = [one.get("resourceClaimName") for one in pod["spec"]["resourceClaims"]]
    owners = claim["metadata"].get("ownerReferences") or ()
    ours = any(one.get("controller") and one["uid"] == pod["metadata"]["uid"] for one in owners)
    return ours or claim["metadata"]["name"] in named
