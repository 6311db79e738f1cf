"""Limits of users and groups: what each of them may have in a queue and all above it, and what they have.

A user is measured by the limit that names it in a queue, or else by that of `*` there. Of groups an application
counts for one: from its queue upward the first one that a limit names and its user is in, in the order of the limits;
without any for `*`, if a limit has that. An application that counts for no group is measured as its user only.

What applications have is kept for every user, limited or not: a limit that comes later finds it. Without limits it
is added up only when it is read.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.config.names import WILDCARD
from slurm_bridge.families.yunikorn.queues.quantities import VCORE

_USERS = "user"
_GROUPS = "group"
#: Of so many queues it is remembered what is above them: every application asks it twice.
_MOST_PATHS = 4096


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LimitRefusal:
    """One limit that does not allow something; `subject` is `user ann` or `group dev`."""

    queue: str
    subject: str
    words: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a user or group has in a queue, and what it may have there; 0 applications are unlimited."""

    queue: str
    subject: str
    allocated: Amount
    applications: int
    max_resources: Known
    max_applications: int


@dataclasses.dataclass(slots=True)
class _Usage:
    """What one user or group has in one queue."""

    queue: str
    kind: str
    name: str
    limit: documents.Limit | None
    allocated: dict[str, int] = dataclasses.field(default_factory=dict)
    applications: set[str] = dataclasses.field(default_factory=set)
    members: int = 0
    _room: Known = None

    def add(self, amount: Known) -> None:
        """So much more is in use; what is left is computed when it is read."""
        amounts.add(self.allocated, amount)
        self._room = None

    def count(self, name: str, member: "_Member") -> None:
        """An application that is there already."""
        self.add(member.allocated)
        if member.runs:
            self.applications.add(name)

    def room(self) -> Known:
        """What is left of each type that the limit defines: many applications ask between two changes."""
        if self._room is None and self.limit is not None and self.limit.max_resources is not None:
            most = self.limit.max_resources
            self._room = {kind: one - self.allocated.get(kind, 0) for kind, one in most.items()}
        return self._room

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def limited_as(self) -> str:
        """The subject; or, for a wildcard, that its limit names no user."""
        named = self.limit is None or self.name in _names(self.limit, self.kind)
        return self.subject if named else f"{self.subject} (by the limit of *)"


@dataclasses.dataclass(slots=True)
class _Member:
    """An application: where it is, whose it is, what it has, and everything that counts it."""

    queue: str
    user: str
    groups: tuple[str, ...]
    allocated: dict[str, int] = dataclasses.field(default_factory=dict)
    runs: bool = False
    usages: tuple[_Usage, ...] = ()
    limited: tuple[_Usage, ...] = ()


class MeasuredLimits:
    """The limits of one partition and the usage that they measure. One thread at a time uses it."""

    def __init__(self, root: documents.QueueDocument) -> None:
        self._limits: Mapping[str, tuple[documents.Limit, ...]] = {}
        self._usages: dict[tuple[str, str, str], _Usage] = {}
        self._members: dict[str, _Member] = {}
        #: How often something that they count was given back.
        self.returned = 0
        self.configure(root)

    def __bool__(self) -> bool:
        """They limit a user or group."""
        return bool(self._limits)

    def configure(self, root: documents.QueueDocument) -> None:
        """From now on these limits hold. Usage stays; for which group an application counts is found anew."""
        self._limits = {path: queue.limits for path, queue in documents.walk(root) if queue.limits}
        self._usages.clear()
        for name, member in self._members.items():
            self._attach(member)
            for usage in member.usages:
                usage.count(name, member)

    # -- applications ------------------------------------------------------------------------------------------------

    def enter(self, application: str, queue: str, user: str, groups: Sequence[str] = ()) -> None:
        """The application is in this leaf; it has nothing yet and does not run. ValueError if it is in one already."""
        if application in self._members:
            raise ValueError(f"application {application} is in {self._members[application].queue} already")
        member = _Member(queue=queue, user=user, groups=tuple(groups))
        self._attach(member)
        self._members[application] = member

    def leave(self, application: str) -> None:
        """The application is gone with all that it had."""
        member = self._members[application]
        self.finish(application)
        self.release(application, dict(member.allocated))
        del self._members[application]
        for usage in member.usages:
            usage.members -= 1
            if not usage.members:
                del self._usages[usage.queue, usage.kind, usage.name]

    def may_start(self, application: str) -> LimitRefusal | None:
        """The first limit, from the queue upward, that does not let it run; None lets it, or it runs already."""
        return next(filter(None, (_one_more(usage, application) for usage in self._members[application].limited)), None)

    def start(self, application: str) -> None:
        """The application runs."""
        self._members[application].runs = True
        for usage in self._members[application].usages:
            usage.applications.add(application)

    def finish(self, application: str) -> None:
        """The inverse of `start`."""
        self.returned += 1
        self._members[application].runs = False
        for usage in self._members[application].usages:
            usage.applications.discard(application)

    # -- resources ---------------------------------------------------------------------------------------------------

    def allocate(self, application: str, amount: Known) -> None:
        """The application has so much more."""
        amounts.add(self._members[application].allocated, amount)
        for usage in self._members[application].usages:
            usage.add(amount)

    def release(self, application: str, amount: Known) -> None:
        """The inverse of `allocate`."""
        self.returned += 1
        self.allocate(application, amounts.times(amount, -1))

    def room(self, application: str) -> Known:
        """What the application may still get by all limits, by type; None without any. It may be negative."""
        found: Known = None
        for usage in self._members[application].limited:
            found = amounts.smaller(found, usage.room())
        return found

    def refusal(self, application: str, amount: Amount) -> LimitRefusal | None:
        """The first limit, from the queue upward, that does not allow so much more."""
        return next(filter(None, (_more(usage, amount) for usage in self._members[application].limited)), None)

    # -- what is shown -----------------------------------------------------------------------------------------------

    def used(self) -> tuple[Used, ...]:
        """What every user and group has in every queue, sorted by queue."""
        found = self._usages.values() if self._limits else self._counted()
        return tuple(
            Used(
                queue=usage.queue,
                subject=usage.subject,
                allocated=dict(usage.allocated),
                applications=len(usage.applications),
                max_resources=usage.limit.max_resources if usage.limit else None,
                max_applications=usage.limit.max_applications if usage.limit else 0,
            )
            for usage in sorted(found, key=lambda usage: (usage.queue, usage.subject))
        )

    def _counted(self) -> Iterable[_Usage]:
        """What users have, where no limit measures them; then no user counts for a group."""
        found: dict[tuple[str, str], _Usage] = {}
        for name, member in self._members.items():
            for path in _upward(member.queue):
                if (path, member.user) not in found:
                    found[path, member.user] = _Usage(queue=path, kind=_USERS, name=member.user, limit=None)
                found[path, member.user].count(name, member)
        return found.values()

    # -- the limits of a user -----------------------------------------------------------------------------------------

    def _attach(self, member: _Member) -> None:
        """Find everything that counts the application, from its queue upward; nothing does without limits."""
        if not self._limits:
            member.usages = member.limited = ()
            return
        paths = _upward(member.queue)
        listed = [name for path in paths for limit in self._limits.get(path, ()) for name in limit.groups]
        own = (name for name in listed if name in member.groups)
        group = next(own, WILDCARD if WILDCARD in listed else "")
        users = [self._usage(path, _USERS, member.user) for path in paths]
        groups = [self._usage(path, _GROUPS, group) for path in paths] if group else []
        member.usages = (*users, *groups)
        member.limited = tuple(usage for usage in member.usages if usage.limit is not None)

    def _usage(self, queue: str, kind: str, name: str) -> _Usage:
        usage = self._usages.get((queue, kind, name))
        if usage is None:
            usage = _Usage(queue=queue, kind=kind, name=name, limit=self._limit(queue, kind, name))
            self._usages[queue, kind, name] = usage
        usage.members += 1
        return usage

    def _limit(self, queue: str, kind: str, name: str) -> documents.Limit | None:
        """The one that names it, else the one of all others."""
        limits = self._limits.get(queue)
        if limits is None:
            return None
        named = (limit for wanted in (name, WILDCARD) for limit in limits if wanted in _names(limit, kind))
        return next(named, None)


def _names(limit: documents.Limit, kind: str) -> tuple[str, ...]:
    return limit.users if kind == _USERS else limit.groups


@functools.lru_cache(maxsize=_MOST_PATHS)
def _upward(path: str) -> tuple[str, ...]:
    """The path of a queue, then those of all above it."""
    above = path.rpartition(".")[0]
    return (path, *_upward(above)) if above else (path,)


def _one_more(usage: _Usage, application: str) -> LimitRefusal | None:
    most = usage.limit.max_applications if usage.limit else 0
    if not most or application in usage.applications or len(usage.applications) < most:
        return None
    count = f"{len(usage.applications)} of {most} applications"
    return _refused(usage, f"{usage.limited_as} runs {count}, all that queue {usage.queue} allows")


def _more(usage: _Usage, amount: Amount) -> LimitRefusal | None:
    for kind, left in (usage.room() or {}).items():
        if amount.get(kind, 0) > left:
            most = left + usage.allocated.get(kind, 0)
            has = f"has {_said(kind, most - left)} of {_said(kind, most)} that queue {usage.queue} allows"
            return _refused(usage, f"{usage.limited_as} {has}: {_said(kind, amount[kind])} more of {kind} are too much")
    return None


def _refused(usage: _Usage, words: str) -> LimitRefusal:
    return LimitRefusal(queue=usage.queue, subject=usage.subject, words=words)


def _said(kind: str, amount: int) -> str:
    return f"{amount}m" if kind == VCORE else str(amount)
