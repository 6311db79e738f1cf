"""From wishes to the sets of nodes that are tried, in their order.

    for one wish      domains with room now: those below the required level (the first few of each level), those of the
                      required level; then those of the required level that are full now and large enough; and where
                      nothing is required all nodes
    for parts, too    within each set for all pods, a set for each part: of the job that has a component for each part;
                      and sets that will do for all parts together, of any other job

A domain that is merely in use refuses no workload: it waits in Slurm for one of the domains that could take it.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from slurm_bridge.families.kai import arrangement, memo
from slurm_bridge.families.kai.arrangement import Arrangements, ComponentTasks, NodesLeft, PlacedPart
from slurm_bridge.families.kai.memo import Way
from slurm_bridge.families.kai.nodesets import DomainCandidate, Found, NodeSetQuestion, node_sets
from slurm_bridge.families.kai.present import Trees
from slurm_bridge.families.kai.topology import Amounts, TaskOwner, Topology
from slurm_bridge.families.kai.wishes import Wish, Wishes
from slurm_bridge.hooks.base import Nodes

#: So many sets are tried at most; no plan has more attempts.
MOST = 10
#: A domain with its topology, from the coarsest level down; () where it is no domain.
Place = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A pod to place: what it takes."""

    amounts: Amounts
    uid: str


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
    """What is to be placed. `active` are the nodes where others of a wish run, `components`: its job may have several.

    `apart`: Slurm can have such jobs, so that pods that differ are asked for as they are.
    """

    job: TaskOwner
    tasks: tuple[Task, ...]
    active: Callable[[Wish], Nodes] = lambda _wish: frozenset()
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
        def together(outer: str) -> Mapping[str, Choice]:
            return _by_key(self._together(wished.parts, outers[outer], every=True))

        @functools.cache
        def domains(part: int, around: Nodes) -> Mapping[str, Choice]:
            return _by_key(self._domains(wished.parts[part], self._of(wished.parts[part]), around, every=True))

        found: list[Choice] = []
        for way in ways:
            outer, *inner = way.keys
            if outer not in outers or bool(inner) is not bool(wished.parts):
                continue
            if not inner:
                found.append(outers[outer])
            elif not way.apart:
                found += [together(outer)[key] for key in inner if key in together(outer)]
            elif chosen := _found_again(wished.parts, outers[outer], inner, domains):
                found.append(self._way(wished, outers[outer], chosen))
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
                yield from self._apart(wished, outer)
            yield from self._together(wished.parts, outer, every=False)

    def _around(self, wished: Wishes, nodes: Nodes, *, every: bool) -> Sequence[Choice]:
        """The sets for all pods; all nodes where the wishes are of parts only."""
        if wished.whole is None:
            return [Choice(nodes=nodes, name="", roomy=True)]
        return self._domains(wished.whole, self._tasks, nodes, every=every)

    def _apart(self, wished: Wishes, outer: Choice) -> Iterator[Choice]:
        """A set for each part: those with room now, best first; then those that are large enough."""
        found = set[tuple[Place, ...]]()
        for whole in (False, True) if any(one.constraint.required for one in wished.parts) else (False,):
            for way in itertools.islice(self._arranged(wished, outer, whole=whole), MOST):
                places = tuple(one.places[0] for one in way)
                if places not in found:
                    found.add(places)
                    yield self._way(wished, outer, way, roomy=not whole)

    def _arranged(self, wished: Wishes, outer: Choice, *, whole: bool) -> Iterator[tuple[Choice, ...]]:
        parts, rest = wished.parts, ComponentsOf(self._tasks, wished.innermost)
        # Pods that are in no part come last, on any nodes that are left.
        others = PlacedPart(tasks=rest.of(None))
        placed = [
            PlacedPart(
                tasks=rest.of(one.part),
                around=_around(parts, number),
                alike=None if any(two.within == one.part for two in parts) else one.constraint,
            )
            for number, one in enumerate(parts)
        ]

        @functools.cache
        def domains(number: int, around: Nodes) -> Sequence[Choice]:
            found = self._domains(parts[number], self._of(parts[number]), around, every=False, few=False)
            return found if whole else [one for one in found if one.roomy]

        def of(number: int, around: Choice | None) -> Sequence[Choice]:
            return domains(number, (around or outer).nodes) if number < len(parts) else [outer]

        trees = self._trees.whole if whole else self._trees.free
        left = NodesLeft(trees[parts[0].constraint.topology or ""].stock)
        every = Arrangements([*placed, others], left, of, lambda one: one.nodes)
        return (way[: len(parts)] for way in every)

    def _way(self, wished: Wishes, outer: Choice, chosen: Sequence[Choice], *, roomy: bool = True) -> Choice:
        parts = wished.parts
        own = {pod.uid for part in parts for pod in part.pods}
        others = any(task.uid not in own for task in self._tasks)
        return Choice(
            nodes=outer.nodes if others else frozenset().union(*(one.nodes for one in chosen)),
            name=_joined(outer.name, "+".join(one.name for one in chosen)),
            roomy=roomy and outer.roomy and all(one.roomy for one in chosen),
            parts=self._offered(wished, outer, chosen),
            places=(outer.places[0], *(one.places[0] for one in chosen)),
        )

    def _offered(self, wished: Wishes, outer: Choice, chosen: Sequence[Choice]) -> tuple[tuple[str, Nodes], ...]:
        """The nodes for each part and for the pods in none ("").

        No two get the same node: Slurm chooses for each component by itself, and may always choose what another needs.
        """
        tasks = ComponentsOf(self._tasks, wished.innermost)
        domains = [
            *((one.part, choice.nodes) for one, choice in zip(wished.parts, chosen, strict=True)),
            ("", outer.nodes),
        ]
        wanted = [(nodes, tasks.of(name or None)) for name, nodes in domains]
        for trees in (self._trees.free, self._trees.whole):
            left = NodesLeft(trees[wished.parts[0].constraint.topology or ""].stock)
            shared = arrangement.disjoint(wanted, left)
            if shared is not None:
                return tuple((name, nodes) for (name, _), nodes in zip(domains, shared, strict=True))
        return tuple(domains)

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

    def _domains(
        self, wish: Wish, tasks: Sequence[Task], nodes: Nodes, *, every: bool, few: bool = True
    ) -> list[Choice]:
        """The domains of one wish, best first. `every`: whatever is free; `few`: as many as are tried one by one."""
        topology, required = self._topology(wish), wish.constraint.required
        top = topology.depth(required) if required else 0
        roomy = [one for one in self._ask(wish, tasks, nodes, whole=False).sets if _is_set(one, required)]
        fitting = roomy if every or not few else _first_of_each(roomy, top, self._most)
        chosen = [_choice(wish, one, roomy=True) for one in fitting]
        if required or every:
            known = {one.domain for one in roomy}
            large = self._ask(wish, tasks, nodes, whole=True).sets
            others = (one for one in large if _is_set(one, required) and one.domain not in known)
            # Where all nodes are in one domain below the required level, that one is the widest there is.
            widest = max(top, min((len(one.domain) for one in large), default=top))
            full = (one for one in others if every or len(one.domain) == widest)
            chosen += [
                _choice(wish, one, roomy=False) for one in itertools.islice(full, None if every or not few else MOST)
            ]
        return chosen if required else [*chosen, Choice(nodes=nodes, name="", roomy=True)]

    def _ask(self, wish: Wish, tasks: Sequence[Task], nodes: Nodes, *, whole: bool) -> Found:
        question = NodeSetQuestion(
            job=self._asked.job,
            subgroup=wish.part,
            constraint=wish.constraint,
            tasks=tuple(one.amounts for one in tasks),
            active_nodes=self._asked.active(wish),
            apart=self._asked.apart,
        )
        found = node_sets(self._trees.whole if whole else self._trees.free, question, nodes)
        self._errors += found.errors
        return found

    def _of(self, wish: Wish) -> Sequence[Task]:
        uids = {pod.uid for pod in wish.pods}
        return tuple(one for one in self._tasks if one.uid in uids)

    def _topology(self, wish: Wish) -> Topology:
        return self._trees.free[wish.constraint.topology or ""].topology


@dataclasses.dataclass(frozen=True, slots=True)
class ComponentsOf:
    """Tasks by the smallest parts that they are in."""

    tasks: Sequence[Task]
    innermost: Mapping[str, str]

    def of(self, part: str | None) -> tuple[ComponentTasks, ...]:
        """Those of one part, or of none; each kind is a component."""
        kinds: dict[tuple[tuple[str, int], ...], int] = {}
        for task in self.tasks:
            if self.innermost.get(task.uid) == part:
                kind = tuple(sorted(task.amounts.items()))
                kinds[kind] = kinds.get(kind, 0) + 1
        return tuple(ComponentTasks(amounts=dict(kind), count=count) for kind, count in sorted(kinds.items()))


def _around(parts: Sequence[Wish], number: int) -> int | None:
    """The number of the part around this one."""
    within = parts[number].within
    return next((place for place, one in enumerate(parts[:number]) if one.part == within), None)


def _found_again(
    parts: Sequence[Wish], outer: Choice, keys: Sequence[str], domains: Callable[[int, Nodes], Mapping[str, Choice]]
) -> Sequence[Choice]:
    """The domain of each part by what is remembered of it; none where one of them is not among its domains now."""
    chosen: list[Choice] = []
    for part, key in enumerate(keys if len(keys) == len(parts) else ()):
        around = _around(parts, part)
        one = domains(part, (outer if around is None else chosen[around]).nodes).get(key)
        if one is None:
            return ()
        chosen.append(one)
    return chosen


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
