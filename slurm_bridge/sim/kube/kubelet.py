"""The kubelets of all nodes: bound pods run and end as their annotations say, deleted pods go.

The annotations are those of the real local cluster's stages, so that a test means the same in both:

    kwok.local/outcome      run | succeed | fail | crash-loop | reject   (pods of Jobs succeed, others run)
    kwok.local/seconds      how long it runs before that (2)
    kwok.local/terminating  hang: deleted, it stays for ever; "5s": it takes that long to end
    kwok.local/exit-code    of a pod that fails (1)

    bound --> Running --> Succeeded | Failed | CrashLoopBackOff
    deletionTimestamp --> Failed (143) --> gone, once it has no finalizer

A pod on a node that does not exist has no kubelet and stays as it is.
"""

import re
from collections.abc import Mapping
from typing import Any

from slurm_bridge.sim.kube import followers
from slurm_bridge.sim.kube.followers import Agenda, Tail
from slurm_bridge.sim.kube.objects import Deletion, Objects, ObjectTarget
from slurm_bridge.sim.kube.pods import set_condition
from slurm_bridge.sim.kube.resources import NODES, PODS
from slurm_bridge.sim.kube.store import Key, Manifest, StoredObject

PREFIX = "kwok.local/"

Due = tuple[Key, str, str]

_OVER = ("Succeeded", "Failed")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}


class Kubelet:
    """Follows bound pods."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._tail = Tail(objects.store, PODS)
        self._nodes = Tail(objects.store, NODES)
        self._agenda = Agenda(objects.clock)

    def next_due(self) -> float | None:
        return self._agenda.next_due()

    def settle(self) -> bool:
        changed = [event.new for event in self._tail.news() if not event.gone]
        if any(event.old is None for event in self._nodes.news()):
            # A new node's kubelet finds the pods that were bound to the node before.
            changed = self._objects.store.all(PODS)
        looked = followers.each(self._objects.store, self._look, changed)
        return followers.each(self._objects.store, self._come_due, self._agenda.ready()) or looked

    def _look(self, seen: StoredObject) -> bool:
        stored = self._objects.store.get(PODS, *seen.key)
        if stored is None or not stored.fields["spec.nodeName"]:
            return False
        if self._objects.store.get(NODES, "", stored.fields["spec.nodeName"]) is None:
            return False
        pod = stored.manifest()
        if "deletionTimestamp" in pod["metadata"]:
            wish = _wish(pod, "terminating", "0s")
            if wish != "hang":
                parsed = re.fullmatch(r"([\d.]+)(ms|s|m)", wish)
                seconds = float(parsed[1]) * _UNITS[parsed[2]] if parsed else 0.0
                self._agenda.add(seconds, (stored.key, stored.uid, "terminate"))
        elif stored.fields["status.phase"] == "Pending":
            self._start(stored, pod)
            return True
        return False

    def _start(self, stored: StoredObject, pod: Manifest) -> None:
        of_job = any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences") or ())
        outcome = _wish(pod, "outcome", "succeed" if of_job else "run")
        if outcome == "reject":
            status = {
                "phase": "Failed",
                "reason": "OutOfcpu",
                "message": "Pod was rejected: Node didn't have enough cpu",
            }
            self._write(stored, status, {})
            return
        now = self._objects.now()
        running = _containers(pod, {"running": {"startedAt": now}}, ready=True)
        self._write(stored, {"phase": "Running", "startTime": now, **running}, _ready("True", now))
        if outcome != "run":
            self._agenda.add(float(_wish(pod, "seconds", "2")), (stored.key, stored.uid, outcome))

    def _come_due(self, entry: Due) -> bool:
        key, uid, what = entry
        stored = self._objects.store.get(PODS, *key)
        if stored is None or stored.uid != uid:
            return False
        pod = stored.manifest()
        if what == "terminate":
            return self._terminate(stored, pod)
        if stored.fields["status.phase"] != "Running" or "deletionTimestamp" in pod["metadata"]:
            return False
        self._end(stored, pod, what)
        return True

    def _end(self, stored: StoredObject, pod: Manifest, outcome: str) -> None:
        now = self._objects.now()
        if outcome == "crash-loop":
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
            self._write(stored, _containers(pod, waiting, restarts=1), _ready("False", now, "ContainersNotReady"))
            return
        succeeded = outcome == "succeed"
        code = 0 if succeeded else int(_wish(pod, "exit-code", "1"))
        self._write_end(stored, pod, "Succeeded" if succeeded else "Failed", code)

    def _write_end(self, stored: StoredObject, pod: Manifest, phase: str, code: int) -> None:
        now = self._objects.now()
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now}
        status = {"phase": phase, **_containers(pod, {"terminated": ended})}
        self._write(stored, status, _ready("False", now, "PodFailed" if code else "PodCompleted"))

    def _terminate(self, stored: StoredObject, pod: Manifest) -> bool:
        if stored.fields["status.phase"] not in _OVER:
            self._write_end(stored, pod, "Failed", 143)
            return True
        if pod["metadata"].get("finalizers"):
            return False
        self._objects.delete(_target(stored), Deletion(uid=stored.uid, grace=0))
        return True

    def _write(self, stored: StoredObject, status: Mapping[str, Any], conditions: Mapping[str, Any]) -> None:
        def change(pod: Manifest) -> Manifest:
            pod["status"] = {**pod.get("status", {}), **status}
            for name in ("Initialized", "Ready", "ContainersReady") if conditions else ():
                shown = {**conditions, "status": "True"} if name == "Initialized" else conditions
                set_condition(pod, {"type": name, **shown})
            return pod

        self._objects.change(_target(stored, "status"), change)


def _target(stored: StoredObject, subresource: str = "") -> ObjectTarget:
    return ObjectTarget(resource=PODS, namespace=stored.namespace, name=stored.name, subresource=subresource)


def _wish(pod: Manifest, name: str, default: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(PREFIX + name, default))


def _ready(status: str, now: str, reason: str = "") -> dict[str, str]:
    return {"status": status, "lastTransitionTime": now, **({"reason": reason} if reason else {})}


def _containers(pod: Manifest, state: Mapping[str, Any], *, ready: bool = False, restarts: int = 0) -> Manifest:
    shown = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "ready": ready,
            "restartCount": restarts,
            "state": state,
        }
        for container in pod["spec"].get("containers", ())
    ]
    return {"containerStatuses": shown}
