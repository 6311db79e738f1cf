"""Which queue an application is put into: the placement rules of its partition, in order.

a rule answers   what follows
a queue          taken if the user may submit and it is an active leaf, or can come to be; else the next rule
nothing          the next rule
an error         the application is rejected at once
no rule is left  a forced application is recovered; others go to root.default, or are rejected
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from slurm_bridge.families.yunikorn.queues import acl, tree
from slurm_bridge.families.yunikorn.queues.config import names
from slurm_bridge.families.yunikorn.queues.config.documents import ROOT, PlacementRule, UserFilter
from slurm_bridge.runtime import frozen_records

DEFAULT = f"{ROOT}.default"

INVALID_NAME = "invalid queue name"
LEAF_ABOVE = "parent rule returned a leaf queue"

#: Without any rule an application goes where it says.
_NO_RULES = (PlacementRule(name="provided"),)

_QUALIFIED = f"{ROOT}."
#: So many queues are named to a user whose own one does not take the workload.
_MOST_TAKERS = 10


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationCandidate:
    """An application, as far as rules look at it; `queue` is the one it asks for, names of tags are lower case."""

    user: str
    groups: Sequence[str] = ()
    queue: str = ""
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    forced: bool = False


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The application's queue; None where it does not exist yet and has to be made, or is the recovery queue."""

    path: str
    queue: tree.Queue | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """No queue takes it, and why; `error` is what made a rule fail, "" where none did."""

    why: str
    error: str = ""


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _RuleAnswer:
    """What a rule says: a path, or why there is none; with an error no other rule is asked."""

    path: str = ""
    why: str = ""
    error: str = ""


def place(root: tree.Queue, rules: Sequence[PlacementRule], candidate: ApplicationCandidate) -> Placed | Rejected:
    """The queue by the first rule that has one which takes the application."""
    reasons: list[str] = []
    for rule in rules or _NO_RULES:
        answer = _evaluate(root, rule, candidate)
        if answer.error:
            return Rejected(why=f"{_named(rule)}: {answer.why}", error=answer.error)
        queue = _find(root, answer.path) if answer.path else None
        obstacle = answer.why or _obstacle(root, answer.path, queue, candidate)
        if not obstacle:
            return Placed(path=queue.path if queue else answer.path, queue=queue)
        reasons.append(f"{_named(rule)}: {obstacle}")
    listed = any(rule.kind == "provided" for rule in rules or _NO_RULES)
    return _without_rule(root, candidate, reasons, listed=listed)


def _without_rule(
    root: tree.Queue, candidate: ApplicationCandidate, reasons: Sequence[str], *, listed: bool
) -> Placed | Rejected:
    """`listed`: an application may name its queue, so that it helps to know which ones there are."""
    if candidate.forced:
        return Placed(path=acl.RECOVERY, queue=_find(root, acl.RECOVERY))
    fallback = _find(root, DEFAULT)
    obstacle = _obstacle(root, DEFAULT, fallback, candidate) if fallback else f"{DEFAULT} does not exist"
    if not obstacle:
        return Placed(path=DEFAULT, queue=fallback)
    takers = f"queues that take workloads of this user: {_takers(root, candidate)}" if listed else ""
    return Rejected(why=f"no queue for user {candidate.user}: {'; '.join(filter(None, (*reasons, obstacle, takers)))}")


def _takers(root: tree.Queue, candidate: ApplicationCandidate) -> str:
    """The leaves that would take it: the first ones, and how many more there are."""
    leaves = (queue for queue in tree.downward(root) if queue.leaf)
    paths = [queue.path for queue in leaves if not _obstacle(root, queue.path, queue, candidate)]
    more = f" and {len(paths) - _MOST_TAKERS} more" if len(paths) > _MOST_TAKERS else ""
    return f"{', '.join(paths[:_MOST_TAKERS])}{more}" or "none"


def _find(root: tree.Queue, path: str) -> tree.Queue | None:
    """The queue of this path, in any case of letters: names in the configuration differ in more than that."""
    return tree.find(root, path) or tree.find(root, path.lower())


def _obstacle(root: tree.Queue, path: str, queue: tree.Queue | None, candidate: ApplicationCandidate) -> str:
    """Why this queue, None where it is to be made, does not take the application; "" where it does."""
    if queue is not None and not queue.leaf:
        return f"{path} is a parent, and applications go into leaves"
    if queue is not None and queue.state is not tree.State.ACTIVE:
        return f"{path} is {queue.state.value}"
    if path.lower() == acl.RECOVERY:
        return f"no user may submit to {path}"
    guarded = queue or _nearest(root, path)
    if not may_submit(guarded, candidate.user, candidate.groups):
        return f"user {candidate.user} may not submit to {guarded.path}"
    return ""


def may_submit(queue: tree.Queue, user: str, groups: Collection[str]) -> bool:
    """The queue or one above it lets the user submit or administer; no user submits to the recovery queue."""
    return queue.path != acl.RECOVERY and any(
        above.submit_acl.allows(user, groups) or above.admin_acl.allows(user, groups) for above in queue.lineage
    )


def _nearest(root: tree.Queue, path: str) -> tree.Queue:
    """The nearest queue above that exists."""
    above = path
    while found := above.rpartition(".")[0]:
        queue = _find(root, found)
        if queue is not None:
            return queue
        above = found
    return root


# -- one rule --------------------------------------------------------------------------------------------------------


def _evaluate(root: tree.Queue, rule: PlacementRule, candidate: ApplicationCandidate) -> _RuleAnswer:
    value = _value(rule, candidate)
    if not value:
        return _RuleAnswer(why="the application has no value for it")
    if not _passes(rule.filter, candidate):
        return _RuleAnswer(why=f"its filter does not let user {candidate.user} pass")
    answer = _path(root, rule, value, candidate)
    if answer.path and not rule.create and _find(root, answer.path) is None:
        return _RuleAnswer(why=f"{answer.path} does not exist")
    return answer


def _path(root: tree.Queue, rule: PlacementRule, value: str, candidate: ApplicationCandidate) -> _RuleAnswer:
    """The value, checked, below what the parent rule finds, unless it says itself where it is."""
    qualified = rule.kind != "user" and value.startswith(_QUALIFIED)
    name = value if qualified or rule.kind == "fixed" else value.replace(".", "_dot_")
    wrong = next((part for part in name.split(".") if not names.QUEUE.fullmatch(part)), None)
    if wrong is not None:
        return _RuleAnswer(error=INVALID_NAME, why=f"{INVALID_NAME} {wrong!r}: use 1 to 64 {names.IN_QUEUES}")
    if qualified:
        return _RuleAnswer(path=name)
    above = _above(root, rule, candidate)
    return _RuleAnswer(path=f"{above.path}.{name}") if above.path else above


def _above(root: tree.Queue, rule: PlacementRule, candidate: ApplicationCandidate) -> _RuleAnswer:
    """What the parent rule finds, root without one; no leaf that exists."""
    if rule.parent is None:
        return _RuleAnswer(path=ROOT)
    answer = _evaluate(root, rule.parent, candidate)
    queue = _find(root, answer.path) if answer.path else None
    if queue is not None and queue.leaf:
        return _RuleAnswer(error=LEAF_ABOVE, why=f"{LEAF_ABOVE}, {queue.path}")
    return answer


def _value(rule: PlacementRule, candidate: ApplicationCandidate) -> str:
    """What the rule goes by; "" where the application has none of it."""
    match rule.kind:
        case "provided":
            return candidate.queue
        case "tag":
            return candidate.tags.get(rule.value.lower(), "")
        case "user":
            return candidate.user
        case _:
            return rule.value.lower()


def _named(rule: PlacementRule) -> str:
    return f"rule {rule.name} {rule.value}" if rule.value else f"rule {rule.name}"


# -- filters ---------------------------------------------------------------------------------------------------------


def _passes(chosen: UserFilter, candidate: ApplicationCandidate) -> bool:
    """A filter without users allows all, or denies all."""
    if not chosen.users and not chosen.groups:
        return chosen.allows
    listed = _lists(chosen.users, (candidate.user,)) or _lists(chosen.groups, candidate.groups)
    return listed == chosen.allows


def _lists(entries: Sequence[str], wanted: Sequence[str]) -> bool:
    expression = names.expression(entries[0]) if len(entries) == 1 else None
    if expression is not None:
        return any(expression.search(name) for name in wanted)
    return any(name in entries for name in wanted)
