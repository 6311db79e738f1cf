"""Draws the objects and pods that controllers would make from a manifest, as far as they can be known beforehand.

CronJob        one Job                   Deployment    one ReplicaSet
ReplicaSet, StatefulSet, DaemonSet       pods
a kind of workload                       what its row says; nothing where pods name the object
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge.explain.sketch import Sketch
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.draft import ChildDraft, marked, numbers, random_name, spec_of

#: What becomes of one object: from its record and its manifest.
Makes = Callable[[Any, Manifest], Iterable[ChildDraft]]

Above = tuple[Kind[Any], Object]

#: The origin of a pod without a controller begins with this.
BARE = "Pod #"


def draw(sketch: Sketch, manifest: Manifest) -> bool:
    """Draw what this object becomes; False for a kind that has no part in any workload."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    kind = _BY_NAME.get((group, str(manifest.get("kind"))))
    if kind is None:
        return False
    if kind is kinds.PODS:
        sketch.pod(manifest, None, f"{BARE}{len(sketch.pods)}")
        return True
    found = sketch.add(kind, manifest)
    origin = f"{kind.kind} {'/'.join(found.key)}"
    _draw_below(sketch, (kind, found), _made(kind, found, manifest), origin)
    return True


def _draw_below(sketch: Sketch, above: Above, made: Iterable[ChildDraft], origin: str) -> None:
    for one in made:
        called = f"{one.role} of {origin}" if one.role else origin
        manifest = marked(one.template, one.name, one.labels, one.annotations)
        manifest["metadata"]["namespace"] = above[1].metadata.namespace
        if one.kind is kinds.PODS:
            manifest = {"metadata": manifest["metadata"], "spec": spec_of(manifest)}
            found: Object = sketch.pod(manifest, above, called)
        else:
            found = sketch.add(one.kind, manifest, above)
        below = _made(one.kind, found, manifest) if one.makes is None else one.makes
        _draw_below(sketch, (one.kind, found), below, called)


def _made(kind: Kind[Any], found: Object, manifest: Manifest) -> Iterable[ChildDraft]:
    makes = _MAKES.get(kind)
    return () if makes is None else makes(found, manifest)


def _of_cronjob(cron: Object, manifest: Manifest) -> Iterable[ChildDraft]:
    template = spec_of(manifest).get("jobTemplate") or {}
    yield ChildDraft(kind=kinds.JOBS, name=random_name(cron.metadata.name), template=template)


def _of_deployment(found: Object, manifest: Manifest) -> Iterable[ChildDraft]:
    template = {"spec": spec_of(manifest)}
    yield ChildDraft(kind=kinds.REPLICASETS, name=random_name(found.metadata.name), template=template)


def _of_replicaset(found: Object, manifest: Manifest) -> Iterable[ChildDraft]:
    spec = spec_of(manifest)
    numbered = numbers(kinds.REPLICASETS, found, "spec.replicas", spec.get("replicas", 1))
    for number in numbered:
        name = random_name(found.metadata.name, number, len(numbered))
        yield ChildDraft(kind=kinds.PODS, name=name, template=spec.get("template") or {})


def _of_statefulset(found: Object, manifest: Manifest) -> Iterable[ChildDraft]:
    spec = spec_of(manifest)
    for number in numbers(kinds.STATEFULSETS, found, "spec.replicas", spec.get("replicas", 1)):
        yield ChildDraft(kind=kinds.PODS, name=f"{found.metadata.name}-{number}", template=spec.get("template") or {})


def _of_daemonset(found: Object, manifest: Manifest) -> Iterable[ChildDraft]:
    """One pod stands for all: the pods of a DaemonSet differ only in their node."""
    template = spec_of(manifest).get("template") or {}
    yield ChildDraft(kind=kinds.PODS, name=random_name(found.metadata.name), template=template)


#: Kinds whose controllers make pods, or objects that do.
_MAKES: Mapping[Kind[Any], Makes] = {
    **{kind: spec.makes for kind, spec in reversed([*kind_table.SPECS.items()]) if spec.makes is not None},
    kinds.CRONJOBS: _of_cronjob,
    kinds.DEPLOYMENTS: _of_deployment,
    kinds.REPLICASETS: _of_replicaset,
    kinds.STATEFULSETS: _of_statefulset,
    kinds.DAEMONSETS: _of_daemonset,
}

_BY_NAME: Mapping[tuple[str, str], Kind[Any]] = {
    (kind.group, kind.kind): kind for kind in (kinds.PODS, *_MAKES, *kind_table.WATCHED)
}

#: The names of kinds that pods come from, for messages: those of Kubernetes itself first.
NAMES: tuple[str, ...] = tuple(kind.kind for kind in sorted((kinds.PODS, *_MAKES), key=lambda kind: kind.custom))
