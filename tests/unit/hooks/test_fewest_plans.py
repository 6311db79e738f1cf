"""The chain asks for the fewest nodes first, for a gang that has room there, and for nobody else."""

import dataclasses

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.base import Denied, NodeSet, Subsets
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.services import Settle
from slurm_bridge.translate import digest, resources
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated
from tests.unit.hooks import builders
from tests.unit.hooks.builders import Around, hook, node, partition, pod, shape, slurm_node, workload

PODS = tuple(pod(f"w-{number}", requests={"cpu": "1"}) for number in range(8))
FRAGMENTS = (4, 4, 4, 8, 16)


def seen(*free: int) -> ClusterSnapshot:
    """Nodes n0, n1 ... of 16 cpus, with so many free."""
    made = ClusterCache(resources.requests_of)
    for number in range(len(free)):
        made.on_node(None, node(f"n{number}"))
    known = [slurm_node(f"n{number}", used_cpus=16 - one) for number, one in enumerate(free)]
    made.set_slurm(known, [partition("debug", *(one.name for one in known), default=True)])
    return made.snapshot()


def settles(form: Form = Form.TASKS, tasks: int = 8) -> Settle:
    """Translation has chosen this form."""

    def settle(asked: Translated, *_: object) -> Translated:
        return dataclasses.replace(asked, form=form, request=dataclasses.replace(asked.request, tasks=tasks))

    return settle


def plan(
    around: Around,
    where: ClusterSnapshot,
    *hooks: Hook,
    previous: PlanState | None = None,
    settle: Settle | None = None,
    **fields: object,
) -> Plan:
    """The plan of the gang."""
    chain = Chain(hooks, around.make(settle=settle or settles()))
    asked = builders.translated(shapes=(shape(*PODS),), **fields)
    found = chain.plan(builders.gang(*PODS), asked, where, now=100.0, previous=previous)
    assert isinstance(found, Plan), found
    return found


def test_the_fewest_nodes_are_tried_first(around: Around) -> None:
    """The plan says how many and why, and where it comes from."""
    found = plan(around, seen(*FRAGMENTS))
    assert (found.request.maximum_nodes, found.request.minimum_nodes) == (1, None)
    assert found.state.text == "0.1-8:0:100"
    assert found.window_seconds == 3.0
    assert [(one.field, one.value, one.source) for one in found.values] == [("maximum_nodes", "1", "fewest nodes")]


def test_the_next_attempt_is_an_update(around: Around) -> None:
    """The maximum is raised to the number of tasks, at which it limits nothing; the rest stays."""
    where = seen(*FRAGMENTS)
    first = plan(around, where)
    second = plan(around, where, previous=PlanState(version=first.state.version, attempt=1, started=104.0))
    assert second.request == dataclasses.replace(first.request, maximum_nodes=8)
    assert second.window_seconds is None
    fixed = [digest.digest(one.request).split(":")[0] for one in (first, second)]
    assert fixed[0] == fixed[1]


def test_without_room_for_all_there_is_no_maximum(around: Around) -> None:
    """Nor where any nodes that Slurm takes are as few."""
    for where in (seen(1, 1, 1, 1), seen(16, 16, 16)):
        found = plan(around, where)
        assert (found.request.maximum_nodes, found.state.text, found.window_seconds) == (None, "0:0:100", None)


def test_a_job_that_waits_is_not_changed_by_what_becomes_free(around: Around) -> None:
    """Submitted without a maximum it has none; with one it keeps that one."""
    plain, limited = PlanState(version="0", attempt=0, started=1.0), PlanState(version="0.2-8", attempt=0, started=1.0)
    assert plan(around, seen(*FRAGMENTS), previous=plain).request.maximum_nodes is None
    for where in (seen(*FRAGMENTS), seen(1, 1), seen(16, 16, 16)):
        assert plan(around, where, previous=limited).request.maximum_nodes == 2


def test_what_the_user_said_stands(around: Around) -> None:
    """A minimum or a maximum of his own."""
    for said in ({"maximum_nodes": 5}, {"minimum_nodes": 2}, {"minimum_nodes": 2, "maximum_nodes": 5}):
        request = plan(around, seen(*FRAGMENTS), **said).request
        assert {field: getattr(request, field) for field in said} == said
        assert (request.minimum_nodes, request.maximum_nodes) == (said.get("minimum_nodes"), said.get("maximum_nodes"))


def test_hooks_that_prefer_nodes_are_not_disturbed(around: Around) -> None:
    """Their attempts are about other things than how many nodes there are."""
    prefers = hook(subset=Subsets(sets=(NodeSet(nodes=frozenset({"n3", "n4"}), name="good"),)))
    found = plan(around, seen(*FRAGMENTS), prefers)
    assert [one.most for one in found.course.attempts] == [None, None]
    assert found.request.maximum_nodes is None


def test_only_nodes_that_are_left_count(around: Around) -> None:
    """The one with the most room is denied."""
    denies = hook(filter=Denied.because("no", ["n3", "n4"]))
    assert plan(around, seen(2, 3, 6, 8, 16), denies).request.maximum_nodes == 2


def test_single_pods_and_other_forms_are_not_looked_at(around: Around) -> None:
    """Nobody counts anything for them."""
    for form in (Form.SINGLE, Form.PER_NODE, Form.SUM, Form.HET):
        assert plan(around, seen(*FRAGMENTS), settle=settles(form)).request.maximum_nodes is None
    chain = Chain([], around.make(settle=settles(Form.SINGLE, tasks=1)))
    asked = builders.translated()
    alone = chain.plan(workload(), asked, seen(*FRAGMENTS), now=100.0)
    assert isinstance(alone, Plan)
    assert alone.request.maximum_nodes is None
