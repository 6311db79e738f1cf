"""What the annotations of a workload ask of its nodes: for all of its pods, and for parts of them.

    object with the annotation                    pods that it is about
    the object of the workload (Job, JobSet, …)   all pods; of several objects the strongest voice for each key
    its pods, where all are of one part           all pods, as the weakest voice
    its pods, where there are several parts       the pods of their part

A part is what the pods' label `kai.scheduler/subgroup-name` says; without it, the replicated job of a JobSet, or the
leader or the workers of a LeaderWorkerSet.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slurm_bridge.families.kai.topology import Topology, TopologyConstraint
from slurm_bridge.model import names, texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload

PREFIX = "kai.scheduler/topology"
TOPOLOGY = PREFIX
REQUIRED = PREFIX + "-required-placement"
PREFERRED = PREFIX + "-preferred-placement"
KEYS = (TOPOLOGY, REQUIRED, PREFERRED)

#: A label of pods: the part of their workload that they are.
SUBGROUP = "kai.scheduler/subgroup-name"

#: The part of a pod that is of none, as KAI calls it.
DEFAULT = "default"

Topologies = Mapping[str, Topology]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One constraint, for these pods, with the object that says so; `part` is "default" where it is for all."""

    constraint: TopologyConstraint
    pods: tuple[Pod, ...]
    subject: str
    part: str = DEFAULT

    @property
    def spoken(self) -> str:
        """For the user, in the user's own words."""
        level, many = self.constraint.required or self.constraint.preferred, len(self.pods)
        kind = "required" if self.constraint.required else "preferred"
        whose = "its pod" if many == 1 else f"its {many} pods"
        return f"{self.subject} has {kind} one {level} for {whose}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """All of a workload, or what is wrong with them."""

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


@dataclasses.dataclass(frozen=True, slots=True)
class _Said:
    """One annotation."""

    key: str
    value: str
    subject: str

    def problem(self, allowed: str) -> str:
        """A complaint about it."""
        return f'annotation {self.key}="{texts.shown(self.value)}" of {self.subject}: allowed {allowed}'


_Voices = Mapping[str, _Said]


def read(workload: Workload, topologies: Topologies, usual: str) -> Wishes:
    """The wishes; `usual` is the topology of wishes that name only a level, "" where they have to name it."""
    every: list[Mapping[str, str]] = [one.annotations for one in workload.sources]
    every += [pod.metadata.annotations for pod in workload.pods]
    if not any(key.startswith(PREFIX) for said in every for key in said):
        return Wishes()
    return _Reader(workload, topologies, usual).read()


def part_of(pod: Pod) -> str:
    """The part of its workload that a pod is."""
    labels = pod.metadata.labels
    if said := labels.get(SUBGROUP) or labels.get(names.LABEL_JOBSET_PART):
        return said
    worker = labels.get(names.LABEL_LWS_WORKER)
    return DEFAULT if worker is None else "leader" if worker == "0" else "workers"


class _Reader:
    """Gathers what is wrong on its way."""

    def __init__(self, workload: Workload, topologies: Topologies, usual: str) -> None:
        self._workload, self._topologies, self._usual = workload, topologies, usual
        self._problems: list[str] = []

    def read(self) -> Wishes:
        """Objects speak for all, pods for their part where there are several."""
        workload, parts = self._workload, dict[str, list[Pod]]()
        for pod in workload.pods:
            parts.setdefault(part_of(pod), []).append(pod)
        said = {name: self._of_pods(pods) for name, pods in parts.items()}
        whole = dict[str, _Said]() if len(parts) > 1 else dict(*said.values())
        for source in workload.sources:
            if source.kind != "Pod":
                whole |= self._voices(f"{source.kind} {workload.root.namespace}/{source.name}", source.annotations)
        wish = self._wish(whole, workload.pods, named_only=len(parts) > 1)
        # A part is in the topology that its workload names, unless it names one itself.
        topology = {TOPOLOGY: whole[TOPOLOGY]} if TOPOLOGY in whole else {}
        found = [
            self._wish({**topology, **voices}, tuple(parts[name]), part=name)
            for name, voices in said.items()
            if len(parts) > 1 and voices
        ]
        problems = tuple(dict.fromkeys(self._problems))
        return Wishes(problems=problems) if problems else Wishes(whole=wish, parts=tuple(filter(None, found)))

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
                    f"annotation {key}: {' and '.join(told)} differ; allowed is one value for all pods of a part"
                )
        return said

    def _voices(self, subject: str, annotations: Mapping[str, str]) -> _Voices:
        found = {}
        for key in sorted(annotations):
            if not key.startswith(PREFIX):
                continue
            said = _Said(key, annotations[key].strip(), subject)
            if key not in KEYS:
                self._problems.append(f"annotation {key} of {subject} is not known: allowed are {', '.join(KEYS)}")
            elif said.value:
                found[key] = said
            else:
                self._problems.append(said.problem("is a value that is not empty"))
        return found

    def _wish(
        self, voices: _Voices, pods: tuple[Pod, ...], *, part: str = DEFAULT, named_only: bool = False
    ) -> Wish | None:
        required, preferred = voices.get(REQUIRED), voices.get(PREFERRED)
        level = required or preferred
        if level is None:
            if TOPOLOGY in voices and not named_only and part == DEFAULT:
                self._problems.append(voices[TOPOLOGY].problem(f"together with {REQUIRED} or {PREFERRED}"))
            return None
        topology = self._topology(voices, [one for one in (required, preferred) if one])
        if topology is None or not self._levels(topology, required, preferred):
            return None
        constraint = TopologyConstraint(
            topology=topology.name,
            required=required.value if required else None,
            preferred=preferred.value if preferred else None,
        )
        return Wish(constraint=constraint, pods=pods, subject=level.subject, part=part)

    def _topology(self, voices: _Voices, levels: Sequence[_Said]) -> Topology | None:
        """The one that is named; else the usual one, or the only one that has these levels."""
        said = voices.get(TOPOLOGY)
        if said is not None:
            if said.value not in self._topologies:
                self._problems.append(said.problem(f"is one of {', '.join(self._topologies)}"))
            return self._topologies.get(said.value)
        if self._usual or len(self._topologies) == 1:
            return self._topologies[self._usual or next(iter(self._topologies))]
        having = [one for one in self._topologies.values() if all(level.value in one.levels for level in levels)]
        if len(having) == 1:
            return having[0]
        known = dict.fromkeys(level for one in self._topologies.values() for level in one.levels)
        self._problems.append(levels[0].problem(f"are levels of one topology ({', '.join(known)}), or also {TOPOLOGY}"))
        return None

    def _levels(self, topology: Topology, required: _Said | None, preferred: _Said | None) -> bool:
        """Both are there, and the preferred one is not the coarser one."""
        found = [one for one in (required, preferred) if one]
        wrong = [one for one in found if one.value not in topology.levels]
        for one in wrong:
            levels = ", ".join(topology.levels)
            self._problems.append(one.problem(f"is a level of topology {topology.name}: {levels}"))
        if wrong or required is None or preferred is None:
            return not wrong
        finest = topology.levels[topology.levels.index(required.value) :]
        if preferred.value not in finest:
            self._problems.append(
                preferred.problem(f"is the required level {required.value}, or a finer one: {', '.join(finest)}")
            )
        return preferred.value in finest


def _value(annotations: Mapping[str, str], key: str) -> str | None:
    said = annotations.get(key)
    return said.strip() if said is not None else None


def _name(pod: Pod) -> str:
    return f"Pod {pod.metadata.namespace}/{pod.metadata.name}"


def spoken(wishes: Iterable[Wish]) -> Iterator[str]:
    """Each once."""
    yield from dict.fromkeys(one.spoken for one in wishes)
