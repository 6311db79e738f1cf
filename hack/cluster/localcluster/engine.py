"""The container engine: the one that answers on this machine, or a private dockerd where none does."""

import os
import pathlib
import shutil
import signal
import subprocess
from collections.abc import Sequence

from localcluster import dockerd, lock, packages, part, process
from localcluster.config import Config


class EngineError(part.PartError):
    """No engine answers and none can be started, or the engine refused something."""


class Engine:
    """The part that all containers need."""

    name = "engine"

    def state(self, config: Config) -> str | None:
        version = _version(host(config))
        if version is None:
            return None
        if host(config) != dockerd.address(config):
            return f"{version}, of this machine"
        return f"{version}, private" if dockerd.is_own(config) else f"{version}, of {dockerd.home(config).parent}"

    def start(self, config: Config) -> None:
        """Under the lock of the cache, because a neighbour may need an engine at the same moment."""
        with lock.exclusive(config.cache, self.name):
            if self.state(config) is None:
                _start_private(config)

    def stop(self, config: Config) -> None:
        """Ends the private engine with all its containers; that of a neighbour or of this machine is not ours."""
        with lock.exclusive(config.cache, self.name):
            if not dockerd.is_own(config) or not dockerd.home(config).exists():
                return
            if _version(dockerd.address(config)) is None:
                _start_private(config)  # containers outlive a killed engine, and only an engine can end them properly
            require_no_borrowers(config)
            _remove_everything(config)
            dockerd.end(config)

    def signal(self, config: Config, number: signal.Signals) -> None:
        """Reaches dockerd alone: its containers run on, and the next start takes them over."""
        if not dockerd.is_own(config) or not process.send(dockerd.places(config).pid, number):
            raise EngineError("no private engine of this cluster runs")

    def row(self, config: Config) -> part.Row:
        if host(config) != dockerd.address(config):
            return part.Row(address=host(config))
        places = dockerd.places(config)
        record = process.running(places.pid)
        log = str(places.log) if places.log.exists() else ""
        return part.Row(pid=record.pid if record else None, address=host(config), log=log)

    def environment(self, config: Config) -> dict[str, str]:
        return {"DOCKER_HOST": host(config)}


def host(config: Config) -> str:
    """The address of the engine in use: the private one where it exists, else what the docker command would use."""
    private = dockerd.address(config)
    if dockerd.socket_file(config).exists() or os.environ.get("DOCKER_HOST") == private:
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
    packages.require(packages.COMPOSE)
    return ("docker", "compose") if packages.has_compose_plugin() else ("docker-compose",)


def _start_private(config: Config) -> None:
    if os.geteuid() != 0:
        raise EngineError("no container engine answers: start Docker, or run this as root to start a private one")
    packages.require(packages.DOCKER, packages.DOCKERD, packages.IPTABLES)
    dockerd.start(config, lambda: "" if _version(dockerd.address(config)) else "docker info fails")


def require_no_borrowers(config: Config) -> None:
    """An engine that neighbours work with cannot end under them; those whose folder is gone do not count."""
    if not dockerd.is_own(config) or _version(dockerd.address(config)) is None:
        return
    folders = sorted(str(folder) for folder in _tenants(config) if folder != config.directory)
    if folders:
        raise EngineError(f"other clusters use the engine of this one, stop them first: {', '.join(folders)}")


def _tenants(config: Config) -> set[pathlib.Path]:
    """The folders of all clusters that have containers here, told by the configuration that is mounted into them."""
    names = docker(config, "ps", "--all", "--quiet").split()
    if not names:
        return set()
    sources = docker(config, "inspect", "--format", "{{range .Mounts}}{{println .Source}}{{end}}", *names)
    folders = {pathlib.Path(line).parents[1] for line in sources.splitlines() if line.endswith("/slurm/conf")}
    return {folder for folder in folders if (folder / "config.json").exists()}


def _remove_everything(config: Config) -> None:
    """Whatever else the engine holds besides images has no owner any more."""
    for listing, forget in ((("ps", "--all"), ("rm",)), (("volume", "ls"), ("volume", "rm"))):
        names = docker(config, *listing, "--quiet").split()
        if names:
            docker(config, *forget, "--force", *names)


def _version(address: str) -> str | None:
    """None also while its containerd is away: dockerd finds a new one after many seconds, a new dockerd at once."""
    command = ("docker", "--host", address, "info", "--format", "{{.ServerVersion}} {{.ContainerdCommit.ID}}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    version, _, containerd = done.stdout.strip().partition(" ")
    return version if done.returncode == 0 and version and containerd != "N/A" else None


def _machine_host() -> str | None:
    """The engine that the docker command reaches without our help, when it answers."""
    address = os.environ.get("DOCKER_HOST")
    if not address and shutil.which("docker"):
        command = ("docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
        address = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return address if address and _version(address) else None
