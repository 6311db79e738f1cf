"""The kinds of workloads in order of precedence, and what follows from their rows for the rest of the program."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurm_bridge.informers.store import Index
from slurm_bridge.model import devices, kinds
from slurm_bridge.model.announcement import Announcements
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.workload import Root
from slurm_bridge.workloads.kind_spec import Companion, KindSpec
from slurm_bridge.workloads.kinds import (
    coscheduling_podgroup,
    job,
    jobset,
    kai_podgroup,
    leaderworkerset,
    mpijob,
    named_group,
    pod,
    podgroup,
)

#: The first that claims a pod has it. What groups pods on purpose comes before what merely makes them. Of what groups
#: pods, objects of Kubernetes itself come first, then those of a plugin and of another scheduler, then labels of our
#: own. Of what makes pods, the larger comes first: a Job of a JobSet or an MPIJob is a part of it. The last one claims
#: every pod.
KINDS: Final[tuple[KindSpec, ...]] = (
    podgroup.SPEC,
    coscheduling_podgroup.SPEC,
    kai_podgroup.SPEC,
    named_group.SPEC,
    leaderworkerset.SPEC,
    jobset.SPEC,
    mpijob.SPEC,
    job.SPEC,
    pod.SPEC,
)

#: The names of the kinds. A job in Slurm for any other kind was made by a later version, and is left alone.
NAMES: Final = frozenset(spec.name for spec in KINDS)

#: The objects that workloads are, each with its row.
SPECS: Final[Mapping[Kind[Any], KindSpec]] = {spec.resource: spec for spec in KINDS if spec.resource is not None}

#: Objects that speak for other objects, each with the kind of those.
COMPANIONS: Final[Mapping[Kind[Any], tuple[Kind[Any], Companion]]] = {
    one.resource: (resource, one) for resource, spec in SPECS.items() for one in spec.companions
}

#: What is watched because it makes or groups pods.
WATCHED: Final[tuple[Kind[Any], ...]] = tuple(sorted((*SPECS, *COMPANIONS), key=lambda kind: kind.group))

#: Every kind of object that the program reads or writes: those of the model, and those that stand only in a row.
RESOURCES: Final[tuple[Kind[Any], ...]] = tuple(dict.fromkeys((*kinds.ALL, *WATCHED)))

#: What is read on the way up from a pod. A pod is among them: the leader pod of a LeaderWorkerSet owns its workers.
OWNERS: Final[tuple[Kind[Any], ...]] = (
    *(kind for kind, spec in SPECS.items() if spec.owner),
    kinds.PODS,
    kinds.REPLICASETS,
    kinds.STATEFULSETS,
    kinds.DEPLOYMENTS,
    kinds.DAEMONSETS,
    kinds.CRONJOBS,
)

#: What gets the events of its workload, and how its status says that all members have nodes.
ANNOUNCEMENTS: Final[Announcements] = {kind: spec.announcement for kind, spec in SPECS.items()}

#: Kinds whose status says it.
ANNOUNCED: Final = frozenset(spec.name for spec in SPECS.values() if spec.announcement is not None)

#: What stands before the slash of annotations that a kind reads.
PREFIXES: Final = frozenset(prefix for spec in KINDS for prefix in spec.prefixes)


def _merged(specs: Iterable[KindSpec]) -> Mapping[Kind[Any], Mapping[str, Index[Any]]]:
    merged: dict[Kind[Any], dict[str, Index[Any]]] = {}
    for spec in specs:
        for kind, indexes in spec.indexes.items():
            merged.setdefault(kind, {}).update(indexes)
    return merged


#: What stores file their objects under.
INDEXES: Final[Mapping[Kind[Any], Mapping[str, Index[Any]]]] = {
    **_merged(KINDS),
    kinds.RESOURCECLAIMS: {devices.BY_DEVICE: devices.held_devices},
}


def called(root: Root) -> str:
    """The workload in words for users: the object, and which part of it."""
    _, *behind = root.uid.split(":")
    part = next((spec.part(behind) for spec in KINDS if spec.name == root.kind), "")
    return f"{root}, {part}" if part else str(root)
