"""What an administrator does with a daemon: looks whether the servers fit, and changes its configuration."""

import copy
import pathlib
import subprocess
import sys

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_world import World


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """A daemon whose pods go to `debug`."""
    return open_world("site", defaults={"partition": "debug"})


def configured(world: World, **defaults: str) -> support_daemon.Settings:
    """Its configuration, with other defaults."""
    chosen = copy.deepcopy(world.daemon.settings)
    chosen["defaults"] |= defaults
    return chosen


def partition_of_a_new_pod(world: World, name: str) -> str:
    """Where a pod without any wish waits."""
    (made,) = world.create(support_world.pod(name, world.daemon.scheduler, annotations=support_world.FOREVER))
    bound = world.await_pod(name, "a node", support_world.is_bound)
    assert bound["metadata"]["uid"] == made["metadata"]["uid"]
    return world.slurm.shown(support_world.job_id(bound))["Partition"]


@pytest.mark.real
def test_the_check_finds_nothing_that_keeps_pods_from_running(world: World) -> None:
    """On the local cluster every assumption holds, and the placeholder that was tried is gone."""
    program = pathlib.Path(sys.executable).with_name("slurm-bridge")
    said = support_servers.said(program, "check", "--config", world.daemon.configuration)
    assert "failure" not in said
    assert not [one for one in world.slurm.alive(world.daemon.cluster_id) if one.owner["kind"] == "Check"]


@pytest.mark.real
def test_the_check_fails_where_an_assumption_does_not_hold(world: World, tmp_path: pathlib.Path) -> None:
    """A default partition that Slurm does not have: the status tells scripts, the words tell people."""
    other = support_daemon.Daemon(tmp_path, configured(world, partition="nowhere"))
    program = pathlib.Path(sys.executable).with_name("slurm-bridge")
    command = (program, "check", "--config", other.configuration)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "defaults.partition" in done.stdout


@pytest.mark.real
def test_a_change_takes_effect_without_a_restart(world: World) -> None:
    """New pods go where the new default says; the daemon is the same process."""
    before = world.daemon.pid
    assert partition_of_a_new_pod(world, "old") == "debug"
    world.daemon.configure(configured(world, partition="batch"))
    wait.until(lambda: "defaults" in reloads(world), "reload")
    assert partition_of_a_new_pod(world, "new") == "batch"
    assert world.daemon.pid == before
    assert world.daemon.alive


@pytest.mark.real
def test_a_configuration_that_cannot_work_changes_nothing(world: World) -> None:
    """The last good one stays, and an event on the Lease says what is wrong."""
    good = copy.deepcopy(world.daemon.settings)
    was = partition_of_a_new_pod(world, "before")
    world.daemon.configure(configured(world, cpus="none at all"))
    wait.until(lambda: "cpus" in reloads(world), "refusal")
    assert partition_of_a_new_pod(world, "after") == was
    world.daemon.configure(good)


def reloads(world: World) -> str:
    """What was said about the configuration, beside the Lease."""
    lease = world.daemon.settings["leader_election"]
    path = f"/apis/events.k8s.io/v1/namespaces/{lease['namespace']}/events"
    found = [one for one in world.kube.items(path) if one["regarding"]["name"] == lease["name"]]
    return "\n".join(str(one["note"]) for one in found)


@pytest.mark.real
def test_a_refused_annotation_is_told_with_what_is_allowed(world: World) -> None:
    """Object, key, value, and the form that would do: as a condition and as an event; nothing reaches Slurm."""
    marks = {names.JOB_PREFIX + "timelimit": "soon", names.JOB_PREFIX + "account": "somebody-else"}
    (pod,) = world.create(support_world.pod("refused", world.daemon.scheduler, annotations=marks))
    held = world.await_pod("refused", "word", lambda one: "timelimit" in message(one))
    assert "soon" in message(held)
    uid = pod["metadata"]["uid"]
    wait.until(lambda: world.events(uid), "event")
    assert any("timelimit" in str(one["message"]) for one in world.events(uid))
    assert world.placeholders(uid) == []


@pytest.mark.real
def test_a_policy_refusal_names_the_key_and_the_service_account(world: World) -> None:
    """Outside the namespace of the shipped policy no pod chooses an account."""
    marks = {names.JOB_PREFIX + "account": "schedmd"}
    (pod,) = world.create(support_world.pod("forbidden", world.daemon.scheduler, annotations=marks))
    held = world.await_pod("forbidden", "word", lambda one: "account" in message(one))
    assert "schedmd" in message(held)
    assert world.namespace in message(held)
    assert world.placeholders(pod["metadata"]["uid"]) == []


def message(pod: support_servers.Json) -> str:
    """Why it is not scheduled."""
    return str(support_servers.condition(pod, "PodScheduled").get("message", ""))
