"""The life of a local cluster, in this order: started, used, hurt, resized, stopped, and nothing is left."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable, Iterator

import machine
import pytest
from second_cluster import PORT_BASE, Cluster

from tests import wait

pytestmark = [pytest.mark.real, pytest.mark.timeout(2000)]

WORKLOADS = pathlib.Path(__file__).with_name("workloads.yaml")
#: Servers on this machine, by their pid files, and servers in containers.
PROCESSES = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok", "jobset", "lws")
CONTAINERS = ("slurmctld", "slurmrestd")
REPAIR_SECONDS = 60.0


def assert_sizes(cluster: Cluster, count: int) -> None:
    """Both schedulers know so many nodes, and all of them are ready."""
    conditions = [node["status"]["conditions"] for node in cluster.objects("nodes")]
    ready = [one for one in conditions if {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in one}.items()]
    states = dict(line.split() for line in cluster.slurm("sinfo", "--noheader", "--Node", "--format=%N %T"))
    assert (len(ready), len(states)) == (count, count)
    assert not [name for name, state in states.items() if "down" in state or "unk" in state]


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with the cluster."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_nothing_is_there_before(cluster: Cluster) -> None:
    """The ports and the names of this cluster are free; only files may be there, of a run that was killed."""
    assert dataclasses.replace(cluster.before, files=frozenset()) == machine.Traces()
    assert cluster.run("status").returncode == 1


def test_up_starts_everything(cluster: Cluster, tell: Callable[[str, float], None]) -> None:
    """One command gives ready nodes on both sides, and no part is missing."""
    took = cluster.up(NODES="20")
    tell("up", took)
    assert_sizes(cluster, 20)


def test_servers_listen_on_loopback_only(cluster: Cluster) -> None:
    """Nobody reaches the cluster from another machine, and this machine does."""
    assert cluster.traces().ports >= {PORT_BASE, PORT_BASE + 21}
    assert machine.listens_beyond_loopback(PORT_BASE) == []


def test_secrets_are_for_their_owner(cluster: Cluster) -> None:
    """No file with a key or a token may be read by others."""
    folder = cluster.directory
    files = [*folder.glob("kubeconfig*"), *folder.glob("slurm/token*"), *folder.glob("slurm/conf/*key")]
    assert len(files) >= 6
    assert {file.stat().st_mode & 0o077 for file in files} == {0}
    assert (folder / "secrets").stat().st_mode & 0o077 == 0


def test_controllers_make_pods(cluster: Cluster) -> None:
    """A Job, a JobSet and a LeaderWorkerSet are admitted, and their controllers create all their pods."""
    cluster.do("kubectl", "apply", "--filename=-", text=WORKLOADS.read_text())

    def pods(selector: str) -> int:
        return len(cluster.objects("pods", f"--selector={selector}"))

    wait.until(lambda: pods("job-name=job") == 2, "pods of the Job")
    wait.until(lambda: pods("jobset.sigs.k8s.io/jobset-name=jobset") == 2, "pods of the JobSet")
    wait.until(lambda: pods("leaderworkerset.sigs.k8s.io/name=lws") == 3, "pods of the LeaderWorkerSet")
    cluster.do("kubectl", "delete", "--filename=-", text=WORKLOADS.read_text())


def test_up_again_is_quick_and_restarts_nothing(cluster: Cluster, tell: Callable[[str, float], None]) -> None:
    """What runs as configured is left alone."""
    before = cluster.pids()
    took = cluster.up()
    tell("up again", took)
    assert took < 60
    assert cluster.pids() == before


@pytest.mark.parametrize("name", PROCESSES)
def test_up_replaces_a_killed_server(cluster: Cluster, name: str) -> None:
    """After a kill -9 that server is started again, and no other one is."""
    before = cluster.pids()
    os.kill(before[name], signal.SIGKILL)
    wait.until(lambda: cluster.run("status").returncode == 1, f"notice that {name} is gone", 10)
    assert cluster.up() < REPAIR_SECONDS
    changed = {part for part, pid in cluster.pids().items() if before[part] != pid}
    assert changed == {name}


@pytest.mark.parametrize("name", CONTAINERS)
def test_up_replaces_a_killed_container(cluster: Cluster, name: str) -> None:
    """A Slurm server that was killed runs again, with the state it had."""
    cluster.do("part", name, "kill")
    assert cluster.run("status").returncode == 1
    assert cluster.up() < REPAIR_SECONDS
    assert cluster.slurm("scontrol", "--oneliner", "show", "reservation", "held")


def engine_processes(cluster: Cluster) -> dict[str, int]:
    """dockerd and its containerd, where they are this cluster's own."""
    pids = {"dockerd": cluster.pids().get("engine", 0)}
    file = cluster.directory / "engine" / "docker.pid"
    containerd = file.with_name("exec") / "containerd" / "containerd.pid"
    return pids | {"containerd": int(containerd.read_text())} if file.exists() else {}


@pytest.mark.parametrize("names", [("dockerd",), ("containerd",), ("dockerd", "containerd")], ids=" and ".join)
def test_up_replaces_a_killed_engine(cluster: Cluster, names: tuple[str, ...]) -> None:
    """The engine comes back with its containers, whatever of it was killed."""
    pids = engine_processes(cluster)
    if not pids:
        pytest.skip("the engine is not this cluster's own")
    for name in names:
        os.kill(pids[name], signal.SIGKILL)
    assert cluster.up() < REPAIR_SECONDS
    assert_sizes(cluster, 20)


def test_up_after_a_reboot(cluster: Cluster, stranger: subprocess.Popen[bytes]) -> None:
    """Everything is dead, the pid files tell of another boot and of pids that others have now: all of it is started."""
    for pid in [*cluster.pids().values(), *engine_processes(cluster).values()]:
        os.kill(pid, signal.SIGKILL)
    for file in (cluster.directory / "pids").iterdir():
        file.write_text(json.dumps({"pid": stranger.pid, "identity": "another boot/1", "fingerprint": ""}))
    for file in cluster.directory.glob("engine/**/*.pid"):
        file.write_text(str(stranger.pid))
    assert cluster.up() < REPAIR_SECONDS
    assert stranger.poll() is None
    assert_sizes(cluster, 20)


def test_up_converges_to_a_thousand_nodes(cluster: Cluster, tell: Callable[[str, float], None]) -> None:
    """A running cluster grows to the size that is asked for."""
    took = cluster.up(NODES="1000")
    tell("a thousand nodes", took)
    assert_sizes(cluster, 1000)


def test_accounting_can_be_added(cluster: Cluster, tell: Callable[[str, float], None]) -> None:
    """With it there are the placeholders' account, two more QOS and a limited user; and the cluster shrinks again."""
    took = cluster.up(NODES="20", ACCOUNTING="1")
    tell("with accounting", took)

    def shown(what: str, shape: str) -> list[str]:
        return cluster.slurm("sacctmgr", "--noheader", "--parsable2", "show", what, f"format={shape}")

    assert "schedmd" in shown("account", "Account")
    assert {"low", "high"} <= set(shown("qos", "Name"))
    assert "schedmd|bob|1|2" in shown("association", "Account,User,MaxJobs,MaxSubmit")
    assert_sizes(cluster, 20)


def test_down_leaves_nothing(cluster: Cluster) -> None:
    """No process, port, container, volume, mount or file is left, not even a temporary one."""
    while_up = cluster.traces()
    assert while_up.processes
    assert while_up.kept_by_engines
    cluster.do("down")
    assert cluster.traces() == cluster.before
    assert not cluster.directory.exists()
    assert list(cluster.temporary.iterdir()) == []


def test_down_again_is_content(cluster: Cluster) -> None:
    """Where nothing runs there is nothing to stop."""
    cluster.do("down")
