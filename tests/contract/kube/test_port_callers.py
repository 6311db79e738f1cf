"""The verbs of ports.Callers, as our adapter speaks them: whose a token is, and what its owner may do with it."""

import contextlib
import secrets
from collections.abc import Iterator

import kubetalk
import pytest

from slurm_bridge import errors
from slurm_bridge.kube import callers as kube_callers
from slurm_bridge.kube import client, config
from slurm_bridge.model import kinds
from slurm_bridge.model.callers import Token
from slurm_bridge.model.meta import Manifest
from slurm_bridge.runtime import clock
from slurm_bridge.sim.kube import access, world
from tests.direct_kube import DirectAccess
from tests.direct_line import Line

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{}"


@pytest.fixture
def callers(kube_server, request) -> Iterator[kube_callers.KubeCallers]:
    """Our adapter, which reviews tokens as an administrator."""
    time = clock.SystemClock()
    if kube_server.kind == "direct":
        pocket: world.PocketKubeServer = request.getfixturevalue("pocket")
        way = DirectAccess(Line(pocket.kube.handler, clock=time), token=pocket.kube.token)
        made = kube_callers.KubeCallers(way, clock=time)
    else:
        made = kube_callers.KubeCallers(config.from_kubeconfig(kube_server.kubeconfig), clock=time)
    with contextlib.closing(made):
        yield made


class Accounts:
    """Service accounts of one namespace, with and without the right to create pods there."""

    def __init__(self, room: kubetalk.Room, pocket: world.PocketKube | None) -> None:
        self._room, self._pocket = room, pocket

    def token(self, name: str, *, may_create: bool) -> Token:
        """A token of a new account."""
        if self._pocket is not None:
            rules = (access.AccessRule(verbs=("create",), resources=("pods",), namespaces=(self._room.namespace,)),)
            token = secrets.token_urlsafe(16)
            self._pocket.access.grant(
                token, access.User(name=self.user(name), rules=rules if may_create else (), uid=secrets.token_hex(8))
            )
            return Token(token)
        self._post(self._room.path("v1", "serviceaccounts"), {"metadata": {"name": name}})
        if may_create:
            self._allow(name)
        issued = self._post(self._room.path("v1", "serviceaccounts", name, "token"), {"spec": {}})
        return Token(issued["status"]["token"])

    def user(self, name: str) -> str:
        """What the API server calls it."""
        return f"system:serviceaccount:{self._room.namespace}:{name}"

    def _allow(self, name: str) -> None:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        who = [{"kind": "ServiceAccount", "name": name, "namespace": self._room.namespace}]
        namespace = self._room.namespace
        self._post(ROLES.format(namespace, "roles"), {"metadata": {"name": name}, "rules": rules})
        bound = {"metadata": {"name": name}, "roleRef": role, "subjects": who}
        self._post(ROLES.format(namespace, "rolebindings"), bound)

    def _post(self, path: str, body: Manifest) -> Manifest:
        answer = self._room.talk.ask("POST", path, body)
        assert answer.status == 201, answer.body
        return answer.body


@pytest.fixture
def accounts(room: kubetalk.Room, kube_server, request) -> Accounts:
    """Made where the server is."""
    real = kube_server.kind == "real"
    return Accounts(room, None if real else request.getfixturevalue("pocket").kube)


def manifest(name: str) -> Manifest:
    """A small pod."""
    return {"apiVersion": "v1", "kind": "Pod", **kubetalk.pod(name=name)}


def test_a_token_is_known_by_its_owner(callers: kube_callers.KubeCallers, accounts: Accounts) -> None:
    """With the name that the server's own words use, whatever the owner may do."""
    name = kubetalk.fresh("nobody")
    caller = callers.who(accounts.token(name, may_create=False))
    assert caller is not None
    assert (caller.name, bool(caller.uid)) == (accounts.user(name), True)
    assert "system:authenticated" in caller.groups


def test_the_groups_of_a_service_account_are_told(
    callers: kube_callers.KubeCallers, accounts: Accounts, room: kubetalk.Room
) -> None:
    """All service accounts, those of its namespace, and all authenticated users."""
    caller = callers.who(accounts.token(kubetalk.fresh("member"), may_create=False))
    assert caller is not None
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{room.namespace}", "system:authenticated"}
    assert set(caller.groups) == groups


def test_an_unknown_token_is_an_answer(callers: kube_callers.KubeCallers) -> None:
    """Not an error: the server was asked, and says no."""
    assert callers.who(Token("made-up")) is None


def test_an_empty_token_is_refused(callers: kube_callers.KubeCallers) -> None:
    """The server does not even look."""
    with pytest.raises(errors.Invalid, match="token is required"):
        callers.who(Token(""))


def test_a_pod_is_created_with_the_rights_of_the_token(
    callers: kube_callers.KubeCallers, accounts: Accounts, room: kubetalk.Room, cluster_port: client.KubeClient
) -> None:
    """A caller with the right has a pod afterwards. A caller without it gets the server's refusal, and there is no pod.

    The bridge itself has every right here, so a request with its own rights would have succeeded.
    """
    pod = kubetalk.fresh("pod")
    weak = kubetalk.fresh("weak")
    with pytest.raises(errors.NotAuthorized, match=f'{accounts.user(weak)}" cannot create resource "pods"'):
        callers.create_pod(room.namespace, manifest(pod), accounts.token(weak, may_create=False))
    assert cluster_port.get(kinds.PODS, room.namespace, pod) is None
    made = callers.create_pod(room.namespace, manifest(pod), accounts.token(kubetalk.fresh("maker"), may_create=True))
    assert (made.metadata.name, made.metadata.namespace) == (pod, room.namespace)
    assert cluster_port.get(kinds.PODS, room.namespace, pod).uid == made.uid


def test_what_a_caller_may_is_told_of_this_caller_alone(
    callers: kube_callers.KubeCallers, accounts: Accounts, room: kubetalk.Room
) -> None:
    """In the namespace of its role, with the verb of its role, and for its own token."""
    maker = accounts.token(kubetalk.fresh("maker"), may_create=True)
    weak = accounts.token(kubetalk.fresh("weak"), may_create=False)
    asked = [
        callers.may(maker, "create", kinds.PODS, room.namespace),
        callers.may(maker, "create", kinds.PODS, "kube-system"),
        callers.may(maker, "create", kinds.PODS),
        callers.may(maker, "list", kinds.NODES),
        callers.may(weak, "create", kinds.PODS, room.namespace),
    ]
    assert asked == [True, False, False, False, False]
    with pytest.raises(errors.NotAuthenticated):
        callers.may(Token("made-up"), "list", kinds.PODS)


def test_a_name_is_taken_once(callers: kube_callers.KubeCallers, accounts: Accounts, room: kubetalk.Room) -> None:
    """The second of the same name is a Conflict."""
    token, name = accounts.token(kubetalk.fresh("maker"), may_create=True), kubetalk.fresh("pod")
    callers.create_pod(room.namespace, manifest(name), token)
    with pytest.raises(errors.Conflict, match="already exists") as raised:
        callers.create_pod(room.namespace, manifest(name), token)
    assert raised.value.reason == "AlreadyExists"


def test_a_token_that_the_server_does_not_know_creates_nothing(
    callers: kube_callers.KubeCallers, room: kubetalk.Room
) -> None:
    """It is not taken for ours."""
    with pytest.raises(errors.NotAuthenticated):
        callers.create_pod(room.namespace, manifest(kubetalk.fresh("pod")), Token("made-up"))


def test_what_the_server_finds_wrong_is_invalid(
    callers: kube_callers.KubeCallers, accounts: Accounts, room: kubetalk.Room
) -> None:
    """With the field."""
    token = accounts.token(kubetalk.fresh("maker"), may_create=True)
    wrong = {**manifest(kubetalk.fresh("pod")), "spec": {}}
    with pytest.raises(errors.Invalid, match=r"spec\.containers"):
        callers.create_pod(room.namespace, wrong, token)


def test_a_review_can_only_be_asked_for(talk: kubetalk.Talk) -> None:
    """It is not stored: there is no list of them."""
    answer = talk.ask("GET", "/apis/authentication.k8s.io/v1/tokenreviews")
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")
    assert answer.message == "the server does not allow this method on the requested resource"
