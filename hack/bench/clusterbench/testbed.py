"""The cluster that is measured: the running one when it is large enough, else one of our own for this run."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping

from clusterbench import allocations, bare, processes, samples
from localcluster import config as cluster_config
from localcluster import envfile, part, parts

#: Far from the default cluster and from the one of `make cluster-test`.
PORT_BASE = 24440
OWN = cluster_config.PROJECT / "build" / "bench-cluster"

#: Whose cpu is counted; what else runs (the controllers of groups) is there in every turn alike.
SERVERS = ("kube-apiserver", "etcd", "slurmctld", "slurmrestd", "kwok", "kube-controller-manager", "jobset", "lws")
_REQUESTS = "apiserver_request_total"
_LABELS = ("verb", "resource", "subresource")
_PAUSE = 0.25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """Where everything is."""

    config: cluster_config.Config
    env: Mapping[str, str]
    kubernetes: bare.Server
    slurm: bare.Server

    @classmethod
    def of(cls, config: cluster_config.Config, version: str) -> "Bed":
        """The cluster that runs with this configuration."""
        env = envfile.read(config.directory)
        return cls(
            config=config,
            env=env,
            kubernetes=bare.kubernetes(pathlib.Path(env["KUBECONFIG"]), 2),
            slurm=bare.slurm(env["SLURMRESTD_URL"], pathlib.Path(env["SLURM_TOKEN_FILE"]), version, 2),
        )

    def pids(self) -> dict[str, int]:
        """The servers' processes."""
        rows = {each.name: each.row(self.config) for each in parts.PARTS if isinstance(each, part.Visible)}
        return {name: pid for name in SERVERS if (pid := rows[name].pid) is not None}

    def meter(self, others: Mapping[str, int]) -> processes.Meter:
        """CPU of the servers and of others from now on."""
        return processes.Meter({**self.pids(), **others})

    def starts(self) -> allocations.Log:
        """Slurm's starts from now on."""
        row = next(
            one.row(self.config) for one in parts.PARTS if one.name == "slurmctld" and isinstance(one, part.Visible)
        )
        return allocations.Log(pathlib.Path(row.log))

    def apiserver_calls(self) -> dict[str, float]:
        """Requests that the API server has answered, of all clients."""
        page = self.kubernetes.call("GET", "/metrics").decode()
        return samples.summed(samples.parse(page, [_REQUESTS]), _LABELS)

    def slurm_calls(self) -> dict[str, float]:
        """Messages that slurmctld has handled: what slurmrestd made of the requests that it got."""
        rows = json.loads(self.slurm.call("GET", "/diag/"))["statistics"]["rpcs_by_message_type"]
        return {row["message_type"]: row["count"] for row in rows}

    def jobs(self) -> list[int]:
        """Everything that Slurm still runs or queues."""
        rows = json.loads(self.slurm.call("GET", "/jobs/state/"))["jobs"]
        return [int(row["job_id"]) for row in rows if {"RUNNING", "PENDING"} & set(row["state"])]

    def nodes_of(self, job: int) -> str:
        """What a running job holds, as Slurm writes it."""
        return str(json.loads(self.slurm.call("GET", f"/job/{job}"))["jobs"][0]["nodes"])

    def cancel_all(self) -> None:
        """For contestants that leave their jobs behind."""
        if jobs := self.jobs():
            body = json.dumps({"jobs": [str(one) for one in jobs]})
            self.slurm.call("DELETE", "/jobs/", body.encode())


def until(
    over: Callable[[], bool],
    seconds: float,
    what: str,
    check: Callable[[], None] = lambda: None,
    pause: float = _PAUSE,
) -> float:
    """Seconds that it took; TimeoutError when it takes too long, and whatever `check` raises meanwhile."""
    begin = time.monotonic()
    while not over():
        check()
        if time.monotonic() - begin > seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(pause)
    return time.monotonic() - begin


@contextlib.contextmanager
def opened(nodes: int, version: str) -> Iterator[Bed]:
    """A cluster of at least so many nodes on which no job runs."""
    running = cluster_config.Config.from_environment().directory
    config = cluster_config.Config.load(running)
    if config is not None and config.nodes >= nodes:
        yield _empty(Bed.of(config, version))
        return
    print(f"no running cluster of {nodes} nodes: starting one in {OWN} for the length of this run", flush=True)
    variables = {"CLUSTER_DIR": str(OWN), "PORT_BASE": str(PORT_BASE), "NODES": str(nodes)}
    try:
        _command("up", variables)
        started = cluster_config.Config.load(OWN)
        assert started is not None
        yield _empty(Bed.of(started, version))
    finally:
        _command("down", variables)


def _empty(bed: Bed) -> Bed:
    if jobs := bed.jobs():
        raise RuntimeError(
            f"{len(jobs)} jobs run or wait in Slurm, such as {jobs[0]}: a measurement needs it to itself"
        )
    return bed


def _command(name: str, variables: Mapping[str, str]) -> None:
    script = cluster_config.PROJECT / "hack" / "cluster" / name
    subprocess.run([script], env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)
