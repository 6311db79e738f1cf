"""Whose token it is. Tokens are looked up, not computed: which ones are valid is said at construction."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Nobody:
    """No token at all: slurmrestd itself refuses (401) before it asks slurmctld."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stranger:
    """A token that slurmctld does not accept; slurmrestd only learns so by asking (511, and 200 on ping)."""


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """Somebody."""

    name: str


Identity = Nobody | Stranger | User


def identify(headers: Mapping[str, str], tokens: Mapping[str, str], operators: frozenset[str]) -> Identity:
    """The token may come as a header of its own or as a bearer; only an operator may act for somebody else."""
    token = headers.get("x-slurm-user-token") or headers.get("authorization", "").removeprefix("Bearer ")
    if not token:
        return Nobody()
    owner = tokens.get(token)
    if owner is None:
        return Stranger()
    wanted = headers.get("x-slurm-user-name") or owner
    return User(wanted) if wanted == owner or owner in operators else Stranger()
