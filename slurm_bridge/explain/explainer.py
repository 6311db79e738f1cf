"""The door of this room: explains manifests, and pods by name."""

from collections.abc import Iterable, Sequence
from typing import Any

from slurm_bridge import errors
from slurm_bridge.explain import explaining, looking, subjects
from slurm_bridge.explain.asking import Means
from slurm_bridge.explain.explaining import Explanation
from slurm_bridge.explain.keeping import Others
from slurm_bridge.explain.looking import Remembered, Sides
from slurm_bridge.explain.subjects import Eyes
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest
from slurm_bridge.workloads.known import NOTHING, Asked, Options


class Explainer:
    """`sides` None: offline, where only manifests can be explained."""

    def __init__(
        self,
        means: Means,
        sides: Sides | None,
        owner_kinds: tuple[Kind[Any], ...] = (),
        options: Options | None = None,
    ) -> None:
        self._means, self._sides = means, sides
        self._options, self._more = options or Options(), owner_kinds

    def manifests(self, objects: Iterable[Manifest]) -> Sequence[Explanation]:
        """Each workload that these objects lead to together; BadConfiguration when there is none."""
        eyes = self._eyes()
        others = _others(eyes)
        return [explaining.explain(one, self._means, self._sides, others) for one in subjects.of_objects(objects, eyes)]

    def pod(self, namespace: str, name: str) -> Explanation:
        """The workload of a pod that exists; NotFound when it does not."""
        if self._sides is None:
            raise errors.BadConfiguration(f"pod {namespace}/{name} is in the cluster: it cannot be explained offline")
        cluster = self._sides.cluster
        pod = looking.pod(cluster, namespace, name)
        eyes = self._eyes()
        subject = subjects.of_pod(pod, lambda: looking.mates(cluster, namespace), eyes)
        return explaining.explain(subject, self._means, self._sides, _others(eyes))

    def _eyes(self) -> Eyes:
        """New ones for each question: what they have seen, they remember."""
        cluster = self._sides.cluster if self._sides is not None else None
        return Eyes(
            clock=self._means.clock,
            known=Remembered(Asked(cluster)) if cluster is not None else NOTHING,
            server=cluster,
            options=self._options,
            more=self._more,
        )


def _others(eyes: Eyes) -> Others:
    """The workloads beside the one that is explained, looked at with the same eyes."""
    return Others(claim=lambda pod: subjects.root_of(pod, eyes), whole=subjects.whole(eyes))
