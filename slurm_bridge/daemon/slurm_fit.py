"""Fits requests to Slurm's partitions and nodes: hooks know Kubernetes' nodes, the translation knows Slurm's."""

from collections.abc import Mapping

from slurm_bridge.cluster import memo
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate import limits
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated


class SlurmFit:
    """Implements `surroundings.Settle`. Caches what it derives from Slurm's nodes until these change.

    `components`: request jobs of several components if this Slurm accepts them.
    """

    def __init__(self, *, components: bool = True) -> None:
        self._components = components
        self._facts: tuple[Mapping[str, object], object, limits.SlurmFacts] | None = None
        self._within: memo.VersionCache[tuple[frozenset[str], ...], limits.Within] = memo.VersionCache()

    def __call__(
        self, translated: Translated, snapshot: ClusterSnapshot, eligible: tuple[frozenset[str], ...]
    ) -> Translated | Wait | Reject:
        facts = self._known(snapshot, components=self._components and snapshot.heterogeneous)
        if translated.form is Form.SINGLE:
            return limits.settle(translated, facts)
        within = self._within.get(snapshot.version, eligible, lambda: _in_slurm(snapshot, eligible))
        return limits.settle(translated, facts, within)

    def _known(self, snapshot: ClusterSnapshot, *, components: bool) -> limits.SlurmFacts:
        kept = self._facts
        same = kept is not None and kept[0] is snapshot.slurm_nodes and kept[1] is snapshot.partitions
        if kept is not None and same and kept[2].heterogeneous is components:
            return kept[2]
        facts = limits.SlurmFacts(
            partitions=snapshot.partitions, nodes=tuple(snapshot.slurm_nodes.values()), heterogeneous=components
        )
        self._facts = (snapshot.slurm_nodes, snapshot.partitions, facts)
        return facts


def _in_slurm(snapshot: ClusterSnapshot, eligible: tuple[frozenset[str], ...]) -> limits.Within:
    """Slurm's names of these nodes."""
    return tuple(frozenset(slurm for slurm, name in snapshot.by_slurm.items() if name in nodes) for nodes in eligible)
