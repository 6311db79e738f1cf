"""Images that a node holds already need not be pulled; what few nodes hold counts less, so that pods do not pile up."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from slurm_bridge.cluster.columns import Coded, Mask, NodeColumns, Whole
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.families.kube_scheduler.priorities import numbers
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.node import ContainerImage, Node
from slurm_bridge.model.pod import PodSpec

_MIB = 2**20

#: Less is pulled in no time, and more makes no difference.
LEAST, MOST = 23 * _MIB, 1000 * _MIB
#: Of so many images it is remembered where they are; at twenty thousand nodes that is ten megabytes.
MOST_IMAGES = 64

_NONE: Whole = np.empty(0, np.int64)


@dataclasses.dataclass(frozen=True, slots=True)
class NodeImages:
    """The images of a node as it lists them, and their sizes by name; equal where the lists are."""

    listed: tuple[ContainerImage, ...]
    sizes: Mapping[str, int] = dataclasses.field(compare=False)


def image_locality(maximum: int) -> Callable[[Scene], Whole]:
    """How much of what the pod needs is there; on the scale to 10 only its containers that are no init containers."""
    sizes = _Sizes()
    known: Recent[tuple[tuple[str, ...], int], tuple[Coded[NodeImages], Mask, Whole]] = Recent(MOST_IMAGES)

    def rated(scene: Scene) -> Whole:
        """What runs on the nodes does not matter: while they hold what they held, the scores stay as they are."""
        nodes = scene.columns
        held, spec = nodes.of_node("kube images", _held), scene.pod.spec
        wanted, most = tuple(one.image for one in spec.containers), MOST
        if maximum >= numbers.NEWER:
            wanted, most = wanted + _further(spec), MOST * max(1, len(spec.containers) + len(spec.init_containers))
        before = known.get((wanted, most))
        if before is None or before[0] is not held or before[1] is not nodes.present:
            before = (held, nodes.present, worked_out(nodes, held, wanted, most))
            known.put((wanted, most), before)
        return before[2]

    def worked_out(nodes: NodeColumns, held: Coded[NodeImages], wanted: Iterable[str], most: int) -> Whole:
        every = int(np.count_nonzero(nodes.present))
        total = numbers.constant(len(nodes), 0)
        for image in wanted:
            here = sizes.of(held, normalized(image))
            if holding := int(np.count_nonzero(here)):
                total = total + here * holding // every
        if numbers.constant_of(total) == 0:
            return total
        scaled: Whole = maximum * (np.clip(total, LEAST, most) - LEAST) // (most - LEAST)
        return scaled

    return rated


class _Sizes:
    """How large an image is on each node. Nodes' lists are nearly all different, so what was looked up is kept.

    The distinct lists of a column only grow by those of nodes that changed, until it is made anew.
    """

    def __init__(self) -> None:
        self._known: Recent[str, tuple[tuple[NodeImages, ...], Whole]] = Recent(MOST_IMAGES)

    def of(self, held: Coded[NodeImages], name: str) -> Whole:
        lists, sizes = self._known.get(name) or ((), _NONE)
        if held.values is not lists:
            known = len(lists) if held.values[: len(lists)] == lists else 0
            more = np.fromiter((one.sizes.get(name, 0) for one in held.values[known:]), np.int64)
            sizes = np.concatenate([sizes[:known], more])
            self._known.put(name, (held.values, sizes))
        return np.append(sizes, 0)[held.codes]


def normalized(image: str) -> str:
    """With the tag that is meant when there is none; a colon before the last slash belongs to a registry's port."""
    return image if ":" in image.rsplit("/", maxsplit=1)[-1] else f"{image}:latest"


def _further(spec: PodSpec) -> tuple[str, ...]:
    """Images of init containers, and those that are mounted as volumes."""
    mounted = (volume.get("image") for volume in spec.volumes)
    references = (str(source.get("reference", "")) for source in mounted if isinstance(source, Mapping))
    return (*(one.image for one in spec.init_containers), *references)


def _held(node: Node) -> NodeImages:
    images = node.status.images
    return NodeImages(images, {name: image.size_bytes for image in images for name in image.names})
