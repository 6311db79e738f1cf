"""Slurm's environment in containers: variables that the kubelet reads from marks of the binding when it starts them."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, Final

from slurm_bridge.model import names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable. `source` is the annotation or label that has its value, or the value itself where it is `fixed`."""

    name: str
    source: str
    note: str
    fixed: bool = False
    torch: bool = False

    @property
    def field(self) -> str:
        """The field of the pod, as the downward API names it."""
        return f"metadata.{'labels' if self.source == names.LABEL_JOB_ID else 'annotations'}['{self.source}']"

    @property
    def manifest(self) -> dict[str, Any]:
        """As a container lists it."""
        if self.fixed:
            return {"name": self.name, "value": self.source}
        return {"name": self.name, "valueFrom": {"fieldRef": {"fieldPath": self.field}}}


VARIABLES: Final[tuple[Variable, ...]] = (
    Variable(name="SLURM_JOB_ID", source=names.LABEL_JOB_ID, note="the placeholder job"),
    Variable(name="SLURM_JOBID", source=names.LABEL_JOB_ID, note="the same"),
    Variable(
        name="SLURM_JOB_NODELIST",
        source=names.ANNOTATION_NODE_LIST,
        note="the nodes of the job, as a Slurm hostlist; empty if it has more than 4096 characters",
    ),
    Variable(name="SLURM_JOB_NUM_NODES", source=names.ANNOTATION_NODE_COUNT, note="the number of these nodes"),
    Variable(name="SLURM_NNODES", source=names.ANNOTATION_NODE_COUNT, note="the same"),
    Variable(name="SLURM_NTASKS", source=names.ANNOTATION_TASK_COUNT, note="the number of pods of the job"),
    Variable(name="SLURM_PROCID", source=names.ANNOTATION_RANK, note="the rank of the pod, from 0"),
    Variable(
        name="SLURM_NODEID", source=names.ANNOTATION_NODE_NUMBER, note="the place of its node in the list, from 0"
    ),
    Variable(
        name="SLURM_LOCALID", source=names.ANNOTATION_LOCAL_RANK, note="its rank among the job's pods on its node"
    ),
    Variable(name="SLURMD_NODENAME", source=names.ANNOTATION_SLURM_NODE, note="Slurm's name of its node"),
    Variable(name="MASTER_ADDR", source=names.ANNOTATION_MASTER, note="where the pod of rank 0 is reached"),
    Variable(name="MASTER_PORT", source="29500", note="the port that torch uses by default", fixed=True, torch=True),
    Variable(name="RANK", source=names.ANNOTATION_RANK, note="as SLURM_PROCID", torch=True),
    Variable(name="WORLD_SIZE", source=names.ANNOTATION_TASK_COUNT, note="as SLURM_NTASKS", torch=True),
    # Programs choose a device by it, and a container sees its own devices only.
    Variable(name="LOCAL_RANK", source="0", note="a container sees its own devices only", fixed=True, torch=True),
)


def slurm_environment(asked: str, present: Collection[str]) -> list[dict[str, Any]]:
    """What is added to the variables of a container that has those in `present` already.

    `asked` is the value of the annotation; what is no valid value asks for nothing.
    """
    wanted = asked.strip().lower()
    if wanted not in ("true", "torch"):
        return []
    every = (one for one in VARIABLES if wanted == "torch" or not one.torch)
    return [one.manifest for one in every if one.name not in present]


def with_environment(spec: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """The spec of a pod with these variables in all its containers; no variable that one sets is replaced."""
    changed = dict(spec)
    for key in ("initContainers", "containers"):
        if spec.get(key):
            changed[key] = [_in_container(one, asked) for one in spec[key]]
    return changed


def _in_container(container: Mapping[str, Any], asked: str) -> dict[str, Any]:
    env = list(container.get("env") or ())
    added = slurm_environment(asked, {str(one.get("name")) for one in env})
    return {**container, "env": [*added, *env]} if added else dict(container)
