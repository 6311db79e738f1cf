"""Explains manifests, and pods by name."""

from collections.abc import Iterable, Sequence
from typing import Any

from slurm_bridge import errors
from slurm_bridge.explain import cluster_view, explanation, subjects
from slurm_bridge.explain.cluster_view import CachedKnown, Servers
from slurm_bridge.explain.context import ExplainContext
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.explain.subjects import OwnerLookup
from slurm_bridge.explain.usage import OtherWorkloads
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest
from slurm_bridge.workloads.known import NOTHING, Asked, Options


class Explainer:
    """Without `sides` it works offline, and explains manifests only."""

    def __init__(
        self,
        means: ExplainContext,
        sides: Servers | None,
        owner_kinds: tuple[Kind[Any], ...] = (),
        options: Options | None = None,
    ) -> None:
        self._means, self._sides = means, sides
        self._options, self._more = options or Options(), owner_kinds

    def manifests(self, objects: Iterable[Manifest]) -> Sequence[Explanation]:
        """Every workload that these objects form together; BadConfiguration if there is none."""
        eyes = self._eyes()
        others = _others(eyes)
        return [
            explanation.explain(one, self._means, self._sides, others) for one in subjects.of_objects(objects, eyes)
        ]

    def pod(self, namespace: str, name: str) -> Explanation:
        """The workload of a pod in the cluster; NotFound without that pod."""
        if self._sides is None:
            raise errors.BadConfiguration(f"pod {namespace}/{name} is in the cluster: it cannot be explained offline")
        cluster = self._sides.cluster
        pod = cluster_view.pod(cluster, namespace, name)
        eyes = self._eyes()
        subject = subjects.of_pod(pod, lambda: cluster_view.mates(cluster, namespace), eyes)
        return explanation.explain(subject, self._means, self._sides, _others(eyes))

    def _eyes(self) -> OwnerLookup:
        """A new cache for each explanation."""
        cluster = self._sides.cluster if self._sides is not None else None
        return OwnerLookup(
            clock=self._means.clock,
            known=CachedKnown(Asked(cluster)) if cluster is not None else NOTHING,
            server=cluster,
            options=self._options,
            more=self._more,
        )


def _others(eyes: OwnerLookup) -> OtherWorkloads:
    """The other workloads, found through the same cache."""
    return OtherWorkloads(claim=lambda pod: subjects.root_of(pod, eyes), whole=subjects.whole(eyes))
