"""Nodes of Kubernetes that come and go, administrators of both sides, and an observer with a view of its own."""

import contextlib
import dataclasses
import datetime as dt
import random
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_servers
from tests.e2e.support_servers import Json

NODES = "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PARTITION = "dynamic"

#: A node that is changed is in step again after so many seconds.
PROMPTLY = 30.0
_PERIOD = 0.3


def manifest(name: str, *, cpus: int = 4, gpus: int = 0, registered: bool = True, partition: str = PARTITION) -> Json:
    """What a kubelet registers, with the marks that an administrator gives it."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    amounts = {"cpu": str(cpus), "memory": "8000Mi", "pods": "110"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name} | ({names.LABEL_EXTERNAL_NODE: "true"} if registered else {}),
            "annotations": {names.ANNOTATION_EXTERNAL_PARTITIONS: partition},
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}],
        },
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machines:
    """Both sides' nodes. Those of this test begin with its own word, and are gone afterwards."""

    kube: support_servers.Kubernetes
    slurm: support_servers.Slurm
    word: str

    def name(self, number: int) -> str:
        return f"{self.word}-{number}"

    # -- Kubernetes

    def add(self, *numbers: int, **fields: Any) -> None:
        support_servers.each(numbers, lambda one: self.kube.create(NODES, manifest(self.name(one), **fields)))

    def change(self, number: int, **changes: object) -> None:
        self.kube.merge(f"{NODES}/{self.name(number)}", changes)

    def cordon(self, number: int, *, wanted: bool = True) -> None:
        self.change(number, spec={"unschedulable": wanted or None})

    def label(self, number: int, key: str, value: str | None) -> None:
        self.change(number, metadata={"labels": {key: value}})

    def resize(self, number: int, cpus: int) -> None:
        """What the kubelet of a machine with more or fewer CPUs reports."""
        amounts = {"cpu": str(cpus), "memory": "8000Mi", "pods": "110"}
        self.kube.merge(
            f"{NODES}/{self.name(number)}/status", {"status": {"capacity": amounts, "allocatable": amounts}}
        )

    def delete(self, number: int) -> None:
        self.kube.delete(f"{NODES}/{self.name(number)}")

    @contextlib.contextmanager
    def slices(self, number: int, driver: str, *, of: int) -> Iterator[Callable[[int], None]]:
        """What a driver publishes of this node: a pool of so many slices, each with so many devices."""
        made: list[str] = []

        def publish(devices: int) -> None:
            name = f"{self.name(number)}-{len(made)}"
            spec = {
                "driver": driver,
                "nodeName": self.name(number),
                "pool": {"name": self.name(number), "generation": 1, "resourceSliceCount": of},
                "devices": [{"name": f"{name}-{one}"} for one in range(devices)],
            }
            about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}}
            self.kube.create(SLICES, {**about, "spec": spec})
            made.append(name)

        try:
            yield publish
        finally:
            for name in made:
                self.kube.delete(f"{SLICES}/{name}")

    def of_kubernetes(self) -> dict[str, Json]:
        return {
            one["metadata"]["name"]: one
            for one in self.kube.items(NODES)
            if one["metadata"]["name"].startswith(self.word)
        }

    # -- Slurm

    def of_slurm(self) -> dict[str, Json]:
        """All nodes, of the configuration too."""
        return {one["name"]: one for one in self.slurm.nodes()}

    def mine(self) -> dict[str, Json]:
        return {name: node for name, node in self.of_slurm().items() if name.startswith(self.word)}

    def order(self, state: str, *nodes: str, reason: str = "") -> None:
        """What an administrator of Slurm does with scontrol."""
        words = [f"NodeName={','.join(nodes)}", f"State={state}", *([f"Reason={reason}"] if reason else [])]
        self.slurm.command("scontrol", "update", *words)

    def drained(self, name: str) -> str | None:
        """The reason, None while it takes jobs or is not there."""
        node = self.of_slurm().get(name)
        return node["reason"] if node is not None and "DRAIN" in node["state"] else None

    def cleared(self) -> bool:
        """No node of this test is left in Slurm; the daemon may still be at it, or not be there any more."""
        left = sorted(self.mine())
        with contextlib.suppress(AssertionError):
            if left:
                self.slurm.command("scontrol", "delete", f"NodeName={','.join(left)}")
        return not left

    def until(self, condition: Callable[[], object], what: str, seconds: float = PROMPTLY) -> None:
        wait.until(condition, what, seconds, every=_PERIOD)


@contextlib.contextmanager
def machines(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Machines]:
    """With the rights that the node controller's component grants."""
    kube.apply(PROJECT / "deploy" / "nodes" / "rbac.yaml")
    made = Machines(kube=kube, slurm=slurm, word=f"n{secrets.token_hex(3)}")
    try:
        yield made
    finally:
        for name in made.of_kubernetes():
            kube.delete(f"{NODES}/{name}")
        made.until(made.cleared, "the end of all nodes")
        for one in yaml.safe_load_all((PROJECT / "deploy" / "nodes" / "rbac.yaml").read_text()):
            plural = f"{one['kind'].lower()}s"
            kube.delete(f"/apis/rbac.authorization.k8s.io/v1/{plural}/{one['metadata']['name']}")


class RandomAdmins:
    """Administrators of both sides, at random; `decided` is what those of Slurm have decided, by node."""

    def __init__(self, machines: Machines, seed: int, count: int) -> None:
        self._machines, self._dice, self._count = machines, random.Random(seed), count
        self.decided: dict[str, str] = {}
        self.journal: list[str] = []

    def act(self) -> None:
        """One thing, to one node or to several."""
        number = self._dice.randrange(self._count)
        name = self._machines.name(number)
        known = name in self._machines.of_kubernetes()
        acts = (self._machines.cordon, self._uncordon, self._delete, self._rename, self._resize, self._unlabel)
        act = self._dice.choice((*acts, self._drain, self._drain, self._resume)) if known else self._add
        self.journal.append(f"{getattr(act, '__name__', act)} {name}")
        act(number)

    def _add(self, number: int) -> None:
        self._machines.add(number, cpus=self._dice.choice((2, 4)))

    def _uncordon(self, number: int) -> None:
        self._machines.cordon(number, wanted=False)

    def _delete(self, number: int) -> None:
        """A node that goes takes with it what was decided about it, here and below."""
        self._forget(self._slurm_name(number), self._machines.name(number))
        self._machines.delete(number)

    def _forget(self, *nodes: str) -> None:
        for name in nodes:
            self.decided.pop(name, "")

    def _slurm_name(self, number: int) -> str:
        """The name that the node has in Slurm, empty where it is not registered."""
        name = self._machines.name(number)
        labels = self._machines.of_kubernetes().get(name, {}).get("metadata", {}).get("labels", {})
        registered = labels.get(names.LABEL_EXTERNAL_NODE) == "true"
        return (labels.get(names.LABEL_SLURM_NODE_NAME) or name) if registered else ""

    def _unlabel(self, number: int) -> None:
        self._forget(self._slurm_name(number), self._machines.name(number))
        self._machines.label(number, names.LABEL_EXTERNAL_NODE, self._dice.choice((None, "true", "true")))

    def _rename(self, number: int) -> None:
        """To a new name, to one that another node has, or back."""
        other = self._machines.name(self._dice.randrange(self._count))
        value = self._dice.choice((None, f"{self._machines.word}-x{number}", other))
        self._forget(self._slurm_name(number), self._machines.name(number), value or "")
        self._machines.label(number, names.LABEL_SLURM_NODE_NAME, value)

    def _resize(self, number: int) -> None:
        self._machines.resize(number, self._dice.choice((2, 4, 8)))

    def _drain(self, number: int) -> None:
        """A node that is there; it is the administrator's until the administrator resumes it."""
        name = self._machines.name(number)
        if self._slurm_name(number) != name:
            return
        with contextlib.suppress(AssertionError):
            self._machines.order("DRAIN", name, reason="badfan")
            self.decided[name] = "badfan"

    def _resume(self, number: int) -> None:
        name = self._machines.name(number)
        if self.decided.pop(name, ""):
            with contextlib.suppress(AssertionError):
                self._machines.order("RESUME", name)


class NodeObserver:
    """What has to be so at any moment, and at the end."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._others = self._of_others()

    def _of_others(self) -> Mapping[str, object]:
        """What a bridge could have done to nodes that are not of this test."""
        found = self._machines.of_slurm().items()
        return {
            name: ("DRAIN" in node["state"], node["reason"], node["comment"])
            for name, node in found
            if not name.startswith(self._machines.word)
        }

    def look(self, decided: Mapping[str, str]) -> None:
        """No node of others has changed, and no administrator's drain has ended while its node was there."""
        assert self._of_others() == self._others
        nodes = self._machines.of_slurm()
        for name, reason in decided.items():
            if name in nodes:
                node = nodes[name]
                seen = "DRAIN" in node["state"], node["reason"]
                assert seen == (True, reason), f"{name}: {node['state']}, {node['reason']!r}, {node['comment']}"

    def disagreements(self) -> list[str]:
        """What the two sides say differently."""
        asked, found = self._machines.of_kubernetes(), self._machines.mine()
        claims: dict[str, list[Json]] = {}
        for node in asked.values():
            labels = node["metadata"]["labels"]
            claims.setdefault(labels.get(names.LABEL_SLURM_NODE_NAME) or node["metadata"]["name"], []).append(node)
        return [
            *(
                line
                for name, nodes in claims.items()
                if len(nodes) == 1 and not _held(nodes[0]["metadata"]["name"], name, claims.keys(), found)
                for line in _differences(name, nodes[0], found)
            ),
            *(f"{name} is in Slurm, and no node asks for it" for name in found.keys() - claims.keys()),
        ]


def _held(node: str, wanted: str, claimed: Collection[str], found: Mapping[str, Json]) -> bool:
    """Its former node of Slurm, whose name another node has taken, is an administrator's to give back."""
    return any(
        (name == node or f'"node":"{node}"' in there["comment"])
        and name != wanted
        and name in claimed
        and "DRAIN" in there["state"]
        and not there["reason"].startswith("slurm-bridge(")
        for name, there in found.items()
    )


def _differences(name: str, node: Json, found: Mapping[str, Json]) -> Iterable[str]:
    there, labels = found.get(name), node["metadata"]["labels"]
    if labels.get(names.LABEL_EXTERNAL_NODE) != "true":
        if there is not None:
            yield f"{name} is not registered, and in Slurm"
        return
    if there is None:
        yield f"{name} is registered, and not in Slurm"
        return
    cordoned, drained = bool(node["spec"].get("unschedulable")), "DRAIN" in there["state"]
    theirs = drained and not there["reason"].startswith("slurm-bridge(")
    if not theirs and cordoned != drained:
        yield f"{name}: cordoned {cordoned}, drained {drained} ({there['reason']})"
    if not theirs and str(there["cpus"]) != node["status"]["allocatable"]["cpu"]:
        yield f"{name}: {there['cpus']} cpus in Slurm, {node['status']['allocatable']['cpu']} in Kubernetes"


def passed(seconds: float) -> Callable[[], bool]:
    """Whether so much time has gone by since this call."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end
