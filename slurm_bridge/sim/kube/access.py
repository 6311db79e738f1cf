"""Authorization: bearer tokens, and allow rules for users that have any."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from slurm_bridge.sim.kube import refusals
from slurm_bridge.sim.kube.resources import Resource


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """These verbs on these resources ("pods", "pods/binding", "jobs.batch"); "*" is any. No namespaces: everywhere."""

    verbs: tuple[str, ...]
    resources: tuple[str, ...]
    namespaces: tuple[str, ...] = ()

    def allows(self, verb: str, what: str, namespace: str) -> bool:
        """Whether the rule covers this access."""
        if self.namespaces and namespace not in self.namespaces:
            return False
        return bool({verb, "*"} & set(self.verbs)) and bool({what, "*"} & set(self.resources))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user; without rules everything is allowed."""

    name: str
    rules: tuple[AccessRule, ...] | None = None
    uid: str = ""
    groups: tuple[str, ...] = ()

    def shown(self) -> dict[str, Any]:
        """The user as a TokenReview shows it."""
        groups = list(self.groups)
        if self.name.startswith("system:serviceaccount:"):
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.name.split(':')[2]}"]
        shown = {"username": self.name, "uid": self.uid, "groups": [*groups, "system:authenticated"]}
        return {field: value for field, value in shown.items() if value}


ADMIN = User(name="admin")
ANONYMOUS = User(name="system:anonymous", rules=())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One access that is authorized or refused."""

    verb: str
    resource: Resource
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def what(self) -> str:
        return self.resource.key + (f"/{self.subresource}" if self.subresource else "")


class TokenUsers:
    """The users by their tokens; tokens can be added and revoked while the server runs."""

    def __init__(self, tokens: Mapping[str, User]) -> None:
        self._users = dict(tokens)
        #: Requests without a token are of this user.
        self.anonymous = ANONYMOUS

    def grant(self, token: str, user: User) -> None:
        """Make this token valid for that user."""
        self._users[token] = user

    def revoke(self, token: str) -> None:
        """Make this token invalid."""
        self._users.pop(token, None)

    def user(self, headers: Mapping[str, str]) -> User:
        """The user of a request; a wrong token is refused, a missing one means anonymous."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return self.anonymous
        if token not in self._users:
            raise refusals.unauthorized()
        return self._users[token]

    def review(self, token: str) -> dict[str, Any]:
        """The status of a TokenReview."""
        user = self._users.get(token)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user.shown(), "audiences": ["https://kubernetes.default.svc"]}

    def allows(self, user: User, attributes: Mapping[str, str]) -> bool:
        """Whether a rule covers the access that a SelfSubjectAccessReview describes."""
        group, plural = attributes.get("group", ""), attributes.get("resource", "")
        what = f"{plural}.{group}" if group else plural
        what += f"/{attributes['subresource']}" if attributes.get("subresource") else ""
        verb, namespace = attributes.get("verb", ""), attributes.get("namespace", "")
        return user.rules is None or any(rule.allows(verb, what, namespace) for rule in user.rules)

    def check(self, user: User, deed: Deed) -> None:
        """Refuse an access that no rule allows; what a claim has needs the right to bind claims as well."""
        if deed.what == "resourceclaims.resource.k8s.io/status":
            self.check(user, dataclasses.replace(deed, subresource="binding"))
        if user.rules is None or any(rule.allows(deed.verb, deed.what, deed.namespace) for rule in user.rules):
            return
        where = f'in the namespace "{deed.namespace}"' if deed.namespace else "at the cluster scope"
        plural = deed.resource.plural + (f"/{deed.subresource}" if deed.subresource else "")
        group = deed.resource.group
        why = f'User "{user.name}" cannot {deed.verb} resource "{plural}" in API group "{group}" {where}'
        raise refusals.forbidden(deed.resource, deed.name, why)
