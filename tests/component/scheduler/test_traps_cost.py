"""What a pod costs in calls, waiting or bound, and that nothing is written that is not news."""

import pytest

from slurm_bridge.model import kinds
from tests.component.scheduler.whole_core import Bridge

CROWD = 40


def crowd(bridge: Bridge, number: int = CROWD) -> None:
    """So many pods that wait in Slurm."""
    bridge.slurm.control.pause()
    for each in range(number):
        bridge.pod(f"p{each}")
    bridge.run(15)
    bridge.slurm_calls.forget()
    bridge.kube_calls.forget()


def test_c1_no_attempt_lists_all_jobs_or_all_nodes(bridge: Bridge) -> None:
    """One full list at the start; after that only what is ours and what has changed is asked for."""
    for each in range(8):
        bridge.bound(f"p{each}")
    assert bridge.slurm_calls.count(target="/jobs/(\\?|$)") == 1
    assert bridge.slurm_calls.count(target="/nodes/") <= 2
    assert bridge.kube_calls.count(target="/nodes\\?limit") == 1
    assert bridge.kube_calls.count(target="/pods\\?limit") == 1


def test_c1_a_bound_pod_costs_few_calls(bridge: Bridge) -> None:
    """One submit, one read of the job, one binding, two events; the polls are shared by all."""
    bridge.run(1)
    bridge.slurm_calls.forget()
    bridge.kube_calls.forget()
    for each in range(8):
        bridge.pod(f"p{each}")
    bridge.until(lambda: all(bridge.node_of(f"p{each}") for each in range(8)))
    assert bridge.submits() == bridge.kube_calls.count(target="/binding") == 8
    assert bridge.slurm_calls.count(target="/job/\\d+") <= 8
    assert len(bridge.slurm_calls.journal) <= 2 * 8 + 8


def test_c2_pods_are_not_patched_again_and_again(bridge: Bridge) -> None:
    """However many wait: once said, nothing is written until there is something new to say."""
    crowd(bridge)
    bridge.run(120, step=1)
    assert bridge.kube_calls.count(method="PATCH") == 0
    assert bridge.kube_calls.count(method="POST") == 0


def test_c3_who_waits_sends_nothing_to_slurm(bridge: Bridge) -> None:
    """No submit, no update: only state words of all at once, and a few readings in turn."""
    crowd(bridge)
    bridge.run(120, step=1)
    assert bridge.slurm_calls.count(method="POST") == 0
    assert len(bridge.slurm_calls.journal) / 120 <= 2.0


def test_c4_many_pods_are_bound_in_one_breath(bridge: Bridge) -> None:
    """What runs is bound with the next look at Slurm, all of it: no pod waits for another one's turn."""
    crowd(bridge, 12)
    bridge.slurm.control.unpause()
    bridge.run(6)
    assert all(bridge.node_of(f"p{each}") for each in range(12))


@pytest.mark.parametrize("change", ["heartbeat", "label"])
def test_c5_no_node_is_ever_written(bridge: Bridge, change: str) -> None:
    """Whatever nodes say, it is theirs; and what says nothing to us wakes nobody."""
    crowd(bridge, 5)
    for node in ("n1", "n2", "n3", "n4"):
        if change == "label":
            bridge.kube.merge(kinds.NODES, ("", node), {"metadata": {"labels": {"colour": "red"}}})
        else:
            beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2030-01-01T00:00:00Z"}
            bridge.kube.merge(kinds.NODES, ("", node), {"status": {"conditions": [beat]}}, subresource="status")
    bridge.run(10)
    assert bridge.kube_calls.count(method="PATCH") == 0
    assert bridge.slurm_calls.count(method="POST") == 0
