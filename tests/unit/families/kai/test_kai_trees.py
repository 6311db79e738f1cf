"""Node sets of any cluster, and trees that follow a cluster."""

import random
from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kai import nodesets
from slurm_bridge.families.kai.nodesets import Found, NodeSetQuestion
from slurm_bridge.families.kai.stock import StockNode, StockNodes
from slurm_bridge.families.kai.topology import Domain, TaskOwner, TopologyConstraint
from slurm_bridge.families.kai.tree import Tree
from tests.unit.families.kai import kai_oracle
from tests.unit.families.kai.kai_oracle import RACKS

Change = tuple[Sequence[StockNode], frozenset[str]]


def rack(name: str, place: str, gpus: int = 8) -> StockNode:
    """A node in zone, block and rack."""
    return StockNode(name=name, labels=dict(zip(RACKS.levels, place, strict=True)), idle={"gpu": gpus})


def ask(tree: Tree, question: NodeSetQuestion, incoming: frozenset[str] | None = None) -> Found:
    """All nodes, unless it is said which."""
    return nodesets.node_sets({"racks": tree}, question, tree.stock.members.every if incoming is None else incoming)


def gang(size: int = 2, required: str | None = None, preferred: str | None = None) -> NodeSetQuestion:
    """Tasks of one GPU each."""
    return NodeSetQuestion(
        job=TaskOwner(namespace="team", name="train"),
        tasks=({"gpu": 1},) * size,
        constraint=TopologyConstraint(topology="racks", required=required, preferred=preferred),
    )


def listed(found: Found) -> list[tuple[Domain, frozenset[str]]]:
    """What was found, without what it was found by."""
    return [(one.domain, one.nodes) for one in found.sets]


def known(cluster: Iterable[StockNode]) -> list[StockNode]:
    """The last word about each node."""
    return list({node.name: node for node in cluster}.values())


class TestNodeSets:
    @given(st.lists(kai_oracle.nodes), kai_oracle.questions, kai_oracle.incoming)
    def test_they_are_those_of_the_rule(
        self, cluster: list[StockNode], question: NodeSetQuestion, incoming: frozenset[str] | None
    ) -> None:
        """Worked out one domain after the other, by lists and loops, they are the same, in the same order."""
        nodes = known(cluster)
        within = frozenset(node.name for node in nodes) if incoming is None else incoming
        found = ask(Tree.of(RACKS, StockNodes.of(nodes)), question, within)
        assert listed(found) == kai_oracle.sets(nodes, question, within)
        assert bool(found.errors) is not bool(found.sets)

    @given(st.lists(kai_oracle.nodes), kai_oracle.questions, st.frozensets(st.sampled_from("n0 n1 n2 n3 n4".split())))
    def test_they_are_disjoint_in_a_level(
        self, cluster: list[StockNode], question: NodeSetQuestion, incoming: frozenset[str]
    ) -> None:
        """And within the incoming set, and none of them is empty."""
        found = ask(Tree.of(RACKS, StockNodes.of(known(cluster))), question, incoming)
        for level in {len(one.domain) for one in found.sets}:
            names = [name for one in found.sets if len(one.domain) == level for name in one.nodes]
            assert len(names) == len(set(names))
        assert all(one.nodes and one.nodes <= incoming for one in found.sets)

    @given(st.lists(kai_oracle.nodes).map(known), kai_oracle.questions, st.randoms())
    def test_the_order_of_nodes_is_no_matter(
        self, cluster: list[StockNode], question: NodeSetQuestion, dice: random.Random
    ) -> None:
        """Of equal domains the first by name is first, however the nodes came."""
        shuffled = sorted(cluster, key=lambda _: dice.random())
        one, other = (ask(Tree.of(RACKS, StockNodes.of(nodes)), question) for nodes in (cluster, shuffled))
        assert (listed(one), one.errors) == (listed(other), other.errors)

    def test_labels_are_compared_one_by_one(self) -> None:
        """Two domains whose names are written alike with dots are two domains."""
        nodes = [rack("n1", ("a.b", "c", "1")), rack("n2", ("a", "b.c", "1"))]
        found = ask(Tree.of(RACKS, StockNodes.of(nodes)), gang(required="block"))
        assert listed(found) == [(("a", "b.c"), {"n2"}), (("a.b", "c"), {"n1"})]

    def test_unknown_names_are_no_nodes(self) -> None:
        """An incoming set may name what nobody knows (any more)."""
        tree = Tree.of(RACKS, StockNodes.of([rack("n1", "ab1")]))
        assert listed(ask(tree, gang(required="zone"), frozenset({"n1", "gone"}))) == [(("a",), {"n1"})]

    def test_domains_without_an_incoming_node_are_not_told_of(self) -> None:
        """Neither in messages, nor in what the others are worth."""
        tree = Tree.of(RACKS, StockNodes.of([rack("n1", "ab1"), rack("n2", "cb1"), rack("n3", "db1", 1)]))
        within = frozenset({"n2", "n3"})
        assert ask(tree, gang(9, required="zone"), within).errors == (
            "node-group c can allocate only 8 of 9 required pods",
            "node-group d can allocate only 1 of 9 required pods",
            "topology racks, requirement zone couldn't be satisfied for job <team/train>",
        )
        assert ask(tree, gang(1, preferred="zone"), within).scores("zone") == {"n3": 50_000, "n2": 100_000}

    def test_what_is_short_has_a_name(self) -> None:
        """Types that are counted under a name of their own, too, where tasks differ too much to be counted."""
        nodes = [
            StockNode(name=zone, labels={"zone": zone, "block": "b", "rack": "1"}, idle={"gpu": 8, "nic": 2})
            for zone in "ac"
        ]
        tree = Tree.of(RACKS, StockNodes.of(nodes))
        asked = NodeSetQuestion(
            job=TaskOwner(namespace="team", name="train"),
            tasks=({"gpu": 9}, {"nic": 3}),
            constraint=TopologyConstraint(topology="racks", required="zone"),
        )
        assert ask(tree, asked).errors == (
            *["node-group(s) didn't have enough resources: " + what for what in ("GPUs", "nic")] * 2,
            "topology racks, requirement zone couldn't be satisfied for job <team/train>",
        )

    def test_scores_without_an_answer(self) -> None:
        """Who asks for no topology prefers nothing."""
        tree = Tree.of(RACKS, StockNodes.of([rack("n1", "ab1")]))
        found = ask(tree, NodeSetQuestion(job=TaskOwner(namespace="team", name="train"), tasks=({},)))
        assert (found.relevant, found.scores("rack")) == (False, {})


class TestFollowing:
    @given(st.lists(kai_oracle.nodes), kai_oracle.changes, kai_oracle.questions, kai_oracle.incoming)
    def test_a_tree_that_follows_is_one_from_scratch(
        self,
        cluster: list[StockNode],
        changes: list[Change],
        question: NodeSetQuestion,
        incoming: frozenset[str] | None,
    ) -> None:
        """Whatever comes, goes, moves or fills up, at each step."""
        now = {node.name: node for node in cluster}
        stock = StockNodes.of(now.values())
        tree = Tree.of(RACKS, stock)
        for changed, gone in changes:
            ask(tree, question, incoming)
            stock = stock.after(changed, gone)
            tree = tree.after(stock)
            told = {node.name: node for node in changed}
            now = {name: node for name, node in now.items() if name not in gone} | told
            fresh = Tree.of(RACKS, StockNodes.of(now.values()))
            assert stock.members.every == now.keys()
            assert listed(ask(tree, question, incoming)) == listed(ask(fresh, question, incoming))
            assert ask(tree, question, incoming).errors == ask(fresh, question, incoming).errors

    @given(st.lists(kai_oracle.nodes), kai_oracle.changes, kai_oracle.questions)
    def test_it_follows_backwards_too(
        self, cluster: list[StockNode], changes: list[Change], question: NodeSetQuestion
    ) -> None:
        """Passes look at snapshots in any order, and an older tree goes on to say what it said."""
        stocks = [StockNodes.of(known(cluster))]
        for changed, gone in changes:
            stocks.append(stocks[-1].after(changed, gone))
        said = [listed(ask(Tree.of(RACKS, stock), question)) for stock in stocks]
        tree = Tree.of(RACKS, stocks[-1])
        for stock, before in reversed([*zip(stocks, said, strict=True)]):
            tree = tree.after(stock)
            assert listed(ask(tree, question)) == before

    def test_only_domains_on_the_path_get_new_sets(self) -> None:
        """A node that leaves a rack changes that rack's set, its block's and its zone's; all others are kept."""
        stock = StockNodes.of(
            [rack("n1", "ab1"), rack("n2", "ab1"), rack("n3", "ab2"), rack("n4", "cd1"), rack("n5", "ce1")]
        )
        tree = Tree.of(RACKS, stock)
        before = dict(listed(ask(tree, gang(1, preferred="rack"))))
        after = dict(listed(ask(tree.after(stock.after([], ["n1"])), gang(1, preferred="rack"))))
        same = {domain for domain, nodes in after.items() if nodes is before[domain]}
        assert before.keys() - same == {(), ("a",), ("a", "b"), ("a", "b", "1")}

    def test_a_node_that_comes_changes_its_path_only(self) -> None:
        """Likewise, where there is a rack for it already."""
        stock = StockNodes.of([rack("n1", "ab1"), rack("n2", "ab2"), rack("n3", "cd1")])
        tree = Tree.of(RACKS, stock)
        before = dict(listed(ask(tree, gang(1, preferred="rack"))))
        after = dict(listed(ask(tree.after(stock.after([rack("n4", "ab2")])), gang(1, preferred="rack"))))
        same = {domain for domain, nodes in after.items() if nodes is before[domain]}
        assert before.keys() - same == {(), ("a",), ("a", "b"), ("a", "b", "2")}
        assert after["a", "b", "2"] == {"n2", "n4"}

    def test_levels_that_nobody_asks_for_cost_nothing(self) -> None:
        """A rack of its own for each node that comes is no matter to those who ask for zones."""
        stock = StockNodes.of([rack("n1", "ab1"), rack("n2", "cd1")])
        tree = Tree.of(RACKS, stock)
        before = ask(tree, gang(1, required="zone"))
        after = ask(tree.after(stock.after([rack("n3", "ab7")])), gang(1, required="zone"))
        assert before.cut is not None
        assert after.cut is not None
        assert before.cut.outline is after.cut.outline
        assert dict(listed(after)) == {("a",): {"n1", "n3"}, ("c",): {"n2"}}

    def test_use_changes_no_set(self) -> None:
        """Of a node that fills up only amounts are new."""
        stock = StockNodes.of([rack("n1", "ab1"), rack("n2", "ab2")])
        tree = Tree.of(RACKS, stock)
        every = stock.members.every
        before = {one.domain: one.nodes for one in ask(tree, gang(1, preferred="rack"), every).sets}
        found = ask(tree.after(stock.after([rack("n1", "ab1", 7)])), gang(1, preferred="rack"), every)
        assert all(one.nodes is before[one.domain] for one in found.sets)

    def test_an_equal_question_is_answered_from_memory(self) -> None:
        """Also for another workload of the same shape, whose name is only in messages."""
        tree = Tree.of(RACKS, StockNodes.of([rack("n1", "ab1"), rack("n2", "ab2")]))
        one, other = ask(tree, gang(required="rack")), ask(tree, gang(required="rack"))
        assert one.sets is other.sets

    def test_without_a_change_the_tree_is_the_same(self) -> None:
        """Whoever remembers by trees goes on."""
        stock = StockNodes.of([rack("n1", "ab1")])
        tree = Tree.of(RACKS, stock)
        assert tree.after(stock.after([])) is tree

    def test_where_a_node_is(self) -> None:
        """Nowhere, for one that lacks a label and for one that nobody knows."""
        stock = StockNodes.of([rack("n1", "ab1"), StockNode(name="n2", labels={"zone": "a"}, idle={})])
        tree = Tree.of(RACKS, stock)
        assert [tree.domain(name) for name in ("n1", "n2", "n3")] == [("a", "b", "1"), None, None]

    def test_more_racks_than_small_numbers(self) -> None:
        """Leaves are told apart beyond 32 767."""
        names = [f"{number:05}" for number in range(33_000)]
        tree = Tree.of(RACKS, StockNodes.of([rack(name, ("a", "b", name), 1) for name in names]))
        assert tree.domain("32999") == ("a", "b", "32999")
        assert ask(tree, gang(33_000, required="zone")).sets[0].nodes == frozenset(names)
