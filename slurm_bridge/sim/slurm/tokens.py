"""The users of tokens. Tokens are looked up, not computed: the valid ones are given at construction."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class NoToken:
    """A request without a token: slurmrestd refuses it (401) before it asks slurmctld."""


@dataclasses.dataclass(frozen=True, slots=True)
class InvalidToken:
    """A token that slurmctld does not accept; slurmrestd learns that by asking (511, and 200 on ping)."""


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """A user."""

    name: str


Identity = NoToken | InvalidToken | User


def identify(headers: Mapping[str, str], tokens: Mapping[str, str], operators: frozenset[str]) -> Identity:
    """The token is in a header of its own or a bearer token; only an operator may act for another user."""
    token = headers.get("x-slurm-user-token") or headers.get("authorization", "").removeprefix("Bearer ")
    if not token:
        return NoToken()
    owner = tokens.get(token)
    if owner is None:
        return InvalidToken()
    wanted = headers.get("x-slurm-user-name") or owner
    return User(wanted) if wanted == owner or owner in operators else InvalidToken()
