"""What makes an external node useless until the next reconfigure. Every case here repairs what it breaks."""

import pytest
from slurm_desk import Desk

pytestmark = pytest.mark.disruptive


def test_what_is_sent_to_external_nodes_poisons_them(slurm: Desk) -> None:
    """An unguarded update of a running job shrinks it, even where it is refused, and tells the freed node; a signal
    other than KILL and a suspension tell the job's node. None of them answers: they go NOT_RESPONDING and take no job
    until a reconfigure.
    """
    one, two, three, four, five = slurm.idle("plain", 5)
    (six,) = slurm.idle("mapped")
    refused = slurm.running(tasks=2, required_nodes=[one, two])
    accepted = slurm.running(tasks=2, required_nodes=[three, four])
    signalled = slurm.running(required_nodes=[five])
    suspended = slurm.running(partition="mapped", required_nodes=[six])
    assert slurm.update(refused, required_nodes=[two], constraints="plain").verdict == (422, [2073])
    assert slurm.update(accepted, nodes="1").verdict == (200, [])
    assert slurm.job(refused)["nodes"] == two
    assert slurm.job(accepted)["nodes"] == three
    assert slurm.ask("DELETE", f"job/{signalled}?signal=SIGTERM").verdict == (200, [])
    slurm.servers.suspend(suspended)
    assert (slurm.state(signalled), slurm.state(suspended)) == ({"RUNNING"}, {"SUSPENDED"})

    def poisoned(name: str) -> bool:
        return "NOT_RESPONDING" in slurm.node(name)["state"]

    slurm.servers.pass_time(15)
    slurm.until(lambda: all(map(poisoned, (one, four, five, six))), "the nodes are poisoned", seconds=30)
    waiting = slurm.pending(required_nodes=[one])
    slurm.running(required_nodes=[two])
    assert slurm.state(waiting) == {"PENDING"}
    slurm.reconfigure()
    slurm.until(lambda: not any(map(poisoned, (one, four, five, six))), "the nodes are forgiven")
    slurm.started(waiting)


def test_a_reconfigure_fails_jobs_that_need_a_deleted_node(slurm: Desk) -> None:
    """A pending job that requires a node which was deleted ends as NODE_FAIL, one that excludes it waits on."""
    (plain,) = slurm.idle("plain")
    slurm.add_nodes("gone1")
    needing = slurm.held(tasks=2, required_nodes=[plain, "gone1"])
    excluding = slurm.held(excluded_nodes=["gone1"])
    slurm.ask("DELETE", "node/gone1")
    slurm.reconfigure()
    slurm.until(lambda: slurm.state(needing) == {"NODE_FAIL"}, "the job ends")
    assert slurm.state(excluding) == {"PENDING"}
