"""What the annotations of a workload ask of its nodes: for all of its pods, and for parts of them.

    object with the annotation                    pods that it is about
    the object of the workload (Job, JobSet, …)   all pods; of several objects the strongest voice for each key
    its pods, where all are of one part           all pods, as the weakest voice
    its pods, where there are several parts       the pods of their part
    the object, for a part that it names          the pods of that part, and of the parts within it

A part is what the pods' label `kai.scheduler/subgroup-name` says; without it, the replicated job of a JobSet, or the
leader or the workers of a LeaderWorkerSet. A part that no other one is within, or a workload without parts, can be
divided into segments of so many pods each, which are parts again.
"""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slurm_bridge.families.kai.topology import Topology, TopologyConstraint
from slurm_bridge.model import names, texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload

TOPOLOGY = names.ANNOTATION_KAI_TOPOLOGY
REQUIRED = names.ANNOTATION_KAI_REQUIRED
PREFERRED = names.ANNOTATION_KAI_PREFERRED
SEGMENT_SIZE = "kai.scheduler/segment-size"
SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"
INDEX_LABEL = "kai.scheduler/pod-index-label"
#: Of one scope in this order: the level for all of its pods, then that of its segments.
LEVELS, SEGMENT_LEVELS = (REQUIRED, PREFERRED), (SEGMENT_REQUIRED, SEGMENT_PREFERRED)
KEYS = (TOPOLOGY, *LEVELS, SEGMENT_SIZE, *SEGMENT_LEVELS, INDEX_LABEL)
_PREFIXES = (TOPOLOGY, "kai.scheduler/segment", INDEX_LABEL)

#: Each part with a required level is a component of the job, of which Slurm allows so many.
MOST_PARTS = 128

#: KAI refuses segments of one pod.
FEWEST_IN_SEGMENT = 2
_DIGITS = 9

_LEADER, _WORKERS = "leader", "workers"

#: A label of pods: the part of their workload that they are.
SUBGROUP = names.LABEL_KAI_SUBGROUP

#: The part of a pod that is of none, as KAI calls it.
DEFAULT = "default"

Topologies = Mapping[str, Topology]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The pods from `number` times `size` on, by their indexes; `label` is that of the index, "" for the usual ones."""

    number: int
    size: int
    label: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One constraint, for these pods, with the object that says so; `part` is "default" where it is for all.

    `within` is the smallest part around a part that has a wish, too, "" where none has; None: it is for all pods.
    """

    constraint: TopologyConstraint
    pods: tuple[Pod, ...]
    subject: str
    part: str = DEFAULT
    within: str | None = None
    segment: Segment | None = None

    @property
    def spoken(self) -> str:
        """For the user, in the user's own words."""
        level, many = self.constraint.required or self.constraint.preferred, len(self.pods)
        kind = "required" if self.constraint.required else "preferred"
        whose = "its pod" if many == 1 else f"its {many} pods"
        whose = f"each {self.segment.size} of its pods" if self.segment else whose
        return f"{self.subject} has {kind} one {level} for {whose}"

    def means(self, pod: Pod) -> bool:
        """Whether it is about a pod of the workload that is no member any more, or not yet."""
        if part_of(pod) not in {part_of(one) for one in self.pods}:
            return False
        index = _index(pod, self.segment.label) if self.segment else None
        return self.segment is None or (index is not None and index // self.segment.size == self.segment.number)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """All of a workload, or what is wrong with them. `parts` are in an order in which none is before one around it."""

    whole: Wish | None = None
    parts: tuple[Wish, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Wish, ...]:
        """That for all pods first."""
        return (*([self.whole] if self.whole else []), *self.parts)

    @property
    def required(self) -> tuple[Wish, ...]:
        """Those that have to be met."""
        return tuple(one for one in self.every if one.constraint.required)

    @property
    def innermost(self) -> Mapping[str, str]:
        """By the uids of pods the smallest part that they are in."""
        return {pod.uid: one.part for one in self.parts for pod in one.pods}


@dataclasses.dataclass(frozen=True, slots=True)
class _Said:
    """One annotation."""

    key: str
    value: str
    subject: str

    def problem(self, allowed: str) -> str:
        """A complaint about it."""
        return f'annotation {self.key}="{texts.shown(self.value)}" of {self.subject}: use {allowed}'


_Voices = Mapping[str, _Said]


def read(workload: Workload, topologies: Topologies, usual: str) -> Wishes:
    """The wishes; `usual` is the topology of wishes that name only a level, "" where they have to name it."""
    every: list[Mapping[str, str]] = [one.annotations for one in workload.sources]
    every += [one.annotations for one in workload.parts]
    every += [pod.metadata.annotations for pod in workload.pods]
    if not any(key.startswith(_PREFIXES) for said in every for key in said):
        return Wishes()
    return _Reader(workload, topologies, usual).read()


def part_of(pod: Pod) -> str:
    """The part of its workload that a pod is."""
    labels = pod.metadata.labels
    if said := labels.get(SUBGROUP) or labels.get(names.LABEL_JOBSET_PART):
        return said
    worker = labels.get(names.LABEL_LWS_WORKER)
    return DEFAULT if worker is None else _LEADER if worker == "0" else _WORKERS


class _Reader:
    """Gathers what is wrong on its way."""

    def __init__(self, workload: Workload, topologies: Topologies, usual: str) -> None:
        self._workload, self._topologies, self._usual = workload, topologies, usual
        self._problems: list[str] = []

    def read(self) -> Wishes:
        """Objects speak for all, and for the parts that they name; pods for their part where there are several."""
        parts = dict[str, list[Pod]]()
        for pod in self._workload.pods:
            parts.setdefault(part_of(pod), []).append(pod)
        said = {name: self._of_pods(pods) for name, pods in parts.items()}
        several = bool(self._workload.parts) or (len(parts) > 1 and not _of_one_template(said))
        whole = dict[str, _Said]() if several else dict(next(iter(said.values())))
        for source in self._workload.sources:
            if source.kind != "Pod":
                whole |= self._voices(
                    f"{source.kind} {self._workload.root.namespace}/{source.name}", source.annotations
                )
        wish = self._wish(whole, self._workload.pods, named_only=several)
        found = self._parts(parts, said, whole) if several else []
        segments = self._segments(whole, self._workload.pods, DEFAULT, "")
        if segments and found:
            allowed = "it where no part of the workload has a topology of its own"
            self._problems.append(whole[SEGMENT_SIZE].problem(allowed))
        found += segments
        if len(found) > MOST_PARTS:
            allowed = f"at most {MOST_PARTS} are allowed, because each is a component of a Slurm job"
            self._problems.append(f"{found[0].subject}: {len(found)} parts have a topology of their own; {allowed}")
        problems = tuple(dict.fromkeys(self._problems))
        return Wishes(problems=problems) if problems else Wishes(whole=wish, parts=tuple(found))

    def _parts(self, pods_of: Mapping[str, Sequence[Pod]], said: Mapping[str, _Voices], whole: _Voices) -> list[Wish]:
        """Parts around others first. A part is in the topology that its workload names, unless it names one itself."""
        topology = {TOPOLOGY: whole[TOPOLOGY]} if TOPOLOGY in whole else {}
        named = {one.name: one for one in self._workload.parts}
        within: dict[str, list[str]] = {}
        for name in dict.fromkeys((*named, *pods_of)):
            within.setdefault(named[name].parent if name in named else "", []).append(name)
        found: list[Wish] = []

        def read(name: str, around: str) -> None:
            voices = {**topology, **said.get(name, {})}
            if name in named:
                subject = f"{self._workload.root}, subgroup {texts.shown(name)}"
                voices |= self._voices(subject, named[name].annotations)
            pods = tuple(pod for one in _with_all_within(name, within) for pod in pods_of.get(one, ()))
            if not pods:
                return
            wish = self._wish(voices, pods, part=name, within=around)
            found.extend([wish] if wish else [])
            inner = name if wish else around
            if SEGMENT_SIZE in voices and name in within:
                self._problems.append(voices[SEGMENT_SIZE].problem("it on a part that no other one is within"))
            found.extend(self._segments(voices, pods, name, inner))
            for child in within.get(name, ()):
                read(child, inner)

        for name in within.get("", ()):
            read(name, "")
        return found

    def _segments(self, voices: _Voices, pods: Sequence[Pod], part: str, within: str) -> list[Wish]:
        """So many pods each, in the order of their indexes; the last one may have fewer."""
        keys = [key for key in (SEGMENT_SIZE, *SEGMENT_LEVELS, INDEX_LABEL) if key in voices]
        if not keys:
            return []
        levels = [key for key in SEGMENT_LEVELS if key in voices]
        if SEGMENT_SIZE not in voices or not levels:
            missing = f"{SEGMENT_REQUIRED} or {SEGMENT_PREFERRED}" if SEGMENT_SIZE in voices else SEGMENT_SIZE
            self._problems.append(voices[keys[0]].problem(f"it together with {missing}"))
            return []
        size = _number(voices[SEGMENT_SIZE].value)
        if size is None or size < FEWEST_IN_SEGMENT:
            self._problems.append(voices[SEGMENT_SIZE].problem(f"a whole number from {FEWEST_IN_SEGMENT} on"))
            return []
        meant = {levelled: voices[key] for levelled, key in zip(LEVELS, SEGMENT_LEVELS, strict=True) if key in voices}
        meant |= {TOPOLOGY: voices[TOPOLOGY]} if TOPOLOGY in voices else {}
        segments: dict[int, list[Pod]] = {}
        for pod, index in zip(pods, self._indexes(pods, voices.get(INDEX_LABEL)), strict=True):
            segments.setdefault(index // size, []).append(pod)
        found, label = [], voices[INDEX_LABEL].value if INDEX_LABEL in voices else ""
        for number, members in sorted(segments.items()):
            one = self._wish(meant, tuple(members), part=f"{part}/{number}", within=within)
            segment = Segment(number=number, size=size, label=label)
            found += [dataclasses.replace(one, segment=segment)] if one else []
        return found

    def _indexes(self, pods: Sequence[Pod], label: _Said | None) -> Sequence[int]:
        """As the label says that was named; else as their Job or group counts them; else by their ranks."""
        found = [_index(pod, label.value if label else "") for pod in pods]
        known = [one for one in found if one is not None]
        if len({*known}) == len(pods):
            return known
        if label is not None:
            counts = collections.Counter(found)
            wrong = next(pod for pod, one in zip(pods, found, strict=True) if one is None or counts[one] > 1)
            told = f"a label with another whole number on each pod, unlike on {_name(wrong)}"
            self._problems.append(label.problem(told))
        return range(len(pods))

    def _of_pods(self, pods: Sequence[Pod]) -> _Voices:
        """Of one part: all of them have to say the same."""
        first, *others = pods
        said = self._voices(_name(first), first.metadata.annotations)
        for key in KEYS:
            one = said[key].value if key in said else None
            other = next((pod for pod in others if _value(pod.metadata.annotations, key) != one), None)
            if other is not None:
                values = [(_value(pod.metadata.annotations, key), _name(pod)) for pod in (first, other)]
                told = [f"none of {name}" if one is None else f'"{texts.shown(one)}" of {name}' for one, name in values]
                self._problems.append(
                    f"annotation {key}: {' and '.join(told)} differ; use one value for all pods of a part"
                )
        return said

    def _voices(self, subject: str, annotations: Mapping[str, str]) -> _Voices:
        found = {}
        for key in sorted(annotations):
            if not key.startswith(_PREFIXES):
                continue
            said = _Said(key, annotations[key].strip(), subject)
            if key not in KEYS:
                self._problems.append(f"annotation {key} of {subject} is not known: use one of {', '.join(KEYS)}")
            elif said.value:
                found[key] = said
            else:
                self._problems.append(said.problem("a value that is not empty"))
        return found

    def _wish(
        self,
        voices: _Voices,
        pods: tuple[Pod, ...],
        *,
        part: str = DEFAULT,
        within: str | None = None,
        named_only: bool = False,
    ) -> Wish | None:
        required, preferred = voices.get(REQUIRED), voices.get(PREFERRED)
        level = required or preferred
        if level is None:
            if TOPOLOGY in voices and not named_only and within is None and SEGMENT_SIZE not in voices:
                self._problems.append(voices[TOPOLOGY].problem(f"it together with {REQUIRED} or {PREFERRED}"))
            return None
        topology = self._topology(voices, [one for one in (required, preferred) if one])
        if topology is None or not self._levels(topology, required, preferred):
            return None
        constraint = TopologyConstraint(
            topology=topology.name,
            required=required.value if required else None,
            preferred=preferred.value if preferred else None,
        )
        return Wish(constraint=constraint, pods=pods, subject=level.subject, part=part, within=within)

    def _topology(self, voices: _Voices, levels: Sequence[_Said]) -> Topology | None:
        """The one that is named; else the usual one, or the only one that has these levels."""
        said = voices.get(TOPOLOGY)
        if said is not None:
            if said.value not in self._topologies:
                self._problems.append(said.problem(f"one of {', '.join(self._topologies)}"))
            return self._topologies.get(said.value)
        if self._usual or len(self._topologies) == 1:
            return self._topologies[self._usual or next(iter(self._topologies))]
        having = [one for one in self._topologies.values() if all(level.value in one.levels for level in levels)]
        if len(having) == 1:
            return having[0]
        known = dict.fromkeys(level for one in self._topologies.values() for level in one.levels)
        self._problems.append(levels[0].problem(f"levels of one topology ({', '.join(known)}), or also {TOPOLOGY}"))
        return None

    def _levels(self, topology: Topology, required: _Said | None, preferred: _Said | None) -> bool:
        """Both are there, and the preferred one is not the coarser one."""
        found = [one for one in (required, preferred) if one]
        wrong = [one for one in found if one.value not in topology.levels]
        for one in wrong:
            levels = ", ".join(topology.levels)
            self._problems.append(one.problem(f"a level of topology {topology.name}: {levels}"))
        if wrong or required is None or preferred is None:
            return not wrong
        finest = topology.levels[topology.levels.index(required.value) :]
        if preferred.value not in finest:
            self._problems.append(
                preferred.problem(f"the required level {required.value}, or a finer one: {', '.join(finest)}")
            )
        return preferred.value in finest


def _of_one_template(said: Mapping[str, _Voices]) -> bool:
    """Leader and workers that say the same are made from one template, which speaks for the whole group."""
    values = [{key: one.value for key, one in voices.items()} for voices in said.values()]
    return said.keys() == {_LEADER, _WORKERS} and values[0] == values[1]


def _with_all_within(name: str, within: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield name
    for child in within.get(name, ()):
        yield from _with_all_within(child, within)


def _index(pod: Pod, label: str) -> int | None:
    """Jobs of a JobSet count each for itself."""
    metadata = pod.metadata
    if label:
        return _number(metadata.labels.get(label, ""))
    if names.LABEL_JOBSET_NAME in metadata.labels:
        return None
    said = metadata.labels.get(names.LABEL_LWS_WORKER) or metadata.annotations.get(names.ANNOTATION_COMPLETION_INDEX)
    return _number(said or "")


def _number(text: str) -> int | None:
    return int(text) if len(text) <= _DIGITS and text.isascii() and text.isdigit() else None


def _value(annotations: Mapping[str, str], key: str) -> str | None:
    said = annotations.get(key)
    return said.strip() if said is not None else None


def _name(pod: Pod) -> str:
    return f"Pod {pod.metadata.namespace}/{pod.metadata.name}"


def spoken(wishes: Iterable[Wish]) -> Iterator[str]:
    """Each once."""
    yield from dict.fromkeys(one.spoken for one in wishes)
