"""The machine below a real node: a mount namespace, a control group, and a folder that outlives its reboots.

A node's containerd, shims, kubelet and pods are in the group and see the namespace. Killing the machine ends them all
at once, as a power cut does; what they wrote to the folder is there when it starts again.
"""

import dataclasses
import pathlib
import shutil
import signal
import subprocess
from collections.abc import Sequence

from localcluster import cgroups, hosts, process, real_network, slurm_files
from localcluster.config import Config
from localcluster.part import PartError, Row

_SECONDS = 15.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One of them; they count from 1."""

    number: int

    @property
    def node(self) -> str:
        return f"real{self.number}"

    @property
    def name(self) -> str:
        return f"{self.node}-machine"

    def folder(self, config: Config) -> pathlib.Path:
        """What the node writes."""
        return config.directory / "nodes" / self.node

    def group(self, config: Config) -> str:
        """The control group of the node: its pods are below it."""
        return f"{slurm_files.prefix(config)}/{self.node}"

    def places(self, config: Config) -> process.Places:
        return process.Places(
            pid=config.pids / f"{self.name}.json",
            log=config.logs / f"{self.name}.log",
            home=config.directory / "home",
        )

    def state(self, config: Config) -> str | None:
        record = process.running(self.places(config).pid)
        if record is None or record.fingerprint != self._fingerprint(config) or self._booting(config):
            return None
        return f"{self._host(config).cpus} CPUs, {self._host(config).memory_mib} MiB"

    def start(self, config: Config) -> None:
        """From whatever a killed one left: its processes go first. One that runs as configured is not rebooted."""
        if self.state(config) is not None:
            return
        self._halt(config)
        self.folder(config).mkdir(parents=True, exist_ok=True)
        cgroups.make(self._system(config))
        command = ("/usr/bin/unshare", "--mount", "--propagation=private", *self._script(config))
        process.spawn(command, self.places(config), self._fingerprint(config))
        process.await_answer(self.places(config), lambda: self._booting(config), _SECONDS)

    def stop(self, config: Config) -> None:
        """With everything that runs on it; its disk goes, too."""
        self._halt(config)
        shutil.rmtree(self.folder(config), ignore_errors=not self.folder(config).exists())

    def signal(self, config: Config, number: signal.Signals) -> None:
        """A kill is a power cut."""
        if number != signal.SIGKILL:
            raise PartError("a machine can only be killed")
        if process.running(self.places(config).pid) is None:
            raise PartError(f"{self.name} does not run")
        self._halt(config)

    def row(self, config: Config) -> Row:
        record = process.running(self.places(config).pid)
        return Row(pid=record.pid if record else None, log=str(self.places(config).log))

    def enter(self, config: Config) -> Sequence[str]:
        """The words that a command on this node begins with; the network is that of the pods."""
        return self._inside(config, f"--net={real_network.namespace(config)}")

    def enter_beside_network(self, config: Config) -> Sequence[str]:
        """The same with the network of the machine that the cluster runs on: the API server is there."""
        return self._inside(config)

    def run(self, config: Config, *command: str, seconds: float = 60.0) -> str:
        """What a command on this node says; PartError when it fails."""
        words = [*self.enter(config), *command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
        if done.returncode:
            raise PartError(f"{' '.join(command)} on {self.node}: {(done.stderr or done.stdout).strip()[-1000:]}")
        return done.stdout

    def root(self, config: Config) -> pathlib.Path:
        """Its file system, seen from outside."""
        record = process.running(self.places(config).pid)
        return pathlib.Path(f"/proc/{record.pid if record else 0}/root")

    def _inside(self, config: Config, *options: str) -> Sequence[str]:
        files = map(str, cgroups.procs(self._system(config)))
        mounts = self.root(config).with_name("ns") / "mnt"
        return ("/bin/sh", str(real_network.SCRIPTS / "inside"), *files, "--", f"--mount={mounts}", *options)

    def _system(self, config: Config) -> str:
        return f"{self.group(config)}/system"

    def _host(self, config: Config) -> hosts.Host:
        return hosts.real_nodes(config)[self.number - 1]

    def _script(self, config: Config) -> list[str]:
        files = map(str, cgroups.procs(self._system(config)))
        folder, cpus = str(self.folder(config)), str(self._host(config).cpus)
        return [str(real_network.SCRIPTS / "machine"), folder, cpus, *files]

    def _fingerprint(self, config: Config) -> str:
        script = (real_network.SCRIPTS / "machine").read_text()
        return f"{real_network.namespace(config)} {self._host(config)} {script}"

    def _booting(self, config: Config) -> str:
        return "" if (self.root(config) / "run" / "booted").exists() else "it is still booting"

    def _halt(self, config: Config) -> None:
        cgroups.end(self.group(config))
        process.stop(self.places(config).pid)
