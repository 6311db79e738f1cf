"""Access control lists: the users that may submit to a queue, and those that may administer it."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from slurm_bridge.errors import BadConfiguration

#: Applications whose queue is gone are recovered here; no user may submit to it.
RECOVERY = "root.@recovery@"

_EVERYBODY = "*"
_PARTS = 2
_USER = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*[$]?")
_GROUP = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*")


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

    Names that are none are left out, as YuniKorn does: `*` among others allows no further user.
    """
    parts = text.split(" ")
    if len(parts) > _PARTS:
        raise BadConfiguration(
            f"access control list {text!r}: has {len(parts)} parts; allowed are users and groups with one space between"
        )
    if _EVERYBODY in (text.strip(), *parts):
        return Acl(everybody=True)
    users, groups = parts if len(parts) == _PARTS else (text, "")
    return Acl(users=_names(users, _USER), groups=_names(groups, _GROUP))


def _names(listed: str, form: re.Pattern[str]) -> frozenset[str]:
    return frozenset(name for name in listed.split(",") if form.fullmatch(name))
