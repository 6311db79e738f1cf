"""Kubeconfig files: JSON, which every YAML reader accepts; readable by their owner only, because a token is in them."""

import base64
import json
import pathlib
import shutil

from localcluster import certs, secret
from localcluster.config import PROJECT, Config

ADMIN = "kubeconfig"
DAEMON = "kubeconfig-daemon"


def url(config: Config) -> str:
    """Where the API server listens."""
    return f"https://127.0.0.1:{config.port('apiserver')}"


def of_client(config: Config, client: str) -> pathlib.Path:
    """Where the kubeconfig of one of the static clients is."""
    return config.directory / ADMIN if client == "admin" else certs.folder(config) / f"kubeconfig-{client}"


def text(config: Config, user: str, token: str) -> str:
    """A kubeconfig for one user."""
    return _text(config, user, {"token": token})


def of_certificate(config: Config, one: certs.Identity) -> str:
    """A kubeconfig for a client that shows a certificate."""
    files = {"client-certificate": f"{one.name}.crt", "client-key": f"{one.name}.key"}
    return _text(config, one.user, {field: certs.path(config, name) for field, name in files.items()})


def _text(config: Config, user: str, proof: dict[str, str]) -> str:
    authority = base64.b64encode(certs.authority(config)).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": url(config), "certificate-authority-data": authority}}],
        "users": [{"name": user, "user": proof}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
        "current-context": "local",
    }
    return json.dumps(document, indent=2) + "\n"


class Credentials:
    """Certificates, tokens, and a kubeconfig for every static client."""

    name = "credentials"

    def state(self, config: Config) -> str | None:
        if not certs.present(config) or certs.lacking(config):
            return None
        return "present" if all(_is_current(config, client) for client in certs.CLIENTS) else None

    def start(self, config: Config) -> None:
        if not certs.present(config):
            certs.make(config)
        for identity in certs.lacking(config):
            certs.identify(config, identity)
        for client in certs.CLIENTS:
            secret.write(of_client(config, client), text(config, client, certs.token(config, client)))

    def stop(self, config: Config) -> None:
        for client in certs.CLIENTS:
            of_client(config, client).unlink(missing_ok=True)
        shutil.rmtree(certs.folder(config), ignore_errors=True)

    def environment(self, config: Config) -> dict[str, str]:
        return {
            "KUBECONFIG": str(of_client(config, "admin")),
            "KUBECTL": str(PROJECT / "hack" / "cluster" / "kubectl"),
            "APISERVER_URL": url(config),
            "ETCD_URL": f"http://127.0.0.1:{config.port('etcd-client')}",
        }


def _is_current(config: Config, client: str) -> bool:
    file = of_client(config, client)
    return file.exists() and file.read_text() == text(config, client, certs.token(config, client))
