"""Of a pod that waits in a queue the explanation says in which one, and what is used of what."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_bridge import app
from slurm_bridge.demo import pocket
from slurm_bridge.explain import text
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.model import kinds, names
from slurm_bridge.settings.model import Settings
from tests.component.explain import explained
from tests.component.families.yunikorn.yunikorn_scenes import document, queue

Explain = Callable[..., Explanation]
QUEUE = {"queue": "root.a"}
TWO = document(queue("a"), queue("b", resources={"max": {"vcore": "3"}}))


def yunikorn(**options: Any) -> str:
    """The hook; queue a has two cpus."""
    options.setdefault("configuration", document(queue("a", resources={"max": {"vcore": "2"}})))
    return f"hooks={json.dumps([{'name': 'yunikorn', 'options': options}])}"


def runs(world: pocket.PocketWorld, name: str, cpus: int, owner: Any = None) -> None:
    """A pod of ours in that queue that has a node, or one of a Job that says in which queue it is."""
    manifest = explained.pod(name, None if owner else QUEUE, nodeName="ext001")
    if owner:
        above = {"apiVersion": "batch/v1", "kind": "Job", "name": owner["metadata"]["name"], "controller": True}
        manifest["metadata"]["ownerReferences"] = [{**above, "uid": owner["metadata"]["uid"]}]
    manifest["metadata"]["labels"] = {names.LABEL_JOB_ID: "4711"}
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(cpus)}}
    world.kube.create(kinds.PODS, manifest)


def test_a_pod_that_is_let_in_says_by_which_queue(explain: Explain) -> None:
    """It would be submitted."""
    found = explain(explained.pod(annotations=QUEUE), yunikorn())
    assert found.status == 0
    assert "queue root.a" in text.render(found, verbose=True)


def test_what_runs_counts(explain: Explain, world: pocket.PocketWorld) -> None:
    """As the daemon would count it."""
    runs(world, "other", 2)
    found = explain(explained.pod(annotations=QUEUE), yunikorn())
    assert found.obstacle is not None
    assert "queue root.a uses 2 of 2 vcore, and this asks for 1" in found.obstacle.message
    assert found.held_by == ("yunikorn",)


def test_the_queue_of_what_runs_may_be_said_by_its_owner(explain: Explain, world: pocket.PocketWorld) -> None:
    """As the daemon hears it: the pod itself says nothing."""
    job = world.kube.create(kinds.JOBS, explained.job("owner", {"queue": "root.b"}))
    runs(world, "owned", 3, owner=job)
    found = explain(explained.pod(annotations={"queue": "root.b"}), yunikorn(configuration=TWO))
    assert found.obstacle is not None
    assert "queue root.b uses 3 of 3 vcore, and this asks for 1" in found.obstacle.message


@pytest.fixture
def told(settings: Callable[..., Settings], world: pocket.PocketWorld) -> Iterator[Callable[[str], Explanation]]:
    """What is said of a pod that exists; its name is to be `mine` or `goes`."""

    def made(name: str) -> Explanation:
        with app.explainer(settings(yunikorn()), offline=False) as explainer:
            return explainer.pod("default", name)

    yield made
    for name in ("mine", "goes"):
        if world.kube.get(kinds.PODS, "default", name) is not None:
            world.kube.delete(kinds.PODS, ("default", name), grace=0)


def test_who_waits_for_others_to_go_is_told_who(told: Callable[[str], Explanation], world: pocket.PocketWorld) -> None:
    """As its pod says."""
    says = {names.ANNOTATION_ROOM: json.dumps({"victims": {"u1": "team/b1", "u2": "team/b2"}, "nodes": ["n1"]})}
    manifest = explained.pod("mine", QUEUE)
    manifest["metadata"]["annotations"] |= says
    world.kube.create(kinds.PODS, manifest)
    found = told("mine")
    assert (
        "workloads are evicted for it, because their queues use more than their guarantees: team/b1 and team/b2;"
    ) in text.render(found, verbose=False)
    assert text.document(found, verbose=False)["room_in_queues"] == {
        "room_made_by": ["team/b1", "team/b2"],
        "makes_room_for": "",
    }


@pytest.mark.parametrize(
    ("uid", "cause", "said"),
    [
        (
            "u",
            "team/mine",
            "it is evicted for team/mine: the guarantee of that queue covers what this queue has borrowed",
        ),
        ("", "queue root.a (over its maximum)", "it is evicted for queue root.a (over its maximum)"),
    ],
)
def test_who_has_to_go_is_told_for_whom(
    told: Callable[[str], Explanation], world: pocket.PocketWorld, uid: str, cause: str, said: str
) -> None:
    """Or what there is too much of; and what becomes of its pods."""
    runs(world, "goes", 1)
    says = {"metadata": {"annotations": {names.ANNOTATION_MAKES_ROOM: json.dumps({"uid": uid, "for": cause})}}}
    world.kube.merge(kinds.PODS, ("default", "goes"), says)
    shown = text.render(told("goes"), verbose=False)
    assert said in shown
    assert "its pods are evicted, and end within their grace period" in shown


def test_a_pod_that_no_queue_takes_is_refused(explain: Explain) -> None:
    """With the words of the placement rules."""
    found = explain(explained.pod(), yunikorn())
    assert found.obstacle is not None
    assert "rule provided: the application has no value for it" in found.obstacle.message
