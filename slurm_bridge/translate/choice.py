"""Chooses the form in which Slurm is asked for the pods of a gang: the first of these that fits on its nodes.

    pods        form       on
    ----------  ---------  -------------------------------------------------------------------------------------------
    equal       tasks      nodes that are eligible for all of them
                per node   likewise, where tasks would not be exact (see `layout`)
    different   sum        one node that is eligible for all, and large enough for all
                het        other nodes for each shape; where Slurm can, and without min-nodes and max-nodes
                bound      nodes that are eligible for all, each pod counted as large as the largest; with an event
    sharing     sum        as above, and nothing else: the devices of their ResourceClaim are on one node
    in parts    het        as above; where that cannot be had, as if there were no parts, with an event

Equal pods with different eligible nodes count as different where they do not fit on the nodes that they share. Parts
are those that have to have nodes of their own (`Shape.part`).
"""

import dataclasses
from collections.abc import Mapping, Sequence

from slurm_bridge.model.job import JobRequest, Memory
from slurm_bridge.model.verdict import Wait
from slurm_bridge.translate import gres, layout, shapes
from slurm_bridge.translate.layout import FIELDS, Layout, LayoutTerms, NodeCounts
from slurm_bridge.translate.shapes import Form, Needs
from slurm_bridge.translate.translator import Translated, changed

#: The most components that Slurm allows in one job.
MOST_COMPONENTS = 128

#: The reason of a workload that does not fit anywhere.
UNSCHEDULABLE = "Unschedulable"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GangNodes:
    """Slurm's nodes that are eligible for each shape in order, for all pods, and the number of those for any.

    `whole`: the partition does not share nodes between jobs. `where` is for messages.
    """

    each: tuple[NodeCounts, ...]
    common: NodeCounts
    nodes: int
    heterogeneous: bool = False
    whole: bool = False
    where: str = ""


def choose(translated: Translated, ground: GangNodes) -> Translated | Wait:
    """The request of a gang in its form, or what does not fit."""
    terms = LayoutTerms(
        minimum=translated.request.minimum_nodes,
        maximum=translated.request.maximum_nodes,
        one_per_node=translated.one_per_node,
        node_memory_mib=translated.node_memory_mib,
        whole=translated.request.exclusive or ground.whole,
    )
    if translated.shared_claim:
        found = layout.together(shapes.total(translated.shapes), ground.common, terms)
        return _as(translated, found) if found is not None else _no_node(translated, ground)
    kinds, parted = shapes.kinds(translated.shapes), any(shape.part for shape in translated.shapes)
    if parted and (apart := _apart(translated, ground, terms)):
        return apart
    if parted:
        parts = len({shape.part for shape in translated.shapes})
        told = f"its {parts} parts are placed together: components for them {_not(translated, ground, terms)}"
        translated = dataclasses.replace(translated, told=told)
    if len(kinds) == 1:
        found = layout.lay(kinds[0], _count(translated), ground.common, terms)
    else:
        found = layout.together(shapes.total(translated.shapes), ground.common, terms)
    settled = _as(translated, found) if found else _apart(translated, ground, terms)
    return settled or _bound(translated, ground, terms)


def _count(translated: Translated) -> int:
    return sum(len(shape.pods) for shape in translated.shapes)


def _apart(translated: Translated, ground: GangNodes, terms: LayoutTerms) -> Translated | None:
    """As components; they never share a node, so there must be as many nodes as they take together."""
    if not ground.heterogeneous or _counted(terms) or not 1 < len(translated.shapes) <= MOST_COMPONENTS:
        return None
    pairs = zip(translated.shapes, ground.each, strict=True)
    parts = [layout.lay(shape.needs, len(shape.pods), there, terms) for shape, there in pairs]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or sum(part.nodes for part in found) > ground.nodes:
        return None
    return _as_components(translated, found)


def _counted(terms: LayoutTerms) -> bool:
    """min-nodes or max-nodes is set. They hold for the whole job, and cannot be divided between components."""
    return terms.maximum is not None or (terms.minimum or 1) > 1


def _bound(translated: Translated, ground: GangNodes, terms: LayoutTerms) -> Translated | Wait:
    most, count = shapes.bound(shapes.kinds(translated.shapes)), _count(translated)
    found = layout.lay(most, count, ground.common, terms)
    if found is None:
        return _no_room(translated, ground, terms)
    told = (
        f"the {count} pods differ and do not fit on one node together, and components for them"
        f" {_not(translated, ground, terms)}: each is requested as {_words(most)}"
    )
    return dataclasses.replace(_as(translated, found), form=Form.BOUND, told=told)


# -- fields ----------------------------------------------------------------------------------------------------------

_BECAUSE: Mapping[Form, str] = {
    Form.TASKS: "for each task",
    Form.PER_NODE: "for each node, as much as its pods take together",
    Form.SUM: "for all pods together, on one node",
}


def _as(translated: Translated, found: Layout) -> Translated:
    """The request with the values of the layout, each with its source."""
    for field in FIELDS:
        value = getattr(found, field)
        if value != getattr(translated.request, field) and field != "gres_per":
            shown = f"{value.mib} MiB per {value.per.value}" if isinstance(value, Memory) else ""
            translated = changed(translated, field, value, _BECAUSE[found.form], shown)
    return dataclasses.replace(translated, form=found.form, request=_with(translated.request, found))


def _with(request: JobRequest, found: Layout) -> JobRequest:
    return dataclasses.replace(request, **{field: getattr(found, field) for field in FIELDS})


def _as_components(translated: Translated, parts: Sequence[Layout]) -> Translated:
    # Each component would count the licenses again.
    others = (dataclasses.replace(translated.request, job_id=None, licenses=None) for _ in parts[1:])
    components = tuple(_with(other, part) for other, part in zip(others, parts[1:], strict=True))
    words = "; ".join(f"{len(shape.pods)} x {_words(shape.needs)}" for shape in translated.shapes)
    parted = any(shape.part for shape in translated.shapes)
    why = "parts have nodes of their own" if parted else "the pods differ, and do not fit on one node together"
    settled = changed(_as(translated, parts[0]), "components", components, why, words)
    return dataclasses.replace(settled, form=Form.HET)


# -- words -----------------------------------------------------------------------------------------------------------


def _not(translated: Translated, ground: GangNodes, terms: LayoutTerms) -> str:
    """Why there are no components."""
    if not ground.heterogeneous:
        return "are not available (no heterogeneous jobs)"
    if len(translated.shapes) > MOST_COMPONENTS:
        return f"are too many: {len(translated.shapes)}, Slurm allows {MOST_COMPONENTS} in one job"
    if _counted(terms):
        return "cannot keep the requested number of nodes"
    return "need more nodes than there are, because components share no node"


def _no_node(translated: Translated, ground: GangNodes) -> Wait:
    message = (
        f"several of the {_count(translated)} pods use ResourceClaim {translated.shared_claim}, so all of them have to"
        f" be on one node, and no node of {ground.where} is large enough for {_words(shapes.total(translated.shapes))};"
        " give each pod a claim of its own by a resourceClaimTemplateName"
    )
    return Wait(reason=UNSCHEDULABLE, message=message)


def _no_room(translated: Translated, ground: GangNodes, terms: LayoutTerms) -> Wait:
    most, count = shapes.bound(shapes.kinds(translated.shapes)), _count(translated)
    if not ground.common:
        message = (
            f"no node of {ground.where} is suitable for all {count} pods, and components for them"
            f" {_not(translated, ground, terms)}"
        )
        return Wait(reason=UNSCHEDULABLE, message=message)
    room = layout.capacity(most, ground.common, terms)
    limits = []
    if (terms.minimum or 1) > 1:
        limits.append(f", on at least {terms.minimum} nodes")
    if terms.maximum is not None:
        limits.append(f", on at most {terms.maximum} nodes")
    if terms.one_per_node:
        limits.append(", one pod on each node")
    alike = " where each is requested as the largest" if len(shapes.kinds(translated.shapes)) > 1 else ""
    pods = f"{min(room, count)} of {count} pods of {_words(most)}{alike}"
    message = f"{ground.where} has room for {pods}{''.join(limits)}"
    return Wait(reason=UNSCHEDULABLE, message=message)


def _words(needs: Needs) -> str:
    devices = f", {gres.write(needs.gres)}" if needs.gres else ""
    return f"({needs.cpus} cpus, {needs.memory_mib} MiB{devices})"
