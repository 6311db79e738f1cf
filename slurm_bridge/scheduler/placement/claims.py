"""What claims need before the pods of an allocation are bound: as kube-scheduler's plugin VolumeBinding. Pure.

    the claim                                                 what follows
    ────────────────────────────────────────────────────────  ───────────────────────────────────────────────────────
    is gone, is being deleted, or has lost its volume         the nodes are given back
    has the name of a pod's own, and was not made for it      the nodes are given back
    is bound to a volume that the node reaches                nothing
    is bound to another one                                   the nodes are given back, and the node is avoided
    has a volume, and is not bound yet                        wait
    has our choice of this node, selected for it              wait: the provisioner makes the volume
    has our choice of this node, not selected any more        the provisioner cannot: give back, avoid the node
    was selected a node by another scheduler or living job    wait: the volume then says from where it is reached
    waits, and a volume is kept for it that the node reaches  wait: the controller binds them
    waits, and one is kept for it that it does not reach      the nodes are given back, and the node is avoided
    waits, and the node reaches a volume that is free         keep the smallest such volume for it
    waits, and its class makes volumes for the node           select the node
    waits, and there is neither                               the nodes are given back, and the node is avoided

Of a claim that several pods use the node of the first pod counts. No pod of a gang is bound before all its claims are.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.rules import attachments, claims, volumes
from slurm_bridge.cluster.rules.attachments import ClaimKey
from slurm_bridge.cluster.rules.volumes import Storage
from slurm_bridge.model import names, quantity
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.names import JobId
from slurm_bridge.model.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, Claim, Volume
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.misfit import Misfit, unseen

#: The reason on pods that hold nodes and wait for their claims.
WAITS = "WaitsForVolumes"
#: The reason why an allocation is given back.
FAILED = "VolumeBindingFailed"
#: So many claims are named in a message.
MOST_NAMED = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimChooser:
    """The job whose allocation decides, as its choices are written on claims; `lives` tells of other jobs."""

    cluster: str
    job_id: JobId
    lives: Callable[[JobId], bool]

    def mark(self, node: str) -> str:
        """What is written beside the node that this job selects."""
        return f"{self.cluster}/{self.job_id}/{node}"

    def chose(self, claim: Claim) -> bool:
        """The choice on the claim is this job's, whatever node it is."""
        return _mark(claim).startswith(self.mark(""))

    def yields(self, claim: Claim) -> bool:
        """The choice on the claim is another scheduler's, or that of another job that lives: it stays."""
        if not claims.selected(claim) or self.chose(claim):
            return False
        cluster, _, rest = _mark(claim).rpartition("/")[0].rpartition("/")
        return cluster != self.cluster or not _is_job(rest) or self.lives(JobId(int(rest)))


@dataclasses.dataclass(frozen=True, slots=True)
class SelectNode:
    """Have the provisioner make a volume for this node."""

    claim: Claim
    mark: str
    node: str

    @property
    def changes(self) -> Manifest:
        """Of the claim."""
        return _annotated(self.claim, {SELECTED_NODE: self.node, names.ANNOTATION_SELECTED_BY: self.mark})


@dataclasses.dataclass(frozen=True, slots=True)
class KeepVolume:
    """Have the controller bind the claim to this volume."""

    claim: Claim
    volume: Volume

    @property
    def changes(self) -> Manifest:
        """Of the volume, as kube-scheduler writes it."""
        meta = self.claim.metadata
        kept = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta.namespace, "name": meta.name}
        # One that an administrator has kept for the claim stays so.
        changes = _annotated(self.volume, {BOUND_BY_CONTROLLER: "yes"} if self.volume.spec.claim_ref is None else {})
        return {**changes, "spec": {"claimRef": {**kept, "uid": meta.uid, "resourceVersion": meta.resource_version}}}


Write = SelectNode | KeepVolume


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsFound:
    """What is to be written, and which claims have to be waited for, by the node that waits; or what is wrong."""

    writes: tuple[Write, ...] = ()
    waiting: Mapping[ClaimKey, str] = dataclasses.field(default_factory=dict)
    misfit: Misfit | None = None

    @property
    def message(self) -> str:
        """For the owner of the pods."""
        named = [f"{'/'.join(key)} (node {node})" for key, node in list(self.waiting.items())[:MOST_NAMED]]
        more = f" and {len(self.waiting) - MOST_NAMED} more" if len(self.waiting) > MOST_NAMED else ""
        return f"waits for PersistentVolumeClaim {', '.join(named)}{more} to be bound to a volume"


def undone(claim: Claim) -> Manifest:
    """The claim without a choice."""
    return _annotated(claim, {SELECTED_NODE: None, names.ANNOTATION_SELECTED_BY: None})


def look(spots: Sequence[Spot], storage: Storage, columns: NodeColumns, chooser: ClaimChooser) -> ClaimsFound:
    """By the table above; smaller claims choose their volumes first, so that each gets the smallest that will do."""
    uses: dict[ClaimKey, list[Spot]] = {}
    for spot in spots:
        for key in sorted(attachments.claims(spot.pod)):
            uses.setdefault(key, []).append(spot)
    found: list[tuple[Claim, list[Spot]]] = []
    for key, users in uses.items():
        claim = storage.claim(*key)
        if claim is None or claim.metadata.deletion_timestamp is not None or claim.status.phase == "Lost":
            text = f"PersistentVolumeClaim {'/'.join(key)} was deleted, or has lost its volume"
            return ClaimsFound(misfit=Misfit(reason=volumes.REASON, message=text))
        foreign = next(filter(None, (volumes.foreign(user.pod, claim) for user in users)), "")
        if foreign:
            return ClaimsFound(misfit=Misfit(reason=volumes.REASON, message=foreign))
        found.append((claim, users))
    sight = _Sight(storage, columns, chooser)
    for claim, users in sorted(found, key=lambda one: claims.size(one[0])):
        misfit = sight.see(claim, users)
        if misfit is not None:
            return ClaimsFound(misfit=misfit)
    return ClaimsFound(writes=tuple(sight.writes), waiting=sight.waiting)


class _Sight:
    """The claims of one allocation, one after the other."""

    def __init__(self, storage: Storage, columns: NodeColumns, chooser: ClaimChooser) -> None:
        self._storage, self._columns, self._chooser = storage, columns, chooser
        self._taken: set[str] = set()
        self.writes: list[Write] = []
        self.waiting: dict[ClaimKey, str] = {}

    def see(self, claim: Claim, users: Sequence[Spot]) -> Misfit | None:
        node = users[0].node.name
        volume = self._storage.volume(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None and claim.status.phase == "Bound":
            return self._out_of_reach(claim, volume, users)
        self.waiting[claim.key] = node
        if claim.spec.volume_name or self._chooser.yields(claim):
            return None
        if not volumes.waits(claim, self._storage):
            return _failed(claim, "is not bound, and its class does not wait for a node any more")
        if _mark(claim) == self._chooser.mark(node):
            gave_up = f"is not provisioned: its provisioner gave up node {node}"
            return None if claims.selected(claim) else _failed(claim, gave_up, node)
        return self._serve(claim, users[0])

    def _serve(self, claim: Claim, spot: Spot) -> Misfit | None:
        """Find a volume for it on the node of its first pod, or have one made."""
        free = claims.choice(claim, self._storage.every_volume())
        fitting = [one for one in free if one.metadata.name not in self._taken and self._reaches(one, spot)]
        chosen, node = min(fitting, key=_size, default=None), spot.node.name
        if chosen is not None:
            self._taken.add(chosen.metadata.name)
            if chosen.spec.claim_ref is None or not chosen.spec.claim_ref.uid:
                self.writes.append(KeepVolume(claim, chosen))
            return None
        kept = next((one.metadata.name for one in free if claims.kept_for(claim, one)), None)
        if kept is not None:
            return _failed(claim, f"has PersistentVolume {kept} kept for it, which node {node} cannot use", node)
        made = claims.topologies(claim, self._storage)
        labels = spot.node.node.metadata.labels
        if made is None or (made and not any(all(one.holds(labels) for one in term) for term in made)):
            return _failed(
                claim, f"finds no available PersistentVolume on node {node}, and none can be made there", node
            )
        self.writes.append(SelectNode(claim, self._chooser.mark(node), node))
        return None

    def _out_of_reach(self, claim: Claim, volume: Volume, users: Iterable[Spot]) -> Misfit | None:
        wrong = sorted({one.node.name for one in users if not self._reaches(volume, one)})
        text = f"is bound to PersistentVolume {volume.metadata.name}, which cannot be used from node {', '.join(wrong)}"
        return _failed(claim, text, *wrong) if wrong else None

    def _reaches(self, volume: Volume, spot: Spot) -> bool:
        place = claims.place(volume)
        if place is not None:
            return place.holds(spot.node.node.metadata.labels)
        row = self._columns.row(spot.node.name)
        return row is not None and bool(selection.reaching(self._columns, volume)[row])


def _failed(claim: Claim, why: str, *nodes: str) -> Misfit:
    text = f"PersistentVolumeClaim {'/'.join(claim.key)} {why}"
    return unseen(FAILED, text, nodes)


def _mark(claim: Claim) -> str:
    return claim.metadata.annotations.get(names.ANNOTATION_SELECTED_BY, "")


def _is_job(text: str) -> bool:
    return len(text) <= len(str(1 << 32)) and text.isascii() and text.isdecimal()


def _size(volume: Volume) -> tuple[object, str]:
    return quantity.parse(volume.spec.capacity.get("storage", 0)), volume.metadata.name


def _annotated(of: Claim | Volume, annotations: Mapping[str, str | None]) -> Manifest:
    """A change of these annotations in exactly the version that was looked at."""
    return {"metadata": {"resourceVersion": of.metadata.resource_version, "annotations": dict(annotations)}}
