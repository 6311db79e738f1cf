"""A tree follows a new configuration while it is in use: no usage is lost, and no workload loses anything.

in the tree      in the configuration   what follows
not              yes                    it is added
yes              yes                    its settings change in place; a draining one is active again
configured       not                    it drains with all below: what is there is served, nothing new is taken
made             not                    it follows its template, and drains with a draining parent
draining, empty  not                    it goes
"""

import dataclasses
import itertools
from collections.abc import Container, Iterator, Mapping

from slurm_bridge.families.yunikorn.queues import tree
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.config import tree_builder
from slurm_bridge.families.yunikorn.queues.config.problems import ConfigurationRefused, QueueProblem
from slurm_bridge.families.yunikorn.queues.config.tree_builder import Plan, Planned
from slurm_bridge.families.yunikorn.queues.tree import Queue, State


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TreeChanges:
    """What a new configuration does to a tree, as paths; `lowered` are those of `changed` whose maximum shrank."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def diff(root: Queue, plan: Plan, busy: Container[str] = ()) -> TreeChanges:
    """What `reload` would do. `busy` are the leaves with applications; Refused where a queue would change its kind.

    A leaf with applications cannot become a parent, nor a parent of queues in use a leaf.
    """
    standing = {queue.path: queue for queue in tree.downward(root)}
    problems = tuple(_obstacles(standing, plan, busy))
    if problems:
        raise ConfigurationRefused(problems)
    both = [(standing[path], one) for path, one in plan.items() if _stays(standing.get(path), one)]
    changed = [(queue, new) for queue, new in both if queue.settings != new.settings or not queue.managed]
    return TreeChanges(
        added=tuple(path for path, one in plan.items() if not _stays(standing.get(path), one)),
        changed=tuple(queue.path for queue, _ in changed),
        lowered=tuple(queue.path for queue, new in changed if _is_lower(new.settings.max, queue.settings.max)),
        returned=tuple(queue.path for queue, _ in both if queue.state is State.DRAINING),
        removed=tuple(
            path
            for path, queue in standing.items()
            if path not in plan and queue.managed and queue.state is not State.DRAINING
        ),
    )


def reload(root: Queue, plan: Plan, busy: Container[str] = ()) -> tuple[TreeChanges, tuple[Queue, ...]]:
    """Let the tree follow the configuration; what was changed, and the queues that are gone. Refused as `diff`."""
    changes = diff(root, plan, busy)
    gone: list[Queue] = []
    for path, one in plan.items():
        queue = tree.find(root, path)
        if queue is not None and queue.leaf != one.leaf:
            # It is empty, and so is all below it.
            for below in reversed(tuple(tree.downward(queue))):
                below.remove()
                gone.append(below)
            queue = None
        if queue is None:
            tree_builder.add(root, one)
        else:
            # Take over what is configured now; the root keeps its maximum, which is the size of the cluster.
            size = queue.max
            queue.managed = True
            if queue.settings != one.settings:
                queue.configure(one.settings)
                if queue.parent is None:
                    queue.resize(size)
            if queue.state is State.DRAINING:
                queue.turn(State.ACTIVE)
    _leave_behind(root, plan)
    _arrange(root, plan)
    return changes, (*gone, *sweep(root, busy))


def sweep(root: Queue, busy: Container[str] = ()) -> tuple[Queue, ...]:
    """Remove every empty queue that drains or that placement made; those that are gone."""
    below = reversed(tuple(tree.downward(root)))
    return tuple(queue for queue in below if _goes(queue, busy))


def retire(leaf: Queue, busy: Container[str] = ()) -> tuple[Queue, ...]:
    """As `sweep`, for a leaf that has just lost an application, and for what is above it."""
    return tuple(itertools.takewhile(lambda queue: _goes(queue, busy), leaf.lineage))


def _goes(queue: Queue, busy: Container[str]) -> bool:
    """Remove it, if it is empty and not configured any more."""
    wanted = queue.parent is None or (queue.managed and queue.state is not State.DRAINING)
    if wanted or queue.children or not _is_empty(queue, busy):
        return False
    queue.remove()
    return True


def _is_empty(queue: Queue, busy: Container[str]) -> bool:
    used = queue.allocated or queue.pending or queue.preempting or queue.running
    return not used and queue.path not in busy


# -- what becomes of a queue -----------------------------------------------------------------------------------------


def _stays(queue: Queue | None, one: Planned) -> bool:
    return queue is not None and queue.leaf == one.leaf


def _obstacles(standing: Mapping[str, Queue], plan: Plan, busy: Container[str]) -> Iterator[QueueProblem]:
    for path, one in plan.items():
        queue = standing.get(path)
        if queue is None or queue.leaf == one.leaf or all(_is_empty(below, busy) for below in tree.downward(queue)):
            continue
        old, new = ("leaf", "parent") if queue.leaf else ("parent", "leaf")
        there = f"makes {path} a {new}; it is a {old} in use"
        allowed = "a queue changes its kind when nothing is in it: remove it, and add it again when it has drained"
        yield QueueProblem(code="queue_kind", field=one.where, there=there, allowed=allowed)


def _leave_behind(root: Queue, plan: Plan) -> None:
    """What is configured no longer drains; what placement made follows its parent and its template."""
    for queue in tuple(tree.downward(root)):
        if queue.path in plan or queue.parent is None:
            continue
        drains = queue.managed or queue.parent.state is State.DRAINING
        if drains != (queue.state is State.DRAINING):
            queue.turn(State.DRAINING if drains else State.ACTIVE)
        if not drains:
            settings = tree_builder.made_settings(plan, queue.path, leaf=queue.leaf)
            if queue.settings != settings:
                queue.configure(settings)


def _arrange(root: Queue, plan: Plan) -> None:
    """The children of every queue in their configured order; what is not configured follows."""
    names: dict[str, list[str]] = {}
    for path in plan:
        above, _, name = path.rpartition(tree.SEPARATOR)
        names.setdefault(above, []).append(name)
    for path, children in names.items():
        queue = tree.find(root, path)
        if queue is not None:
            queue.arrange(children)


def _is_lower(new: Known, old: Known) -> bool:
    """Less is allowed of some type than before."""
    return any(old is None or amount < old.get(kind, amount + 1) for kind, amount in (new or {}).items())
