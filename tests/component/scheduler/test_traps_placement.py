"""From an allocation to a bound pod: the right node under both of its names, the same one whenever it is asked."""

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.scheduler.whole_core import Bridge

HOSTNAME = "kubernetes.io/hostname"


def test_t24_a_node_that_kubernetes_lacks_is_given_back_with_a_clear_error(bridge: Bridge) -> None:
    """It leaves between submission and start: nothing is held for ever, and the next attempt avoids it."""
    uid = bridge.pod("a", spec={"nodeSelector": {HOSTNAME: "n4"}})
    bridge.settle()
    bridge.kube.delete(kinds.NODES, ("", "n4"))
    bridge.until(lambda: bridge.jobs(uid)[0].over)
    assert any("s4" in text and reason == "NodeUnknown" for reason, text in bridge.events("a"))
    assert not bridge.node_of("a")
    assert not bridge.park_note("a")


def test_t24_a_slurm_node_that_kubernetes_never_had_is_never_offered(bridge: Bridge) -> None:
    """Slurm would choose it gladly."""
    bridge.kube.delete(kinds.NODES, ("", "n4"))
    assert bridge.bound("a").ask.excluded == ("s4",)


def test_t25_both_names_of_a_node_are_used_where_they_belong(bridge: Bridge) -> None:
    """Kubernetes is told n4, Slurm is told s4, and the pod says both."""
    job = bridge.bound("a", spec={"nodeSelector": {HOSTNAME: "n4"}})
    assert job.ask.excluded == ("n1", "n2", "n3")
    assert job.grant is not None
    assert job.grant.nodes == ("s4",)
    assert bridge.node_of("a") == "n4"
    assert bridge.manifest("a")["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE] == "s4"


def test_t26_a_bound_pod_is_never_moved(bridge: Bridge) -> None:
    """Not by a restart, a scan, or a node that comes back."""
    job = bridge.bound("a")
    node = bridge.node_of("a")
    bridge.start()
    bridge.run(60)
    bridge.kube.merge(kinds.NODES, ("", node), {"spec": {"unschedulable": True}})
    bridge.run(60)
    assert bridge.node_of("a") == node
    assert bridge.of(job).running
    assert bridge.submits() == bridge.kube_calls.count(target="/binding") == 0


def test_t26_a_binding_that_is_tried_again_goes_to_the_same_node(bridge: Bridge) -> None:
    """The answer was lost, or the server was away: the place is the same."""
    bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=3)
    job = bridge.bound("a")
    assert job.grant is not None
    assert bridge.node_of("a") == job.grant.nodes[0]


@pytest.mark.parametrize("word", ["SUSPENDED", "CONFIGURING"])
def test_t28_a_job_that_holds_nodes_which_nobody_may_use_is_waited_for(bridge: Bridge, word: str) -> None:
    """Neither bound nor ended, and never replaced."""
    bridge.pod("a")
    bridge.settle()
    job = bridge.job("a")
    bridge.slurm.tick()
    changes = {"state": "SUSPENDED"} if word == "SUSPENDED" else {"configuring": True}
    bridge.slurm.control._change(job.job_id, **changes)
    bridge.run(20)
    assert not bridge.node_of("a")
    assert bridge.submits() == 1


@pytest.mark.parametrize(
    "word", ["FAILED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"]
)
def test_t28_a_job_that_ended_before_its_pod_had_a_node_is_submitted_again(bridge: Bridge, word: str) -> None:
    """Nobody wished its end."""
    uid = bridge.pod("a")
    bridge.settle()
    bridge.slurm.control.end(bridge.job("a").job_id, word)
    bridge.until(lambda: bridge.node_of("a"))
    assert len(bridge.jobs(uid)) == 2


@pytest.mark.parametrize(
    "word", ["FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT", "CANCELLED"]
)
def test_t28_a_job_that_ended_under_its_pod_ends_the_pod(bridge: Bridge, word: str) -> None:
    """With Slurm's word on the pod before it goes."""
    job = bridge.bound("a", annotations={"kwok.local/terminating": "20s"})
    bridge.slurm.control.end(job.job_id, word)
    bridge.until(lambda: bridge.leaving("a"))
    reason, message = bridge.condition("a", "DisruptionTarget")
    assert reason == "SlurmJobEnded"
    assert word in message


def test_t28_a_state_that_nobody_knows_changes_nothing(bridge: Bridge) -> None:
    """A word of a newer Slurm: the pod that runs stays, the pod that waits goes on waiting."""
    job = bridge.bound("a")
    bridge.slurm.control._change(job.job_id, state="DREAMING")
    bridge.run(20)
    assert not bridge.leaving("a")
    assert bridge.deletes() == 0


def test_t29_a_node_that_is_powering_up_is_not_bound_to_yet(bridge: Bridge) -> None:
    """RUNNING and CONFIGURING is not running."""
    bridge.pod("a")
    bridge.settle()
    job = bridge.job("a")
    bridge.slurm.tick()
    bridge.slurm.control._change(job.job_id, configuring=True)
    bridge.run(5)
    assert not bridge.node_of("a")
    assert str(job.job_id) in bridge.condition("a")[1]
    bridge.slurm.control._change(job.job_id, configuring=False)
    bridge.until(lambda: bridge.node_of("a"), 10)


def test_c6_pods_share_nodes(bridge: Bridge) -> None:
    """Twelve pods of one cpu on sixteen cpus run at once; none gets a node for itself."""
    for number in range(12):
        bridge.pod(f"p{number}")
    bridge.until(lambda: all(bridge.node_of(f"p{number}") for number in range(12)), 20)
    assert {job.grant.cpus for job in bridge.jobs() if job.grant is not None} == {1}
