"""In which domain of a topology a node is, wherever that is written.

    labels       the node's labels, one for each level
    annotation   topology.slinky.slurm.net/spec of the node: racks:core:rack1,blocks:block7
    slurm        the same text, as slurmrestd tells it of nodes that were made with one
    copy         a copy of topology.conf or topology.yaml, by Slurm's name of the node

Where a text names the finest unit only, a copy beside it completes the path. Paths count from the finest level: what is
above the coarsest level that is configured is left out.
"""

from collections.abc import Callable, Sequence

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.families.kai.copies import Copy, Path
from slurm_bridge.families.kai.options import TopologyOptions
from slurm_bridge.families.kai.topology import Domain
from slurm_bridge.model import names

#: Where a node is; None where it is not in the topology at all.
Where = Callable[[NodeFacts], Domain | None]


def where(options: TopologyOptions, copy: Copy | None) -> Where:
    """For one topology."""
    levels, called = options.levels, options.called

    def by_labels(facts: NodeFacts) -> Domain | None:
        labels = facts.node.metadata.labels
        found = tuple(labels[level] for level in levels if level in labels)
        return found if len(found) == len(levels) else None

    def by_annotation(facts: NodeFacts) -> Domain | None:
        text = facts.node.metadata.annotations.get(names.ANNOTATION_NODE_TOPOLOGY, "")
        return _fitted(_completed(unit_of(text, called), copy), levels)

    def by_slurm(facts: NodeFacts) -> Domain | None:
        text = facts.slurm.topology if facts.slurm is not None else ""
        return _fitted(_completed(unit_of(text, called), copy) or _listed(facts, copy), levels)

    def by_copy(facts: NodeFacts) -> Domain | None:
        return _fitted(_listed(facts, copy), levels)

    return {"labels": by_labels, "annotation": by_annotation, "slurm": by_slurm, "copy": by_copy}[options.source]


def unit_of(text: str, topology: str) -> Path:
    """The units that a text names for this topology, the coarsest first; none where it does not speak of it."""
    for one in text.split(","):
        name, *units = (word.strip() for word in one.split(":"))
        if name == topology and units and all(units):
            return tuple(units)
    return ()


def _completed(units: Path, copy: Copy | None) -> Path:
    """With the switches above, where the finest unit is one of the copy."""
    return copy.units.get(units[-1], units) if units and copy is not None else units


def _listed(facts: NodeFacts, copy: Copy | None) -> Path:
    return copy.nodes.get(facts.slurm_name, ()) if copy is not None else ()


def _fitted(path: Path, levels: Sequence[str]) -> Domain | None:
    return path[-len(levels) :] if len(path) >= len(levels) else None
