"""What puts pods on nodes: our daemon, the raw loop, and kube-scheduler without Slurm. Each is a process of its own."""

import contextlib
import dataclasses
import http.client
import pathlib
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import yaml
from hooksbench import families

from clusterbench import samples
from clusterbench.testbed import Bed, until
from localcluster import gomodules
from localcluster.config import PROJECT
from slurm_bridge.slurm.wire import WIRES

#: The placeholders' user; not the token's own, which is root.
USER = "slurm-bridge"
DAEMON = pathlib.Path(sys.executable).with_name("slurm-bridge")
KUBECTL = PROJECT / "hack" / "cluster" / "kubectl"
#: What hooks have to see beside what every daemon sees.
DEPLOY = PROJECT / "deploy"

_READY_SECONDS = 60.0
_STOP_SECONDS = 30.0
_REQUESTS = {side: f"slurm_bridge_{side}_request_duration_seconds_count" for side in ("slurm", "kubernetes")}


def _unannounced(_name: str, _uid: str) -> None:
    """It finds out by itself what was created."""


def _uncounted() -> dict[str, dict[str, float]]:
    """Only the servers count."""
    return {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One contestant at work. `check` raises when it has ended; `calls` are those that it counts itself, by side."""

    pid: int
    check: Callable[[], None]
    told: Callable[[str, str], None] = _unannounced
    calls: Callable[[], Mapping[str, Mapping[str, float]]] = _uncounted
    cancels: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Where it works: which cluster, which namespace, and a folder for its files and its log."""

    bed: Bed
    namespace: str
    folder: pathlib.Path


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """How to start one, and which pods are its own."""

    name: str
    scheduler: str
    enter: Callable[[Arena], contextlib.AbstractContextManager[Running]]


@contextlib.contextmanager
def _raw(arena: Arena, gangs: Mapping[str, int] = MappingProxyType({})) -> Iterator[Running]:
    env = arena.bed.env
    arguments = {
        "namespace": arena.namespace,
        "kubeconfig": env["KUBECONFIG"],
        "url": env["SLURMRESTD_URL"],
        "token-file": env["SLURM_TOKEN_FILE"],
        "version": next(iter(WIRES)),
    }
    command = [sys.executable, "-m", "clusterbench.raw", *(f"--{name}={value}" for name, value in arguments.items())]
    command += [f"--gang={name}={members}" for name, members in gangs.items()]
    with _process(arena.folder, "raw", command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        lines = process.stdin

        def tell(name: str, uid: str) -> None:
            lines.write(f"{name} {uid}\n".encode())
            lines.flush()

        yield Running(pid=process.pid, check=_lives(arena.folder, "raw", process), told=tell)


@contextlib.contextmanager
def _kube_scheduler(arena: Arena) -> Iterator[Running]:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": arena.bed.env["KUBECONFIG"], "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": KUBE_SCHEDULER.scheduler}],
    }
    file = _written(arena.folder, "kube-scheduler.yaml", configuration)
    binary = gomodules.binary(arena.bed.config, "kube-scheduler")
    with _process(arena.folder, "kube-scheduler", [str(binary), f"--config={file}", "--secure-port=0"]) as process:
        yield Running(pid=process.pid, check=_lives(arena.folder, "kube-scheduler", process))


@contextlib.contextmanager
def ours(
    env: Mapping[str, str],
    folder: pathlib.Path,
    settings: Mapping[str, object],
    ready_seconds: float = _READY_SECONDS,
) -> Iterator[Running]:
    """Our daemon on the servers of this environment, with its files in this folder."""
    port = _free_port()
    file = _written(folder, "slurm-bridge.yaml", configuration(env, port, settings))
    with _process(folder, "slurm-bridge", [str(DAEMON), "run", "--config", str(file)]) as process:
        page = f"http://127.0.0.1:{port}"
        check = _lives(folder, "slurm-bridge", process)
        until(lambda: _answers(f"{page}/readyz"), ready_seconds, "slurm-bridge: ready", check)
        yield Running(pid=process.pid, check=check, calls=lambda: _counted(f"{page}/metrics"), cancels=True)


def _ours(arena: Arena, settings: Mapping[str, object]) -> contextlib.AbstractContextManager[Running]:
    return ours(arena.bed.env, arena.folder, settings)


@contextlib.contextmanager
def _hooked(arena: Arena, settings: Mapping[str, object], *components: str) -> Iterator[Running]:
    """With these hooks, and the rights of these components to see what they look at."""
    with _granted(arena.bed.env, *components), _ours(arena, settings) as running:
        yield running


@contextlib.contextmanager
def _granted(env: Mapping[str, str], *components: str) -> Iterator[None]:
    command = [str(KUBECTL), f"--kubeconfig={env['KUBECONFIG']}"]
    files = [f"--filename={DEPLOY / component / 'rbac.yaml'}" for component in components]
    try:
        subprocess.run([*command, "apply", *files], check=True, stdout=subprocess.DEVNULL)
        yield
    finally:
        subprocess.run([*command, "delete", "--ignore-not-found", *files], check=True, stdout=subprocess.DEVNULL)


def configuration(env: Mapping[str, str], port: int, others: Mapping[str, object]) -> dict[str, object]:
    """The daemon as it is shipped, on this cluster; `others` are whole groups of keys that a measurement changes."""
    return {
        "cluster_id": "bench",
        "scheduler_names": [OURS.scheduler],
        "slurm": {"url": env["SLURMRESTD_URL"], "token_file": env["SLURM_TOKEN_FILE"]},
        "kubernetes": {"kubeconfig": env["KUBECONFIG_DAEMON"]},
        "defaults": {"user": USER},
        "leader_election": {"namespace": env["DAEMON_NAMESPACE"]},
        "web": {"host": "127.0.0.1", "port": port},
        **others,
    }


def ours_with(**settings: object) -> Contestant:
    """Our daemon with other settings."""
    return dataclasses.replace(OURS, enter=lambda arena: _ours(arena, settings))


def raw_with(gangs: Mapping[str, int]) -> Contestant:
    """The raw loop, told that pods of these prefixes are gangs of so many."""
    return dataclasses.replace(RAW, enter=lambda arena: _raw(arena, gangs))


RAW = Contestant(name="raw loop", scheduler="bench-raw", enter=_raw)
KUBE_SCHEDULER = Contestant(name="kube-scheduler", scheduler="bench-kube-scheduler", enter=_kube_scheduler)
OURS = Contestant(name="slurm-bridge", scheduler="bench-slurm-bridge", enter=lambda arena: _ours(arena, {}))

RATED = Contestant(
    name="bridge and rules",
    scheduler="bench-slurm-bridge-rules",
    enter=lambda arena: _hooked(arena, RULES, "kube-scheduler"),
)
RULES: Mapping[str, object] = {"scheduler_names": [RATED.scheduler], "hooks": [{"name": "kube-scheduler"}]}

ALL = Contestant(
    name="bridge, all",
    scheduler="bench-slurm-bridge-all",
    enter=lambda arena: _hooked(arena, ALL_RULES, "kube-scheduler", "yunikorn"),
)
ALL_RULES: Mapping[str, object] = {"scheduler_names": [ALL.scheduler], "hooks": list(families.EVERY_HOOK)}

UNRATED = Contestant(
    name="bridge, no rules",
    scheduler="bench-slurm-bridge-unrated",
    enter=lambda arena: _hooked(arena, UNRATED_RULES, "yunikorn"),
)
#: All families but that of the rules: what the rules cost beside the others.
UNRATED_RULES: Mapping[str, object] = {
    "scheduler_names": [UNRATED.scheduler],
    "hooks": [one for one in families.EVERY_HOOK if one["name"] != "kube-scheduler"],
}

CONTESTANTS: Mapping[str, Contestant] = {
    "ours": OURS,
    "rated": RATED,
    "unrated": UNRATED,
    "all": ALL,
    "raw": RAW,
    "kube-scheduler": KUBE_SCHEDULER,
}


@contextlib.contextmanager
def _process(
    folder: pathlib.Path, name: str, command: Sequence[str], stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Its output goes to a log beside its files."""
    with _log(folder, name).open("ab") as output:
        process = subprocess.Popen(command, stdin=stdin, stdout=output, stderr=output)
    try:
        yield process
    finally:
        _stop(process)


def _log(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / f"{name}.log"


def _lives(folder: pathlib.Path, name: str, process: subprocess.Popen[bytes]) -> Callable[[], None]:
    """Raises as soon as the process has ended, which it should not."""

    def check() -> None:
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended by itself with {process.returncode}, see {_log(folder, name)}")

    return check


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _written(folder: pathlib.Path, name: str, content: object) -> pathlib.Path:
    file = folder / name
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == http.client.OK)
    except OSError:
        return False


def _counted(url: str) -> dict[str, dict[str, float]]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        page = answer.read().decode()
    return {side: samples.summed(samples.parse(page, [name]), ["operation"]) for side, name in _REQUESTS.items()}
