"""The PodGroup of KAI (`scheduling.run.ai/v2alpha2`): an annotation of its pods names it, a label their subgroup.

Subgroups are a tree. Pods are in the leaves; a subgroup that others name as their parent is around these:

    root, or a subgroup with others in it   starts from `minSubGroup` of those (all of them), and `minMember` pods
    any other one                           starts from `minMember` pods (one)

The topology constraint of the root and of each subgroup counts like the annotations of the same meaning.
"""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Final

from slurm_bridge.model import names, texts
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object, Record
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import NamedPart, Root, Source, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options

INVALID: Final = "GroupInvalid"

#: More than this are a mistake: a job in Slurm has at most half as many components.
MOST_SUBGROUPS: Final = 256


class TopologyLevels(Record, frozen=True, kw_only=True):
    """In one domain of which level pods have to be, or should be."""

    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""

    @property
    def annotations(self) -> Mapping[str, str]:
        """What says the same of a Job."""
        said = {
            names.ANNOTATION_KAI_TOPOLOGY: self.topology,
            names.ANNOTATION_KAI_REQUIRED: self.required_topology_level,
            names.ANNOTATION_KAI_PREFERRED: self.preferred_topology_level,
        }
        return {key: value for key, value in said.items() if value}


_ANYWHERE: Final = TopologyLevels()


class KaiSubGroup(Record, frozen=True, kw_only=True):
    """A part of a group."""

    name: str = ""
    parent: str | None = None
    min_member: int | None = None
    min_sub_group: int | None = None
    topology_constraint: TopologyLevels | None = None


class KaiPodGroupSpec(Record, frozen=True, kw_only=True):
    """The fields that are read; queue, priority and preemptibility are KAI's own."""

    min_member: int | None = None
    min_sub_group: int | None = None
    topology_constraint: TopologyLevels | None = None
    sub_groups: tuple[KaiSubGroup, ...] = ()


class KaiPodGroup(Object, frozen=True, kw_only=True):
    """A PodGroup of KAI."""

    spec: KaiPodGroupSpec = KaiPodGroupSpec()


PODGROUPS: Final = Kind(
    group="scheduling.run.ai",
    versions=("v2alpha2",),
    plural="podgroups",
    kind="PodGroup",
    record=KaiPodGroup,
    custom=True,
)


def handles(pod: Pod) -> tuple[str, ...]:
    """The name of the PodGroup."""
    name = _name(pod)
    return (name,) if name else ()


def claim(pod: Pod, known: Known, _options: Options) -> Root | None:
    """A pod with the annotation, whether or not the PodGroup exists."""
    return gangs.named(PODGROUPS, _name(pod), pod, known)


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang, once enough subgroups have enough pods."""
    group = given.known.find(PODGROUPS, root.namespace, root.name)
    if group is None:
        return gangs.missing(root)
    if problem := _problem(group.spec):
        return Wait(reason=INVALID, message=f"{root}: {problem}")
    tree = _Tree(group.spec)
    chain = given.owners.resolve(members.any())
    levels = (group.spec.topology_constraint or _ANYWHERE).annotations
    said = Source(kind=root.kind, name=root.name, annotations={**group.metadata.annotations, **levels})
    plan = gangs.GangPlan(
        called=str(root),
        job_name=root.name,
        minimum=tree.least(""),
        sources=lambda first: (voices.own(first), *voices.above(chain), said),
        suspended=voices.suspended(chain),
    )
    found = gangs.whole(root, plan, members, given)
    if isinstance(found, Wait):
        return found
    counts = collections.Counter(_subgroup(pod) for pod in found.pods)
    if not given.started and (lacking := tree.lacking("", counts)):
        return Wait(reason=gangs.INCOMPLETE, message=f"{root}: {lacking}")
    parts = (
        NamedPart(
            name=one.name, parent=one.parent or "", annotations=(one.topology_constraint or _ANYWHERE).annotations
        )
        for one in group.spec.sub_groups
    )
    return dataclasses.replace(found, parts=tuple(parts))


class _Tree:
    """The subgroups of a group; "" is the group itself."""

    def __init__(self, spec: KaiPodGroupSpec) -> None:
        self._own: dict[str, KaiSubGroup | KaiPodGroupSpec] = {"": spec}
        self._within: dict[str, list[str]] = {}
        for one in spec.sub_groups:
            self._own[one.name] = one
            self._within.setdefault(one.parent or "", []).append(one.name)

    def least(self, name: str) -> int:
        """How many pods it starts from at least, whichever of its subgroups they are in."""
        smallest = sorted(self.least(child) for child in self._within.get(name, ()))[: self._needed(name)]
        return max(self._pods(name), sum(smallest))

    def lacking(self, name: str, counts: Mapping[str, int]) -> str:
        """What keeps it from starting, "" if nothing does."""
        within = self._within.get(name, ())
        short = list(filter(None, (self.lacking(child, counts) for child in within)))
        if len(within) - len(short) < self._needed(name):
            return short[0]
        there, least = self._count(name, counts), self._pods(name)
        if there >= least:
            return ""
        return f"{there} of {least} pods of {f'subgroup {texts.shown(name)}' if name else 'the group'} are there"

    def _pods(self, name: str) -> int:
        """Of all that is within it."""
        least = self._own[name].min_member
        return (0 if name in self._within else 1) if least is None else max(1, least)

    def _needed(self, name: str) -> int:
        within, least = len(self._within.get(name, ())), self._own[name].min_sub_group
        return within if least is None else least

    def _count(self, name: str, counts: Mapping[str, int]) -> int:
        return counts.get(name, 0) + sum(self._count(child, counts) for child in self._within.get(name, ()))


def _problem(spec: KaiPodGroupSpec) -> str:
    """What is wrong with the subgroups; "" when they are a tree."""
    if len(spec.sub_groups) > MOST_SUBGROUPS:
        return f"spec.subGroups has {len(spec.sub_groups)} entries; at most {MOST_SUBGROUPS} are allowed"
    parents = {one.name: one.parent or "" for one in spec.sub_groups}
    met: set[str] = set()
    for place, one in enumerate(spec.sub_groups):
        field, shown, parent = f"spec.subGroups[{place}]", texts.shown(one.name), one.parent or ""
        if not one.name or one.name in met:
            return f'{field}.name is "{shown}": use a name that no other subgroup has'
        met.add(one.name)
        if parent not in {"", *parents}:
            return f'{field}.parent is "{texts.shown(parent)}": use the name of a subgroup'
        if _endless(one.name, parents):
            return f'{field}.parent is "{texts.shown(parent)}": subgroup {shown} would be within itself'
    within = collections.Counter(parents.values())
    for field, name, least in (
        ("spec", "", spec.min_sub_group),
        *((f"spec.subGroups[{place}]", one.name, one.min_sub_group) for place, one in enumerate(spec.sub_groups)),
    ):
        if least is not None and not 1 <= least <= within[name]:
            there = within[name]
            return f"{field}.minSubGroup is {least}: use a number from 1 to that of the subgroups in it, {there}"
    return ""


def _endless(name: str, parents: Mapping[str, str]) -> bool:
    """Whether the way up from a subgroup never comes to the group."""
    for _ in parents:
        name = parents.get(name, "")
        if not name:
            return False
    return True


def _name(pod: Pod) -> str:
    return pod.metadata.annotations.get(names.ANNOTATION_KAI_GROUP, "")


def _subgroup(pod: Pod) -> str:
    return pod.metadata.labels.get(names.LABEL_KAI_SUBGROUP, "")


SPEC = KindSpec(
    name=PODGROUPS.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    resource=PODGROUPS,
    counted="spec.minMember, spec.subGroups",
    prefixes=frozenset({names.ANNOTATION_KAI_GROUP, "kai.scheduler"}),
    page=KindPage(
        title="PodGroup of KAI (`scheduling.run.ai/v2alpha2`)",
        pods="the annotation `pod-group-name` names it",
        one="the group",
        minimum="`minMember` and `minSubGroup` of the group and its subgroups",
        sources="pod, owner, PodGroup",
    ),
)
