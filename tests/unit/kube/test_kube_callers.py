"""Callers at the API server: nothing of ours goes with what they ask, and nothing of theirs shows anywhere."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import yaml

from slurm_bridge import errors
from slurm_bridge.kube import callers, config
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.sim import http
from tests.unit.kube.conftest import LIMITS, Script, pod, refused

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
PODS = "/api/v1/namespaces/ns/pods"
TOKEN = Token("c4ller-t0k3n")
OURS = "0ur-t0k3n"


def kubeconfig(path: Path, server: http.Server, **more: object) -> config.Access:
    """Of somebody with a token."""
    cluster = {"server": server.url, **{key: value for key, value in more.items() if key.startswith("cert")}}
    user = {"token": OURS, **{key: value for key, value in more.items() if key.startswith("client")}}
    content = {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return config.from_kubeconfig(path)


def open_at(access: config.Access) -> callers.KubeCallers:
    """The adapter."""
    return callers.KubeCallers(access, clock=SystemClock(), limits=LIMITS)


@pytest.fixture
def asked(server: http.Server, tmp_path: Path) -> Iterator[callers.KubeCallers]:
    """The adapter, before a server that answers what it is told."""
    made = open_at(kubeconfig(tmp_path / "kubeconfig", server))
    yield made
    made.close()


def review(**status: object) -> dict[str, object]:
    """An answer, which repeats the token."""
    return {"kind": "TokenReview", "spec": {"token": TOKEN.words}, "status": status}


def test_a_review_is_asked_for_as_ourselves(script: Script, asked: callers.KubeCallers) -> None:
    """The caller's token travels in the body, and no audience is named: it has to be one for the API server."""
    user = {"username": "ann", "uid": "7", "groups": ["a", "b"], "extra": {"k": ["v"]}}
    script.on("POST", REVIEWS, review(authenticated=True, user=user))
    assert asked.who(TOKEN) == Caller(name="ann", uid="7", groups=("a", "b"))
    assert script.requests[-1].headers["authorization"] == f"Bearer {OURS}"
    assert script.sent["spec"] == {"token": TOKEN.words}


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"user": {}, "error": "invalid bearer token"},
        {"authenticated": True, "user": {}},
        {"user": {"username": "a"}},
    ],
)
def test_only_a_clear_yes_with_a_name_is_one(
    script: Script, asked: callers.KubeCallers, status: dict[str, object]
) -> None:
    """Everything else is nobody."""
    script.on("POST", REVIEWS, review(**status))
    assert asked.who(TOKEN) is None


def test_a_pod_is_created_as_the_caller(script: Script, asked: callers.KubeCallers) -> None:
    """With nothing but the caller's token, and so that misspelt fields are refused."""
    script.on("POST", PODS, pod("a", uid="7"))
    made = asked.create_pod("ns", {"metadata": {"name": "a"}}, TOKEN)
    assert (made.metadata.name, made.uid) == ("a", "7")
    request = script.requests[-1]
    assert request.headers["authorization"] == f"Bearer {TOKEN.words}"
    assert request.query["fieldValidation"] in ("Strict", ["Strict"])


def test_a_namespace_is_one_segment_of_the_path(script: Script, asked: callers.KubeCallers) -> None:
    """Whatever the manifest says."""
    with pytest.raises(errors.BridgeError):
        asked.create_pod("ns/pods/a/binding?x=", {}, TOKEN)
    assert script.requests == [] or script.requests[-1].path.startswith("/api/v1/namespaces/ns")
    assert all(request.query.get("x") is None for request in script.requests)


def test_our_certificate_is_not_shown_for_callers(script: Script, tmp_path: Path) -> None:
    """The API server would take it for who asks, before the token: every caller would have our rights."""
    authority = trustme.CA()
    issued = authority.issue_cert("bridge.example")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "client.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    script.on("POST", REVIEWS, review(authenticated=True, user={"username": "ann"}))
    script.on("POST", PODS, pod("a"))
    with http.Server(script, tls=context) as server:
        files = {
            "certificate-authority": str(tmp_path / "ca.pem"),
            "client-certificate": str(tmp_path / "client.pem"),
            "client-key": str(tmp_path / "client.pem"),
        }
        made = open_at(kubeconfig(tmp_path / "kubeconfig", server, **files))
        assert made.who(TOKEN) is not None
        # The server's word against us may come before the end of the connection, or be lost with it.
        with pytest.raises((errors.BadConfiguration, errors.Unanswered)):
            made.create_pod("ns", {"metadata": {"name": "a"}}, TOKEN)
        made.close()
    assert [request.path for request in script.requests] == [REVIEWS]


@pytest.mark.parametrize(
    "answer",
    [
        refused(403, "Forbidden"),
        refused(500, "InternalError"),
        http.Response(status=502, body=b"<html>"),
        http.Response(body=b'{"spec": {"token": "c4ller-t0k3n"}, "status": 7}'),
        http.Response(body=b'{"spec": {"token": "c4ller-t0k3n", '),
    ],
)
def test_no_error_shows_a_token(script: Script, asked: callers.KubeCallers, answer: http.Response) -> None:
    """Although the server repeats it in its answer."""
    script.on("POST", REVIEWS, answer)
    script.on("POST", PODS, answer)
    raised: list[BaseException | None] = []
    for call in (lambda: asked.who(TOKEN), lambda: asked.create_pod("ns", {}, TOKEN)):
        with pytest.raises(errors.BridgeError) as caught:
            call()
        raised += [caught.value, caught.value.__cause__]
    assert not [one for one in raised if TOKEN.words in f"{one} {one!r}" or OURS in f"{one} {one!r}"]


def test_a_token_that_has_ended_is_the_callers_affair(script: Script, asked: callers.KubeCallers) -> None:
    """We stay who we are."""
    script.on("POST", PODS, refused(401, "Unauthorized"))
    with pytest.raises(errors.NotAuthenticated):
        asked.create_pod("ns", {}, TOKEN)
