"""The life of the daemon, with its threads, over HTTP: it starts, serves, drains and stops."""

import contextlib
import dataclasses
import http.client
import json
import pathlib
import socket
from collections.abc import Iterator

import pytest

from slurm_bridge import app, cli
from slurm_bridge.demo import pocket
from slurm_bridge.families.yunikorn.partitions import YunikornPartitions
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.sim import faults
from tests import wait
from tests.component.daemon.running import configuration, running


@pytest.fixture
def world() -> Iterator[pocket.PocketWorld]:
    """Both servers, with two nodes."""
    with pocket.world(nodes=2) as made:
        yield made


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """Where the configuration is."""
    return tmp_path / "config.json"


def test_it_binds_pods_and_ends_with_0_when_it_is_told_to(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """The whole way, once; and its numbers are on its page."""
    with running(world, path) as daemon:
        daemon.until_ready()
        for name in "abc":
            daemon.pod(name)
        wait.until(lambda: daemon.bound(*"abc"), "binding", 20, every=0.02)
        for number in (
            "slurm_bridge_admitted_workloads_total 3.0",
            'slurm_bridge_placeholder_jobs{phase="running"} 3.0',
        ):
            wait.until(lambda number=number: number in daemon.get("/metrics")[1], number, 20, every=0.02)
        assert daemon.stop() == 0


def test_a_dead_thread_ends_the_process_with_an_error(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """Half a daemon looks alive and does half of the work."""
    with running(world, path) as daemon:
        daemon.until_ready()
        daemon.daemon.core.context.mirror.poll = None  # type: ignore[method-assign,assignment]
        assert daemon.join() == 1


def test_a_dead_informer_ends_the_process_with_an_error(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """Its cache would grow old unnoticed."""
    with running(world, path) as daemon:
        daemon.until_ready()
        next(iter(daemon.daemon._feeds._informers.values())).stop()
        assert daemon.join() == 1


def test_a_dead_thread_of_queues_ends_the_process_with_an_error(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """Each partition with queues of its own has one."""
    partitions = [{"name": "debug", "queues": [{"name": "root", "submitacl": "*"}]}]
    options = {"configuration": {"partitions": partitions}, "partitions": "slurm"}
    with running(world, path, hooks=[{"name": "yunikorn", "options": options}]) as daemon:
        daemon.until_ready()
        chain = daemon.daemon.core.context.config.chain
        (hook,) = (one.hook for one in chain.hooks if isinstance(one.hook, YunikornPartitions))
        wait.until(lambda: hook.picture() is not None, "queues", 20, every=0.02)
        manager = hook._hooks["debug"]._manager
        assert manager is not None
        manager.engine._turns._clock = None  # type: ignore[assignment]
        manager.engine.nudge()
        assert daemon.join() == 1
        assert chain.dead == ("queue core debug",)


def test_it_is_alive_and_not_ready_while_slurm_does_not_answer(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """A restart would not help, and no pod is lost for it; with the first answer it goes on."""
    world.slurm_calls.plan(faults.Answer(502, b"", "text/html"), times=10_000)
    with running(world, path) as daemon:
        daemon.pod("a")
        wait.until(lambda: len(world.slurm_calls.journal) > 2, "a call to Slurm", 20, every=0.02)
        assert daemon.get("/livez")[0] == 200
        status, text = daemon.get("/readyz")
        assert status == 503
        assert "no good answer yet" in text
        world.slurm_calls.clear()
        wait.until(lambda: daemon.bound("a"), "binding", 20, every=0.02)
        daemon.until_ready()


def outdated(world: pocket.PocketWorld) -> None:
    """A slurmrestd of the last release without external jobs."""
    slurmctld = world.slurmctld.world
    slurmctld.config = dataclasses.replace(
        slurmctld.config, release="24.11.5", versions=("v0.0.40", "v0.0.41", "v0.0.42")
    )


REFUSED = "Slurm 24.11.5 serves API version v0.0.42, and none of v0.0.45, v0.0.44, v0.0.43: slurm-bridge needs external"


def test_a_slurm_without_external_jobs_is_refused_at_the_start(
    world: pocket.PocketWorld, path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process ends with status 1, and says what it has found and what it needs."""
    outdated(world)
    settled = configuration(world, path)
    flags = [word for one in settled.overrides for word in ("--set", one)]
    assert cli.main(["run", "--config", str(path), *flags]) == 1
    assert REFUSED in capsys.readouterr().err
    assert all("submit" not in call.target for call in world.slurm_calls.journal)


def test_the_check_says_that_slurm_has_no_external_jobs(
    world: pocket.PocketWorld, path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the same words as the daemon."""
    outdated(world)
    settled = configuration(world, path)
    flags = [word for one in settled.overrides for word in ("--set", one)]
    assert cli.main(["check", "--config", str(path), *flags]) != 0
    assert REFUSED in " ".join(capsys.readouterr().out.split())


@pytest.mark.security("fairness")
def test_clients_that_fill_the_door_do_not_keep_probes_out(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """Connections to the port of metrics and submissions, however many and idle, fail no probe and restart nothing."""
    with running(world, path, web={"probes_port": 0}) as daemon, contextlib.ExitStack() as stack:
        daemon.until_ready()
        assert daemon.daemon.probes is not None
        for _ in range(40):
            stack.enter_context(socket.create_connection(("127.0.0.1", daemon.daemon.server.port), wait.PATIENCE))
        probes = http.client.HTTPConnection("127.0.0.1", daemon.daemon.probes.port, timeout=wait.PATIENCE)
        for path_, status in [("/livez", 200), ("/readyz", 200)] * 10 + [("/metrics", 404)]:
            probes.request("GET", path_)
            answer = probes.getresponse()
            answer.read()
            assert answer.status == status, path_
        probes.close()


def test_a_lease_decides_who_acts_and_is_given_up_at_the_end(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """The second one takes over at once when the first one stops, and submits nothing twice."""
    election = {"enabled": True, "namespace": "default", "lease_seconds": 60, "renew_seconds": 40, "retry_seconds": 0.1}
    with running(world, path, leader_election=election) as first:
        first.pod("a")
        wait.until(lambda: first.bound("a"), "binding", 20, every=0.02)
        with running(world, path.with_name("second.json"), leader_election=election) as second:
            second.until_ready()
            assert not second.daemon.election.leading  # type: ignore[union-attr]
            assert first.stop() == 0
            second.pod("b")
            wait.until(lambda: second.bound("b"), "binding by the second", 20, every=0.02)
    # What a check at the start leaves behind says of itself that it is one.
    jobs = [job for job in world.slurmctld.world.jobs.values() if '"kind":"Pod"' in job.ask.text("admin_comment")]
    assert len(jobs) == 2


def test_the_configuration_is_reloaded_and_a_bad_one_is_not(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """What cannot work changes nothing and is said; what can is used for the next pod."""
    with running(world, path) as daemon:
        daemon.until_ready()
        given, reload = json.loads(path.read_text()), daemon.daemon._reloader
        assert reload is not None
        before = daemon.daemon.core.context.config
        exchange(path, {**given, "hooks": [{"name": "nobody-knows-it"}]})
        reload.step()
        assert daemon.daemon.core.context.config is before
        exchange(path, {**given, "defaults": {"timelimit": 7}})
        reload.step()
        daemon.pod("a")
        wait.until(lambda: daemon.bound("a"), "binding", 20, every=0.02)
        assert 'reloads_total{result="refused"} 1.0' in daemon.get("/metrics")[1]
        wait.until(lambda: {"Reloaded", "ReloadFailed"} <= reasons(world), "events", 10, every=0.02)
    (job,) = (job for job in world.slurmctld.world.jobs.values() if job.ask.name == "a")
    assert job.ask.minutes == 7


def exchange(path: pathlib.Path, values: dict[str, object]) -> None:
    """Another file in its place, never half of one: the daemon's own thread may look at any moment."""
    written = path.with_suffix(".new")
    written.write_text(json.dumps(values))
    written.replace(path)


def reasons(world: pocket.PocketWorld) -> set[str]:
    """Of all events."""
    return {event["reason"] for event in world.kube.list(kinds.EVENTS)}


def test_status_limits_are_taken_over_by_a_running_daemon(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """The reference says that they are."""
    with app.daemon(configuration(world, path)) as daemon:
        settings = configuration(world, path, status={"patience_seconds": 0}).load()
        daemon._apply(settings)
        daemon.reporter.waiting(Pod(metadata=ObjectMeta(name="a", namespace="default", uid="u")), "Reason", "message")
        assert daemon.reporter.idle_for() == 0.0
        daemon.server.close()
        if daemon.probes is not None:
            daemon.probes.close()


def test_a_hook_that_needs_to_see_more_is_shown_it_without_a_restart(
    world: pocket.PocketWorld, path: pathlib.Path
) -> None:
    """Claims, volumes and classes are listed before the new configuration counts."""
    without = [{"name": "eligibility", "options": {"volumes": False}}]
    with running(world, path, hooks=without) as daemon:
        daemon.until_ready()
        daemon.daemon._apply(configuration(world, path).load())
        assert 'slurm_bridge_informer_synced{kind="persistentvolumeclaims"} 1.0' in daemon.get("/metrics")[1]
        daemon.pod("a")
        wait.until(lambda: daemon.bound("a"), "binding", 20, every=0.02)


@pytest.mark.parametrize("table", [{}, {"gpu.example.com": "gpu"}])
def test_slices_are_watched_only_where_their_devices_count(
    world: pocket.PocketWorld, path: pathlib.Path, table: dict[str, str]
) -> None:
    """By the node controller, if `nodes.device_gres` names a driver."""

    def asked() -> bool:
        return any("/resourceslices" in call.target for call in world.kube_calls.journal)

    with running(world, path, nodes={"enabled": True, "device_gres": table}) as daemon:
        daemon.until_ready()
        if table:
            wait.until(asked, "the list", 20, every=0.02)
    assert asked() is bool(table)


def test_only_what_is_needed_is_watched(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """Our pods, all bound pods, nodes, what groups pods, and what hooks have declared."""
    without = [{"name": "eligibility", "options": {"volumes": False}}]
    with running(world, path, hooks=without, scheduler_names=["one", "two"]) as daemon:
        daemon.until_ready()
        asked = {call.target.partition("limit=")[0] for call in world.kube_calls.journal if "limit=" in call.target}
    # The start does not wait for what is optional: it may be requested a moment later.
    assert {target.partition("?")[0] for target in asked} - {"/apis/resource.k8s.io/v1/deviceclasses"} == {
        "/api/v1/pods",
        "/api/v1/nodes",
        "/apis/batch/v1/jobs",
        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        "/apis/kubeflow.org/v2beta1/mpijobs",
        "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
        "/apis/scheduling.k8s.io/v1alpha2/podgroups",
        "/apis/scheduling.k8s.io/v1alpha2/workloads",
        "/apis/scheduling.run.ai/v2alpha2/podgroups",
        "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    }
    assert sum(target.startswith("/api/v1/pods?") for target in asked) == 3
    others = next(target for target in asked if "nodeName" in target)
    assert "one" in others
    assert "two" in others
