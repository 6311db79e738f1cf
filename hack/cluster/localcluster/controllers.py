"""JobSet and LeaderWorkerSet: their real controllers, run outside the cluster, with their real webhooks.

The manifests come out of the Go modules as they are published; only the webhooks are redirected, from a service in the
cluster to a port on loopback.
"""

import base64
import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from localcluster import api, applied, certs, gomodules, kubeconfig, manifests, probe, server, wait
from localcluster.config import Config

_CRD_SECONDS = 30.0
_SERVICE = re.compile(r"^    service:\n      name: .*\n      namespace: .*\n      path: (?P<path>\S+)\n", re.MULTILINE)
_WEBHOOK = re.compile(r"^  name: [a-z]+\.kb\.io\n", re.MULTILINE)
_POD_WEBHOOK = re.compile(r"^  name: [mv]pod\.kb\.io\n", re.MULTILINE)
_CONFIGURATION_NAME = re.compile(r"^  name: (?P<name>(mutating|validating)-webhook-configuration)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """A CRD that came out of a Go module, served in the version that was built."""

    name: str
    folder: str
    file: str
    resource: str

    def state(self, config: Config) -> str | None:
        found = api.Client(config).find(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.resource}")
        if found is None or _unserved(found):
            return None
        return self.resource if applied.is_current(config, self.name, self._document(config).text) else None

    def start(self, config: Config) -> None:
        client = api.Client(config)
        document = self._document(config)
        client.apply(document)
        wait.until(lambda: _unserved(client.get(document.path)), _CRD_SECONDS)
        applied.remember(config, self.name, document.text)

    def stop(self, config: Config) -> None:
        """It lives in etcd and goes with it."""

    def _document(self, config: Config) -> manifests.Document:
        (document,) = manifests.from_file(gomodules.manifest(config, self.folder, self.file))
        return document


def _unserved(definition: dict[str, Any]) -> str:
    listed = definition.get("status", {}).get("conditions") or []
    conditions = {entry["type"]: entry["status"] for entry in listed}
    return "" if conditions.get("Established") == "True" else "the CRD is not established yet"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """The webhook configurations of one controller; registered after it answers, or nothing could be created.

    `label`: of pods, only those with it are asked about. `namespaces`: of everything, only what is in a namespace with
    this label, because this controller has a say in what others make.
    """

    name: str
    folder: str
    port: str
    label: str = ""
    namespaces: str = ""

    def state(self, config: Config) -> str | None:
        client = api.Client(config)
        present = all(client.find(document.path) for document in self._documents(config))
        return self._url(config) if present and applied.is_current(config, self.name, self._text(config)) else None

    def start(self, config: Config) -> None:
        client = api.Client(config)
        for document in self._documents(config):
            client.delete(document.path)  # applying would keep entries that an older version named differently
            client.apply(document)
        applied.remember(config, self.name, self._text(config))

    def stop(self, config: Config) -> None:
        """They live in etcd and go with it."""

    def _url(self, config: Config) -> str:
        return f"https://127.0.0.1:{config.port(self.port)}"

    def _documents(self, config: Config) -> list[manifests.Document]:
        return list(manifests.documents(self._text(config)))

    def _text(self, config: Config) -> str:
        published = gomodules.manifest(config, self.folder, "manifests.yaml").read_text()
        return redirect(published, self, self._url(config), certs.authority(config))


def redirect(text: str, webhooks: Webhooks, url: str, authority: bytes) -> str:
    """The published manifest, with the service replaced by a URL, and limited to what is the controller's own."""
    bundle = base64.b64encode(authority).decode()
    text = _SERVICE.sub(lambda found: f"    url: {url}{found['path']}\n    caBundle: {bundle}\n", text)
    if webhooks.label:
        text = _POD_WEBHOOK.sub(lambda found: found[0] + _labelled("objectSelector", webhooks.label), text)
    if webhooks.namespaces:
        text = _WEBHOOK.sub(lambda found: found[0] + _labelled("namespaceSelector", webhooks.namespaces), text)
    return _CONFIGURATION_NAME.sub(lambda found: f"  name: {webhooks.folder}-{found['name']}", text)


def _labelled(field: str, label: str) -> str:
    return f"  {field}:\n    matchExpressions:\n    - key: {label}\n      operator: Exists\n"


def _configuration(config: Config, name: str, group: str) -> str:
    document = {
        "apiVersion": f"config.{group}/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 1000, "burst": 2000},
        "webhook": {
            "host": "127.0.0.1",
            "port": config.port(f"{name}-webhook"),
            "certDir": str(certs.folder(config)),
        },
        "metrics": {"bindAddress": f"127.0.0.1:{config.port(f'{name}-metrics')}"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{config.port(f'{name}-health')}"},
    }
    return json.dumps(document, indent=2) + "\n"


def controller(name: str, group: str) -> server.Server:
    """Both controllers are made by the same framework and differ in names only."""

    def file(config: Config) -> pathlib.Path:
        return config.directory / f"{name}.yaml"

    def arguments(config: Config) -> list[str]:
        return [
            f"--config={file(config)}",
            f"--kubeconfig={kubeconfig.of_client(config, name)}",
            "--zap-log-level=info",
        ]

    def files(config: Config) -> Mapping[pathlib.Path, str]:
        return {file(config): _configuration(config, name, group)}

    def ask(config: Config) -> str:
        """LWS says it is ready before its webhook listens: the port is asked as well."""
        ready = probe.http_ok(f"http://127.0.0.1:{config.port(f'{name}-health')}/readyz")
        return ready or probe.tcp_open(config.port(f"{name}-webhook"))

    return server.Server(
        name=name,
        binary=name,
        arguments=arguments,
        files=files,
        probe=ask,
        address=lambda config: f"https://127.0.0.1:{config.port(f'{name}-webhook')}",
    )


COSCHEDULING = Definitions(
    name="coscheduling-crd",
    folder="coscheduling",
    file="scheduling.x-k8s.io_podgroups.yaml",
    resource="podgroups.scheduling.x-k8s.io",
)
JOBSET = (
    Definitions(
        name="jobset-crd",
        folder="jobset",
        file="jobset.x-k8s.io_jobsets.yaml",
        resource="jobsets.jobset.x-k8s.io",
    ),
    controller("jobset", "jobset.x-k8s.io"),
    Webhooks(
        name="jobset-webhooks",
        folder="jobset",
        port="jobset-webhook",
        label="jobset.sigs.k8s.io/jobset-name",
    ),
)
LWS = (
    Definitions(
        name="lws-crd",
        folder="lws",
        file="leaderworkerset.x-k8s.io_leaderworkersets.yaml",
        resource="leaderworkersets.leaderworkerset.x-k8s.io",
    ),
    controller("lws", "lws.x-k8s.io"),
    Webhooks(
        name="lws-webhooks",
        folder="lws",
        port="lws-webhook",
        label="leaderworkerset.sigs.k8s.io/name",
    ),
)
