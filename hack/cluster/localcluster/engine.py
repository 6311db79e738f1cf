"""The container engine: the one that answers on this machine, or a private dockerd where none does.

The private engine keeps its images in the cache folder, so that they outlive the cluster, and everything else
(socket, pid files, runtime state) in the cluster's folder. It has no bridge and no packet filter: all containers use
the host network. It is found by the path of its runtime folder in the command line, never by a pid file alone:
after a reboot or a kill -9 a pid file says nothing.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence

from localcluster import part, process, waiting
from localcluster.config import Config

#: Debian packages that give what is missing on a bare machine.
PACKAGES = {
    "docker": "docker.io",
    "dockerd": "docker.io",
    "iptables": "iptables",
    "docker-compose": "docker-compose",
    "debootstrap": "debootstrap",
    "gpgv": "gpgv",
}
START_SECONDS = 60.0
STOP_SECONDS = 30.0


class EngineError(part.PartError):
    """No engine answers and none can be started, or the engine refused something."""


class Engine:
    """The part that all containers need."""

    name = "engine"

    def state(self, config: Config) -> str | None:
        version = _version(host(config))
        if version is None:
            return None
        return f"{version}, {'private' if process.running(_places(config).pid) else 'of this machine'}"

    def start(self, config: Config) -> None:
        require("docker", "dockerd", "iptables")
        if os.geteuid() != 0:
            raise EngineError("no container engine answers: start Docker, or run this as root to start a private one")
        _clear_runtime(config)
        places = _places(config)
        process.spawn(_command(config), places, "")
        process.await_answer(places, lambda: "" if _version(_socket(config)) else "docker info fails", START_SECONDS)

    def stop(self, config: Config) -> None:
        """Ends the private engine with all its containers; an engine of this machine is not ours to stop."""
        if not _folder(config).exists():
            return
        if _version(_socket(config)) is None:
            self.start(config)  # containers outlive a killed engine, and only an engine can end them properly
        _remove_everything(config)
        process.stop(_places(config).pid)
        _end_remains(config)
        _unmount(config)
        shutil.rmtree(_folder(config))
        _places(config).log.unlink(missing_ok=True)

    def signal(self, config: Config, number: signal.Signals) -> None:
        """Reaches dockerd alone: its containers run on, and the next start takes them over."""
        if not process.send(_places(config).pid, number):
            raise EngineError("no private engine runs")

    def row(self, config: Config) -> part.Row:
        places = _places(config)
        record = process.running(places.pid)
        log = str(places.log) if places.log.exists() else ""
        return part.Row(pid=record.pid if record else None, address=host(config), log=log)

    def environment(self, config: Config) -> dict[str, str]:
        return {"DOCKER_HOST": host(config)}


def host(config: Config) -> str:
    """The address of the engine in use: the private one where it exists, else what the docker command would use."""
    private = _socket(config)
    if _socket_file(config).exists() or os.environ.get("DOCKER_HOST") == private:
        return private
    return _machine_host() or private


def answers(config: Config) -> bool:
    """Whether the engine in use does what it is told."""
    return _version(host(config)) is not None


def environment(config: Config) -> dict[str, str]:
    """The variables for commands that talk to the engine."""
    return {**os.environ, "DOCKER_HOST": host(config)}


def docker(config: Config, *arguments: str, seconds: float = 60.0) -> str:
    """Run a docker command; its output, or an EngineError with what it said."""
    return run(config, ("docker", *arguments), seconds=seconds)


def run(config: Config, command: Sequence[str], *, extra: dict[str, str] | None = None, seconds: float = 60.0) -> str:
    """Run a command that talks to the engine; the variables `extra` are added to its environment."""
    variables = {**environment(config), **(extra or {})}
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"{' '.join(command)}: no end after {seconds:.0f} s") from error
    except FileNotFoundError as error:
        raise EngineError(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        raise EngineError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout.strip()


def complaint(config: Config, *arguments: str, seconds: float = 60.0) -> str:
    """What a docker command says against it, "" when it works; for what may fail."""
    try:
        docker(config, *arguments, seconds=seconds)
    except EngineError as error:
        return str(error)
    return ""


def succeeds(config: Config, *arguments: str, seconds: float = 60.0) -> bool:
    """Whether a docker command works; for questions whose answer may be no."""
    return not complaint(config, *arguments, seconds=seconds)


def compose_command() -> tuple[str, ...]:
    """The compose that is there, as a plugin or as a program; installed where neither is."""
    plugin = ("docker", "compose")
    if subprocess.run((*plugin, "version"), capture_output=True, check=False).returncode == 0:
        return plugin
    require("docker-compose")
    return ("docker-compose",)


def require(*programs: str) -> None:
    """Install the Debian packages of the programs that are missing, or say which ones are."""
    missing = sorted({PACKAGES[program] for program in programs if shutil.which(program) is None})
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise EngineError(f"please install: {' '.join(missing)}")
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (("update",), ("install", "-y", "--no-install-recommends", *missing)):
        done = subprocess.run(("apt-get", *arguments), env=variables, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EngineError(f"apt-get {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")


def _folder(config: Config) -> pathlib.Path:
    return config.directory / "engine"


def _places(config: Config) -> process.Places:
    name = "engine"
    return process.Places(pid=config.pids / name, log=config.logs / f"{name}.log", home=_folder(config))


def _socket_file(config: Config) -> pathlib.Path:
    return _folder(config) / "docker.sock"


def _socket(config: Config) -> str:
    return f"unix://{_socket_file(config)}"


def _command(config: Config) -> tuple[str, ...]:
    folder = _folder(config)
    # The configuration file of this machine's own engine must not mix in: options given twice are refused.
    (folder / "daemon.json").write_text("{}\n")
    return (
        shutil.which("dockerd") or "dockerd",
        f"--config-file={folder / 'daemon.json'}",
        f"--data-root={config.cache / 'engine'}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'docker.pid'}",
        f"--host={_socket(config)}",
        "--live-restore",
        "--bridge=none",
        "--iptables=false",
        "--ip-forward=false",
        "--ip-masq=false",
        "--userland-proxy=false",
    )


def _version(address: str) -> str | None:
    command = ("docker", "--host", address, "info", "--format", "{{.ServerVersion}}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    version = done.stdout.strip()
    return version if done.returncode == 0 and version else None


def _machine_host() -> str | None:
    """The engine that the docker command reaches without our help, when it answers."""
    address = os.environ.get("DOCKER_HOST")
    if not address and shutil.which("docker"):
        command = ("docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
        address = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return address if address and _version(address) else None


def _clear_runtime(config: Config) -> None:
    """After a kill -9 or a reboot: no half-dead daemon, no pid file that may point at a stranger, no dead socket.

    A containerd that lives on is kept: it holds the containers, and the next dockerd takes it over.
    """
    process.stop(_places(config).pid)
    _folder(config).mkdir(parents=True, exist_ok=True)
    if not any(command.startswith("containerd ") for _, command in _private_processes(config)):
        (_folder(config) / "exec/containerd/containerd.pid").unlink(missing_ok=True)
    (_folder(config) / "docker.pid").unlink(missing_ok=True)
    _socket_file(config).unlink(missing_ok=True)


def _remove_everything(config: Config) -> None:
    """The engine is private: whatever it holds besides images belongs to this cluster."""
    for kind, forget in (("ps", "rm"), ("volume", "volume rm")):
        listing = ("ps", "--all", "--quiet") if kind == "ps" else ("volume", "ls", "--quiet")
        names = docker(config, *listing).split()
        if names:
            docker(config, *forget.split(), "--force", *names)


def _private_processes(config: Config) -> tuple[tuple[int, str], ...]:
    """(pid, command line) of dockerd, containerd and shims that work in our runtime folder."""
    marks = (f"{_folder(config)}/exec", f"--config-file={_folder(config)}/")
    return tuple((pid, line) for pid, line in _processes() if any(mark in line for mark in marks))


def _processes() -> Iterator[tuple[int, str]]:
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended while we looked
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            yield int(entry.name), " ".join([pathlib.Path(words[0]).name, *words[1:]])


def _end_remains(config: Config) -> None:
    """End containerd and the shims of containers, where a killed dockerd left them behind."""
    for pid, _ in _private_processes(config):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    waiting.until(lambda: " ".join(line for _, line in _private_processes(config)), STOP_SECONDS)


def _unmount(config: Config) -> None:
    """Mounts of containers that were killed together with their engine; the deepest first."""
    roots = (f"{_folder(config)}/", f"{config.cache / 'engine'}/")
    points = [line.split()[1].replace("\\040", " ") for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for point in sorted((point for point in points if f"{point}/".startswith(roots)), reverse=True):
        subprocess.run(("umount", "--lazy", point), check=True)
