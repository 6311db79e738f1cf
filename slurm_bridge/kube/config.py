"""Where the API server is and our identity there, read by the `kubernetes` package so that every kubeconfig works.

The package's loaders know kubeconfig merging, exec plugins, service accounts and their rotation; its REST client is
not used. Three things are done differently here: client keys given inline never stay on disk, errors never quote the
kubeconfig (the package's messages contain whole user entries), and proxies come from the kubeconfig alone.
"""

import dataclasses
import ssl
import tempfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path

import kubernetes.config
import yaml
from kubernetes.client import Configuration
from kubernetes.config import incluster_config
from kubernetes.utils import keepalive

from slurm_bridge import errors
from slurm_bridge.runtime.http import connections
from slurm_bridge.runtime.http.messages import HttpAnswer, HttpLimits, HttpPool

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: What the package lets through when a kubeconfig is not shaped as it expects.
_MISSHAPEN = (
    kubernetes.config.ConfigException,
    yaml.YAMLError,
    OSError,
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
)


class Access:
    """One API server and our identity there; its repr never shows more than the address."""

    def __init__(self, load: Callable[[Path], Configuration], source: str) -> None:
        self._load = load
        self._source = source
        with tempfile.TemporaryDirectory() as keys:
            self._configuration = self._read(Path(keys))
            self._tls = self._trust(ourselves=True)
            self._anonymous_tls = self._trust(ourselves=False)
        self.server = connections.Endpoint(
            url=self._configuration.host,
            proxy=self._configuration.proxy or "",
            tls=self._tls,
            tls_name=self._configuration.tls_server_name,
            socket_options=keepalive.tcp_keepalive_socket_options(),
        )
        try:
            self.server.check()
        except ValueError:
            raise errors.BadConfiguration(f"{source} names no address of an API server") from None
        if self._tls and not (self._configuration.cert_file or self.headers()):
            raise errors.BadConfiguration(f"{source} gives neither a token nor a client certificate")

    def __repr__(self) -> str:
        return f"Access({self.server})"

    @property
    def prefix(self) -> str:
        """What stands before every path, where the API server shares its host."""
        return self.server.prefix

    def headers(self) -> Mapping[str, str]:
        """Our identity, for the next request; a mounted token is read again every minute by the package."""
        try:
            words = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        except (kubernetes.config.ConfigException, OSError):
            raise errors.BadConfiguration(f"the token of {self._source} cannot be read") from None
        return {"authorization": words.strip()} if words else {}

    def renewed(self, answer: HttpAnswer, _: Mapping[str, str]) -> bool:
        """After a 401 credentials are read again; whatever they are then, they are worth one more request."""
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return False
        with tempfile.TemporaryDirectory() as keys:
            self._configuration = self._read(Path(keys))
        return True

    def pool(self, limits: HttpLimits, now: connections.Now, *, endless: bool = False) -> HttpPool:
        """A new pool of connections to this server, with TCP keepalive."""
        return connections.KeptConnections(self.server, limits, now, endless=endless)

    def anonymous_pool(self, limits: HttpLimits, now: connections.Now, *, endless: bool = False) -> HttpPool:
        """Likewise, without our client certificate: for requests that bring their own identity."""
        server = dataclasses.replace(self.server, tls=self._anonymous_tls)
        return connections.KeptConnections(server, limits, now, endless=endless)

    def _read(self, keys: Path) -> Configuration:
        try:
            return self._load(keys)
        except _MISSHAPEN as error:
            # Not chained: messages and tracebacks of the package quote users with their tokens.
            detail = str(error).partition("{")[0] if isinstance(error, kubernetes.config.ConfigException) else ""
            raise errors.BadConfiguration(f"{self._source} cannot be used: {detail or type(error).__name__}") from None

    def _trust(self, *, ourselves: bool) -> ssl.SSLContext | None:
        """The TLS side of the configuration; None for plain http."""
        wanted = self._configuration
        if not wanted.host.startswith("https://"):
            return None
        try:
            context = ssl.create_default_context(cafile=wanted.ssl_ca_cert)
            if wanted.cert_file and ourselves:
                context.load_cert_chain(wanted.cert_file, wanted.key_file)
        except OSError as error:
            raise errors.BadConfiguration(f"a certificate or key of {self._source} cannot be used: {error}") from None
        # Strict checks, on by default from Python 3.13, refuse the certificates of many running clusters.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not wanted.verify_ssl:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def from_kubeconfig(path: Path, *, context: str | None = None) -> Access:
    """What kubectl would use with this file."""

    def load(keys: Path) -> Configuration:
        configuration = _blank()
        kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(path),
            context=context,
            client_configuration=configuration,
            persist_config=False,
            temp_file_path=str(keys),
        )
        return configuration

    return Access(load, f"kubeconfig {path}")


def in_cluster(*, folder: Path = _SERVICE_ACCOUNT, environ: Mapping[str, str] | None = None) -> Access:
    """What every pod with a service account is given."""

    def load(_: Path) -> Configuration:
        configuration = _blank()
        given = {} if environ is None else {"environ": environ}
        loader = incluster_config.InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt"), **given)  # type: ignore[no-untyped-call]
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        return configuration

    return Access(load, "the pod's service account")


def plain(url: str) -> Access:
    """A server without identity, on loopback."""

    def load(_: Path) -> Configuration:
        configuration = _blank()
        configuration.host = url
        return configuration

    return Access(load, url)


def _blank() -> Configuration:
    """No proxies from the environment: an API server is not reached through the way out."""
    return Configuration(proxy="", no_proxy="")
