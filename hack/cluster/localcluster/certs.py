"""Keys, certificates and tokens of one cluster: made once by the openssl command, gone with the cluster's folder.

ca.crt, ca.key            signs what the servers show
serving.crt, serving.key  what every server on 127.0.0.1 shows (also the webhooks)
tls.crt, tls.key          the same two under the names that controllers look for in a folder
requestheader-ca.crt      aggregating clients wait for ever when the API server has none; its key is never kept
service-account.key       signs service account tokens
tokens.csv                one bearer token per client, as the API server reads them
kubelet-*.crt, …          of kubelets, of what runs beside them, and of the API server when it asks kubelets; a key each
                          (only with real nodes)
"""

import dataclasses
import pathlib
import shutil
import subprocess

from localcluster import hosts, packages, secret
from localcluster.config import Config
from localcluster.part import PartError

#: Every client with a static token. All are administrators: what is under test is the daemon, which has its own
#: service account and no entry here.
CLIENTS = ("admin", "controller-manager", "kwok", "jobset", "lws")
#: The certificate of the pods' name server.
DNS = "dns"
#: That of the drivers of devices.
DRA = "dra"
#: What the API server shows to kubelets.
KUBELET_CLIENT = "kubelet-client"
_DAYS = "3650"
_SIGNER = ("-x509", "-CA", "ca.crt", "-CAkey", "ca.key", "-days", _DAYS)
_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
_FILES = (
    "ca.crt",
    "serving.crt",
    "serving.key",
    "tls.crt",
    "tls.key",
    "requestheader-ca.crt",
    "service-account.key",
    "tokens.csv",
)


def folder(config: Config) -> pathlib.Path:
    """Only the owner may enter it."""
    return config.directory / "secrets"


def path(config: Config, name: str) -> str:
    """One of the files, as the servers want it on their command line."""
    return str(folder(config) / name)


def token(config: Config, client: str) -> str:
    """The bearer token of one of the static clients."""
    for line in (folder(config) / "tokens.csv").read_text().splitlines():
        value, name, *_ = line.split(",")
        if name == client:
            return value
    raise PartError(f"no token for {client}: run hack/cluster/down and up again")


def present(config: Config) -> bool:
    """Whether the set is complete."""
    return all((folder(config) / name).exists() for name in _FILES)


def make(config: Config) -> None:
    """All or nothing: a half-made set is made anew, because its pieces have to fit."""
    packages.require(packages.OPENSSL)
    shutil.rmtree(folder(config), ignore_errors=True)
    folder(config).mkdir(parents=True, mode=0o700)
    _authority(config, "ca", "/CN=local cluster")
    _authority(config, "requestheader-ca", "/CN=local cluster request header")
    (folder(config) / "requestheader-ca.key").unlink()
    _serving(config)
    for suffix in ("crt", "key"):
        (folder(config) / f"tls.{suffix}").symlink_to(f"serving.{suffix}")
    _openssl(config, "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "service-account.key")
    secret.write(folder(config) / "tokens.csv", "".join(_token_lines()))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A client that shows a certificate: its files are NAME.crt and NAME.key."""

    name: str
    user: str
    group: str


def identities(config: Config) -> tuple[Identity, ...]:
    """None without real nodes."""
    names = [host.kube_name for host in hosts.real_nodes(config)]
    kubelets = [Identity(name=kubelet(name), user=f"system:node:{name}", group="system:nodes") for name in names]
    client = Identity(name=KUBELET_CLIENT, user="local-cluster:apiserver", group="system:masters")
    servers = [Identity(name=name, user=f"local-cluster:{name}", group="system:masters") for name in (DNS, DRA)]
    return (client, *servers, *kubelets) if kubelets else ()


def kubelet(node: str) -> str:
    """The name of the files of one kubelet."""
    return f"kubelet-{node}"


def lacking(config: Config) -> list[Identity]:
    """Those whose certificate was not made yet."""
    return [one for one in identities(config) if not (folder(config) / f"{one.name}.crt").exists()]


def identify(config: Config, one: Identity) -> None:
    """Sign a certificate; the key is there before it."""
    extensions = ("-addext", "extendedKeyUsage=clientAuth", "-addext", "basicConstraints=critical,CA:FALSE")
    subject = ("-subj", f"/O={one.group}/CN={one.user}")
    _openssl(config, *_request(one.name), *_SIGNER, *subject, *extensions, "-out", f"{one.name}.crt")


def authority(config: Config) -> bytes:
    """The CA certificate; nothing before it is made. It tells one set of credentials from the next."""
    file = folder(config) / "ca.crt"
    return file.read_bytes() if file.exists() else b""


def _token_lines() -> list[str]:
    return [f'{secret.random_token()},{client},{client},"system:masters"\n' for client in CLIENTS]


def _authority(config: Config, name: str, subject: str) -> None:
    _openssl(config, *_request(name), "-x509", "-days", _DAYS, "-subj", subject, "-out", f"{name}.crt")


def _serving(config: Config) -> None:
    usage = "extendedKeyUsage=serverAuth"
    extensions = ("-addext", _NAMES, "-addext", usage, "-addext", "basicConstraints=critical,CA:FALSE")
    _openssl(config, *_request("serving"), *_SIGNER, "-subj", "/CN=127.0.0.1", *extensions, "-out", "serving.crt")


def _request(name: str) -> tuple[str, ...]:
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    return ("req", "-nodes", *curve, "-keyout", f"{name}.key")


def _openssl(config: Config, *arguments: str) -> None:
    """With a umask that lets no other user read what it writes."""
    try:
        subprocess.run(
            ["openssl", *arguments],
            cwd=folder(config),
            umask=0o077,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise PartError(f"openssl {arguments[0]} failed: {error.stderr.strip()}") from error
