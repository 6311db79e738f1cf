"""An API server that knows no other one: etcd and kube-apiserver in a temporary folder and on free ports."""

import contextlib
import dataclasses
import pathlib
import random
import socket
import tempfile
from collections.abc import Iterator, Sequence

from localcluster import config, gomodules, kubeconfig, kubernetes
from localcluster.config import Config
from localcluster.part import Part

_BINARIES = ("etcd", "kube-apiserver")
_LOWEST, _HIGHEST = 20_000, 32_000


class NotBuilt(Exception):
    """There are no binaries; the message names the command that makes them."""


@contextlib.contextmanager
def prepared(prefix: str, *binaries: str) -> Iterator[Config]:
    """A folder with certificates and kubeconfigs, removed at the end."""
    usual = Config.from_environment()
    lacking = [name for name in (*_BINARIES, *binaries) if not gomodules.binary(usual, name).exists()]
    if lacking:
        raise NotBuilt(f"{', '.join(lacking)}: not built yet; `make cluster-up` builds them")
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        chosen = Config(directory=pathlib.Path(folder), cache=usual.cache, port_base=_free_ports())
        kubeconfig.Credentials().start(chosen)
        yield chosen


@contextlib.contextmanager
def running(chosen: Config, without_admission: Sequence[str]) -> Iterator[None]:
    """They answer; at the end they are stopped."""
    disabled = f"--disable-admission-plugins={','.join(without_admission)}"
    api = dataclasses.replace(
        kubernetes.APISERVER, arguments=lambda of: [*kubernetes.APISERVER.arguments(of), disabled]
    )
    parts: tuple[Part, ...] = (kubernetes.ETCD, api)
    try:
        for part in parts:
            part.start(chosen)
        yield
    finally:
        for part in reversed(parts):
            part.stop(chosen)


def _free_ports() -> int:
    """Where the ports of a whole cluster are free, below those that the system gives to clients."""
    for base in random.sample(range(_LOWEST, _HIGHEST, 100), 50):
        if all(_free(base + offset) for offset in config.PORTS.values()):
            return base
    raise NotBuilt(f"no free ports from {_LOWEST} to {_HIGHEST}")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
