"""From an allocation to a bound pod: what can be wrong with a node, and how a binding can fail."""

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.scheduler.whole_core import Bridge

BINDING = "/binding"
HOSTNAME = "kubernetes.io/hostname"


def on(node: str) -> dict[str, object]:
    """Only there."""
    return {"nodeSelector": {HOSTNAME: node}}


def submitted(bridge: Bridge, name: str = "a", **changes: object) -> int:
    """A pod whose job will start with the next tick of Slurm."""
    bridge.pod(name, **changes)
    bridge.settle()
    return bridge.job(name).job_id


def test_a_binding_carries_its_marks_and_its_preconditions(bridge: Bridge) -> None:
    """The job's id and the node's name stand on the pod from the same write on."""
    job = bridge.bound("a")
    metadata = bridge.manifest("a")["metadata"]
    assert metadata["labels"][names.LABEL_JOB_ID] == str(job.job_id)
    assert metadata["annotations"][names.ANNOTATION_SLURM_NODE] == bridge.node_of("a")
    assert bridge.told.bindings == ["a"]
    assert bridge.told.attempts == ["submitted", "scheduled"]


@pytest.mark.parametrize("how", ["cordon", "taint", "not ready", "label"])
def test_a_node_that_became_unusable_since_the_submit_is_given_back(bridge: Bridge, how: str) -> None:
    """Another one is found, the pod says why, and nobody parks it."""
    submitted(bridge)
    for node in ("n1", "n2"):
        changes = {
            "cordon": {"spec": {"unschedulable": True}},
            "taint": {"spec": {"taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]}},
            "not ready": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            "label": {"metadata": {"labels": {names.LABEL_SLURM_NODE_NAME: f"other-{node}"}}},
        }[how]
        bridge.kube.merge(kinds.NODES, ("", node), changes, subresource="status" if how == "not ready" else "")
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") in ("n3", "n4")
    assert len(bridge.jobs(bridge.uid("a"))) == 2
    assert not bridge.park_note("a")


def test_a_full_node_is_given_back_and_avoided(bridge: Bridge) -> None:
    """Slurm would choose it again, for it knows nothing of the foreign pod."""
    submitted(bridge, cpu="3")
    for node in ("n1", "n2"):
        used = {"image": "none", "name": "main", "resources": {"requests": {"cpu": "2"}}}
        bridge.kube.create(
            kinds.PODS, {"metadata": {"name": f"full-{node}"}, "spec": {"nodeName": node, "containers": [used]}}
        )
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") in ("n3", "n4")
    first = bridge.jobs(bridge.uid("a"))[0]
    assert "no room" in bridge.note(first)


def filled(bridge: Bridge, most_seconds: int) -> Bridge:
    """A bridge that waits so long at most, and full nodes of which Slurm knows nothing."""
    bridge = Bridge(
        bridge.folder, world=bridge.world, scheduling={"bind_tries": 3, "backoff_most_seconds": most_seconds}, hooks=[]
    )
    for node in ("n1", "n2", "n3", "n4"):
        used = {"image": "none", "name": "main", "resources": {"requests": {"cpu": "4"}}}
        bridge.kube.create(
            kinds.PODS, {"metadata": {"name": f"full-{node}"}, "spec": {"nodeName": node, "containers": [used]}}
        )
    return bridge


def test_a_pod_that_no_node_takes_is_tried_less_and_less(bridge: Bridge) -> None:
    """Every node is full: the pause becomes the longest one, and Slurm is left in peace."""
    bridge = filled(bridge, 100)
    bridge.pod("a")
    bridge.run(300, step=1)
    assert not bridge.node_of("a")
    assert bridge.submits() <= 9


def test_a_pod_that_met_full_nodes_only_does_not_wait_for_the_longest_pause(bridge: Bridge) -> None:
    """Whether a node is full can be seen: it has refused nothing, and the next try is where there is room."""
    bridge = filled(bridge, 3600)
    bridge.pod("a")
    bridge.run(20, step=1)
    assert bridge.submits() > 3
    bridge.kube.delete(kinds.PODS, ("default", "full-n2"), grace=0)
    bridge.run(40, step=1)
    assert bridge.node_of("a") == "n2"


def test_a_pod_that_changed_under_our_hands_is_bound_as_it_is_now(bridge: Bridge) -> None:
    """The resource version is a precondition: the next look knows the pod."""
    submitted(bridge)
    label = {"metadata": {"labels": {"colour": "red"}}}
    bridge.kube_calls.plan(
        faults.Meanwhile(lambda: bridge.kube.merge(kinds.PODS, ("default", "a"), label)), target=BINDING
    )
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.submits() == 1


def test_a_request_that_changed_after_the_start_is_not_bound(bridge: Bridge) -> None:
    """The node was given for something else: it goes back, and the new request is submitted."""
    job_id = submitted(bridge)
    bridge.slurm.tick()
    bridge.annotate("a", timelimit="9")
    bridge.until(lambda: bridge.node_of("a"))
    job = bridge.job("a")
    assert job.job_id != job_id
    assert job.ask.minutes == 9


@pytest.mark.parametrize("fault", [faults.Reset(acted=False), faults.Drop(), faults.Answer(500), faults.Answer(429)])
def test_a_binding_without_an_answer_is_made_once(bridge: Bridge, fault: faults.Fault) -> None:
    """Done or not: the pod's own next event says where it is."""
    submitted(bridge)
    bridge.kube_calls.plan(fault, method="POST", target=BINDING)
    bridge.until(lambda: bridge.node_of("a"))
    bridge.run(20)
    assert bridge.submits() == 1
    assert bridge.job("a").running


def test_a_pod_that_is_deleted_while_it_is_bound_frees_its_job(bridge: Bridge) -> None:
    """The uid is a precondition: nothing is bound that is not there."""
    submitted(bridge)
    bridge.kube_calls.plan(faults.Meanwhile(lambda: bridge.delete("a", grace=0)), target=BINDING)
    bridge.run(10)
    assert not bridge.exists("a")
    assert all(job.over for job in bridge.jobs())


def test_a_pod_of_the_same_name_is_not_bound_in_its_place(bridge: Bridge) -> None:
    """Another incarnation came between the look and the write."""
    job_id = submitted(bridge)

    def replace() -> None:
        bridge.delete("a", grace=0)
        bridge.pod("a")

    bridge.kube_calls.plan(faults.Meanwhile(replace), target=BINDING)
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id != job_id


def test_a_job_that_ended_before_the_read_is_not_bound(bridge: Bridge) -> None:
    """It ran when the states were asked for, and no longer when it was read."""
    job_id = submitted(bridge)
    bridge.slurm_calls.plan(
        faults.Meanwhile(lambda: bridge.slurm.control.end(job_id, "PREEMPTED")), method="GET", target=f"/job/{job_id}"
    )
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id != job_id


def test_an_id_that_became_a_strangers_before_the_read_is_left_alone(bridge: Bridge) -> None:
    """slurmctld crashed and gave the id away: no binding, no cancel, a job of our own."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    bridge.slurm.control.pause()
    lost = submitted(bridge)
    bridge.world.crash_slurm(0.2)
    assert bridge.world.submit("stranger") == lost
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id != lost
    assert bridge.slurm.world.jobs[lost].running


def crowded(bridge: Bridge, terminating: str) -> None:
    """A pod that fills n4, lost its job, and takes its time to go; another one is given its place."""
    old = bridge.bound("old", cpu="4", spec=on("n4"), annotations={"kwok.local/terminating": terminating})
    bridge.pod("new", cpu="4", spec=on("n4"))
    bridge.settle()
    bridge.slurm.control.end(old.job_id, "PREEMPTED")
    bridge.until(lambda: bridge.condition("new")[0] == "NodeNotVacated", 20)


def test_a_node_that_is_not_vacated_is_waited_for_and_taken_at_once(bridge: Bridge) -> None:
    """The end of the old pod wakes the new one."""
    crowded(bridge, "20s")
    bridge.until(lambda: bridge.phase("old") == "Failed", 40)
    bridge.settle()
    assert bridge.node_of("new") == "n4"
    assert len(bridge.jobs(bridge.uid("new"))) == 1


def test_a_node_that_is_never_vacated_is_given_back_after_a_while(bridge: Bridge) -> None:
    """An allocation must not be held for ever."""
    crowded(bridge, "hang")
    first = bridge.job("new")
    bridge.until(lambda: bridge.of(first).over, 90)
    assert "old" in bridge.note(first)
    assert not bridge.node_of("new")


def test_a_node_that_is_never_vacated_is_avoided_by_the_next_job(bridge: Bridge) -> None:
    """Slurm, which fills nodes in order, would give the same node again."""
    crowded(bridge, "hang")
    first = bridge.job("new")
    bridge.until(lambda: bridge.of(first).over, 90)
    bridge.run(20)
    assert [job.job_id for job in bridge.jobs(bridge.uid("new"))] == [first.job_id]
    assert "n4 still runs pod default/old" in bridge.condition("new")[1]


@pytest.mark.parametrize("reason", ["OutOfcpu", "NodeAffinity", "UnexpectedAdmissionError"])
def test_a_kubelet_that_refuses_a_pod_is_avoided_by_its_replacement(bridge: Bridge, reason: str) -> None:
    """The node is to blame: the job is cancelled, and the Job's next pod goes elsewhere."""
    bridge.world.job("batch", completions=1, parallelism=1, outcome="run")
    bridge.step()
    (first,) = [pod["metadata"]["name"] for _, pod in bridge.world.pods()]
    bridge.until(lambda: bridge.node_of(first))
    refused_by, job = bridge.node_of(first), bridge.job(first)
    bridge.status(first, phase="Failed", reason=reason)
    bridge.until(lambda: bridge.of(job).over, 10)

    def bound_again() -> list[str]:
        return [bridge.node_of(name) for name, _ in bridge.world.pods() if name != first and bridge.node_of(name)]

    bridge.until(bound_again, 60)
    assert bound_again()[0] != refused_by
