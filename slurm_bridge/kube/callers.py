"""ports.Callers on a real API server: tokens are reviewed as ourselves, and what callers do is asked as they.

The two never share a connection. A client certificate of ours would count before the caller's token, so that whoever
hands in a pod would do so with our rights: for callers there are connections that know nobody.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.kube import codec, status, transport
from slurm_bridge.model import kinds
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.meta import Manifest, Record
from slurm_bridge.model.pod import Pod

#: Somebody waits at the other end of an HTTP connection for what is asked here, and a daemon that ends waits for them:
#: both together take less than the time that it has for that.
REVIEW_LIMITS: Final = transport.Limits(
    connect=2.0, answer=4.0, whole_answer=5.0, silence=4.0, most_bytes=1 << 20, connections=16
)
LIMITS: Final = transport.Limits(
    connect=2.0, answer=10.0, whole_answer=10.0, silence=10.0, most_bytes=8 << 20, connections=16
)

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
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


_reviews = msgspec.json.Decoder(_Review)


@dataclasses.dataclass(frozen=True, slots=True)
class _Nobody:
    """A transport.Access to the same server, without any identity."""

    access: transport.Access

    @property
    def prefix(self) -> str:
        return self.access.prefix

    def headers(self) -> Mapping[str, str]:
        """None: each request brings its own."""
        return {}

    def renew(self) -> None:
        """A caller's token is not ours to renew."""

    def pool(self, connections: int, /) -> transport.Pool:
        return self.access.nobodys_pool(connections)

    def nobodys_pool(self, connections: int, /) -> transport.Pool:
        return self.access.nobodys_pool(connections)


class KubeCallers:
    """Implements ports.Callers; safe to use from any thread."""

    def __init__(self, access: transport.Access, *, clock: ports.Clock, limits: transport.Limits | None = None) -> None:
        self._ours = transport.Transport(access, clock=clock, limits=limits or REVIEW_LIMITS)
        self._theirs = transport.Transport(_Nobody(access), clock=clock, limits=limits or LIMITS)

    def close(self) -> None:
        """Give up idle connections."""
        self._ours.close()
        self._theirs.close()

    def who(self, token: Token) -> Caller | None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.words}}
        request = transport.Request(method="POST", path=_REVIEWS, body=codec.encode(review))
        verdict = _verdict(_answered(request, self._ours.call(request)))
        if not verdict.authenticated or not verdict.user.username:
            return None
        return Caller(name=verdict.user.username, uid=verdict.user.uid, groups=verdict.user.groups)

    def create_pod(self, namespace: str, manifest: Manifest, token: Token) -> Pod:
        request = transport.Request(
            method="POST",
            path=f"/api/v1/namespaces/{quote(namespace, safe='')}/pods",
            query=_STRICT,
            body=codec.encode(manifest),
            headers={"authorization": f"Bearer {token.words}"},
        )
        return codec.codec(kinds.PODS).one(_answered(request, self._theirs.call(request)))


def _verdict(body: bytes) -> _Verdict:
    try:
        return _reviews.decode(body).status
    except msgspec.DecodeError as error:
        raise errors.BadAnswer(f"unreadable TokenReview: {error}") from error


def _answered(request: transport.Request, answer: transport.Answer) -> bytes:
    if not answer.ok:
        raise status.refusal(str(request), answer.number, answer.body, answer.retry_after)
    return answer.body
