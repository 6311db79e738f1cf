"""The control plane: etcd, the API server, the controller manager, and KWOK in place of kubelets."""

import json
import pathlib
import shutil
from collections.abc import Callable, Mapping

from localcluster import certs, kubeconfig, nodes, probe, process, progress, server
from localcluster.config import PROJECT, Config
from localcluster.part import PartError

STAGES = PROJECT / "hack" / "cluster" / "kwok"
#: Pods and PodGroups of the built-in API (scheduling.k8s.io/v1alpha2). The controller manager needs it as well, or
#: deleted PodGroups hang on their protection finalizer.
_GATES = "--feature-gates=GenericWorkload=true"
#: KWOK beats every few minutes, as real kubelets report their status; a thousand nodes must not cost a core.
_NODE_GRACE = "30m"


def _http(name: str, path: str, *, tls: bool) -> Callable[[Config], str]:
    """The question "are you well?" on one of our ports."""

    def ask(config: Config) -> str:
        scheme, authority = ("https", certs.path(config, "ca.crt")) if tls else ("http", None)
        if authority and not pathlib.Path(authority).exists():
            return "no certificates yet"
        return probe.http_ok(f"{scheme}://127.0.0.1:{config.port(name)}{path}", authority)

    return ask


def _address(scheme: str, name: str) -> Callable[[Config], str]:
    return lambda config: f"{scheme}://127.0.0.1:{config.port(name)}"


def _etcd(config: Config) -> list[str]:
    client, peer = (f"http://127.0.0.1:{config.port(name)}" for name in ("etcd-client", "etcd-peer"))
    return [
        "--name=local",
        f"--data-dir={config.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        "--unsafe-no-fsync",  # a test cluster may lose its data with the power, but not wait for the disk
        "--quota-backend-bytes=8589934592",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=5m",
        "--log-level=warn",
    ]


def _apiserver(config: Config) -> list[str]:
    def secret(name: str) -> str:
        return certs.path(config, name)

    return [
        f"--etcd-servers=http://127.0.0.1:{config.port('etcd-client')}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # loopback may not be an endpoint, and nothing looks for the service
        f"--secure-port={config.port('apiserver')}",
        f"--tls-cert-file={secret('serving.crt')}",
        f"--tls-private-key-file={secret('serving.key')}",
        f"--client-ca-file={secret('ca.crt')}",
        f"--token-auth-file={secret('tokens.csv')}",
        "--authorization-mode=RBAC",
        f"--service-account-key-file={secret('service-account.key')}",
        f"--service-account-signing-key-file={secret('service-account.key')}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--requestheader-client-ca-file={secret('requestheader-ca.crt')}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-allowed-names=front-proxy-client",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
        _GATES,
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1000",
        "--profiling=false",
        *(_kubelet_access(config) if config.real_nodes else ()),
    ]


def _kubelet_access(config: Config) -> list[str]:
    """For logs and commands in pods of real nodes, whose names no resolver knows."""
    return [
        f"--kubelet-client-certificate={certs.path(config, f'{certs.KUBELET_CLIENT}.crt')}",
        f"--kubelet-client-key={certs.path(config, f'{certs.KUBELET_CLIENT}.key')}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _controller_manager(config: Config) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig.of_client(config, 'controller-manager')}",
        "--bind-address=127.0.0.1",
        f"--secure-port={config.port('controller-manager')}",
        f"--tls-cert-file={certs.path(config, 'serving.crt')}",
        f"--tls-private-key-file={certs.path(config, 'serving.key')}",
        f"--root-ca-file={certs.path(config, 'ca.crt')}",
        f"--service-account-private-key-file={certs.path(config, 'service-account.key')}",
        "--controllers=*,-nodeipam",  # it wants a CIDR per node, and KWOK hands out addresses by itself
        "--leader-elect=false",
        _GATES,
        f"--node-monitor-grace-period={_NODE_GRACE}",
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        "--concurrent-job-syncs=20",
        "--profiling=false",
    ]


def _kwok(config: Config) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig.of_client(config, 'kwok')}",
        f"--config={_kwok_config(config)}",
        f"--manage-nodes-with-label-selector=!{nodes.REAL}" if config.real_nodes else "--manage-all-nodes=true",
        "--node-ip=127.0.0.1",
        "--cidr=10.64.0.0/14",
        # No leases: after a kill, a new KWOK would wait for those of the old one before it touches a node.
        "--node-lease-duration-seconds=0",
        f"--server-address=127.0.0.1:{config.port('kwok')}",
        "--v=WARN",  # it says a line per write otherwise
    ]


def _kwok_config(config: Config) -> pathlib.Path:
    return config.directory / "kwok.yaml"


def _kwok_files(config: Config) -> Mapping[pathlib.Path, str]:
    """One file: options first, then our stages, which replace the default ones altogether."""
    options = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {"podPlayStageParallelism": 16, "nodePlayStageParallelism": 16},
    }
    documents = [json.dumps(options), *(file.read_text() for file in sorted(STAGES.glob("*.yaml")))]
    return {_kwok_config(config): "\n---\n".join(documents)}


class Etcd(server.Server):
    """etcd forgets nothing but what a power cut took from it: then it starts empty, and the other parts fill it."""

    __slots__ = ()

    def start(self, config: Config) -> None:
        data = config.directory / "etcd"
        was_cut_off = process.is_of_another_boot(self.places(config).pid)
        try:
            super().start(config)
        except PartError:
            if not was_cut_off:
                raise
            progress.say(self.name, "its data did not survive the unclean end of the machine: starting empty")
            shutil.rmtree(data)
            super().start(config)


ETCD = Etcd(
    name="etcd",
    binary="etcd",
    arguments=_etcd,
    probe=_http("etcd-client", "/health", tls=False),
    address=_address("http", "etcd-client"),
)
APISERVER = server.Server(
    name="kube-apiserver",
    binary="kube-apiserver",
    arguments=_apiserver,
    probe=_http("apiserver", "/readyz", tls=True),
    address=_address("https", "apiserver"),
    seconds=120,
)
CONTROLLER_MANAGER = server.Server(
    name="kube-controller-manager",
    binary="kube-controller-manager",
    arguments=_controller_manager,
    probe=_http("controller-manager", "/healthz", tls=True),
    address=_address("https", "controller-manager"),
)
KWOK = server.Server(
    name="kwok",
    binary="kwok",
    arguments=_kwok,
    files=_kwok_files,
    probe=_http("kwok", "/healthz", tls=False),
    address=_address("http", "kwok"),
)
