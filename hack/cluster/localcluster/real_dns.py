"""CoreDNS for the pods of real nodes: services of the cluster have names there, and nothing else has.

It listens on one more address of the machine's end of the cable: pods reach that, and it reaches the API server.
"""

import pathlib
from collections.abc import Mapping

from localcluster import certs, kubeconfig, probe, real_network, server
from localcluster.config import Config

DOMAIN = "cluster.local"
_READY_PORT = 8181


def _corefile(config: Config) -> pathlib.Path:
    return config.directory / "nodes" / "Corefile"


def _kubeconfig(config: Config) -> pathlib.Path:
    return certs.folder(config) / "kubeconfig-dns"


def _files(config: Config) -> Mapping[pathlib.Path, str]:
    identity = next(one for one in certs.identities(config) if one.name == certs.DNS)
    return {
        _corefile(config): configuration(config),
        _kubeconfig(config): kubeconfig.of_certificate(config, identity),
    }


def configuration(config: Config) -> str:
    """Answers are good for a second: a test does not wait for a new pod to be found."""
    return f"""{DOMAIN}:53 in-addr.arpa:53 {{
    bind {real_network.dns(config)}
    errors
    ready {real_network.dns(config)}:{_READY_PORT}
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {_kubeconfig(config)} local
        ttl 1
    }}
}}
"""


DNS = server.Server(
    name="real-dns",
    binary="coredns",
    arguments=lambda config: [f"-conf={_corefile(config)}"],
    files=_files,
    probe=lambda config: probe.http_ok(f"http://{real_network.dns(config)}:{_READY_PORT}/ready"),
    address=lambda config: f"{real_network.dns(config)}:53",
)
