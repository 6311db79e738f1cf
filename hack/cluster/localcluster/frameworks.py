"""Controllers of frameworks that make pods: MPI operator, Kubeflow Trainer, KubeRay, Kueue and Argo Workflows.

They run outside the cluster as the administrator, each in one process without an election, and listen on loopback only.
Their definitions stay in etcd. Kueue has a say in pods and Jobs of others: it is asked only about namespaces with the
label MANAGED. Argo reads its configuration from a ConfigMap.
"""

import functools
import json
import pathlib
from collections.abc import Mapping, Sequence

from localcluster import api, certs, controllers, gomodules, kubeconfig, manifests, probe, server
from localcluster.config import Config
from localcluster.part import Part

#: The label of namespaces that Kueue manages.
MANAGED = "local-cluster/kueue"
_ARGO_NAMESPACE = "default"


def _definitions(folder: str) -> tuple[controllers.Definitions, ...]:
    """Of a module's files those that are named after a resource: GROUP_RESOURCE.yaml."""
    (module,) = (one for one in gomodules.FRAMEWORKS if one.folder == folder)
    found = []
    for path in module.manifests:
        group, _, resource = pathlib.PurePath(path).stem.partition("_")
        if resource:
            name, file = f"{folder}-{resource}-crd", f"{group}_{resource}.yaml"
            found.append(controllers.Definitions(name=name, folder=folder, file=file, resource=f"{resource}.{group}"))
    return tuple(found)


def _arguments(config: Config, *, rest: Sequence[str]) -> list[str]:
    return [f"--kubeconfig={kubeconfig.of_client(config, 'admin')}", *rest]


def _ready(config: Config, *, port: str) -> str:
    return probe.http_ok(f"http://127.0.0.1:{config.port(port)}/readyz")


def _health(config: Config, *, port: str) -> str:
    return f"http://127.0.0.1:{config.port(port)}"


def _silent(name: str, *rest: str) -> server.Server:
    """A controller that listens nowhere."""
    return server.Server(
        name=name,
        binary=name,
        arguments=functools.partial(_arguments, rest=rest),
        probe=lambda _config: "",
        address=lambda _config: "",
    )


def _probed(name: str, *rest: str) -> server.Server:
    """A controller that says when it is ready."""
    port = f"{name}-health"

    def arguments(config: Config) -> list[str]:
        return _arguments(config, rest=[f"--health-probe-bind-address=127.0.0.1:{config.port(port)}", *rest])

    return server.Server(
        name=name,
        binary=name,
        arguments=arguments,
        probe=functools.partial(_ready, port=port),
        address=functools.partial(_health, port=port),
    )


def _kueue_file(config: Config) -> pathlib.Path:
    return config.directory / "kueue.yaml"


def _kueue_files(config: Config) -> Mapping[pathlib.Path, str]:
    document = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{config.port('kueue-health')}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": config.port("kueue-webhook"), "certDir": str(certs.folder(config))},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "pod"]},
        "featureGates": {"TopologyAwareScheduling": False, "MultiKueue": False, "VisibilityOnDemand": False},
    }
    return {_kueue_file(config): json.dumps(document, indent=2) + "\n"}


KUEUE = server.Server(
    name="kueue",
    binary="kueue",
    arguments=lambda config: _arguments(config, rest=[f"--config={_kueue_file(config)}"]),
    files=_kueue_files,
    probe=functools.partial(_ready, port="kueue-health"),
    address=functools.partial(_health, port="kueue-health"),
)


class ArgoSettings:
    """The ConfigMap that the controller of Workflows reads when it starts; it says nothing, so that all is as usual."""

    name = "argo-settings"
    _document = manifests.Document(
        path=f"/api/v1/namespaces/{_ARGO_NAMESPACE}/configmaps/workflow-controller-configmap",
        text=json.dumps(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "workflow-controller-configmap", "namespace": _ARGO_NAMESPACE},
            }
        ),
    )

    def state(self, config: Config) -> str | None:
        return _ARGO_NAMESPACE if api.Client(config).find(self._document.path) is not None else None

    def start(self, config: Config) -> None:
        api.Client(config).apply(self._document)

    def stop(self, config: Config) -> None:
        """It lives in etcd and goes with it."""


#: Each chain starts beside the others.
CHAINS: tuple[tuple[Part, ...], ...] = (
    (*_definitions("mpi"), _silent("mpi")),
    (*_definitions("trainer"), _probed("trainer")),
    (*_definitions("kuberay"), _probed("kuberay", "--metrics-addr=0", "--enable-leader-election=false")),
    (
        *_definitions("kueue"),
        KUEUE,
        controllers.Webhooks(name="kueue-webhooks", folder="kueue", port="kueue-webhook", namespaces=MANAGED),
    ),
    (*_definitions("argo"), ArgoSettings(), _silent("argo", f"--namespace={_ARGO_NAMESPACE}")),
)


def stages(config: Config) -> tuple[tuple[tuple[Part, ...], ...], ...]:
    """What starts side by side; nothing unless it is asked for."""
    return (CHAINS,) if config.frameworks else ()
