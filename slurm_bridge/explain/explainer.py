"""The door of this room: explains manifests, and pods by name."""

from collections.abc import Iterable, Sequence
from typing import Any

from slurm_bridge import errors
from slurm_bridge.explain import explaining, looking, subjects
from slurm_bridge.explain.explaining import Explanation, Means
from slurm_bridge.explain.looking import Sides
from slurm_bridge.model import kinds
from slurm_bridge.model.groups import Job
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads.owners import Chain, Owners

#: Owners that nobody has looked at.
_UNREAD = Chain(problem="they were not looked at; what they say may win over what the pod says")


class Explainer:
    """`sides` None: offline, where only manifests can be explained."""

    def __init__(self, means: Means, sides: Sides | None, owner_kinds: tuple[Kind[Any], ...] = ()) -> None:
        self._means, self._sides = means, sides
        self._owners = (
            Owners(sides.cluster, means.clock, jobs=self._job, more=owner_kinds) if sides is not None else None
        )

    def manifests(self, objects: Iterable[Manifest]) -> Sequence[Explanation]:
        """Each object that makes pods; BadConfiguration when there is none among them."""
        objects = tuple(objects)
        found = [one for manifest in objects if (one := subjects.of_manifest(manifest, self._resolve)) is not None]
        if not found:
            kinds_seen = ", ".join(sorted({str(manifest["kind"]) for manifest in objects})) or "nothing"
            made = ", ".join(kind for _, kind in subjects.MAKERS)
            raise errors.BadConfiguration(f"nothing to explain in {kinds_seen}: pods come from Pod, {made}")
        return [explaining.explain(one, self._means, self._sides) for one in found]

    def pod(self, namespace: str, name: str) -> Explanation:
        """A pod that exists; NotFound when it does not."""
        if self._sides is None:
            raise errors.BadConfiguration(f"pod {namespace}/{name} is in the cluster: it cannot be explained offline")
        subject = subjects.of_pod(looking.pod(self._sides.cluster, namespace, name), self._resolve)
        return explaining.explain(subject, self._means, self._sides)

    def _resolve(self, pod: Pod) -> Chain:
        if not pod.metadata.owner_references:
            return Chain()
        return _UNREAD if self._owners is None else self._owners.resolve(pod)

    def _job(self, namespace: str, name: str) -> Job | None:
        return self._sides.cluster.get(kinds.JOBS, namespace, name) if self._sides is not None else None
