"""Nodes of its own for each component of a job that waits although there is room for all of it.

Slurm chooses the nodes of one component after the other, the first that will do, and takes none of them back. A leader
may so be given the only free node on which its workers fit, in every round anew. And Slurm takes no update of a job of
several components: one that was submitted when fewer nodes were suitable never hears of the others.

    attempt   nodes                                                    until
    before    those that the job has                                   Slurm has looked at it once more, lacks resources
                                                                       for it, and a window is over
    shares    for each component some on which its pods fit now, none  a window is over
              of them another's
    last      all that are suitable                                    the job starts

Each step is another job. Where there is no room at the moment, the job stays as it is, in its place in Slurm's queue.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from slurm_bridge.cluster import node_shares, room
from slurm_bridge.cluster.columns import NodeColumns, Whole
from slurm_bridge.hooks.attempts import Attempt, Course, PlanState, Then
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate.translator import Translated

#: What is added to the version of a course, and to the name of an attempt.
SHARES = "shares"


Parts = tuple[Nodes, ...]


def with_shares(
    course: Course, previous: PlanState | None, of: Callable[[Attempt], Parts | None], window_seconds: float
) -> tuple[Course, PlanState | None]:
    """The course of a job that waits in its last attempt, and its state. `of` are the shares of an attempt's nodes."""
    last, version = course.attempts[-1], f"{course.version}.{SHARES}"
    shared = previous is not None and previous.version == version
    waits = previous is not None and (previous.version, previous.attempt) == (course.version, len(course.attempts) - 1)
    if previous is None or not (shared or waits):
        return course, previous
    others = {one.nodes: one for one in reversed(course.attempts)}.values()
    found = next(((one, parts) for one in others if (parts := of(one))), None)
    if found is None:
        back = dataclasses.replace(previous, version=course.version, attempt=len(course.attempts) - 1)
        return course, back if shared else previous
    within, parts = found
    nodes = functools.reduce(frozenset.union, parts, frozenset[str]())
    attempts = (
        dataclasses.replace(last, window_seconds=window_seconds, then=Then.NEXT, lacking=True),
        Attempt(
            nodes=nodes,
            within=nodes,
            name=f"{within.name}/{SHARES}".lstrip("/"),
            window_seconds=window_seconds,
            then=Then.WIDEN,
            parts=parts,
        ),
        last,
    )
    return Course(attempts=attempts, version=version), previous


def follows(state: PlanState, last: PlanState) -> bool:
    """A job was given back in its state `last` so that the next one can have this one."""
    return state.attempt > last.attempt or state.version == f"{last.version}.{SHARES}"


def begun(course: Course, state: PlanState, of: Callable[[Attempt], Parts | None]) -> Course:
    """With the attempt that begins now at shares: it is another job in any case, and has but one window."""
    now = course.attempts[state.attempt]
    if now.window_seconds is None or now.lacking or now.parts or not (parts := of(now)):
        return course
    every = [*course.attempts]
    every[state.attempt] = dataclasses.replace(now, parts=parts)
    return dataclasses.replace(course, attempts=tuple(every))


def with_room(
    course: Course, state: PlanState, of: Callable[[Attempt], Parts | None], now: float
) -> tuple[Course, PlanState]:
    """Of required sets one that has room now is tried before one that has none; the last one that is tried stays.

    Slurm is told of other nodes then: the job keeps its place in the queue.
    """
    current, last = course.attempts[state.attempt], len(course.attempts) - 1
    if current.nodes is None or of(current):
        return course, state
    following = range(state.attempt + 1, last + 1) if state.attempt < last else range(last)
    better = next((place for place in following if (one := course.attempts[place]).nodes is not None and of(one)), None)
    if better is None:
        return course, state
    if state.attempt < last:
        return course, PlanState(version=state.version, attempt=better, started=now, memo=state.memo)
    found = course.attempts[better]
    stays = dataclasses.replace(found, name=current.name, window_seconds=None, then=Then.STAY)
    return dataclasses.replace(course, attempts=(*course.attempts[:-1], stays)), state


def of_attempt(
    columns: NodeColumns, settled: Translated, pods: Sequence[Pod], every: Parts, attempt: Attempt
) -> Parts | None:
    """Some nodes of an attempt for each component, or for the one job, on which there is room now; None: too few.

    `every` are the nodes that each of them may have, `pods` all that the job is for.
    """
    nodes, parts = attempt.nodes, attempt.parts or every
    if attempt.each is not None and nodes is not None:
        least = 1 if settled.request.fixed else attempt.each
        there = _tasks(columns, pods, settled.request)[columns.mask(nodes)]
        return (nodes,) if len(there) and (there >= least).all() else None
    if nodes is not None:
        parts = tuple(part & nodes for part in parts)
    requests = (settled.request, *settled.request.components)
    if len(requests) > node_shares.MOST_COMPONENTS:
        return None
    kinds = [shape.pods for shape in settled.shapes] if settled.request.components else [pods]
    rooms = [
        np.where(columns.mask(nodes), _tasks(columns, kind, request), 0)
        for nodes, kind, request in zip(parts, kinds, requests, strict=True)
    ]
    counts = tuple(request.tasks for request in requests)
    if any(int(there.sum()) < count for there, count in zip(rooms, counts, strict=True)):
        return None
    rows = np.flatnonzero(np.logical_or.reduce([there > 0 for there in rooms]))
    takes = zip(rows.tolist(), np.stack([there[rows] for there in rooms], axis=1).tolist(), strict=True)
    try:
        given = node_shares.shared(counts, takes, len(rows))
    except node_shares.UnclearShares:
        given = None
    if given is None:
        return None
    names = columns.names
    return tuple(frozenset(str(names[row]) for row, part in given if part == number) for number in range(len(counts)))


def _tasks(columns: NodeColumns, pods: Sequence[Pod], request: JobRequest) -> Whole:
    """For how many tasks of a component each node has room now; a fixed number of nodes takes one on each."""
    there = room.task_slots(columns, pods[: -(-len(pods) // request.tasks)], request)
    return np.minimum(there, 1 if request.fixed else request.tasks)
