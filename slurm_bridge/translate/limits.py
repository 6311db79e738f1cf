"""Settles a translated request with what Slurm has: partitions with their time limits, and generic resources.

Slurm would accept a request that can never start, and leave it pending without a reason; it is refused here instead.

    time limit   partitions                       what is sent
    given        some allow it                    the limit, and only those partitions
    given        none allows it                   nothing: refused, with what each allows
    not given    have a default (or a maximum)    the smallest of these, which holds in each of them
    not given    have neither                     none: Slurm sets none either

A gang then gets its form, which depends on what the nodes have.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping

from slurm_bridge.model import texts
from slurm_bridge.model.job import Gres
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate import choice, gres, layout
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated, changed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlurmFacts:
    """What Slurm says of itself. Make one for each read, not for each job: what follows from it is cached with it.

    `heterogeneous`: Slurm takes jobs of several components, and the configuration allows them.
    """

    partitions: tuple[Partition, ...]
    nodes: tuple[SlurmNode, ...]
    heterogeneous: bool = False


#: Slurm's names of the nodes for each shape of a workload in order, or of those for all of its pods.
Within = tuple[frozenset[str], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Catalogue:
    """Lookup tables for every job, made once for each read."""

    partitions: Mapping[str, Partition]
    default: str | None
    gres: Mapping[str, frozenset[Gres]]

    def named(self, text: str | None) -> tuple[Partition, ...]:
        """The partitions of a request: Slurm's default where it names none, and none where that is not known."""
        names = text.split(",") if text else [self.default] if self.default else []
        return tuple(self.partitions[name] for name in names if name in self.partitions)


@functools.lru_cache(maxsize=2)
def _catalogue(facts: SlurmFacts) -> _Catalogue:
    found: dict[str, set[Gres]] = {}
    for node in facts.nodes:
        kinds = {dataclasses.replace(one, count=1) for one in node.gres}
        for partition in node.partitions:
            found.setdefault(partition, set()).update(kinds)
    return _Catalogue(
        partitions={partition.name: partition for partition in facts.partitions},
        default=next((partition.name for partition in facts.partitions if partition.default), None),
        gres={partition: frozenset(kinds) for partition, kinds in found.items()},
    )


def settle(translated: Translated, facts: SlurmFacts, within: Within | None = None) -> Translated | Wait | Reject:
    """The request as Slurm can take it, or why it cannot. A partition that is down is allowed: Slurm queues for it.

    Only the form of a gang depends on its eligible nodes, `within`; None means all nodes of its partitions.
    """
    if not facts.partitions or not facts.nodes:
        return Wait(reason="SlurmUnavailable", message="Slurm has not reported its partitions and nodes yet")
    catalogue = _catalogue(facts)
    partition = translated.request.partition
    unknown = [name for name in (partition.split(",") if partition else ()) if name not in catalogue.partitions]
    if unknown:
        there = texts.listed(sorted(catalogue.partitions))
        words = f"partition {texts.listed(unknown)} does not exist in Slurm, which has {there}"
        return _refused("UnknownPartition", translated, "partition", words)
    limited = _limit(translated, catalogue)
    spelled = limited if isinstance(limited, Reject) else _gres(limited, catalogue)
    if isinstance(spelled, Reject) or spelled.form is Form.SINGLE:
        return spelled
    return choice.choose(spelled, _gang_nodes(facts, spelled.request.partition, len(spelled.shapes), within))


@functools.lru_cache(maxsize=64)
def _gang_nodes(facts: SlurmFacts, partition: str | None, count: int, within: Within | None) -> choice.GangNodes:
    """The nodes for a form; gangs with the same eligible nodes share them."""
    catalogue = _catalogue(facts)
    meant = catalogue.named(partition) or facts.partitions
    names = frozenset().union(*(one.nodes for one in meant))
    here = [node for node in facts.nodes if node.name in names]
    each = within if within is not None and len(within) == count else (within or (names,))[:1] * count
    every = frozenset[str]().union(*each)
    common = every.intersection(*each)
    return choice.GangNodes(
        each=tuple(layout.count_nodes(node for node in here if node.name in one) for one in each),
        common=layout.count_nodes(node for node in here if node.name in common),
        nodes=sum(node.name in every for node in here),
        heterogeneous=facts.heterogeneous,
        whole=any(one.exclusive for one in meant),
        where=f"Slurm partition {', '.join(one.name for one in meant)}" if partition else "Slurm",
    )


def _refused(reason: str, translated: Translated, field: str, words: str) -> Reject:
    owner = translated.request.owner
    source = next((value.source for value in translated.values if value.field == field), "")
    of = f" ({source})" if source else ""
    return Reject(reason=reason, message=f"{owner.kind} {owner.namespace}/{owner.name}: {words}{of}")


def _limit(translated: Translated, catalogue: _Catalogue) -> Translated | Reject:
    request, partitions = translated.request, catalogue.named(translated.request.partition)
    if request.time_limit_minutes is None:
        return _limit_of_partition(translated, partitions)
    minutes = request.time_limit_minutes
    able = [one for one in partitions if one.maximum_minutes is None or minutes <= one.maximum_minutes]
    if len(able) == len(partitions):
        return translated
    if not able:
        most = ", ".join(f"{one.name} at most {one.maximum_minutes}" for one in partitions)
        words = f"no partition allows a time limit of {minutes} minutes: {most}"
        return _refused("TimeLimitTooLong", translated, "time_limit_minutes", words)
    return changed(translated, "partition", ",".join(one.name for one in able), "those that allow the time limit")


def _limit_of_partition(translated: Translated, partitions: Iterable[Partition]) -> Translated:
    """Slurm would apply it anyway; sent, it shows in the job and in `explain`."""
    limits: list[tuple[int, str]] = []
    for one in partitions:
        # The limit of a job there that asks for none: the default, else the maximum.
        there = (one.default_minutes or one.maximum_minutes, one.maximum_minutes)
        limits += [(minutes, one.name) for minutes in there if minutes is not None]
    if not limits:
        return translated
    minutes, name = min(limits)
    return changed(translated, "time_limit_minutes", minutes, f"default of partition {name}")


def _gres(translated: Translated, catalogue: _Catalogue) -> Translated | Reject:
    """The generic resources of the request and of each shape, as Slurm spells them."""
    every = (translated.request.gres, *(shape.gres for shape in translated.shapes))
    wanted = tuple(dict.fromkeys(itertools.chain.from_iterable(every)))
    if not wanted:
        return translated
    names = [one.name for one in catalogue.named(translated.request.partition)] or list(catalogue.partitions)
    known = frozenset[Gres]().union(*(catalogue.gres.get(name, frozenset()) for name in names))
    spelled = {one: gres.respell(one, known) for one in wanted}
    unknown = dict.fromkeys(gres.spell(one) for one, there in spelled.items() if there is None)
    if unknown:
        there = texts.listed(sorted({gres.spell(one) for one in known})) or "none"
        words = f"no node of partition {texts.listed(names)} has gres {texts.listed(unknown)}; there is {there}"
        return _refused("UnknownGres", translated, "gres", words)
    return _respelled(translated, {one: there for one, there in spelled.items() if there is not None})


def _respelled(translated: Translated, spelled: Mapping[Gres, Gres]) -> Translated:
    found = tuple(spelled[one] for one in translated.request.gres)
    if found != translated.request.gres:
        translated = changed(translated, "gres", found, "as Slurm spells it")
    if all(one == there for one, there in spelled.items()):
        return translated
    shapes = (dataclasses.replace(shape, gres=tuple(spelled[one] for one in shape.gres)) for shape in translated.shapes)
    return dataclasses.replace(translated, shapes=tuple(shapes))
