"""What the demo creates: the shipped configuration, the shipped examples, and more pods."""

import dataclasses
import itertools
import pathlib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge import errors, ports
from slurm_bridge.hooks import registry
from slurm_bridge.kube import manifests
from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.runtime import packages
from slurm_bridge.workloads import kind_table

#: The root of the repository, if the program runs from one.
PROJECT = pathlib.Path(__file__).resolve().parents[2]

#: The namespace of the examples and of the shipped policy.
NAMESPACE = "slurm-bridge"
#: The namespace of the Lease in the shipped configuration.
DAEMON_NAMESPACE = "slurm-bridge-system"

#: The folders whose files are not created in every cluster: configurations, and objects of other projects' operators.
APART = frozenset({"hooks", "frameworks"})

#: The minimal configuration, if the shipped one is not found.
_PLAIN = "cluster_id: demo\ndefaults: {user: slurm-bridge, group: slurm-bridge}\n"

#: Options that let the example's hook admit pods at any time.
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "office-hours": {
        "opens": "00:00",
        "closes": "23:59:59",
        "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    },
}

#: The pocket Kubernetes has no controllers for these kinds.
_IDLE = tuple(kind for kind in kind_table.OWNERS if kind not in (kinds.PODS, kinds.JOBS))

#: A pod counts as replaced, not as failed, when Slurm takes its node back.
_POLICY = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}

#: Further kinds that manifests of users contain.
_MORE = (
    Kind(group="", versions=("v1",), plural="serviceaccounts", kind="ServiceAccount", record=Object),
    Kind(group="", versions=("v1",), plural="configmaps", kind="ConfigMap", record=Object),
)
_KINDS: Mapping[tuple[str, str], Kind[Any]] = {
    (kind.group, kind.kind): kind for kind in (*kind_table.RESOURCES, *_MORE)
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """An object that should come to an end: a Job, or a pod without a controller."""

    kind: Kind[Any]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Programme:
    """The manifests in the order of their creation, the names of the examples, and why some were left out."""

    manifests: tuple[Manifest, ...]
    examples: tuple[str, ...]
    left_out: Mapping[str, str]


def configuration(project: pathlib.Path = PROJECT) -> str:
    """The configuration in `deploy/` as text."""
    shipped = project / "deploy" / "config.yaml"
    if not shipped.is_file():
        return _PLAIN
    (config_map,) = manifests.documents(shipped.read_text(encoding="utf-8"), str(shipped))
    return str(config_map["data"]["config.yaml"])


def programme(pods: int, project: pathlib.Path = PROJECT) -> Programme:
    """All examples that can run here, then this many pods: single ones, those of Jobs, and gangs of both."""
    found = (path for path in (project / "examples").glob("*") if path.name not in APART)
    folders = sorted(path for path in found if path.is_dir())
    left_out = {folder.name: why for folder in folders if (why := _unfit(folder))}
    fit = [folder for folder in folders if folder.name not in left_out]
    objects = (one for folder in fit for one in _example(folder))
    return Programme(
        manifests=(
            *(_object("v1", "Namespace", {"name": one}) for one in (NAMESPACE, DAEMON_NAMESPACE)),
            *objects,
            *beside(pods),
        ),
        examples=tuple(folder.name for folder in fit),
        left_out=left_out,
    )


def _unfit(folder: pathlib.Path) -> str:
    """Why an example cannot run here; empty if it can."""
    if not any(folder.glob("*.yaml")):
        return "it has no manifest"
    missing = [name for name in brought(folder) if name not in packages.offered(registry.GROUP)]
    if missing:
        return f"it needs a hook of its own ({', '.join(missing)}), which is not installed"
    idle = [one["kind"] for one in _example(folder) if kind_of(one) in _IDLE]
    return f"no controller makes pods of a {idle[0]} in the pocket Kubernetes" if idle else ""


def brought(folder: pathlib.Path) -> tuple[str, ...]:
    """The hooks of the package in an example's folder, if it is a package."""
    described = folder / "pyproject.toml"
    if not described.is_file():
        return ()
    project = tomllib.loads(described.read_text(encoding="utf-8"))["project"]
    return tuple(project.get("entry-points", {}).get(registry.GROUP, {}))


def hooks(examples: Iterable[str], project: pathlib.Path = PROJECT) -> tuple[Mapping[str, Any], ...]:
    """The configuration of the hooks that these examples bring."""
    names = (name for example in examples for name in brought(project / "examples" / example))
    return tuple({"name": name, "budget_ms": 5000, "options": _OPTIONS.get(name, {})} for name in names)


def _example(folder: pathlib.Path) -> Iterator[Manifest]:
    for path in sorted(folder.glob("*.yaml")):
        for one in manifests.documents(path.read_text(encoding="utf-8"), str(path)):
            if kind_of(one) is kinds.PODS:
                # The pocket kubelet runs no program: without this annotation a pod without a Job would never end.
                metadata = one["metadata"]
                annotations = {**_lasting(2), **(metadata.get("annotations") or {})}
                yield {**one, "metadata": {**metadata, "annotations": annotations}}
            else:
                yield one


def beside(pods: int, first: int = 1) -> Iterator[Manifest]:
    """Pods of different sizes that end after 1 to 5 seconds, numbered from `first` on."""
    number, end = first, first + pods
    for make, size in itertools.cycle(_ACTS):
        if number >= end:
            return
        size = min(size, end - number)  # noqa: PLW2901 - the last group takes the pods that are left
        yield from make(number, size)
        number += size


def _singles(first: int, size: int) -> Iterator[Manifest]:
    """Pods without a controller."""
    return (pod(number) for number in range(first, first + size))


def _crew(first: int, size: int) -> Iterator[Manifest]:
    """A Job with a placeholder for each pod."""
    yield _job(f"crew-{first:03}", first, size)


def _gang(first: int, size: int) -> Iterator[Manifest]:
    """A Job that needs its pods together: one placeholder."""
    yield _job(f"gang-{first:03}", first, size, {names.ANNOTATION_GANG: "true"})


def _band(first: int, size: int) -> Iterator[Manifest]:
    """Pods that name one group. The first is too large for any node that has another beside it.

    So two or more are a heterogeneous job of two components.
    """
    name = f"band-{first:03}"
    for rank in range(size):
        labels = {names.GROUP: name, names.GROUP_SIZE: str(size)}
        metadata = {"name": f"{name}-{rank}", "namespace": NAMESPACE, "labels": labels, "annotations": _lasting(first)}
        yield _object("v1", "Pod", metadata, _spec(2 if rank else 7))


#: The kinds of work, in turns, with the number of pods of each.
_ACTS: tuple[tuple[Callable[[int, int], Iterator[Manifest]], int], ...] = (
    (_singles, 6),
    (_crew, 5),
    (_gang, 5),
    (_band, 4),
)


def pod(number: int) -> Manifest:
    """A pod without a controller."""
    metadata = {"name": f"pod-{number:03}", "namespace": NAMESPACE, "annotations": _lasting(number)}
    return _object("v1", "Pod", metadata, _spec(_cpus(number)))


def _job(name: str, number: int, size: int, annotations: Mapping[str, str] | None = None) -> Manifest:
    spec = {
        "parallelism": size,
        "completions": size,
        "podFailurePolicy": _POLICY,
        "template": {"metadata": {"annotations": _lasting(number)}, "spec": _spec(_cpus(number))},
    }
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": dict(annotations or {})}
    return _object("batch/v1", "Job", metadata, spec)


def _lasting(number: int) -> Mapping[str, str]:
    """Annotations for the pocket kubelet."""
    return {"kwok.local/outcome": "succeed", "kwok.local/seconds": str(1 + number % 5)}


def _cpus(number: int) -> int:
    return 1 + number // 2 % 4


def _spec(cpus: int) -> Manifest:
    amounts = {"cpu": str(cpus), "memory": "256Mi"}
    container = {"name": "main", "image": "busybox:stable", "resources": {"requests": amounts}}
    return {"schedulerName": names.SCHEDULER_NAME, "restartPolicy": "Never", "containers": [container]}


def _object(api_version: str, kind: str, metadata: Manifest, spec: Manifest | None = None) -> Manifest:
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    return body if spec is None else {**body, "spec": spec}


def create(cluster: ports.Cluster, objects: Iterable[Manifest]) -> Sequence[Work]:
    """Create all objects through the port; returns those that have to come to an end."""
    created = []
    for manifest in objects:
        kind = kind_of(manifest)
        namespace = manifest["metadata"].get("namespace", "default") if kind.namespaced else ""
        made = cluster.create(kind, namespace, manifest)
        if kind in (kinds.PODS, kinds.JOBS):
            created.append(Work(kind=kind, namespace=namespace, name=made.metadata.name))
    return created


def kind_of(manifest: Manifest) -> Kind[Any]:
    """The kind of this manifest; BadConfiguration if it is unknown."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    found = _KINDS.get((group, manifest["kind"]))
    if found is None:
        raise errors.BadConfiguration(f"{manifest['kind']} of group {group or 'core'!r} cannot be created here")
    return found
