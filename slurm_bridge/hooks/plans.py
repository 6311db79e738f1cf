"""What the chain ends in: a request that is ready to be sent, with all that it rests on.

A gang that has room on fewer nodes than Slurm might take tries those few first, where no hook prefers any:

    the first request          the same job later
    with a maximum             keeps one, be it as high as its tasks: Slurm can raise a maximum, not take it away
    without                    never gets one: it could not be taken away again, and the job would have to be a new one
    other number of members    is looked at anew: that is an update in any case
"""

import dataclasses
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping

from slurm_bridge.cluster.room import NodeRooms
from slurm_bridge.hooks.attempts import PLAIN, Attempt, Course, PlanState, Then, rewritten
from slurm_bridge.hooks.base import Ask, Matrix, Nodes, Scores
from slurm_bridge.hooks.combined import Ranking
from slurm_bridge.hooks.emitter import Emission
from slurm_bridge.hooks.explain import Line
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.job import JobRequest
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate.shapes import Form, Shape
from slurm_bridge.translate.translator import Translated, Value, numbered


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request that is ready to be sent, and what it rests on.

    `basis` is the request without the preferences of this attempt: what stays the same when only scores move.
    `moving`: what runs on the nodes is part of why some of them are excluded. `matrices` tell how the scores came
    about, by hook. `shapes` belong to the parts of a heterogeneous request, in order. `told` is what its owner has to
    know about its form, `ignored` what no hook honours; `wanted` is what the workload itself asks of its nodes
    together.
    """

    request: JobRequest
    basis: JobRequest
    values: tuple[Value, ...]
    state: PlanState
    course: Course
    lines: tuple[Line, ...]
    eligible: int
    emission: Emission
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    form: Form = Form.SINGLE
    told: str = ""
    ignored: str = ""
    matrices: Mapping[str, Matrix] = dataclasses.field(default_factory=dict)
    moving: bool = False
    wanted: tuple[str, ...] = ()

    @property
    def excluded(self) -> Nodes:
        """The nodes of its partitions, by Kubernetes' names, that it keeps away from."""
        return self.emission.excluded

    @property
    def tier(self) -> str:
        """Which of the best nodes it asks for now, to be told from the others; "" where it asks for a whole set."""
        attempt = self.course.attempts[self.state.attempt]
        return "" if attempt.nodes is attempt.within else f"{self.state.version}.{self.state.attempt}"

    @property
    def place(self) -> str:
        """Which set a job of several components is asked for: Slurm takes no update of it, so another is a new job."""
        name = self.course.attempts[self.state.attempt].name
        several = name and self.request.components
        return hashlib.blake2s(name.encode(), digest_size=2).hexdigest() if several else ""

    @property
    def tried(self) -> bool:
        """This is the last of its sets, or it has been through all of them."""
        every = self.course.attempts
        return {one.name for one in every[: self.state.attempt + 1]} == {one.name for one in every}

    @property
    def window_seconds(self) -> float | None:
        """How long this attempt may wait once Slurm has looked at it; None: it is the last one."""
        return self.course.attempts[self.state.attempt].window_seconds


def single_task(request: JobRequest) -> bool:
    """One task, which takes one node although no field says so."""
    return request.tasks == 1 and request.minimum_nodes is request.maximum_nodes is None and not request.components


def _countable(request: JobRequest) -> bool:
    """Several tasks, on as many nodes as a hook likes: the user has said no number of nodes."""
    return request.tasks > 1 and request.minimum_nodes is request.maximum_nodes is None and not request.components


def limited(settled: Translated, attempt: Attempt) -> Translated:
    """With the attempt's numbers of nodes and pods; of a single task all that there is to say is said."""
    if attempt.each is not None and attempt.nodes is not None and _countable(settled.request):
        count, why = len(attempt.nodes), attempt.name or "each pod has its node"
        exactly = {"minimum_nodes": count, "maximum_nodes": count, "tasks_per_node": attempt.each}
        return numbered(settled, {field: (number, why) for field, number in exactly.items()})
    if attempt.most is None:
        return settled
    numbers = {"maximum_nodes": (attempt.most, attempt.name or "as many as there are pods")}
    if single_task(settled.request):
        numbers["minimum_nodes"] = 1, "one node for one task"
    return numbered(settled, numbers)


def ranked(session: Session, ask: Ask, request: JobRequest, rated: Scores, rooms: NodeRooms) -> Ranking:
    """By these scores, among the nodes that have room now for the first of its pods."""
    workload = ask.workload
    # A hook that asks for a single tier wants the scores shown, and not followed.
    followed = (rated.tiers is None or rated.tiers.count > 1) and rated.nodes
    roomy = rooms.now(session.columns, workload.lead, request) if followed else None
    turn = zlib.crc32(workload.root.uid.encode())
    return Ranking(scores=rated, columns=session.columns, roomy=roomy, turn=turn)


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
    most = min(number or tasks, tasks)
    first = (Attempt(most=most, name="fewest nodes", window_seconds=FEW_SECONDS, then=Then.WIDEN),)
    others = [rewritten(one, one.window_seconds, one.then, tasks) for one in course.attempts]
    attempts = (*first, *others) if most < tasks else tuple(others)
    return Course(attempts=attempts, version=f"{course.version}.{most}-{tasks}")
