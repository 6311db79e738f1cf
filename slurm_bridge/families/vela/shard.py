"""Which nodes an agent covers."""

import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.families.vela.options import ShardOptions
from slurm_bridge.families.vela.scene import Rows, inside
from slurm_bridge.model import selectors

ZONE = "topology.kubernetes.io/zone"


def alike(one: NodeFacts, other: NodeFacts) -> bool:
    """A shard has both or none of them."""
    there, here = one.slurm, other.slurm
    if one.node is not other.node or (there is None) is not (here is None):
        return False
    return there is None or here is None or there.partitions == here.partitions


class Shard:
    """The nodes that meet all that is configured."""

    def __init__(self, options: ShardOptions) -> None:
        self._partition = options.partition
        self._wanted = selectors.parse(options.selector)
        self._zone = options.zone

    def rows(self, nodes: NodeColumns) -> Rows:
        """Where they are, in the order of the columns."""
        found = selection.all_met(nodes, self._wanted)
        if self._zone:
            found = found & nodes.label(ZONE).among((self._zone,))
        if self._partition:
            found = found & inside(nodes, (self._partition,))
        return np.flatnonzero(found)
