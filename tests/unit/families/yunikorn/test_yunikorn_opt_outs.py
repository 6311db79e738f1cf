"""Which workloads opt out of preemption: by an annotation of their pods, or of the PriorityClass of these."""

import dataclasses

import pytest

from slurm_bridge.families.yunikorn import core_requests, demands, opt_outs
from slurm_bridge.families.yunikorn.members import QueueApplication, QueueMember
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.hooks.base import Ask
from slurm_bridge.model.meta import Object, ObjectMeta
from slurm_bridge.model.pod import Pod
from tests.component.families.yunikorn.yunikorn_scenes import Listed, document, queue
from tests.unit.families.yunikorn import test_yunikorn_evicting as evicting
from tests.unit.hooks import builders as scene

KEY = "yunikorn.apache.org/allow-preemption"
CLASSES = Listed(
    [
        Object(metadata=ObjectMeta(name="kept", annotations={KEY: "false"})),
        Object(metadata=ObjectMeta(name="usual", annotations={KEY: "true"})),
        Object(metadata=ObjectMeta(name="silent")),
        Object(metadata=ObjectMeta(name="odd", annotations={KEY: "no"})),
    ]
)


def pod(said: str = "", class_: str = "", name: str = "a") -> Pod:
    """A pod of this class that says so."""
    return scene.pod(name, metadata={"annotations": {KEY: said} if said else {}}, priority_class_name=class_)


@pytest.mark.parametrize(
    ("said", "class_", "opted"),
    [
        ("", "", False),
        ("false", "", True),
        ("true", "", False),
        ("", "kept", True),
        ("", "usual", False),
        ("", "silent", False),
        ("", "odd", False),
        ("", "unknown", False),
        ("true", "kept", False),
        ("false", "usual", True),
    ],
)
def test_a_pod_says_it_before_its_class(said: str, class_: str, opted: bool) -> None:
    """As in YuniKorn; of a class every value but false is none."""
    assert opt_outs.opted_out(scene.workload(pod(said, class_)), CLASSES, by_pods=True) is opted


def test_one_pod_protects_its_gang() -> None:
    """It goes as a whole."""
    gang = scene.gang(pod(), pod("false", name="b"))
    assert opt_outs.opted_out(gang, CLASSES, by_pods=True)


def made(one: Pod, **options: object) -> demands.CoreDemand:
    """What the core is told of a pod."""
    given = YunikornOptions.model_validate({"configuration": document(queue("a")), **options})
    ask = Ask(workload=scene.workload(one), request=scene.request())
    return demands.demand(ask, given, None, classes=CLASSES)


def test_where_pods_have_no_say_only_their_classes_count_and_that_is_told() -> None:
    """Nobody protects what a queue has borrowed by an annotation."""
    found = made(pod("false"), pods_opt_out=False)
    assert not found.opts_out
    assert found.note == f"; annotation {KEY} of pods is not read: a PriorityClass may have it"
    assert made(pod("", "kept"), pods_opt_out=False).opts_out
    assert made(pod("false")).opts_out


def test_another_value_is_refused_with_the_pod_and_what_is_allowed() -> None:
    """It asked for something, and must not believe that it has it."""
    found = made(pod("nope" * 100))
    assert found.problem.startswith(f"Pod team/a: annotation {KEY}=nope")
    assert found.problem.endswith(": use true or false, or leave the annotation out")
    assert len(found.problem) < 200


def test_the_core_is_told() -> None:
    """Of each ask."""
    first = made(pod("false"))
    member = QueueMember(demand=first, name="a#1", application=QueueApplication(name="a#2", first=first))
    assert core_requests.ask(member).allow_preempt_self is False


def test_others_go_before_those_that_opted_out() -> None:
    """Though these came last; they go where no others are left."""
    known = evicting.running()
    protected = [
        dataclasses.replace(one, demand=dataclasses.replace(one.demand, opts_out=one.demand.uid in ("b2", "b4")))
        for one in known
    ]
    found = evicting.Scene(*protected)
    found.manager.enter(evicting.MINE)
    found.later(6)
    assert found.victims == {"b1": "mine", "b3": "mine"}
    found = evicting.Scene(
        *(dataclasses.replace(one, demand=dataclasses.replace(one.demand, opts_out=True)) for one in known)
    )
    found.manager.enter(evicting.MINE)
    found.later(6)
    assert found.victims == {"b3": "mine", "b4": "mine"}
