"""A node maximum for jobs that Slurm would else spread over more nodes than it has to.

A gang that has room on fewer nodes than Slurm might take tries those few first, where no hook prefers any:

    the first request          the same job later
    with a maximum             keeps one, be it as high as its tasks: Slurm can raise a maximum, not take it away
    without                    never gets one: it could not be taken away again, and the job would have to be a new one
    other number of members    is looked at anew: that is an update in any case
"""

import re
from collections.abc import Callable

from slurm_bridge.hooks.attempts import PLAIN, Attempt, Course, PlanState, Then, rewritten

#: For how many seconds the fewest nodes alone are tried. Slurm has looked when it begins: what had the room then has
#: started, and what has not waits only for jobs that are just ending. Any longer delays a gang that can start on more.
FEW_SECONDS = 3.0

#: What `bounded` adds to a version.
_BOUND = re.compile(r"\.(?P<most>[0-9]+)-(?P<tasks>[0-9]+)$")


def bounded(course: Course, previous: PlanState | None, tasks: int, fewest: Callable[[], int | None]) -> Course:
    """The course for a gang of so many tasks; `fewest` tells on how few nodes it might start, and is asked but once.

    The answer is part of the version: it stands as long as the members do, whatever becomes of the room meanwhile.
    A single task takes one node anyway. One that an earlier version has asked for with that number keeps it.
    """
    before = _BOUND.search(previous.version) if previous is not None else None
    if previous is not None and before is None:
        return course
    if tasks == 1:
        number = 1 if before is not None and course is not PLAIN else None
    elif course is not PLAIN:
        number = None
    elif before is not None and int(before["tasks"]) == tasks:
        number = int(before["most"])
    else:
        number = fewest()
    if number is None and before is None:
        return course
    return _bounded(course, min(number or tasks, tasks), tasks)


def _bounded(course: Course, most: int, tasks: int) -> Course:
    first = (Attempt(most=most, name="fewest nodes", window_seconds=FEW_SECONDS, then=Then.WIDEN),)
    others = [rewritten(one, one.window_seconds, one.then, tasks) for one in course.attempts]
    attempts = (*first, *others) if most < tasks else tuple(others)
    return Course(attempts=attempts, version=f"{course.version}.{most}-{tasks}")
