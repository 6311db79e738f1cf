"""Explains manifests, and pods by name."""

from collections.abc import Iterable, Sequence
from typing import Any

from slurm_bridge import errors, ports
from slurm_bridge.explain import cluster_view, explanation, subjects
from slurm_bridge.explain.cluster_view import CachedKnown, Servers
from slurm_bridge.explain.context import ExplainContext
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.explain.subjects import OwnerLookup
from slurm_bridge.explain.usage import OtherWorkloads
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest
from slurm_bridge.workloads.known import NOTHING, DirectObjects, Options


class Explainer:
    """Without `servers` Slurm and nodes are not asked; without `cluster` pods that exist are not, either."""

    def __init__(
        self,
        means: ExplainContext,
        servers: Servers | None,
        owner_kinds: tuple[Kind[Any], ...] = (),
        options: Options | None = None,
        cluster: ports.Cluster | None = None,
    ) -> None:
        self._means, self._servers = means, servers
        self._cluster = servers.cluster if servers is not None else cluster
        self._options, self._more = options or Options(), owner_kinds

    def manifests(self, objects: Iterable[Manifest]) -> Sequence[Explanation]:
        """Every workload that these objects form together; BadConfiguration if there is none."""
        lookup = self._lookup()
        others = _others(lookup)
        return [
            explanation.explain(one, self._means, self._servers, others) for one in subjects.of_objects(objects, lookup)
        ]

    def pod(self, namespace: str, name: str) -> Explanation:
        """The workload of a pod in the cluster; NotFound without that pod."""
        if self._cluster is None:
            raise errors.BadConfiguration(f"pod {namespace}/{name} is in the cluster: it cannot be explained offline")
        cluster = self._cluster
        pod = cluster_view.pod(cluster, namespace, name)
        lookup = self._lookup()
        subject = subjects.of_pod(pod, lambda: cluster_view.mates(cluster, namespace), lookup)
        return explanation.explain(subject, self._means, self._servers, _others(lookup))

    def _lookup(self) -> OwnerLookup:
        """A new cache for each explanation."""
        cluster = self._cluster
        return OwnerLookup(
            clock=self._means.clock,
            known=CachedKnown(DirectObjects(cluster)) if cluster is not None else NOTHING,
            server=cluster,
            options=self._options,
            more=self._more,
        )


def _others(lookup: OwnerLookup) -> OtherWorkloads:
    """The other workloads, found through the same cache."""
    return OtherWorkloads(claim=lambda pod: subjects.root_of(pod, lookup), whole=subjects.whole(lookup))
