"""The user that slurmctld made of a name is compared with the rule before any pod is bound."""

import dataclasses

import pytest

from tests.component.scheduler.whole_core import Bridge

ANYBODY = [{"name": "policy", "options": {"rules": [{"allow": {"user-id": ["*"], "account": ["*"]}}]}}]
WHOSE = {"slurmjob.slinky.slurm.net/user-id": "batchd"}


def a_bridge(bridge: Bridge, number: int) -> Bridge:
    """Every user may be chosen, and slurmctld's host has one more."""
    config = bridge.slurm.world.config
    bridge.slurm.world.config = dataclasses.replace(config, users={**config.users, "batchd": number})
    again = Bridge(bridge.folder, world=bridge.world, hooks=ANYBODY)
    again.recover()
    return again


@pytest.mark.security("rights")
@pytest.mark.parametrize("number", [0, 99, 401, 999, 65534])
def test_a_name_of_the_system_is_found_by_its_number(bridge: Bridge, number: int) -> None:
    """A pod whose user is a system account in Slurm (below 1000, 99, 65534) is never bound."""
    bridge = a_bridge(bridge, number)
    bridge.pod("a", annotations=WHOSE)
    bridge.run(30)
    assert not bridge.node_of("a")
    (job,) = bridge.jobs(bridge.uid("a"))
    assert (job.user, job.over) == ("batchd", True)
    reason, message = bridge.condition("a")
    assert reason == "UserNotAllowed"
    assert f"job {job.job_id} belongs to user batchd with the number {number}" in message
    assert ("UserNotAllowed", message) in bridge.events("a")


def test_the_job_of_a_pod_that_waits_is_withdrawn_too(bridge: Bridge) -> None:
    """With the first reading of its details, long before it could start; no further call is made for it."""
    bridge = a_bridge(bridge, 401)
    job = bridge.waiting("a", annotations=WHOSE)
    bridge.until(lambda: bridge.of(job).over, 60)
    assert bridge.note(job) == "withdrawn: replaced: its user is not allowed"
    assert not bridge.park_note("a"), "nobody has cancelled it but us"


def test_the_same_request_is_not_repeated_at_once(bridge: Bridge) -> None:
    """Every five minutes it is tried whether somebody has given the user another number."""
    bridge = a_bridge(bridge, 401)
    bridge.pod("a", annotations=WHOSE)
    bridge.run(250)
    assert bridge.submits() == 1
    config = bridge.slurm.world.config
    bridge.slurm.world.config = dataclasses.replace(config, users={**config.users, "batchd": 1401})
    bridge.until(lambda: bridge.node_of("a"), 120)


def test_another_user_is_tried_at_once(bridge: Bridge) -> None:
    """What was refused was the user."""
    bridge = a_bridge(bridge, 401)
    bridge.pod("a", annotations=WHOSE)
    bridge.run(10)
    bridge.annotate("a", user_id="alice")
    bridge.until(lambda: bridge.node_of("a"), 10)
    assert bridge.job("a").user == "alice"


@pytest.mark.parametrize("number", [1000, 5009, 64030])
def test_an_ordinary_number_is_bound(bridge: Bridge, number: int) -> None:
    """Whatever the name looks like."""
    bridge = a_bridge(bridge, number)
    assert bridge.bound("a", annotations=WHOSE).user == "batchd"


def test_no_reading_is_made_for_it(bridge: Bridge) -> None:
    """The job is read before its pod is bound anyway."""
    bridge.bound("a")
    bridge.bound("b")
    assert bridge.slurm_calls.count(method="GET", target="/job/") <= len(("a", "b"))
