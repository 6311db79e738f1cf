"""ports.Callers on a real API server: tokens are reviewed as ourselves, and what callers do is asked as they.

The two never share a connection. A client certificate of ours would count before the caller's token, so that a pod
would be handed in with our rights: for callers there are connections without any identity.
"""

from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.kube import codec, transport
from slurm_bridge.model import kinds
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object, Record
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.http.client import Anonymous
from slurm_bridge.runtime.http.connections import Now
from slurm_bridge.runtime.http.messages import HttpLimits, HttpPool, HttpRequest

#: A caller waits at the other end of an HTTP connection for what is asked here, and a daemon that ends waits for the
#: caller: both together take less than the time that it has for that.
REVIEW_LIMITS: Final = HttpLimits(
    connect=2.0, answer=4.0, whole_answer=5.0, silence=4.0, most_bytes=1 << 20, connections=16
)
LIMITS: Final = HttpLimits(
    connect=2.0, answer=10.0, whole_answer=10.0, silence=10.0, most_bytes=8 << 20, connections=16
)

T = TypeVar("T", bound=Object)

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#: A misspelt field would otherwise be dropped without a word.
_STRICT: Final = {"fieldValidation": "Strict"}


class _User(Record, frozen=True, kw_only=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()


class _Verdict(Record, frozen=True, kw_only=True):
    authenticated: bool = False
    user: _User = _User()


class _Review(Record, frozen=True, kw_only=True):
    status: _Verdict = _Verdict()


class _Allowed(Record, frozen=True, kw_only=True):
    allowed: bool = False


class _AccessReview(Record, frozen=True, kw_only=True):
    status: _Allowed = _Allowed()


_reviews = msgspec.json.Decoder(_Review)
_access_reviews = msgspec.json.Decoder(_AccessReview)


class _Anonymous(Anonymous):
    """A transport.Access to the same server, without any identity: each request brings its own."""

    def __init__(self, access: transport.Access) -> None:
        self._access = access
        self.prefix = access.prefix

    def pool(self, limits: HttpLimits, now: Now, /, *, endless: bool = False) -> HttpPool:
        return self._access.anonymous_pool(limits, now, endless=endless)

    anonymous_pool = pool


class KubeCallers:
    """Implements ports.Callers; safe to use from any thread."""

    def __init__(self, access: transport.Access, *, clock: ports.Clock, limits: HttpLimits | None = None) -> None:
        self._ours = transport.Transport(access, clock=clock, limits=limits or REVIEW_LIMITS)
        self._theirs = transport.Transport(_Anonymous(access), clock=clock, limits=limits or LIMITS)

    def close(self) -> None:
        """Give up idle connections."""
        self._ours.close()
        self._theirs.close()

    def who(self, token: Token) -> Caller | None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.words}}
        request = HttpRequest(method="POST", path=_REVIEWS, body=codec.encode(review))
        try:
            verdict = _reviews.decode(transport.checked(request, self._ours.call(request))).status
        except msgspec.DecodeError as error:
            raise errors.BadAnswer(f"unreadable TokenReview: {error}") from error
        if not verdict.authenticated or not verdict.user.username:
            return None
        return Caller(name=verdict.user.username, uid=verdict.user.uid, groups=verdict.user.groups)

    def may(self, token: Token, verb: str, kind: Kind[T], namespace: str = "") -> bool:
        attributes = {"verb": verb, "group": kind.group, "resource": kind.plural}
        if namespace:
            attributes["namespace"] = namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        request = HttpRequest(method="POST", path=_ACCESS_REVIEWS, body=codec.encode(review), headers=_as(token))
        try:
            return _access_reviews.decode(transport.checked(request, self._theirs.call(request))).status.allowed
        except msgspec.DecodeError as error:
            raise errors.BadAnswer(f"unreadable SelfSubjectAccessReview: {error}") from error

    def create_pod(self, namespace: str, manifest: Manifest, token: Token) -> Pod:
        request = HttpRequest(
            method="POST",
            path=f"/api/v1/namespaces/{quote(namespace, safe='')}/pods",
            query=_STRICT,
            body=codec.encode(manifest),
            headers=_as(token),
        )
        return codec.codec(kinds.PODS).one(transport.checked(request, self._theirs.call(request)))


def _as(token: Token) -> dict[str, str]:
    return {"authorization": f"Bearer {token.words}"}
