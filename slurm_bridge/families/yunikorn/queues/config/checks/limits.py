"""The limits of users and groups: each by itself, those of one queue, and those of a queue against its ancestors."""

import dataclasses
from collections.abc import Iterator, Mapping

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.config import documents, names, records
from slurm_bridge.families.yunikorn.queues.config.checks.resources import said
from slurm_bridge.families.yunikorn.queues.config.documents import Limit
from slurm_bridge.families.yunikorn.queues.config.names import WILDCARD
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem, problem

#: A list of subjects: its field, the word for one of them, and how a name of it looks.
_KINDS = (("users", "user", names.USER), ("groups", "group", names.GROUP))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _QueueLevel:
    """The limits of one queue by field and name."""

    path: str
    limits: Mapping[str, Mapping[str, Limit]]


def partition(checked: documents.PartitionDocument) -> Iterator[QueueProblem]:
    """Every limit of every queue."""
    yield from _below(checked.root, "", ())


def _below(queue: documents.QueueDocument, above: str, levels: tuple[_QueueLevel, ...]) -> Iterator[QueueProblem]:
    path = f"{above}.{queue.name}" if above else queue.name
    for limit in queue.limits:
        yield from _single(limit)
        yield from _against_queue(limit, queue, path, root=not above)
        for field, word, _ in _KINDS:
            for name in getattr(limit, field):
                yield from _against_ancestors(limit, field, f"{word} {name}", levels)
    for field, word, _ in _KINDS:
        yield from _together(queue, field, word)
    by_name = {field: {name: one for one in queue.limits for name in getattr(one, field)} for field, _, _ in _KINDS}
    for child in queue.queues:
        yield from _below(child, path, (_QueueLevel(path=path, limits=by_name), *levels))


# -- each by itself --------------------------------------------------------------------------------------------------


def _single(limit: Limit) -> Iterator[QueueProblem]:
    if not limit.users and not limit.groups:
        yield problem("limit_without_subject", limit.where, "has neither users nor groups", "it needs one of them")
    if not limit.max_applications and limit.max_resources is None:
        there = "has neither maxapplications nor maxresources"
        yield problem("limit_empty", limit.where, there, "it needs one of them")
    elif limit.max_resources is not None and not amounts.is_positive(limit.max_resources):
        there = f"is {', '.join(f'{kind} {said(kind, one)}' for kind, one in limit.max_resources.items())}"
        allowed = "no amount is negative and one at least is above 0"
        yield problem("limit_resources_not_positive", f"{limit.where}.maxresources", there, allowed)
    for field, word, form in _KINDS:
        for place, name in enumerate(getattr(limit, field)):
            if name != WILDCARD and not form.fullmatch(name):
                allowed = f"use * or names like {form.pattern}"
                yield problem(f"limit_{word}_name", f"{limit.where}.{field}[{place}]", f"is {name!r}", allowed)


def _against_queue(limit: Limit, queue: documents.QueueDocument, path: str, *, root: bool) -> Iterator[QueueProblem]:
    if 0 < queue.max_applications < limit.max_applications:
        allowed = f"use at most those of {path}, {queue.max_applications}"
        there = f"is {limit.max_applications}"
        yield problem("limit_applications_above_queue", f"{limit.where}.maxapplications", there, allowed)
    if not root:
        yield from _resources(limit, queue.max, "limit_resources_above_queue", f"the maximum of {path}")


# -- those of one queue ----------------------------------------------------------------------------------------------


def _together(queue: documents.QueueDocument, field: str, word: str) -> Iterator[QueueProblem]:
    """The names of all its limits, top to bottom."""
    seen: dict[str, str] = {}
    listed = [
        (f"{limit.where}.{field}[{place}]", name)
        for limit in queue.limits
        for place, name in enumerate(getattr(limit, field))
    ]
    for where, name in listed:
        if name in seen:
            yield problem(f"limit_duplicate_{word}", where, f"is {name!r} again", f"it stands in {seen[name]} already")
        elif WILDCARD in seen:
            allowed = f"nothing follows the * in {seen[WILDCARD]}, it is for all others"
            yield problem("limit_after_wildcard", where, f"is {name!r}", allowed)
        elif word == "group" and name == WILDCARD and not seen:
            allowed = "a named group stands before it"
            yield problem("limit_only_wildcard_group", where, "is '*' alone", allowed)
        seen.setdefault(name, where)


# -- against the ancestors -------------------------------------------------------------------------------------------


def _against_ancestors(
    limit: Limit, field: str, subject: str, levels: tuple[_QueueLevel, ...]
) -> Iterator[QueueProblem]:
    """Against the limits of the same name above, or those of the wildcard for a name that is not limited there."""
    word, name = subject.split(" ", 1)
    named = any(name in level.limits[field] for level in levels)
    above, suffix = (name, "") if named else (WILDCARD, "_wildcard")
    for level in levels:
        other = level.limits[field].get(above)
        if other is not None:
            whom = f"{word} {above} in {level.path}"
            yield from _resources(limit, other.max_resources, f"limit_above_ancestor{suffix}", whom)
            yield from _applications(limit, other, f"limit_applications_above_ancestor{suffix}", whom)


def _applications(limit: Limit, above: Limit, code: str, whom: str) -> Iterator[QueueProblem]:
    most, wanted = above.max_applications, limit.max_applications
    if most and (wanted > most or not wanted):
        there = f"is {wanted}" if wanted else "is missing or 0, which is no limit"
        yield problem(code, f"{limit.where}.maxapplications", there, f"use at most those of {whom}, {most}")


def _resources(limit: Limit, most: amounts.Known, code: str, whose: str) -> Iterator[QueueProblem]:
    for kind, amount in (limit.max_resources or {}).items():
        if most and amount > most.get(kind, amount):
            where = records.field(f"{limit.where}.maxresources", kind)
            allowed = f"use at most what {whose} has, {said(kind, most[kind])}"
            yield problem(code, where, f"is {said(kind, amount)}", allowed)
