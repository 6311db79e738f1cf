"""The daemon's own identity: its service account with exactly the rights of `deploy/`, and a kubeconfig for it."""

import json
from typing import Any

from localcluster import api, applied, kubeconfig, manifests, secret, wait
from localcluster.config import PROJECT, Config

MANIFEST = PROJECT / "deploy" / "rbac.yaml"
#: The shipped Role opens one Lease, by its name; here several daemons run at once, each with a Lease of its own.
LEASES = PROJECT / "hack" / "cluster" / "leases.yaml"
NAMESPACE = "slurm-bridge-system"
#: Examples run there.
EXAMPLES = "slurm-bridge"
ACCOUNT = "slurm-bridge"
_YEAR = 365 * 24 * 3600
_SECONDS = 30.0


class Access:
    """Applied rights, a token that the API server accepts, and namespaces in which pods can be created."""

    name = "access"

    def state(self, config: Config) -> str | None:
        file = config.directory / kubeconfig.DAEMON
        if not file.exists() or not applied.is_current(config, self.name, _rights()):
            return None
        token = json.loads(file.read_text())["users"][0]["user"]["token"]
        valid = file.read_text() == _text(config, token) and _accepted(config, token)
        return f"{NAMESPACE}/{ACCOUNT}" if valid else None

    def start(self, config: Config) -> None:
        client = api.Client(config)
        for document in (*manifests.from_file(MANIFEST), *manifests.from_file(LEASES)):
            client.apply(document)
        for namespace in ("default", NAMESPACE, EXAMPLES):
            wait.until(lambda namespace=namespace: _no_default(client, namespace), _SECONDS)  # type: ignore[misc]
        secret.write(config.directory / kubeconfig.DAEMON, _text(config, _request_token(client)))
        applied.remember(config, self.name, _rights())

    def stop(self, config: Config) -> None:
        (config.directory / kubeconfig.DAEMON).unlink(missing_ok=True)
        applied.forget(config, self.name)

    def environment(self, config: Config) -> dict[str, str]:
        return {"KUBECONFIG_DAEMON": str(config.directory / kubeconfig.DAEMON), "DAEMON_NAMESPACE": NAMESPACE}


def _rights() -> str:
    return MANIFEST.read_text() + LEASES.read_text()


def _text(config: Config, token: str) -> str:
    return kubeconfig.text(config, ACCOUNT, token)


def _no_default(client: api.Client, namespace: str) -> str:
    """Pods are admitted only where the controller manager has made the default service account."""
    found = client.find(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    return "" if found else f"namespace {namespace} has no default service account yet"


def _request_token(client: api.Client) -> str:
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _YEAR},
    }
    answer: dict[str, Any] = client.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token", body)
    token: str = answer["status"]["token"]
    return token


def _accepted(config: Config, token: str) -> bool:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = api.Client(config).create("/apis/authentication.k8s.io/v1/tokenreviews", body)
    return bool(answer["status"].get("authenticated"))
