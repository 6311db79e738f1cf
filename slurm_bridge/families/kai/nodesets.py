"""From a workload's constraint to the node sets it is tried on, one after the other.

1 no constraint, or no tasks      the incoming set           5 the smallest domain around all must take it
2 the topology is unknown         no set                     6 sort the domains within, the fullest first
4 the levels are not its levels   InvalidConstraint          7 those that fit, on the relevant levels
                                                             8 the deepest level first, in that order
"""

import dataclasses
from collections.abc import Hashable, Mapping

from slurm_bridge.families.kai import domain_order, fit, topology
from slurm_bridge.families.kai.domain_order import Branch
from slurm_bridge.families.kai.fit import DomainRoom, DomainScope, TaskDemand
from slurm_bridge.families.kai.topology import WHOLE, Amounts, Domain, TaskOwner, Topology, TopologyConstraint
from slurm_bridge.families.kai.tree import Tree, TreePart


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetQuestion:
    """Tasks of a workload, or of one of its subgroups; on `active_nodes` others of it run already.

    `apart`: tasks that differ are counted as they are, and not each as the largest of them.
    """

    job: TaskOwner
    tasks: tuple[Amounts, ...]
    constraint: TopologyConstraint | None = None
    subgroup: str = WHOLE
    active_nodes: frozenset[str] = frozenset()
    apart: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DomainCandidate:
    """A domain that has room for all tasks."""

    domain: Domain
    nodes: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The node sets in the order in which they are tried, or why there are none, which is for operators.

    Not relevant: nothing asks for a topology, the one set is the incoming one. `tree` are the domains in their order.
    """

    relevant: bool
    sets: tuple[DomainCandidate, ...] = ()
    errors: tuple[str, ...] = ()
    tree: Branch | None = None
    cut: TreePart | None = None

    def scores(self, preferred: str) -> Mapping[str, int]:
        """The roomiest domain of the preferred level first, by node."""
        if self.cut is None:
            return {}
        scores = domain_order.domain_scores(self.tree, preferred)
        return {name: score for number, score in scores.items() for name in self.cut.nodes(number)}


def node_sets(trees: Mapping[str, Tree], question: NodeSetQuestion, incoming: frozenset[str]) -> Found:
    """The sets of one workload within the incoming one."""
    constraint = question.constraint
    if constraint is None or not constraint.topology:
        return _whole(incoming)
    tree = trees.get(constraint.topology)
    if tree is None:
        return Found(relevant=True, errors=(f"Requested topology {constraint.topology} does not exist",))
    if not question.tasks:
        return _whole(incoming)
    levels = topology.relevant_levels(tree.topology, constraint, question.subgroup)
    active = [(domain, (name,)) for name in question.active_nodes if (domain := tree.domain(name)) is not None]
    held = fit.binding(tree.topology, constraint, active, question.active_nodes)
    scope = DomainScope(topology=tree.topology, levels=levels, held=held)
    cut = tree.cut(incoming, tree.topology.depth(levels[0]))
    # As it was given to an equal question about the same nodes.
    asked = _SetQuestion(constraint=constraint, scope=scope, demand=TaskDemand.of(question.tasks, apart=question.apart))
    key = asked.key
    answer: _SetAnswer | None = cut.answers.get(key)
    if answer is None:
        answer = _work_out(tree, cut, asked)
        cut.answers.put(key, answer)
    errors = () if answer.sets else no_room(tree.topology, question, answer.lines, answer.full)
    return Found(relevant=True, sets=answer.sets, errors=errors, tree=answer.tree, cut=cut)


def no_room(
    where: Topology, question: NodeSetQuestion, lines: tuple[str, ...] = (), full: Domain | None = None
) -> tuple[str, ...]:
    """Why no domain takes the tasks: what each is short of, or that all of them together (`full`) are."""
    required = question.constraint.required if question.constraint else None
    said = f"topology {where.name}, requirement {required or ''} couldn't be satisfied for job {question.job}"
    if full is not None:
        around = topology.spelled(full) if full else "the cluster"
        return (f"{said}: not enough resources in {around} to allocate the job",)
    return (*lines, said if question.subgroup == WHOLE else f"{said}, subgroup {question.subgroup}")


def room_in(tree: Tree, cut: TreePart, demand: TaskDemand) -> DomainRoom:
    """What the nodes of each domain have free, and how many of the tasks they take where that can be counted."""
    stock = tree.stock
    free = {kind: cut.sums(stock.free(kind)) for kind in demand.requested}
    if not demand.by_pods:
        return DomainRoom(number=len(cut.counts), free=free)
    pods, rows = stock.free_pods(), len(cut.leaf)
    copies = fit.copies(demand.largest.items(), demand.count, stock.free, pods, rows)
    kinds = []
    for kind in demand.kinds:
        each = pods if pods is None or kind.pods == 1 else pods // kind.pods
        kinds.append(cut.sums(fit.copies(kind.amounts, kind.times, stock.free, each, rows)))
    return DomainRoom(number=len(cut.counts), free=free, pods=cut.sums(copies), kinds=tuple(kinds))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _SetQuestion:
    """All that an answer depends on, but for names that are only in messages."""

    constraint: TopologyConstraint
    scope: DomainScope
    demand: TaskDemand

    @property
    def key(self) -> Hashable:
        """Equal for equal questions."""
        demand = self.demand
        amounts = (*demand.requested.items(), *demand.largest.items())
        return self.constraint, self.scope.held, demand.count, demand.by_pods, demand.kinds, amounts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SetAnswer:
    """The sets; without any, the domain that is too full as a whole, or what the domains are short of."""

    sets: tuple[DomainCandidate, ...] = ()
    tree: Branch | None = None
    full: Domain | None = None
    lines: tuple[str, ...] = ()


def _whole(incoming: frozenset[str]) -> Found:
    return Found(relevant=False, sets=(DomainCandidate(domain=(), nodes=incoming),))


def _work_out(tree: Tree, cut: TreePart, asked: _SetQuestion) -> _SetAnswer:
    scope, demand, outline = asked.scope, asked.demand, cut.outline
    room = room_in(tree, cut, demand)
    fits = room.fits(demand).tolist()
    start = topology.lowest_common_domain(tree.topology, cut.ends(), asked.constraint)
    if not fits[outline.index[start]]:
        return _SetAnswer(full=start)
    ratios = room.ratios(demand.requested).tolist()
    within = domain_order.sort_tree(_within(cut, start), lambda one: ratios[one.number], asked.constraint.finest)
    order = domain_order.reverse_level_order(within)
    taking = frozenset(fit.candidates(scope, [one.domain for one in order], [fits[one.number] for one in order]))
    if not taking:
        numbers = [one.number for one in order]
        return _SetAnswer(lines=fit.shortages(scope, [one.domain for one in order], room.of(numbers), demand))
    sets = (DomainCandidate(domain=one.domain, nodes=cut.nodes(one.number)) for one in order if one.domain in taking)
    return _SetAnswer(sets=tuple(sets), tree=within)


def _within(cut: TreePart, start: Domain) -> Branch:
    """The domains with nodes below the start, which itself is there without any."""
    branch = cut.outline.branch
    for end in range(1, len(start) + 1):
        branch = next(one for one in branch.children if one.domain == start[:end])
    return branch if cut.counts.all() else domain_order.kept(branch, lambda one: bool(cut.counts[one.number]))
