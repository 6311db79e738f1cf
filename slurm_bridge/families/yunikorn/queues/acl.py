"""Access control lists: the users that may submit to a queue, and those that may administer it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn.queues.config import names

#: Applications whose queue is gone are recovered here; no user may submit to it.
RECOVERY = "root.@recovery@"

_EVERYBODY = "*"
_PARTS = 2
#: By the word for one of them. YuniKorn knows no `:`, which the names of Kubernetes' service accounts have.
NAMES = {"user": names.USER, "group": re.compile(r"[_a-zA-Z][a-zA-Z0-9:_-]*")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """Users and groups that are allowed, or all users; by default, none."""

    everybody: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def allows(self, user: str, groups: Collection[str]) -> bool:
        """This user is allowed, or one of the user's groups."""
        return self.everybody or user in self.users or not self.groups.isdisjoint(groups)


def parse(text: str) -> Acl:
    """The list that is written `users groups`, each separated by commas; BadConfiguration where spaces make more of it.

    Names that are none are left out, as YuniKorn does: `*` among others allows no further user. See `unreadable`.
    """
    parts = text.split(" ")
    if len(parts) > _PARTS:
        raise BadConfiguration(
            f"access control list {text!r}: has {len(parts)} parts; use users and groups with one space between"
        )
    if _EVERYBODY in (text.strip(), *parts):
        return Acl(everybody=True)
    users, groups = parts if len(parts) == _PARTS else (text, "")
    return Acl(
        users=frozenset(filter(NAMES["user"].fullmatch, users.split(","))),
        groups=frozenset(filter(NAMES["group"].fullmatch, groups.split(","))),
    )


def read(text: str) -> Acl:
    """The list of a text that passed the checks: spaces around it mean nothing but one before groups."""
    return parse(_trimmed(text))


def unreadable(text: str) -> Iterator[tuple[str, str]]:
    """The names that `read` leaves out, each after the word for what it would be."""
    parts = _trimmed(text).split(" ")
    if len(parts) > _PARTS or _EVERYBODY in parts:
        return
    for (word, form), listed in zip(NAMES.items(), parts, strict=False):
        yield from ((word, name) for name in listed.split(",") if listed and not form.fullmatch(name))


def _trimmed(text: str) -> str:
    fields = text.strip()
    return f" {fields}" if text.startswith(" ") and " " not in fields else fields
