import ssl
import tempfile
from pathlib import Path

import pytest
import yaml

from slurm_bridge import errors
from slurm_bridge.kube import config
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.http.messages import HttpAnswer, HttpLimits

SECRET = "s3cr3t-t0k3n"


def write(path: Path, *, user: dict[str, object], server: str = "http://127.0.0.1:1/base/", **cluster: object) -> Path:
    """Write a kubeconfig with one user and one cluster."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def test_inline_token(tmp_path: Path) -> None:
    """A token of a kubeconfig is sent as a bearer token, to the server it names."""
    access = config.from_kubeconfig(write(tmp_path / "k", user={"token": SECRET}))
    assert access.headers() == {"authorization": f"Bearer {SECRET}"}
    assert access.prefix == "/base"


def test_token_file_is_read_again(tmp_path: Path) -> None:
    """A token file is read again on demand, and its line end is no part of the token."""
    token = tmp_path / "token"
    token.write_text("one\n")
    access = config.from_kubeconfig(write(tmp_path / "k", user={"tokenFile": str(token)}))
    assert access.headers() == {"authorization": "Bearer one"}
    token.write_text("two\n")
    assert access.renewed(HttpAnswer(status=401, body=b""), {})
    assert access.headers() == {"authorization": "Bearer two"}


def test_no_identity_over_plain_http(tmp_path: Path) -> None:
    """A server on loopback may want to know nothing."""
    assert config.from_kubeconfig(write(tmp_path / "k", user={})).headers() == {}
    assert config.plain("http://127.0.0.1:1").headers() == {}


def test_no_identity_over_https(tmp_path: Path) -> None:
    """Somebody who protects the server means us to have an identity."""
    with pytest.raises(errors.BadConfiguration, match="neither a token nor a client certificate"):
        config.from_kubeconfig(write(tmp_path / "k", user={}, server="https://127.0.0.1:1"))


@pytest.mark.parametrize(
    "user", [{"auth-provider": {"token": SECRET}}, {"tokenFile": "absent", "note": SECRET}, {"password": SECRET}]
)
def test_errors_quote_no_secret(tmp_path: Path, user: dict[str, object]) -> None:
    """Whatever is wrong with a kubeconfig, neither message nor cause shows what stands in it."""
    path = write(tmp_path / "k", user=user, server="https://127.0.0.1:1")
    with pytest.raises(errors.BadConfiguration) as caught:
        config.from_kubeconfig(path)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "text", ["", "[]", "users: [", f"users: [{{name: u, user: {{token: {SECRET}", "clusters: 3\ncontexts: 4\nusers: 5"]
)
def test_no_kubeconfig_at_all(tmp_path: Path, text: str) -> None:
    """A file that is no kubeconfig is the operator's to repair."""
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(errors.BadConfiguration, match="kubeconfig") as caught:
        config.from_kubeconfig(path)
    assert SECRET not in str(caught.value)


def test_missing_file_and_context(tmp_path: Path) -> None:
    """An absent file and an absent context are told as such."""
    with pytest.raises(errors.BadConfiguration):
        config.from_kubeconfig(tmp_path / "absent")
    with pytest.raises(errors.BadConfiguration, match="other"):
        config.from_kubeconfig(write(tmp_path / "k", user={}), context="other")


def test_keys_leave_no_file(tmp_path: Path) -> None:
    """Inline certificates and keys are not left on disk, even when they cannot be used."""
    data = {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}
    path = write(tmp_path / "k", user=data, server="https://127.0.0.1:1")
    with pytest.raises(errors.BadConfiguration, match="certificate or key"):
        config.from_kubeconfig(path)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_repr_is_an_address(tmp_path: Path) -> None:
    """An access shows where it leads and nothing else."""
    access = config.from_kubeconfig(write(tmp_path / "k", user={"token": SECRET}))
    assert repr(access) == "Access(http://127.0.0.1:1/base)"


def test_environment_proxies_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy towards the internet is not the way to the API server."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    pool = config.from_kubeconfig(write(tmp_path / "k", user={})).pool(HttpLimits(), SystemClock().now)._pool
    assert (pool.host, pool.port, pool.proxy) == ("127.0.0.1", 1, None)


def test_proxy_of_the_kubeconfig(tmp_path: Path) -> None:
    """A proxy that the kubeconfig names is used."""
    user = {"token": SECRET}
    path = write(tmp_path / "k", user=user, server="https://127.0.0.1:1", **{"proxy-url": "http://127.0.0.1:9"})
    pool = config.from_kubeconfig(path).pool(HttpLimits(), SystemClock().now)._pool
    assert pool.proxy is not None
    assert pool.proxy.port == 9


def service_account(folder: Path) -> dict[str, str]:
    """Mount a service account, and return the environment that goes with it."""
    roots = ssl.create_default_context().get_ca_certs(binary_form=True)
    pem = ssl.DER_cert_to_PEM_cert(roots[0]) if roots else ""
    (folder / "ca.crt").write_text(pem)
    (folder / "token").write_text("one")
    return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}


@pytest.mark.skipif(not ssl.create_default_context().get_ca_certs(), reason="no certificate at hand")
def test_in_cluster(tmp_path: Path) -> None:
    """In a pod the mounted token is sent (releases of the package forgot it), and a rotated one after renewal."""
    access = config.in_cluster(folder=tmp_path, environ=service_account(tmp_path))
    assert access.headers()["authorization"].lower() == "bearer one"
    (tmp_path / "token").write_text("two\n")
    assert access.renewed(HttpAnswer(status=401, body=b""), {})
    assert access.headers()["authorization"].lower() == "bearer two"


@pytest.mark.skipif(not ssl.create_default_context().get_ca_certs(), reason="no certificate at hand")
def test_token_vanishes(tmp_path: Path) -> None:
    """A mounted token that is no longer there is the operator's to repair."""
    access = config.in_cluster(folder=tmp_path, environ=service_account(tmp_path))
    (tmp_path / "token").unlink()
    with pytest.raises(errors.BadConfiguration, match="service account"):
        assert access.renewed(HttpAnswer(status=401, body=b""), {})


def test_no_address(tmp_path: Path) -> None:
    """A kubeconfig without a usable server is told as such."""
    with pytest.raises(errors.BadConfiguration, match="no address"):
        config.from_kubeconfig(write(tmp_path / "k", user={}, server="/nowhere"))


def test_not_in_a_cluster(tmp_path: Path) -> None:
    """Outside of a pod there is no service account to use."""
    with pytest.raises(errors.BadConfiguration, match="service account"):
        config.in_cluster(folder=tmp_path, environ={})
