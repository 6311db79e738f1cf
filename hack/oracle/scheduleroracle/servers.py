"""etcd and an API server of our own, in a temporary folder and on free ports, for the length of a run."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator

from localcluster import alone, api, certs, gomodules, kubeconfig, secret
from localcluster.config import Config

#: kube-scheduler's name as a client: it may read everything, and bind nothing.
READER = "oracle-scheduler"
#: Admission that needs controllers, or that would change nodes and claims behind the back of a case.
_NO_ADMISSION = ("ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection", "DefaultTolerationSeconds")


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
    with alone.prepared("slurm-bridge-oracle-", "kube-scheduler") as chosen:
        reader = _reader(chosen)
        with alone.running(chosen, _NO_ADMISSION):
            yield Servers(
                config=chosen,
                client=api.Client(chosen),
                kubeconfig=kubeconfig.of_client(chosen, "admin"),
                reader=reader,
            )


def _reader(chosen: Config) -> pathlib.Path:
    """The kubeconfig of kube-scheduler, whose token the API server is told beside those of the administrators."""
    tokens, token = certs.folder(chosen) / "tokens.csv", secret.random_token()
    secret.write(tokens, f"{tokens.read_text()}{token},{READER},{READER}\n")
    file = chosen.directory / "kubeconfig-scheduler"
    secret.write(file, kubeconfig.text(chosen, READER, token))
    return file
