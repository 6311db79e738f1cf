"""Pods and the objects above them."""

from collections.abc import Mapping

from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads import known, owners
from tests.pocketkube import Scene

#: A kind of another project, which configuration may name.
QUEUES = Kind(group="example.com", versions=("v1",), plural="queues", kind="Queue", record=Object, custom=True)


class Family(Scene):
    """A world in which objects own each other."""

    def owner(self, kind: Kind[Object], name: str, *above: dict[str, object], **annotations: str) -> dict[str, object]:
        """A new object, and the reference by which another names it as its owner."""
        metadata = {"name": name, "ownerReferences": list(above), "annotations": annotations}
        made = self.kube.create(kind, {"metadata": metadata, "spec": _SPECS.get(kind.kind, {})})
        return reference(kind, name, made["metadata"]["uid"])

    def child(self, *above: dict[str, object], **metadata: object) -> Pod:
        """A new pod with these owners."""
        return self.pod(ownerReferences=list(above), **metadata)

    def owners(self, *more: Kind[Object], limits: owners.OwnerLimits | None = None) -> owners.Owners:
        """A reader of chains, without an informer that holds Jobs."""
        return owners.Owners(self.cluster, self.clock, known=known.NOTHING, more=more, limits=limits)

    def chain(self, pod: Pod) -> list[str]:
        """The names above a pod, the nearest first."""
        return [link.name for link in self.owners().resolve(pod).links]


_TEMPLATE = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause:1"}]}}}
_SPECS: Mapping[str, dict[str, object]] = {"Job": {**_TEMPLATE, "suspend": True}}


def reference(kind: Kind[Object], name: str, uid: str = "no-such-uid", *, controller: bool = True) -> dict[str, object]:
    """How an object says whose it is."""
    version = f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]
    return {"apiVersion": version, "kind": kind.kind, "name": name, "uid": uid, "controller": controller}
