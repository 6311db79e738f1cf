"""NodeRules: Kubernetes' own rules about a node and a pod, so that what is sampled can be used."""

from typing import ClassVar

import msgspec

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.cluster.memo import ByPod
from slurm_bridge.cluster.rules import affinity, taints
from slurm_bridge.families.vela.scene import Rows, SamplingScene, SceneCache, same_node
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Pod


class NodeRules:
    """Ready, not being deleted, not cordoned, taints tolerated, node selector and required affinity met."""

    rejects: ClassVar = "are not ready, cordoned, tainted, or not what its node selector and affinity ask for"

    def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
        return self.every(scene)[rows]

    def every(self, scene: SamplingScene) -> Mask:
        """The same of all nodes."""
        pod, nodes = scene.pod, scene.nodes
        # Agents and the decision ask about the same pod one after the other.
        known: SceneCache[bytes, Mask] = nodes.past.shared("vela-rules", lambda: SceneCache(same_node))
        return known.get(nodes, _key(pod), lambda: _allowed(pod, nodes))


#: All that these rules look at of a pod.
_key: ByPod[bytes] = ByPod(
    lambda pod: msgspec.json.encode((pod.spec.node_selector, pod.spec.tolerations, affinity.required(pod)))
)


def _allowed(pod: Pod, nodes: NodeColumns) -> Mask:
    def taints_of(node: Node) -> tuple[Taint, ...]:
        """A cordoned node counts as tainted, which some pods tolerate."""
        spec = node.spec
        return (*spec.taints, taints.UNSCHEDULABLE) if spec.unschedulable else spec.taints

    def stands(node: Node) -> bool:
        return node.ready and node.metadata.deletion_timestamp is None

    standing, marked = nodes.of_node("vela standing", stands).among((True,)), nodes.of_node("vela taints", taints_of)
    tolerated = marked.where(lambda marks: taints.untolerated(marks, pod.spec.tolerations) is None)
    return standing & tolerated & selection.accepting(nodes, pod)
