"""The templates in the objects that make pods, and the annotated parts in between."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind

Json = Mapping[str, Any]
_Name = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """One template of pods: where it is, and the template of Jobs around it (None where there is none)."""

    where: str
    content: Json
    job: Json | None = None

    @property
    def spec(self) -> Json:
        """The spec of its pods."""
        found = self.content.get("spec")
        return found if isinstance(found, Mapping) else {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Paths:
    """Where the templates of a kind are; `jobs`: the templates of Jobs around them."""

    pods: tuple[str, ...]
    jobs: str = ""


_PLAIN: Final = _Paths(pods=("spec.template",))


def _name(kind: Kind[Any]) -> _Name:
    return kind.group, kind.kind


_TABLE: Final[Mapping[_Name, _Paths]] = {
    _name(kinds.CRONJOBS): _Paths(pods=("spec.template",), jobs="spec.jobTemplate"),
    _name(kinds.JOBSETS): _Paths(pods=("spec.template",), jobs="spec.replicatedJobs[].template"),
    _name(kinds.LEADERWORKERSETS): _Paths(
        pods=("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate")
    ),
    ("kubeflow.org", "MPIJob"): _Paths(
        pods=("spec.mpiReplicaSpecs.Launcher.template", "spec.mpiReplicaSpecs.Worker.template")
    ),
}


def of(group: str, kind: str, manifest: Json) -> Iterator[PodTemplate]:
    """The templates of pods in an object; a kind that is not in the table may have one at the usual place."""
    paths = _TABLE.get((group, kind), _PLAIN)
    arounds: Iterator[tuple[str, Json]] = _at(manifest, paths.jobs) if paths.jobs else iter((("", manifest),))
    for where, around in arounds:
        for path in paths.pods:
            for inner, content in _at(around, path):
                place = f"{where}.{inner}" if where else inner
                yield PodTemplate(where=place, content=content, job=around if paths.jobs else None)


def _at(manifest: Json, path: str) -> Iterator[tuple[str, Json]]:
    """The mappings at this path, `[]` standing for each entry of a list."""
    found: list[tuple[str, Any]] = [("", manifest)]
    for step in path.split("."):
        name, brackets, _ = step.partition("[")
        below = [
            (f"{where}.{name}".lstrip("."), inner.get(name)) for where, inner in found if isinstance(inner, Mapping)
        ]
        if brackets:
            below = [
                (f"{where}[{number}]", one)
                for where, inner in below
                if isinstance(inner, list)
                for number, one in enumerate(inner)
            ]
        found = below
    return ((where, inner) for where, inner in found if isinstance(inner, Mapping))
