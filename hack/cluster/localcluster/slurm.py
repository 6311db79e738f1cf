"""The Slurm servers, each in a container of its own, and what they hold from the start (a reservation, accounts).

The container is the server: killing it is a SIGKILL that saves nothing, `docker start` brings the same state
directory back within a second, and pausing freezes it. Compose makes containers; everything after that is plain
`docker`, because compose takes a second for what docker does in a tenth.
"""

import contextlib
import dataclasses
import http.client
import json
import signal
import socket
from collections.abc import Callable
from typing import Any

from localcluster import accounting, engine, hosts, image, part, process, slurm_files, wait
from localcluster.config import PROJECT, Config

READY_SECONDS = 90.0
REMOVE_SECONDS = 30.0
RECOVERY_SECONDS = 5.0
READ_SECONDS = 5.0
EXECUTE_SECONDS = 20.0
API_VERSION = "v0.0.45"
RESERVATION = "held"
#: Without bob: the user that is refused.
RESERVATION_USERS = "alice,slurm-bridge"

#: On every container: what it was made from.
LABEL = "slurm-bridge.configuration"

#: What tests may do to a server, as the docker command that does it.
SIGNALS = {
    signal.SIGKILL: ("kill", "--signal=KILL"),
    signal.SIGTERM: ("stop",),
    signal.SIGSTOP: ("pause",),
    signal.SIGCONT: ("unpause",),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One service of compose.yaml."""

    service: str
    complaint: Callable[[Config], str]  # "" when it answers
    prepare_disk: Callable[[Config], None] | None = None  # before a new container finds its old disk
    fill: Callable[[Config], None] | None = None  # what it has to hold before its first use
    optional: bool = False  # runs only with accounting
    image: Callable[[], str] = image.tag

    @property
    def name(self) -> str:
        return self.service

    def state(self, config: Config) -> str | None:
        facts = _inspect(config, self.service)
        if not self._wanted(config):
            return None if facts else "off"
        if not self._fits(facts, config) or facts["State"]["Status"] != "running" or self.complaint(config):
            return None
        return self.address(config)

    def start(self, config: Config) -> None:
        """A container of the present configuration starts again with its old disk; any other is made anew."""
        if self.state(config) is not None:
            return
        if not self._wanted(config):
            self.stop(config)
            return
        fits = self._fits(_inspect(config, self.service), config)
        if not (fits and self._recovers(config)):
            self._launch(config, fits=fits)
        if self.fill is not None:
            self.fill(config)

    def _recovers(self, config: Config) -> bool:
        """A frozen one goes on, one whose engine was just repaired is found again; both sooner than it starts anew."""
        name, status = container(config, self.service), _inspect(config, self.service)["State"]["Status"]
        if status == "paused":
            engine.succeeds(config, "unpause", name)
        elif status != "running":
            return False
        try:
            wait.until(lambda: self.complaint(config), RECOVERY_SECONDS)
        except part.PartError:
            return False
        return True

    def _launch(self, config: Config, *, fits: bool) -> None:
        if fits and _halted(config, self.service):
            engine.docker(config, "start", container(config, self.service))
        else:
            self.stop(config)
            if self.prepare_disk is not None:
                self.prepare_disk(config)
            self.make(config)
        self._await(config)

    def make(self, config: Config) -> None:
        """A new container, started."""
        _compose(config, "up", "--detach", "--no-deps", self.service)

    def address(self, config: Config) -> str:
        """Where it listens."""
        return f"127.0.0.1:{config.port(self.service)}"

    def stop(self, config: Config) -> None:
        """Gently, so that the state is saved; the disk stays until the folder goes."""
        facts = _inspect(config, self.service)
        name = container(config, self.service)
        if facts.get("State", {}).get("Status") == "running":
            engine.succeeds(config, "stop", name)
        if facts:
            # An engine that has just lost its containerd needs more than one attempt.
            wait.until(lambda: engine.complaint(config, "rm", "--force", name), REMOVE_SECONDS)

    def signal(self, config: Config, number: signal.Signals) -> None:
        engine.docker(config, *SIGNALS[number], container(config, self.service))

    def row(self, config: Config) -> part.Row:
        facts = _inspect(config, self.service)
        pid = int(facts["State"]["Pid"]) if facts else 0
        log = slurm_files.logs(config) / f"{self.service}.log"
        return part.Row(pid=pid or None, address=self.address(config), log=str(log) if log.exists() else "")

    def environment(self, config: Config) -> dict[str, str]:
        return environment(config) if self.service == "slurmrestd" else {}

    def _fits(self, facts: dict[str, Any], config: Config) -> bool:
        """Whether a container was made from the present image and files; False when there is no container."""
        if not facts:
            return False
        made = facts["Config"]
        label = made["Labels"].get(LABEL)
        return bool(made["Image"] == self.image() and label == slurm_files.fingerprint(config))

    def _wanted(self, config: Config) -> bool:
        return config.accounting or not self.optional

    def _await(self, config: Config) -> None:
        def complaint() -> str:
            if _inspect(config, self.service)["State"]["Status"] == "exited":
                raise part.PartError(f"{self.service} ended by itself")
            return self.complaint(config)

        try:
            wait.until(complaint, READY_SECONDS)
        except part.PartError as error:
            log = slurm_files.logs(config) / f"{self.service}.log"
            raise part.PartError(f"{error}\n{process.quote(log)}") from error


def environment(config: Config) -> dict[str, str]:
    """Where tests find the servers; tokens by the names of their files."""
    tokens = slurm_files.token_files(config)
    return {
        "SLURMRESTD_URL": f"http://127.0.0.1:{config.port('slurmrestd')}",
        "SLURMRESTD_SOCKET": str(slurm_files.socket_file(config)),
        "SLURM_TOKEN_FILE": str(tokens[slurm_files.OPERATOR]),
        "SLURM_TOKEN_FILE_USER": str(tokens[slurm_files.USER]),
        "SLURM_EXEC": str(PROJECT / "hack" / "cluster" / "slurm-exec"),
    }


def container(config: Config, service: str) -> str:
    """The name of a service's container."""
    return f"{slurm_files.prefix(config)}-{service}"


def execute(config: Config, service: str, *command: str) -> str:
    """Run a Slurm command beside a server, as root."""
    return engine.docker(config, "exec", container(config, service), *command, seconds=EXECUTE_SECONDS)


def _compose(config: Config, *arguments: str) -> None:
    options = ("--project-name", slurm_files.prefix(config), "--file", str(slurm_files.COMPOSE_FILE))
    command = (*engine.compose_command(), *options)
    variables = {
        "SLURM_IMAGE": image.tag(),
        "SLURM_CONFIGURATION": slurm_files.fingerprint(config),
        "SLURM_PREFIX": slurm_files.prefix(config),
        "SLURM_FOLDER": str(slurm_files.folder(config)),
        "SLURM_LOGS": str(slurm_files.logs(config)),
        "SLURMRESTD_PLUGINS": "slurmctld,slurmdbd" if config.accounting else "slurmctld",
        "SLURMRESTD_PORT": str(config.port("slurmrestd")),
        "MARIADB_PORT": str(config.port("mariadb")),
    }
    engine.run(config, (*command, *arguments), extra=variables)


def _halted(config: Config, service: str) -> bool:
    """A container that hangs or is frozen is killed: it would not hear anything milder. False when that fails."""
    name, status = container(config, service), _inspect(config, service)["State"]["Status"]
    if status == "paused" and not engine.succeeds(config, "unpause", name):
        return False
    return status not in ("running", "paused") or engine.succeeds(config, "kill", name)


def _inspect(config: Config, service: str) -> dict[str, Any]:
    """What the engine knows of a container; empty when there is none (or no engine)."""
    arguments = ("container", "ls", "--all", "--filter", f"name=^{container(config, service)}$", "--quiet")
    if not engine.answers(config) or not engine.docker(config, *arguments):
        return {}
    facts: list[dict[str, Any]] = json.loads(engine.docker(config, "inspect", container(config, service)))
    return facts[0]


def _slurmctld_complaint(config: Config) -> str:
    try:
        answer = execute(config, "slurmctld", "scontrol", "ping")
    except engine.EngineError as error:
        return str(error)
    return "" if "is UP" in answer else answer


def _slurmrestd_complaint(config: Config) -> str:
    """A read that needs slurmctld: `ping` answers 200 whatever the token is and whether slurmctld works or not."""
    token = slurm_files.token_files(config)[slurm_files.OPERATOR].read_text().strip()
    connection = http.client.HTTPConnection("127.0.0.1", config.port("slurmrestd"), timeout=READ_SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("GET", f"/slurm/{API_VERSION}/licenses/", headers={"X-SLURM-USER-TOKEN": token})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return f"slurmrestd: {error}"
    return "" if status == http.HTTPStatus.OK else f"slurmrestd: status {status}"


def _mariadb_complaint(config: Config) -> str:
    """A database that serves greets first."""
    try:
        with socket.create_connection(("127.0.0.1", config.port("mariadb")), timeout=READ_SECONDS) as connection:
            return "" if connection.recv(1) else "mariadb: no greeting"
    except OSError as error:
        return f"mariadb: {error}"


def _slurmdbd_complaint(config: Config) -> str:
    command = ("sacctmgr", "--noheader", "show", "cluster")
    return engine.complaint(config, "exec", container(config, "slurmdbd"), *command, seconds=EXECUTE_SECONDS)


def _create_reservation(config: Config) -> None:
    """For ever, and without killing what runs on the node or in it."""
    if RESERVATION in execute(config, "slurmctld", "scontrol", "--oneliner", "show", "reservation"):
        return
    execute(
        config,
        "slurmctld",
        *("scontrol", "create", "reservation", f"ReservationName={RESERVATION}", "StartTime=now"),
        *("Duration=UNLIMITED", f"Users={RESERVATION_USERS}", f"Nodes={reserved_node(config)}"),
        "Flags=FLEX,IGNORE_JOBS",
    )


def reserved_node(config: Config) -> str:
    """The last plain machine."""
    return [machine for machine in hosts.slurm_nodes(config) if machine.features[0] == "plain"][-1].slurm_name


def _forget_cluster_id(config: Config) -> None:
    """A slurmctld that ran without accounting chose its own id, and would refuse the one that slurmdbd gives it."""
    volume = f"{slurm_files.prefix(config)}_state"
    if config.accounting and engine.succeeds(config, "volume", "inspect", volume):
        command = ("run", "--rm", "--network=none", "--log-driver=none", f"--volume={volume}:/state", "--entrypoint=rm")
        engine.docker(config, *command, image.tag(), "--force", "/state/clustername")


def _create_accounts(config: Config) -> None:
    accounting.fill(lambda *command: execute(config, "slurmdbd", *command))


MARIADB = Server(service="mariadb", complaint=_mariadb_complaint, optional=True)
SLURMDBD = Server(service="slurmdbd", complaint=_slurmdbd_complaint, fill=_create_accounts, optional=True)
SLURMCTLD = Server(
    service="slurmctld", complaint=_slurmctld_complaint, prepare_disk=_forget_cluster_id, fill=_create_reservation
)
SLURMRESTD = Server(service="slurmrestd", complaint=_slurmrestd_complaint)

#: The Slurm half in starting order: each needs the ones before it.
PARTS: tuple[part.Part, ...] = (
    engine.Engine(),
    image.Image(),
    slurm_files.SlurmFiles(),
    MARIADB,
    SLURMDBD,
    SLURMCTLD,
    SLURMRESTD,
)
