"""Which pods are ours to place, and on which nodes they can run at all, whatever runs there now.

Nodes in use are no matter here: a workload for which there is no room yet belongs into Slurm's queue, where it ages,
is seen, and can preempt. Only `capacity: free` asks for what is free at this moment.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
import pydantic

from slurm_bridge.cluster import facts, selection
from slurm_bridge.cluster.columns import Mask, NodeColumns, Reasons, Ruling, units
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.rules import affinity, attachments, taints, volumes
from slurm_bridge.cluster.rules.attachments import ClaimKey
from slurm_bridge.hooks import emitter, needs
from slurm_bridge.hooks.base import GO, Admit, Ask, Denied, Deny, Fields, Nodes, Session
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model import names, quantity, selectors
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.storage import SOLE, Volume
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import resources

#: Pods of these classes keep a node alive; they must not wait in a batch queue.
CRITICAL = frozenset({"system-node-critical", "system-cluster-critical"})

MIRROR = "kubernetes.io/config.mirror"


class EligibilityOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Which pods are ours, which nodes are managed, and what nodes are compared by."""

    scheduler_names: tuple[str, ...] = (names.SCHEDULER_NAME,)
    """Pods of other schedulers are refused. Left out: the `scheduler_names` of the daemon."""
    node_selector: str = ""
    """Only nodes with these labels are used, for example `managed=yes,zone in (a,b)`."""
    capacity: Literal["allocatable", "free"] = "allocatable"
    """Whether a node is large enough by its whole size (`allocatable`), or by what is unused now (`free`)."""
    ignored_resources: tuple[str, ...] = ()
    """Extended resources that nodes are not compared by, as another scheduler manages them; left out, those that other
    hooks are configured to ignore."""
    devices: tuple[str, ...] = ()
    """Extended resources whose devices a device plugin chooses, and which Slurm counts; left out, those of the table
    `gres` of the daemon."""
    hybrid_devices: Literal["refuse", "whole-node", "count"] = "refuse"
    """What happens to pods that ask for `devices`, where native jobs of Slurm share the node; left out, the
    `hybrid_devices` of the daemon."""
    volumes: bool = True
    """Whether claims, volumes and classes are read; with `false`, pods with claims wait."""

    @pydantic.field_validator("node_selector")
    @classmethod
    def _readable(cls, text: str) -> str:
        selectors.parse(text)
        return text


@dataclasses.dataclass(frozen=True, slots=True)
class _Class:
    """Pods that ask the same of a node, and volumes that all have to be within reach; worked out once for all."""

    pod: Pod
    requests: Mapping[str, Fraction]
    volumes: tuple[Volume, ...]


class _Standing(NamedTuple):
    """What decides whether a node takes any pod; many nodes have the same."""

    managed: bool
    known: bool
    deleted: bool
    cordoned: bool
    ready: bool

    def against(self, *, cordoned_too: bool) -> str | None:
        """What is said against such a node."""
        if not self.managed:
            return "node(s) are not managed by this bridge"
        if not self.known:
            return "node(s) are not known to Slurm"
        if self.deleted:
            return "node(s) are being deleted"
        if self.cordoned and not cordoned_too:
            return "node(s) were unschedulable"
        return None if self.ready else "node(s) were not ready"


class Eligibility:
    """Admits pods that are ours, filters nodes, and looks once more when Slurm has chosen some."""

    Options: ClassVar = EligibilityOptions
    expresses_last: ClassVar = True

    def __init__(self, options: EligibilityOptions) -> None:
        self._options = options
        if options.hybrid_devices == "whole-node":
            # Otherwise no job is asked for differently, and no workload is looked at for it.
            self.express = self._whole_nodes
        #: Equal pods get equal answers for as long as the version of the cluster stands.
        self.steady = options.capacity == "allocatable" and options.hybrid_devices != "whole-node"
        self._managed = selectors.parse(options.node_selector)
        self._standing_name = f"standing where {options.node_selector} is managed"
        self._denied: VersionCache[bytes, Denied] = VersionCache()
        self.needs = frozenset({Need.PVCS, Need.PVS, Need.STORAGECLASSES}) if options.volumes else frozenset()

    def admit(self, session: Session, ask: Ask) -> Admit | Wait | Reject:
        for pod in ask.workload.pods:
            if obstacle := self._alien(pod) or _held(pod) or self._storage(session, pod):
                return obstacle
        return self._shared(session, ask.workload) or GO

    def filter(self, session: Session, ask: Ask, _nodes: Nodes) -> Denied:
        """Equal pods may come on any node that stays; of several shapes it is enough when a node can take one."""
        alike = [shape.pods for shape in ask.shapes] or [ask.workload.pods]
        first, *others = (self._of(session, pods) for pods in alike)
        if not others:
            return first
        by_all = first.nodes
        for other in others:
            assert isinstance(by_all, Reasons)
            assert isinstance(other.nodes, Reasons)
            by_all = by_all.also(other.nodes)
        return Denied(nodes=by_all)

    def _whole_nodes(self, session: Session, ask: Ask) -> Fields:
        """Whole nodes for devices that a native job on the same node could hold, too.

        What lasts decides: the job is submitted anew when this changes, and waits again from the beginning.
        """
        if ask.request.exclusive:
            return Fields()
        alike = [shape.pods for shape in ask.shapes] or [ask.workload.pods]
        asking = [pods for pods in alike if self._devices(resources.requests_of(pods[0]))]
        seen = session.snapshot
        within = emitter.members(seen, ask.request.partition or "") if asking else frozenset[str]()
        shared = seen.columns.mask(
            seen.by_slurm[name] for name in within & seen.by_slurm.keys() if seen.slurm_nodes[name].native
        )
        if any((shared & self._plugged(session, pods)).any() for pods in asking):
            return Fields(exclusive=True, source="hybrid_devices: whole-node")
        return Fields()

    def verify(self, session: Session, workload: Workload, nodes: Mapping[str, str]) -> Admit | Deny:
        """Between submission and start a node can be cordoned, tainted or deleted."""
        wrong: dict[str, str] = {}
        for pod in workload.pods:
            name = nodes.get(pod.uid)
            if name is not None and (reasons := self._at(session, pod, name)):
                wrong[name] = ", ".join(reasons)
        if not wrong:
            return GO
        told = "; ".join(f"{name}: {reasons}" for name, reasons in sorted(wrong.items()))
        return Deny(nodes=frozenset(wrong), message=f"nodes that Slurm allocated can no longer be used: {told}")

    def _alien(self, pod: Pod) -> Reject | None:
        """Why this pod is not for us, whatever the cluster looks like."""
        name = _name(pod)
        if pod.spec.scheduler_name not in self._options.scheduler_names:
            return Reject(reason="NotOurs", message=f"{name} names scheduler {pod.spec.scheduler_name!r}, not ours")
        if pod.bound:
            return Reject(reason="AlreadyBound", message=f"{name} runs on node {pod.spec.node_name} already")
        if MIRROR in pod.metadata.annotations or any(o.kind == "DaemonSet" for o in pod.metadata.owner_references):
            return Reject(reason="BelongsToNode", message=f"{name} belongs to one node (DaemonSet or mirror pod)")
        if pod.spec.priority_class_name in CRITICAL:
            message = f"{name} has priorityClassName {pod.spec.priority_class_name}: such pods cannot wait for Slurm"
            return Reject(reason="SystemCritical", message=message)
        return None

    def _storage(self, session: Session, pod: Pod) -> Wait | None:
        if not volumes.claimed(pod):
            return None
        if not self._options.volumes:
            message = "the pod uses a PersistentVolumeClaim, and hook eligibility is configured with volumes: false"
            return Wait(reason=volumes.REASON, message=message)
        found = volumes.bound(pod, needs.storage(session.view))
        return found if isinstance(found, Wait) else None

    def _shared(self, session: Session, workload: Workload) -> Wait | None:
        """Members that use one claim which one pod alone may use cannot start together."""
        users: dict[ClaimKey, str] = {}
        for pod in workload.pods if workload.gang is not None and self._options.volumes else ():
            for key in attachments.claims(pod):
                claim = needs.storage(session.view).claim(*key) if key in users else None
                if claim is not None and SOLE in claim.spec.access_modes:
                    where = f"PersistentVolumeClaim {'/'.join(key)} has the access mode {SOLE}"
                    message = f"{where}, and pods {users[key]} and {pod.metadata.name} of the gang use it"
                    return Wait(reason=volumes.REASON, message=f"{message}; give each its own, or use ReadWriteMany")
                users[key] = pod.metadata.name
        return None

    def _of(self, session: Session, alike: Sequence[Pod]) -> Denied:
        """Equal pods get the same record, as long as the cluster's version stands."""
        pod, seen, reach = alike[0], session.snapshot, self._reach(session, alike)
        version = seen.version if self._options.capacity == "allocatable" else seen.use_version
        return self._denied.get(
            version,
            _key(pod, reach),
            lambda: self._work_out(seen.columns, _Class(pod, resources.requests_of(pod), reach)),
        )

    def _reach(self, session: Session, alike: Iterable[Pod]) -> tuple[Volume, ...]:
        """The volumes that decide where the pods can run, one for each kind of reach; most pods have none."""
        claiming = [pod for pod in alike if volumes.claimed(pod)] if self._options.volumes else []
        if not claiming:
            return ()
        storage = needs.storage(session.view)
        found = (volumes.bound(pod, storage) for pod in claiming)
        every = (volume for one in found if not isinstance(one, Wait) for volume in one)
        return tuple({msgspec.json.encode(volume.spec.node_affinity): volume for volume in every}.values())

    def _work_out(self, seen: NodeColumns, of: _Class) -> Denied:
        """Why a pod cannot run on a node: the first rule that says no, or everything that there is too little of."""
        tolerations, ruling = of.pod.spec.tolerations, Ruling(seen)
        cordoned_too = taints.untolerated((taints.UNSCHEDULABLE,), tolerations) is None
        judge = functools.partial(_Standing.against, cordoned_too=cordoned_too)
        ruling.deny_by(seen.attribute(self._standing_name, self._standing), judge)
        if of.pod.spec.node_selector or affinity.required(of.pod) is not None:
            ruling.deny(~selection.accepting(seen, of.pod), "node(s) didn't match Pod's node affinity/selector")
        tainted = seen.of_node("taints", lambda node: node.spec.taints)
        ruling.deny_by(tainted, lambda found: _told(taints.untolerated(found, tolerations)))
        for volume in of.volumes:
            ruling.deny(~selection.reaching(seen, volume), "node(s) didn't match PersistentVolume's node affinity")
        if self._options.hybrid_devices == "refuse":
            native = seen.of_slurm("native", lambda node: int(node is not None and node.native)) > 0
            for name in self._devices(of.requests):
                ruling.deny(native & _counted(seen, name), _taken(name))
        compared = [name for name in of.requests if name not in self._options.ignored_resources]
        ruling.deny_all_of([(facts.shortage(name), self._short(seen, name, of)) for name in compared])
        return Denied(nodes=ruling.reasons(), moving=self._options.capacity == "free")

    def _devices(self, requests: Mapping[str, Fraction]) -> Sequence[str]:
        """The resources of a pod of which a device plugin chooses the devices."""
        return [name for name in self._options.devices if requests.get(name, 0) > 0]

    def _plugged(self, session: Session, alike: Sequence[Pod]) -> Mask:
        """The nodes that are meant for these pods, and have such devices by a plugin, whatever state they are in.

        Devices of a DRA driver are claimed one by one.
        """
        seen, pod = session.snapshot.columns, alike[0]
        managed = seen.attribute(self._standing_name, self._standing).where(lambda standing: standing.managed)
        meant = selection.accepting(seen, pod) & managed
        for volume in self._reach(session, alike):
            meant = meant & selection.reaching(seen, volume)
        asked = self._devices(resources.requests_of(pod))
        return meant & functools.reduce(np.logical_or, (_counted(seen, name) for name in asked))

    def _short(self, seen: NodeColumns, resource: str, of: _Class) -> Mask:
        """The nodes that have too little of a resource: of all that they have, or only of what is free."""
        wanted, there = units(resource, of.requests[resource]), seen.allocatable(resource)
        if wanted <= 0:
            return np.zeros_like(seen.present)
        return wanted > (there - seen.used(resource) if self._options.capacity == "free" else there)

    def _at(self, session: Session, pod: Pod, name: str) -> tuple[str, ...]:
        if name not in session.snapshot.nodes:
            return ("the node is gone from Kubernetes",)
        return self._of(session, (pod,)).nodes.get(name, ())

    def _standing(self, there: NodeFacts) -> _Standing:
        node = there.node
        return _Standing(
            managed=selectors.all_hold(self._managed, node.metadata.labels),
            known=there.slurm is not None,
            deleted=node.metadata.deletion_timestamp is not None,
            cordoned=node.spec.unschedulable,
            ready=node.ready,
        )


def _told(taint: Taint | None) -> str | None:
    return None if taint is None else f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"


def _counted(seen: NodeColumns, resource: str) -> Mask:
    """The nodes whose kubelet itself has some of this resource."""
    return seen.of_node(f"counted {resource}", functools.partial(_counts, resource)).where(bool)


def _counts(resource: str, node: Node) -> bool:
    """Also where its amount cannot be read: of that no pod gets anything, and no other node is to suffer for it."""
    try:
        return quantity.parse(node.status.allocatable.get(resource, 0)) > 0
    except (ValueError, ArithmeticError):
        return True


def _taken(resource: str) -> str:
    return (
        f"node(s) had {resource} that native Slurm jobs may hold, and a device plugin does not know which "
        "(hybrid_devices: refuse)"
    )


def _held(pod: Pod) -> Wait | None:
    """Gathering leaves such pods out of a gang; one that got in all the same holds the whole gang."""
    if pod.terminating:
        return Wait(reason="Terminating", message=f"{_name(pod)} is being deleted")
    if pod.gated:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Wait(reason="SchedulingGated", message=f"{_name(pod)} is held by scheduling gates: {gates}")
    return None


def _name(pod: Pod) -> str:
    return f"Pod {pod.metadata.namespace}/{pod.metadata.name}"


def _key(pod: Pod, reach: tuple[Volume, ...]) -> bytes:
    """All that the rules look at, as it is written; for pods with claims also from where their volumes are reached."""
    spec = pod.spec
    containers = [(one.resources, one.restart_policy) for one in (*spec.containers, *spec.init_containers)]
    needs = (len(spec.containers), containers, spec.resources, spec.overhead)
    behind = [volume.spec.node_affinity for volume in reach]
    return msgspec.json.encode((needs, spec.node_selector, spec.tolerations, affinity.required(pod), behind))
