"""From wishes to the sets of nodes that are tried, in their order.

    for one wish      domains with room now: those below the required level (the first few of each level), those of the
                      required level; then those of the required level that are full now and large enough; and where
                      nothing is required all nodes
    for parts, too    within each set for all pods, a set for each part: of the job that has a component for each shape
                      of pods; and sets that will do for all parts together, of any other job

A domain that is merely in use refuses no workload: it waits in Slurm for one of the domains that could take it.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from slurm_bridge.families.kai import memo, wishes
from slurm_bridge.families.kai.memo import Way
from slurm_bridge.families.kai.nodesets import DomainCandidate, Found, NodeSetQuestion, node_sets
from slurm_bridge.families.kai.present import Trees
from slurm_bridge.families.kai.topology import Amounts, TaskOwner, Topology
from slurm_bridge.families.kai.wishes import Wish, Wishes
from slurm_bridge.hooks.base import Nodes

#: So many sets are tried at most; no plan has more attempts.
MOST = 10
#: So many ways to give each part a set are looked through for the best ones.
MOST_WAYS = 4096

#: A domain with its topology, from the coarsest level down; () where it is no domain.
Place = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A pod to place: what it takes, and the part of its workload that it is."""

    amounts: Amounts
    part: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Nodes for all pods, or, with `parts`, for each part by its name. `roomy`: there is room now.

    `places` is the domain around all pods, then the one within it, or that of each part.
    """

    nodes: Nodes
    name: str
    roomy: bool
    parts: tuple[tuple[str, Nodes], ...] = ()
    places: tuple[Place, ...] = ((),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The sets, and why others are not among them, for operators."""

    choices: tuple[Choice, ...]
    errors: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementQuery:
    """What is to be placed. On `active` nodes others of it run; `components`: its job may have one for each shape.

    `apart`: Slurm can have such jobs, so that pods that differ are asked for as they are.
    """

    job: TaskOwner
    tasks: tuple[Task, ...]
    active: Nodes = frozenset()
    components: bool = False
    apart: bool = False


class Chooser:
    """For one workload at one moment. `most` is how many domains of a preferred level are tried."""

    def __init__(self, trees: Trees, asked: PlacementQuery, most: int) -> None:
        self._trees, self._asked, self._most = trees, asked, most
        self._tasks = asked.tasks
        self._errors: list[str] = []

    def fresh(self, wished: Wishes, nodes: Nodes) -> Chosen:
        """Those that are tried now: with room first."""
        found = sorted(self._choices(wished, nodes), key=lambda one: not one.roomy)
        apart = [one for one in found if one.parts][:MOST]
        together = [one for one in found if not one.parts][:MOST]
        ordered = sorted((*apart, *together), key=lambda one: not one.roomy)
        return Chosen(choices=tuple(ordered), errors=tuple(dict.fromkeys(self._errors)))

    def again(self, wished: Wishes, nodes: Nodes, ways: Sequence[Way]) -> tuple[Choice, ...]:
        """The sets that were chosen before, those that could still take the workload, whatever is free now."""
        outers = _by_key(self._around(wished, nodes, every=True))

        @functools.cache
        def inners(outer: str) -> tuple[Mapping[str, Choice], ...]:
            return (
                _by_key(self._together(wished.parts, outers[outer], every=True)),
                *(
                    _by_key(self._domains(part, self._of(part), outers[outer].nodes, every=True))
                    for part in wished.parts
                ),
            )

        found: list[Choice] = []
        for way in ways:
            outer, *within = way.keys
            if outer not in outers or bool(within) is not bool(wished.parts):
                continue
            if not within:
                found.append(outers[outer])
                continue
            together, *apart = inners(outer)
            if not way.apart:
                found += [together[key] for key in within if key in together]
            elif len(within) == len(apart) and all(key in known for key, known in zip(within, apart, strict=True)):
                chosen = [known[key] for key, known in zip(within, apart, strict=True)]
                found.append(self._way(wished.parts, outers[outer], chosen))
        return tuple(found)

    def found(self, wish: Wish, nodes: Nodes) -> Found:
        """The domains with room now, for a wish about all pods."""
        return self._ask(wish, self._of(wish), nodes, whole=False)

    def _choices(self, wished: Wishes, nodes: Nodes) -> Iterator[Choice]:
        for outer in self._around(wished, nodes, every=False):
            if not wished.parts:
                yield outer
                continue
            if self._asked.components:
                yield from self._apart(wished.parts, outer)
            yield from self._together(wished.parts, outer, every=False)

    def _around(self, wished: Wishes, nodes: Nodes, *, every: bool) -> Sequence[Choice]:
        """The sets for all pods; all nodes where the wishes are of parts only."""
        if wished.whole is None:
            return [Choice(nodes=nodes, name="", roomy=True)]
        return self._domains(wished.whole, self._tasks, nodes, every=every)

    def _apart(self, parts: Sequence[Wish], outer: Choice) -> Iterator[Choice]:
        """A set for each part: the best ones first, and parts in one set only where that has room for all of them."""
        found = [self._domains(part, self._of(part), outer.nodes, every=False) for part in parts]
        ways = itertools.islice(itertools.product(*map(enumerate, found)), MOST_WAYS)
        joint = self._joint(parts, outer)
        for way in sorted(ways, key=lambda way: sum(place for place, _ in way)):
            chosen = [one for _, one in way]
            if joint(chosen):
                yield self._way(parts, outer, chosen)

    def _way(self, parts: Sequence[Wish], outer: Choice, chosen: Sequence[Choice]) -> Choice:
        own = {part.part for part in parts}
        others = any(task.part not in own for task in self._tasks)
        return Choice(
            nodes=outer.nodes if others else frozenset().union(*(one.nodes for one in chosen)),
            name=_joined(outer.name, "+".join(one.name for one in chosen)),
            roomy=outer.roomy and all(one.roomy for one in chosen),
            parts=tuple((part.part, one.nodes) for part, one in zip(parts, chosen, strict=True)),
            places=(outer.places[0], *(one.places[0] for one in chosen)),
        )

    def _joint(self, parts: Sequence[Wish], outer: Choice) -> Callable[[Sequence[Choice]], bool]:
        """Whether each set has room for all the parts that are to be there."""

        @functools.cache
        def taking(together: tuple[int, ...]) -> frozenset[Place]:
            tasks = [task for place in together for task in self._of(parts[place])]
            found = self._domains(parts[together[0]], tasks, outer.nodes, every=True)
            return frozenset(one.places[0] for one in found)

        def joint(chosen: Sequence[Choice]) -> bool:
            among = dict[Place, list[int]]()
            for number, one in enumerate(chosen):
                among.setdefault(one.places[0], []).append(number)
            return all(len(same) == 1 or not where or where in taking(tuple(same)) for where, same in among.items())

        return joint

    def _together(self, parts: Sequence[Wish], outer: Choice, *, every: bool) -> Iterator[Choice]:
        """One set for all pods that meets the wishes of all parts; they have to be about one topology."""
        first, *others = parts
        if any(one.constraint.topology != first.constraint.topology for one in others):
            return
        levels = self._topology(first).levels
        finest = max(parts, key=lambda one: levels.index(one.constraint.required or one.constraint.preferred or ""))
        for one in self._domains(finest, self._tasks, outer.nodes, every=every):
            yield dataclasses.replace(
                one,
                name=_joined(outer.name, one.name),
                roomy=outer.roomy and one.roomy,
                places=(outer.places[0], *one.places),
            )

    def _domains(self, wish: Wish, tasks: Sequence[Task], nodes: Nodes, *, every: bool) -> list[Choice]:
        """The domains of one wish, best first."""
        topology, required = self._topology(wish), wish.constraint.required
        top = topology.depth(required) if required else 0
        roomy = [one for one in self._ask(wish, tasks, nodes, whole=False).sets if _is_set(one, required)]
        fitting = roomy if every else _first_of_each(roomy, top, self._most)
        chosen = [_choice(wish, one, roomy=True) for one in fitting]
        if required or every:
            known = {one.domain for one in roomy}
            large = self._ask(wish, tasks, nodes, whole=True).sets
            others = (one for one in large if _is_set(one, required) and one.domain not in known)
            full = (one for one in others if every or len(one.domain) == top)
            chosen += [_choice(wish, one, roomy=False) for one in itertools.islice(full, None if every else MOST)]
        return chosen if required else [*chosen, Choice(nodes=nodes, name="", roomy=True)]

    def _ask(self, wish: Wish, tasks: Sequence[Task], nodes: Nodes, *, whole: bool) -> Found:
        question = NodeSetQuestion(
            job=self._asked.job,
            subgroup=wish.part,
            constraint=wish.constraint,
            tasks=tuple(one.amounts for one in tasks),
            active_nodes=self._asked.active,
            apart=self._asked.apart,
        )
        found = node_sets(self._trees.whole if whole else self._trees.free, question, nodes)
        self._errors += found.errors
        return found

    def _of(self, wish: Wish) -> Sequence[Task]:
        if wish.part == wishes.DEFAULT:
            return self._tasks
        return tuple(one for one in self._tasks if one.part == wish.part)

    def _topology(self, wish: Wish) -> Topology:
        return self._trees.free[wish.constraint.topology or ""].topology


def _is_set(one: DomainCandidate, required: str | None) -> bool:
    """A workload that only prefers domains may have any node in the end, also outside the topology."""
    return bool(one.nodes) and (required is not None or bool(one.domain))


def _first_of_each(found: Sequence[DomainCandidate], top: int, most: int) -> list[DomainCandidate]:
    """A few of each level, and of the required one as many as can be tried."""
    counts: dict[int, int] = {}
    kept = []
    for one in found:
        depth = len(one.domain)
        counts[depth] = counts.get(depth, 0) + 1
        if counts[depth] <= (MOST if depth == top else most):
            kept.append(one)
    return kept


def _choice(wish: Wish, one: DomainCandidate, *, roomy: bool) -> Choice:
    """Operators see the name in explanations; the root is no set of its own."""
    topology = wish.constraint.topology or ""
    name = f"{topology}:{'.'.join(one.domain)}" if one.domain else ""
    places = ((topology, *one.domain) if one.domain else (),)
    return Choice(nodes=one.nodes, name=name, roomy=roomy, places=places)


def _by_key(choices: Iterable[Choice]) -> Mapping[str, Choice]:
    """By what is remembered of the last one of their domains."""
    return {memo.key(one.places[-1]): one for one in choices}


def _joined(outer: str, inner: str) -> str:
    return "/".join(filter(None, (outer, inner)))
