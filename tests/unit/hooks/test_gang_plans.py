"""From a workload of many members to a plan, or to the reason why there is none."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.eligibility import Eligibility, EligibilityOptions
from slurm_bridge.hooks import attempts, base, calls
from slurm_bridge.hooks.base import Ask, Denied, HookPhase, Nodes, NodeSet, Scores, Session, Subsets
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.services import Settle
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated
from tests.effort import Work
from tests.unit.hooks.builders import Around, cluster, gang, hook, node, pod, request, shape, translated
from tests.unit.hooks.test_component_nodes import machines

LEADER = pod("leader", node_selector={"kind": "big"})
WORKERS = tuple(pod(f"worker-{number}", node_selector={"rack": "r"}) for number in range(3))
SHAPES = (shape(LEADER), shape(*WORKERS))
MEMBERS = gang(LEADER, *WORKERS)

BIG = node("big", labels={"kind": "big"})
BOTH = node("both", labels={"kind": "big", "rack": "r"})
RACK = [node(f"r{number}", labels={"rack": "r"}) for number in (1, 2)]
OTHER = node("other")


def eligibility() -> Hook:
    """The rules about nodes."""
    return calls.Hook(name="eligibility", hook=Eligibility(EligibilityOptions(volumes=False)), budget_seconds=60)


def settled(form: Form, **fields: Any) -> Settle:
    """A settler that has chosen this form; a heterogeneous request gets one more component."""

    def settle(asked: Translated, _seen: object, _eligible: object) -> Translated:
        parts = (request(**fields),) if form is Form.HET else ()
        sent = dataclasses.replace(asked.request, components=parts, **fields)
        return dataclasses.replace(asked, request=sent, form=form, told=f"as {form.name}")

    return settle


def plan(
    around: Around, seen: ClusterSnapshot, *hooks: Hook, form: Form = Form.SUM, asked: Workload = MEMBERS, **fields: Any
) -> Plan | Wait | Reject:
    """What becomes of the leader and its workers."""
    chain = Chain([eligibility(), *hooks], around.make(settle=settled(form, **fields)))
    return chain.plan(asked, translated(shapes=SHAPES), seen, now=0.0)


def made(found: Plan | Wait | Reject) -> Plan:
    """A plan."""
    assert isinstance(found, Plan), found
    return found


def message(found: Plan | Wait | Reject) -> str:
    """Why it waits."""
    assert isinstance(found, Wait), found
    return found.message


class TestForms:
    def test_one_job_has_the_nodes_that_all_can_use(self, around: Around) -> None:
        """Everything else is excluded, and the plan says which form it has, and why."""
        found = made(plan(around, cluster([BIG, BOTH, *RACK, OTHER])))
        assert found.request.excluded_nodes == ("big", "other", "r1", "r2")
        assert (found.form, found.told, found.shapes) == (Form.SUM, "as SUM", SHAPES)
        assert found.eligible == 1

    def test_components_have_the_nodes_of_their_shapes(self, around: Around) -> None:
        """The first shape is the request itself."""
        found = made(plan(around, cluster([BIG, BOTH, *RACK, OTHER]), form=Form.HET))
        assert found.request.excluded_nodes == ("other", "r1", "r2")
        assert [one.excluded_nodes for one in found.request.components] == [("big", "other")]
        assert (found.eligible, found.excluded) == (4, {"other"})

    def test_a_component_does_not_have_the_only_node_of_another(self, around: Around) -> None:
        """Slurm chooses for each by itself: the leader would take it from the workers, and wait for ever."""
        large = [dataclasses.replace(one, cpus=cpus) for one, cpus in zip(SHAPES, (3, 5), strict=True)]
        anywhere = dataclasses.replace(translated(shapes=tuple(large)), form=Form.HET)
        seen = machines({"a": 16, "b": 4})
        chain = Chain([], around.make(settle=settled(Form.HET)))
        found = made(chain.plan(MEMBERS, anywhere, seen, now=0.0))
        assert [one.excluded_nodes for one in (found.request, *found.request.components)] == [("a",), ("b",)]

    def test_no_node_for_some_members(self, around: Around) -> None:
        """They are named, and nothing is submitted for the others either."""
        found = plan(around, cluster([*RACK, OTHER]), form=Form.HET)
        assert message(found) == (
            "no node for 1 of 4 pods (leader): "
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
        )

    def test_no_node_for_all_in_one_job(self, around: Around) -> None:
        """Each has some, and the reason for the form is told with it."""
        said = message(plan(around, cluster([BIG, *RACK]), form=Form.BOUND))
        assert said.startswith("no node that all pods of the job can use (1 for 1 of 4 pods (leader), 2 for 3 of 4 ")
        assert said.endswith("3 node(s) didn't match Pod's node affinity/selector. as BOUND")

    def test_components_that_could_only_share_a_node(self, around: Around) -> None:
        """Slurm would keep them waiting for ever."""
        assert message(plan(around, cluster([BOTH, OTHER]), form=Form.HET)).startswith(
            "too few nodes; parts of a heterogeneous job share no node: 1 needed for 1 of 4 pods (leader): 1/2 nodes"
        )

    def test_settling_knows_the_nodes_of_each_shape(self, around: Around) -> None:
        """In their order; it has the fields that hooks gave, and what translation found."""
        told: list[tuple[tuple[Nodes, ...], str | None, tuple[object, ...]]] = []

        def settle(asked: Translated, _seen: object, eligible: tuple[Nodes, ...]) -> Translated:
            told.append((eligible, asked.request.account, asked.shapes))
            return asked

        chain = Chain([eligibility(), hook(express=base.Fields(account="x"))], around.make(settle=settle))
        seen = cluster([BIG, BOTH, *RACK])
        made(chain.plan(MEMBERS, translated(shapes=SHAPES), seen, now=0.0))
        made(chain.plan(gang(*WORKERS), translated(), seen, now=0.0))
        assert told == [
            (({"big", "both"}, {"both", "r1", "r2"}), "x", SHAPES),
            (({"both", "r1", "r2"},), "x", ()),
        ]

    def test_more_nodes_wanted_than_there_are(self, around: Around) -> None:
        """What the user has asked for is checked before Slurm keeps it waiting."""
        found = plan(around, cluster([BOTH, OTHER]), minimum_nodes=2)
        assert message(found).startswith("too few nodes: 2 needed: 1/2 nodes are available: ")

    @given(st.permutations([BIG, BOTH, *RACK, OTHER]), st.sampled_from([Form.HET, Form.SUM]))
    def test_equal_clusters_give_equal_requests(self, nodes: list[Any], form: Form) -> None:
        """In whichever order nodes were heard of."""
        first = made(plan(Around(), cluster([BIG, BOTH, *RACK, OTHER]), form=form))
        assert made(plan(Around(), cluster(nodes), form=form)).request == first.request


_selectors = st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=2, max_size=4, unique=True)
_labels = st.lists(st.frozensets(st.sampled_from("abc")), min_size=1, max_size=5)


@given(_selectors, _labels)
def test_a_job_for_all_has_exactly_the_nodes_that_each_pod_alone_would_have(
    selectors: list[str], labels: list[frozenset[str]]
) -> None:
    """Whatever the shapes are; and each component has no other nodes than those of its own pods."""
    seen = cluster([node(f"n{number}", labels=dict.fromkeys(one, "")) for number, one in enumerate(labels)])
    pods = [pod(f"p-{one}", node_selector={one: ""} if one else {}) for one in selectors]
    chain = Chain([eligibility()], Around().make())
    alone = []
    for one in pods:
        found = chain.plan(gang(one), translated(), seen, now=0.0)
        alone.append(seen.names - found.excluded if isinstance(found, Plan) else frozenset())
    shapes = tuple(shape(one) for one in pods)
    together = chain.plan(gang(*pods), translated(shapes=shapes), seen, now=0.0)
    common = frozenset.intersection(*alone)
    assert (seen.names - together.excluded if isinstance(together, Plan) else frozenset()) == common
    parts = translated(shapes=shapes, components=tuple(request() for _ in pods[1:]))
    apart = chain.plan(gang(*pods), parts, seen, now=0.0)
    if isinstance(apart, Plan):
        sent = (apart.request, *apart.request.components)
        offered = [seen.names - frozenset(one.excluded_nodes) for one in sent]
        assert all(nodes and nodes <= every for nodes, every in zip(offered, alone, strict=True))


class TestPhases:
    def test_all_phases_but_two_see_the_whole(self, around: Around) -> None:
        """Only sampling and filters are asked for each shape; scores and subsets are about all that anybody can use."""
        seen: list[tuple[str, int, int]] = []

        def saw(phase: str, answer: Any) -> Any:
            return lambda _s, asked, *rest: (
                seen.append((phase, len(asked.workload.pods), len(rest[-1]) if rest else 0)) or answer
            )

        every = {
            "admit": base.GO,
            "capacity": base.GO,
            "filter": Denied(nodes={}),
            "score": Scores(nodes={}),
            "subset": Subsets(relevant=False),
            "express": base.Fields(),
        }
        looking = hook("look", **{phase: saw(phase, answer) for phase, answer in every.items()})
        plan(around, cluster([BIG, BOTH, *RACK, OTHER]), looking, form=Form.HET)
        assert seen == [
            ("admit", 4, 0),
            ("capacity", 4, 0),
            ("filter", 1, 2),
            ("filter", 3, 3),
            ("express", 4, 0),
            ("score", 4, 4),
            ("subset", 4, 4),
        ]

    def test_subsets_are_of_all_members(self, around: Around) -> None:
        """The tasks are every pod, in rank order."""
        tasks: list[Any] = []
        divide = hook(subset=lambda _s, _a, pods, _n: tasks.append(pods) or Subsets(relevant=False))
        plan(around, cluster([BOTH]), divide)
        assert tasks == [MEMBERS.pods]

    def test_commit_and_verify_see_the_whole(self, around: Around) -> None:
        """With the shapes of the plan, and a node for each pod."""
        seen: list[Any] = []
        hooks = [
            hook(
                commit=lambda _s, asked: seen.append((asked.workload, asked.shapes)) or base.GO,
                verify=lambda _s, workload, nodes: seen.append((workload, nodes)) or base.GO,
            )
        ]
        chain = Chain(hooks, around.make())
        snapshot = cluster([BOTH])
        found = made(chain.plan(MEMBERS, translated(shapes=SHAPES), snapshot, now=0.0))
        places = {one.uid: "both" for one in MEMBERS.pods}
        assert chain.commit(MEMBERS, found, snapshot) is None
        assert chain.verify(MEMBERS, places, snapshot) is None
        assert seen == [(MEMBERS, SHAPES), (MEMBERS, places)]

    def test_an_obstacle_for_one_shape_ends_the_pass(self, around: Around) -> None:
        """A group is placed whole or not at all."""
        no = Wait(reason="NoAgents", message="no agent answered")

        def sample(_session: Session, asked: Ask, nodes: Nodes) -> base.Sample | Wait:
            return no if asked.workload.pods == WORKERS else base.Sample(nodes=nodes)

        assert plan(around, cluster([BOTH]), hook(sample=sample)) is no

    def test_lines_name_the_members(self, around: Around) -> None:
        """Filters speak of some, everything else of all."""
        found = made(plan(around, cluster([BOTH, *RACK]), hook(admit=base.Admit(note="hello"))))
        assert [(line.phase, line.members) for line in found.lines] == [
            (HookPhase.ADMIT, ""),
            (HookPhase.ADMIT, ""),
            (HookPhase.FILTER, "1 of 4 pods (leader)"),
            (HookPhase.FILTER, "3 of 4 pods (worker-0, worker-1, worker-2)"),
        ]


class TestAttempts:
    def sets(self, *, required: bool = False, **sets: str) -> Hook:
        """A subset hook: names of sets, and the nodes of each."""
        found = tuple(
            NodeSet(nodes=frozenset(nodes.split()), name=name, required=required) for name, nodes in sets.items()
        )
        return hook(subset=Subsets(sets=found))

    def test_sets_without_a_node_for_every_part_are_left_out(self, around: Around) -> None:
        """They would only use up a window; in the others each part gets its own nodes."""
        seen = cluster([BIG, BOTH, *RACK])
        divided = self.sets(rack="r1 r2", one="both", good="big r1", required=True)
        found = made(plan(around, seen, divided, form=Form.HET))
        assert [one.name for one in found.course.attempts] == ["good"]
        assert found.request.excluded_nodes == ("both", "r1", "r2")
        assert found.request.components[0].excluded_nodes == ("big", "both", "r2")

    def test_a_job_of_several_parts_has_all_nodes_at_once(self, around: Around) -> None:
        """Slurm takes no update of it: there is no second attempt, and it would wait for the nodes of the first."""
        found = made(plan(around, cluster([BIG, *RACK]), self.sets(good="big r1"), form=Form.HET))
        assert found.course is attempts.PLAIN
        assert found.request.components[0].excluded_nodes == ("big",)

    def test_no_set_has_a_node_for_every_part(self, around: Around) -> None:
        """Then there is no attempt, and no name of a set is told."""
        divided = self.sets(rack="r1 r2", required=True)
        found = plan(around, cluster([BIG, BOTH, *RACK]), divided, form=Form.HET)
        assert message(found) == "unschedulable on cluster"

    def test_preferred_sets_on_which_the_job_could_not_start_keep_it_from_no_node(self, around: Around) -> None:
        """It gets every node that it can use."""
        found = made(plan(around, cluster([BIG, BOTH, *RACK]), self.sets(rack="r1 r2"), form=Form.HET))
        assert found.eligible == 4

    def test_all_pods_on_one_node_get_sets_with_a_node_for_all_of_them(self, around: Around) -> None:
        """Slurm refuses a job that no node of its set can ever take."""
        shapes = tuple(dataclasses.replace(one, cpus=7) for one in (shape(LEADER), shape(pod("worker"))))
        seen = cluster([node(name, allocatable={"cpu": "16"}) for name in ("big", "small")])
        small = dataclasses.replace(seen.slurm_nodes["small"], cpus=8)
        seen = dataclasses.replace(seen, slurm_nodes={**seen.slurm_nodes, "small": small})
        divided = self.sets(first="small", second="big", required=True)
        asked: list[Nodes] = []

        def divide(_session: Session, _ask: Ask, _tasks: object, nodes: Nodes) -> Subsets:
            asked.append(nodes)
            return Subsets(relevant=False)

        chain = Chain([hook(name="d", subset=divide), divided], around.make(settle=settled(Form.SUM)))
        found = made(chain.plan(gang(LEADER, pod("worker")), translated(shapes=shapes), seen, now=0.0))
        assert [one.name for one in found.course.attempts] == ["second"]
        assert asked == [{"big"}], "nodes that are too small are not divided"

    def test_the_best_nodes_are_twice_as_many_as_are_needed(self, around: Around) -> None:
        """Of a gang that spans six nodes at least, the first attempt has twelve."""
        many = cluster([node(f"n{number:02}") for number in range(40)])
        by_number = hook(score=Scores(nodes={f"n{number:02}": float(number) for number in range(40)}))
        chain = Chain([by_number], around.make())
        found = made(chain.plan(gang(*WORKERS), translated(minimum_nodes=6), many, now=0.0))
        assert len(found.course.attempts[0].nodes or ()) == 12


def test_a_large_gang_is_planned_like_a_small_one(around: Around) -> None:
    """Its nodes are looked at once: 512 equal pods cost less than forty plans of one of them."""
    seen = cluster([node(f"n{number:04}", labels={"rack": "r"}) for number in range(2000)])

    def took(count: int) -> int:
        chain = Chain([eligibility()], around.make())
        asked = gang(*(pod(f"w-{number}", node_selector={"rack": "r"}) for number in range(count)))
        with Work() as work:
            made(chain.plan(asked, translated(), seen, now=0.0))
        return work.total

    assert took(512) < 40 * took(1)
