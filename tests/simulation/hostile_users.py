"""A namespace whose users write down whatever may pass for another one's: uids, owners, labels, job ids."""

import random
from typing import Any

from slurm_bridge.model import kinds, names
from tests.simulation.play import Act, Play
from tests.simulation.world import NAMESPACE, spec

EVIL = "evil"
#: More of their pods than these are never there: they do not take the room of others.
MOST = 8

#: What an owner reference may say; the API server resolves the first of them only.
_JOBS = ("batch/v1", "batch/v9", "x.example/v1")


class Hostile:
    """They have dice of their own: what the others do is the same with them and without them."""

    def __init__(self, play: Play, seed: int) -> None:
        self._world, self._dice = play.world, random.Random(f"hostile {seed}")
        self._numbers = iter(range(100_000))
        self._world.kube.create(kinds.NAMESPACES, {"metadata": {"name": EVIL}})
        self.acts: tuple[tuple[int, Act], ...] = (
            (3, self.join),
            (3, self.refuse),
            (2, self.forge_job),
            (2, self.name_job),
            (2, self.leave),
        )

    def act(self) -> None:
        """One of these."""
        weights, acts = zip(*self.acts, strict=True)
        self._dice.choices(acts, weights)[0]()

    def join(self) -> None:
        """A pod with the marks of another user's set or Job."""
        self._pod(self._marks(), self._owners())

    def refuse(self) -> None:
        """A pod that they put on a node themselves, and whose kubelet does not take it."""
        name = self._pod(self._marks(), self._owners(), node=self._node())
        if name:
            failed = {"status": {"phase": "Failed", "reason": "OutOfcpu"}}
            self._world.kube.merge(kinds.PODS, (EVIL, name), failed, subresource="status")

    def forge_job(self) -> None:
        """A Job that says that it is one of another user's JobSet, and nearly done."""
        found = self._theirs(kinds.JOBSETS)
        uid = self._dice.choice(found)["metadata"]["uid"] if found else "nobody"
        above = _reference("jobset.x-k8s.io/v1alpha2", "JobSet", "set", uid)
        labels = {names.LABEL_JOBSET_UID: uid, names.LABEL_JOBSET_NAME: "set", names.LABEL_JOBSET_ATTEMPT: "0"}
        metadata = {"name": f"x{next(self._numbers)}", "namespace": EVIL, "labels": labels, "ownerReferences": [above]}
        body = {"parallelism": 0, "completions": 100, "template": {"spec": {**spec("1"), "restartPolicy": "Never"}}}
        self._world.weather.note(f"hostile job {metadata}")
        self._world.kube.create(kinds.JOBS, {"metadata": metadata, "spec": body})

    def name_job(self) -> None:
        """A pod that they put on a node themselves, and that names any job."""
        jobs = sorted(self._world.slurm.world.jobs)
        job_id = self._dice.choice([*jobs, 4_000_000_000 + next(self._numbers)])
        self._pod({names.LABEL_JOB_ID: str(job_id)}, [], node=self._node())

    def leave(self) -> None:
        """Some of their pods go."""
        there = [pod["metadata"]["name"] for pod in self._world.kube.list(kinds.PODS, EVIL)]
        for name in self._dice.sample(there, min(3, len(there))):
            self._world.weather.note(f"hostile pod {name} goes")
            if self._world.kube.get(kinds.PODS, EVIL, name) is not None:
                self._world.kube.delete(kinds.PODS, (EVIL, name), grace=0)

    def end(self) -> None:
        """They are sent away."""
        for kind in (kinds.JOBS, kinds.PODS):
            for found in list(self._world.kube.list(kind, EVIL)):
                key = (EVIL, found["metadata"]["name"])
                if self._world.kube.get(kind, *key) is not None:
                    self._world.kube.delete(kind, key, grace=0)

    def _pod(self, labels: dict[str, str], owners: list[dict[str, Any]], *, node: str = "") -> str:
        if len(self._world.kube.list(kinds.PODS, EVIL)) >= MOST:
            return ""
        name = f"e{next(self._numbers)}"
        metadata = {"name": name, "namespace": EVIL, "labels": labels, "ownerReferences": owners}
        self._world.weather.note(f"hostile pod {metadata} {node}")
        body = {**spec("1m"), **({"nodeName": node} if node else {})}
        self._world.kube.create(kinds.PODS, {"metadata": metadata, "spec": body})
        return name

    def _node(self) -> str:
        return str(self._dice.choice(self._world.kube.list(kinds.NODES))["metadata"]["name"])

    def _theirs(self, kind: kinds.Kind[Any]) -> list[dict[str, Any]]:
        return list(self._world.kube.list(kind, NAMESPACE))

    def _marks(self) -> dict[str, str]:
        """Of another user's JobSet, or of a group by the name of another user's group."""
        sets = self._theirs(kinds.JOBSETS)
        if sets and self._dice.random() < 0.6:
            found = self._dice.choice(sets)["metadata"]
            marks = {names.LABEL_JOBSET_NAME: found["name"], names.LABEL_JOBSET_UID: found["uid"]}
            marks |= {names.LABEL_JOBSET_ATTEMPT: "0", names.LABEL_JOBSET_PART: "w"}
            return {**marks, names.LABEL_JOBSET_GLOBAL_INDEX: "0"}
        return {names.GROUP: "g", names.GROUP_SIZE: "50"} if self._dice.random() < 0.5 else {}

    def _owners(self) -> list[dict[str, Any]]:
        jobs = self._theirs(kinds.JOBS)
        uid = self._dice.choice(jobs)["metadata"]["uid"] if jobs else "nobody"
        # The garbage collector would look up an owner that resolves, and end the pod.
        return [_reference(self._dice.choice(_JOBS), "Job", "work", uid)] if self._dice.random() < 0.8 else []


def _reference(version: str, kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
