"""LeastRecentlyUsed: the node that has got no pod for the longest time is the best."""

import datetime as dt

import numpy as np

from slurm_bridge.cluster.columns import NodeColumns, Whole
from slurm_bridge.families.vela import scores
from slurm_bridge.families.vela.scene import Rows, SamplingScene, SceneCache
from slurm_bridge.model.pod import Pod


def unused(now: int, last_added: Whole) -> Whole:
    """For how many seconds each node has got no pod."""
    return now - last_added


def score(now: int, last_added: Whole) -> Whole:
    """The longest unused node has 100."""
    return scores.normalized(unused(now, last_added))


class LeastRecentlyUsed:
    """By the pods on the nodes; a node without any was never used."""

    def __init__(self) -> None:
        self._last: SceneCache[str, Whole] = SceneCache()

    def score(self, scene: SamplingScene, rows: Rows) -> Whole:
        last = self._last.get(scene.nodes, "", lambda: _last_added(scene.nodes))
        return score(int(scene.now), last[rows])


def _last_added(nodes: NodeColumns) -> Whole:
    def added(pod: Pod) -> int:
        """When a pod began on its node, or at least appeared; Unix time, 0 where it is not known."""
        written = pod.status.start_time or pod.metadata.creation_timestamp
        return int(dt.datetime.fromisoformat(written).timestamp()) if written else 0

    pods = nodes.pods
    last: Whole = np.zeros(len(nodes), np.int64)
    np.maximum.at(last, pods.node_rows[pods.present], pods.whole("added", added)[pods.present])
    return last
