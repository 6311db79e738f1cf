"""What has to hold of ResourceClaims after every call, whatever is lost, killed, or written by others meanwhile.

D1  no device is in two claims, as far as daemons give devices
D2  a daemon binds a pod only with devices for each of its claims: on that node, and those that Slurm gave to its job
D3  a daemon changes only claims that pods of ours name, or that are reserved for them: the finalizer is added, the
    status is filled when it is empty, and emptied when it is for our pods alone, of which none runs
D4  in the end no claim has devices without a pod that is to use them
"""

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge.model import names
from slurm_bridge.model.devices import FINALIZER
from slurm_bridge.sim import wire
from slurm_bridge.sim.kube.resources import PODS, RESOURCECLAIMS
from slurm_bridge.sim.kube.store import Event
from tests.simulation.broken_promise import Broken
from tests.simulation.world import World

#: A daemon acts on what it heard last: so old may that be.
STALE = 45.0
_CLAIM = re.compile(r"/namespaces/([^/]+)/resourceclaims/([^/]+)(?:/status)?$")
_OVER = ("Succeeded", "Failed")

Json = Mapping[str, Any]
Key = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Holding:
    """A claim that has devices, which daemon gave them ("": another scheduler), and when."""

    key: Key
    devices: frozenset[Key]
    by: str
    since: float


class ClaimRules:
    """Looks; raises Broken. `fenced`: a daemon that leads no more writes nothing."""

    def __init__(self, world: World, *, fenced: bool = True) -> None:
        self._world, self._store, self._fenced = world, world.kube.store, fenced
        self._version = world.kube.store.version
        self._holding: dict[str, _Holding] = {}
        #: When others wrote to a claim last.
        self._meddled: dict[Key, float] = {}
        #: Pods that daemons have bound.
        self.bindings = 0
        #: Which daemon has made which version of a claim.
        self._writers: dict[int, str] = {}
        world.around_kube.append(self.around)

    def around(self, handler: wire.Handler, who: str) -> wire.Handler:
        """Kubernetes as this daemon reaches it: what controllers do while they answer is not its doing."""

        def pass_on(request: wire.Request) -> wire.Response:
            self.look()
            response = handler(request)
            found = _CLAIM.search(request.path) if request.method in ("PATCH", "PUT", "DELETE") else None
            for event in self._events(RESOURCECLAIMS, self._version) if found else ():
                if found and event.new.key == (found[1], found[2]):
                    self._writers[event.version] = who
                    break
            self.look(who)
            return response

        return pass_on

    def meddle(self, *claims: Key) -> None:
        """Another client writes to them."""
        self.look()
        self._meddled.update(dict.fromkeys(claims, self._now))

    @property
    def _now(self) -> float:
        return self._world.clock.now()

    def look(self, by: str = "") -> None:
        """See what has changed; `by` is the daemon that did it."""
        since, self._version = self._version, self._store.version
        if since == self._version:
            return
        if since < self._store.floor(RESOURCECLAIMS):
            there = {one.uid for one in self._store.all(RESOURCECLAIMS)}
            self._holding = {uid: one for uid, one in self._holding.items() if uid in there}
        for event in self._events(RESOURCECLAIMS, since):
            writer = self._writers.get(event.version, "")
            if writer:
                self._check_write(event, writer)
            self._follow(event, writer)
        self._check_doubles(by)
        for event in self._events(PODS, since):
            if (
                by
                and not event.gone
                and _node(event.new.manifest())
                and not (event.old and _node(event.old.manifest()))
            ):
                self._check_binding(event.new.manifest(), by)

    def _events(self, resource: Any, since: int) -> list[Event]:
        """After its history was compacted the store says what is there."""
        if since >= self._store.floor(resource):
            return self._store.events(resource, since)
        return [Event(version=one.version, new=one, old=one) for one in self._store.all(resource)]

    # -- claims

    def _follow(self, event: Event, by: str) -> None:
        claim, uid = event.new.manifest(), event.new.uid
        devices = devices_of(claim)
        known = self._holding.get(uid)
        if event.gone or not devices:
            self._holding.pop(uid, None)
        elif known is None or known.devices != devices:
            self._holding[uid] = _Holding(event.new.key, devices, by, self._now)

    def _check_write(self, event: Event, by: str) -> None:
        old, new = (event.old or event.new).manifest(), event.new.manifest()
        called = f"claim {'/'.join(event.new.key)}"
        if event.gone or event.old is None:
            raise Broken(f"D3: {by} {'deleted' if event.gone else 'made'} {called}")
        named = any(event.new.name in claims_of(pod).values() for pod in self._ours(event.new.namespace))
        used = named or any(map(_is_ours, self._pods_of(old)))
        if not used and self._now - self._left(event.new.key) > STALE:
            raise Broken(f"D3: {by} wrote to {called}, which no pod of ours uses")
        if _rest(old) != _rest(new):
            raise Broken(f"D3: {by} changed more than the devices of {called}: {_rest(old)} -> {_rest(new)}")
        added = [one for one in _finalizers(new) if one not in _finalizers(old)]
        if added not in ([], [FINALIZER]) or len(_finalizers(new)) != len(_finalizers(old)) + len(added):
            raise Broken(f"D3: {by} changed the finalizers of {called} to {_finalizers(new)}")
        before, after = _allocation(old), _allocation(new)
        if before and after and (before != after or users_of(old) != users_of(new)):
            raise Broken(f"D3: {by} wrote over {called}: {before} -> {after}")
        if before and not after:
            self._check_taken_back(old, called, by)

    def _left(self, key: Key) -> float:
        """When the last pod of ours that used it was seen to go, as the observer has it."""
        users = [pod for pod in self._world.observer.pods.values() if pod.ours and pod.key[0] == key[0]]
        return max((pod.left or self._now for pod in users if pod.gone), default=0.0)

    def _check_taken_back(self, claim: Json, called: str, by: str) -> None:
        for user in users_of(claim):
            pod = self._pod(claim["metadata"]["namespace"], user["name"])
            if user.get("resource") != "pods" or pod is None or pod["metadata"]["uid"] != user["uid"]:
                raise Broken(f"D3: {by} took back {called}, which is for {user}")
            if not _is_ours(pod) or (_node(pod) and not _over(pod)):
                raise Broken(f"D3: {by} took back {called} from pod {user['name']}, which runs, or is not ours")

    def _check_doubles(self, by: str) -> None:
        found: dict[Key, list[_Holding]] = collections.defaultdict(list)
        for holding in self._holding.values():
            for device in holding.devices:
                found[device].append(holding)
        for device, there in found.items():
            if len(there) > 1 and not self._excused(there):
                raise Broken(f"D1: device {device} is in {[one.key for one in there]} (after {by or 'the world'})")

    def _excused(self, there: list[_Holding]) -> bool:
        """No daemon could know what another scheduler did just before, nor what an unfenced daemon is about to do."""
        moments = [one.since for one in there]
        close = max(moments) - min(moments) <= STALE
        foreign = any(not one.by or one.key in self._meddled for one in there)
        return (close and foreign) or (not self._fenced and not self._both_run(there))

    def _both_run(self, there: list[_Holding]) -> bool:
        running = [one for one in there if any(map(self._runs, self._users(one.key)))]
        return len(running) > 1

    def _users(self, key: Key) -> Iterator[Json]:
        stored = self._store.get(RESOURCECLAIMS, *key)
        return self._pods_of(stored.manifest()) if stored is not None else iter(())

    def _pods_of(self, claim: Json) -> Iterator[Json]:
        """Those that it is reserved for."""
        for user in users_of(claim):
            pod = self._pod(claim["metadata"]["namespace"], user["name"])
            if pod is not None and pod["metadata"]["uid"] == user["uid"]:
                yield pod

    def _runs(self, pod: Json) -> bool:
        return bool(_node(pod)) and not _over(pod)

    # -- pods

    def _ours(self, namespace: str) -> Iterator[Json]:
        return filter(_is_ours, (one.manifest() for one in self._store.all(PODS, namespace)))

    def _pod(self, namespace: str, name: str) -> Json | None:
        stored = self._store.get(PODS, namespace, name)
        return stored.manifest() if stored is not None else None

    def _check_binding(self, pod: Json, by: str) -> None:
        meta = pod["metadata"]
        self.bindings += bool(claims_of(pod))
        for name in claims_of(pod).values():
            key = (meta["namespace"], name)
            if self._now - self._meddled.get(key, -STALE) < STALE:
                continue
            stored = self._store.get(RESOURCECLAIMS, *key)
            claim = stored.manifest() if stored is not None else {}
            if meta["uid"] not in {one["uid"] for one in users_of(claim)}:
                raise Broken(f"D2: {by} bound {meta['name']}, for which claim {name} is not reserved: {claim}")
            devices = devices_of(claim)
            if {pool for pool, _ in devices} != {_node(pod)}:
                raise Broken(f"D2: {by} bound {meta['name']} to {_node(pod)}, and claim {name} has {sorted(devices)}")
            self._check_given(pod, devices, by)

    def _check_given(self, pod: Json, devices: frozenset[Key], by: str) -> None:
        """Where Slurm gives indices, and the job still runs."""
        job = self._world.slurm.world.jobs.get(int(pod["metadata"]["labels"][names.LABEL_JOB_ID]))
        if job is None or job.grant is None or not job.running or not self._world.fleet.indexed:
            return
        slurm = self._world.fleet.nodes[_node(pod)]
        parts = [part for share in job.grant.shares if share.node == slurm for part in share.gres]
        given = {index for part in parts for index in part.indices}
        has = {int(name.rpartition("-")[2]) for _, name in devices}
        if not has <= given:
            raise Broken(f"D2: {by} bound {pod['metadata']['name']} with {has}, and Slurm gave {given} to its job")

    # -- at the end

    def leaked(self) -> list[str]:
        """D4."""
        self.look()
        return [
            f"D4: claim {'/'.join(one.key)} has {sorted(one.devices)} of {one.by or 'another scheduler'} for no pod"
            for one in self._holding.values()
            if not any(not _over(pod) for pod in self._users(one.key))
        ]


def claims_of(pod: Json) -> dict[str, str]:
    """By the names of its entries."""
    made = {one["name"]: one.get("resourceClaimName") for one in pod["status"].get("resourceClaimStatuses") or ()}
    entries = pod["spec"].get("resourceClaims") or ()
    found = {one["name"]: one.get("resourceClaimName") or made.get(one["name"]) for one in entries}
    return {entry: name for entry, name in found.items() if name}


def devices_of(claim: Json) -> frozenset[Key]:
    """Pool and name of each device that it has."""
    results = (_allocation(claim).get("devices") or {}).get("results") or ()
    return frozenset((one["pool"], one["device"]) for one in results)


def users_of(claim: Json) -> list[dict[str, Any]]:
    """What it is reserved for."""
    return list((claim.get("status") or {}).get("reservedFor") or ())


def _allocation(claim: Json) -> dict[str, Any]:
    return dict((claim.get("status") or {}).get("allocation") or {})


def _finalizers(claim: Json) -> list[str]:
    return list(claim["metadata"].get("finalizers") or ())


def _rest(claim: Json) -> Json:
    """What is not for a daemon to change."""
    moving = ("finalizers", "resourceVersion", "managedFields", "generation")
    metadata = {key: value for key, value in claim["metadata"].items() if key not in moving}
    status = {
        key: value for key, value in (claim.get("status") or {}).items() if key not in ("allocation", "reservedFor")
    }
    return {"metadata": metadata, "spec": claim["spec"], "status": status}


def _is_ours(pod: Json) -> bool:
    return bool(pod["spec"].get("schedulerName") == names.SCHEDULER_NAME)


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _over(pod: Json) -> bool:
    return pod["status"].get("phase") in _OVER
