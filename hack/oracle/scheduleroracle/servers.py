"""etcd and an API server of our own, in a temporary folder and on free ports, for the length of a run."""

import contextlib
import dataclasses
import pathlib
import random
import socket
import tempfile
from collections.abc import Iterator, Sequence

from localcluster import api, certs, config, gomodules, kubeconfig, kubernetes, secret
from localcluster.config import Config

#: kube-scheduler's name as a client: it may read everything, and bind nothing.
READER = "oracle-scheduler"
_BINARIES = ("etcd", "kube-apiserver", "kube-scheduler")
#: Admission that needs controllers, or that would change nodes and claims behind the back of a case.
_NO_ADMISSION = ("ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection", "DefaultTolerationSeconds")
_LOWEST, _HIGHEST = 20_000, 32_000


class NotBuilt(Exception):
    """There are no binaries; the message names the command that makes them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Where they are."""

    config: Config
    client: api.Client
    kubeconfig: pathlib.Path
    reader: pathlib.Path

    @property
    def folder(self) -> pathlib.Path:
        return self.config.directory

    @property
    def scheduler(self) -> pathlib.Path:
        """The binary of kube-scheduler."""
        return gomodules.binary(self.config, "kube-scheduler")


@contextlib.contextmanager
def started() -> Iterator[Servers]:
    """They answer; at the end they are stopped and their folder is removed."""
    lacking = [name for name in _BINARIES if not gomodules.binary(Config.from_environment(), name).exists()]
    if lacking:
        raise NotBuilt(f"{', '.join(lacking)}: not built yet; `make cluster-up` builds what make oracle runs")
    with tempfile.TemporaryDirectory(prefix="slurm-bridge-oracle-") as folder:
        chosen = Config(directory=pathlib.Path(folder), cache=Config.from_environment().cache, port_base=_free_ports())
        kubeconfig.Credentials().start(chosen)
        reader = _reader(chosen)
        parts = (kubernetes.ETCD, dataclasses.replace(kubernetes.APISERVER, arguments=_apiserver))
        try:
            for part in parts:
                part.start(chosen)
            yield Servers(
                config=chosen,
                client=api.Client(chosen),
                kubeconfig=kubeconfig.of_client(chosen, "admin"),
                reader=reader,
            )
        finally:
            for part in reversed(parts):
                part.stop(chosen)


def _apiserver(chosen: Config) -> Sequence[str]:
    return [*kubernetes.APISERVER.arguments(chosen), f"--disable-admission-plugins={','.join(_NO_ADMISSION)}"]


def _reader(chosen: Config) -> pathlib.Path:
    """The kubeconfig of kube-scheduler, whose token the API server is told beside those of the administrators."""
    tokens, token = certs.folder(chosen) / "tokens.csv", secret.random_token()
    secret.write(tokens, f"{tokens.read_text()}{token},{READER},{READER}\n")
    file = chosen.directory / "kubeconfig-scheduler"
    secret.write(file, kubeconfig.text(chosen, READER, token))
    return file


def _free_ports() -> int:
    """Where the ports of a whole cluster are free, below those that the system gives to clients."""
    for base in random.sample(range(_LOWEST, _HIGHEST, 100), 50):
        if all(_free(base + offset) for offset in config.PORTS.values()):
            return base
    raise NotBuilt(f"no free ports from {_LOWEST} to {_HIGHEST}")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
