"""What a pod that asks for Slurm's environment is told when it is bound."""

import pathlib
from collections.abc import Mapping

import pytest

from slurm_bridge.model import names
from slurm_bridge.sim import faults
from tests.component.scheduler.gang_scenes import bound, job_of, member
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import World

ASKED = names.JOB_PREFIX + names.ENVIRONMENT


def told(bridge: Bridge, name: str) -> Mapping[str, str]:
    """The marks of its task, without the prefix."""
    annotations = bridge.manifest(name)["metadata"]["annotations"]
    return {
        key.removeprefix(names.SCHEDULER_PREFIX): annotations[key]
        for key in names.TASK_ANNOTATIONS
        if key in annotations
    }


def gang(bridge: Bridge, size: int = 4, **changes: object) -> list[str]:
    """A group whose pods ask for it."""
    pods = [f"g-{number}" for number in range(size)]
    for name in pods:
        member(bridge, name, size=size, asked="true", **changes)
    return pods


def test_a_pod_that_does_not_ask_carries_no_more_marks_than_before(bridge: Bridge) -> None:
    """Each annotation takes memory of the API server and of every watcher."""
    bridge.bound("a")
    bridge.bound("b", annotations={ASKED: "false"})
    assert not told(bridge, "a")
    assert not told(bridge, "b")


def test_a_single_pod_is_one_task(bridge: Bridge) -> None:
    """Its master is itself."""
    bridge.bound("a", annotations={ASKED: "true"})
    node = bridge.manifest("a")["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE]
    assert told(bridge, "a") == {
        "slurm-nodelist": node,
        "slurm-nnodes": "1",
        "slurm-ntasks": "1",
        "slurm-procid": "0",
        "slurm-nodeid": "0",
        "slurm-localid": "0",
        "slurm-master": "localhost",
    }


def test_a_gang_is_told_alike_and_each_member_its_own_rank(bridge: Bridge) -> None:
    """One list of nodes and one master for all; ranks, places and nodes agree."""
    pods = gang(bridge, cpu="2")
    bridge.until(lambda: all(bound(bridge, pods)))
    marks = [told(bridge, name) for name in pods]
    assert [one["slurm-procid"] for one in marks] == ["0", "1", "2", "3"]
    alike = {(one["slurm-nodelist"], one["slurm-nnodes"], one["slurm-ntasks"]) for one in marks}
    assert alike == {("n[1-3]", "3", "4")}
    assert [f"n{int(one['slurm-nodeid']) + 1}" for one in marks] == [
        bridge.manifest(name)["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE] for name in pods
    ]
    assert len({(one["slurm-nodeid"], one["slurm-localid"]) for one in marks}) == len(pods)
    assert {one["slurm-master"] for one in marks} == {bound(bridge, pods)[0]}
    assert job_of(bridge).job_id


def test_the_master_is_a_name_where_the_pod_has_one(bridge: Bridge) -> None:
    """A headless service resolves hostname.subdomain; without one it is the address of the first pod's node."""
    for number in range(2):
        spec = {"hostname": f"h{number}", "subdomain": "train"}
        member(bridge, f"g-{number}", size=2, asked="true", spec=spec)
    bridge.until(lambda: all(bound(bridge, ["g-0", "g-1"])))
    assert told(bridge, "g-1")["slurm-master"] == "h0.train"


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_start_that_was_interrupted_goes_on_with_the_same_ranks(bridge: Bridge, after: int) -> None:
    """Answers to bindings are lost, and another daemon takes over."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9, nth=after + 1)
    pods = gang(bridge)
    bridge.until(lambda: any(bound(bridge, pods)))
    bridge.start()
    bridge.until(lambda: all(bound(bridge, pods)))
    assert [told(bridge, name)["slurm-procid"] for name in pods] == ["0", "1", "2", "3"]


def test_a_member_that_is_made_again_is_told_the_rank_of_the_lost_one(bridge: Bridge) -> None:
    """The others go on with theirs."""
    pods = gang(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    before = {name: told(bridge, name) for name in pods}
    bridge.delete("g-2", grace=0)
    bridge.run(3)
    member(bridge, "g-2", asked="true")
    bridge.until(lambda: all(bound(bridge, pods)))
    assert {name: told(bridge, name) for name in pods} == before


def test_a_member_that_comes_while_the_first_is_missing_is_told_what_the_others_were(bridge: Bridge) -> None:
    """Where the first one comes back is not known yet."""
    pods = gang(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    before = told(bridge, "g-3")
    for name in ("g-0", "g-3"):
        bridge.delete(name, grace=0)
    bridge.run(3)
    member(bridge, "g-3", asked="true")
    bridge.until(lambda: bridge.node_of("g-3"))
    assert told(bridge, "g-3")["slurm-master"] == before["slurm-master"]


def test_marks_that_a_user_wrote_are_overwritten_by_the_binding(bridge: Bridge) -> None:
    """Where no policy refuses them."""
    forged = dict.fromkeys(names.TASK_ANNOTATIONS[:-2], "7")
    bridge.bound("a", annotations={ASKED: "true", **forged})
    assert "7" not in told(bridge, "a").values()


def test_the_setting_asks_for_pods_that_say_nothing(bridge: Bridge) -> None:
    """And an annotation still overrides it."""
    asking = Bridge(bridge.folder, world=bridge.world, defaults={"environment": True})
    asking.bound("a")
    asking.bound("b", annotations={ASKED: "false"})
    assert told(asking, "a")["slurm-procid"] == "0"
    assert not told(asking, "b")


def test_nodes_whose_list_is_too_long_are_left_out_and_that_is_said(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each member of a gang would carry the list."""
    monkeypatch.setattr("slurm_bridge.scheduler.placement.task_marks.MOST_NODE_LIST", 1)
    bridge.bound("a", annotations={ASKED: "true"})
    assert told(bridge, "a")["slurm-left-out"] == "nodelist"
    assert "slurm-nodelist" not in told(bridge, "a")


def test_a_pod_with_devices_is_told_what_its_job_holds_on_its_node(tmp_path: pathlib.Path) -> None:
    """As Slurm counts them; which of them a container gets is the kubelet's choice."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(3)))
    resources = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    container = {"image": "none", "name": "main", "resources": resources}
    bridge.bound("a", annotations={ASKED: "true"}, spec={"containers": [container]})
    assert told(bridge, "a")["slurm-devices"] == "gpu:1"
