"""What the chain ends in: a request that is ready to be sent, with all that it rests on."""

import dataclasses
import hashlib
from collections.abc import Mapping

from slurm_bridge.hooks.attempts import Course, PlanState
from slurm_bridge.hooks.base import Matrix, Nodes
from slurm_bridge.hooks.emitter import Emission
from slurm_bridge.hooks.explain import Line
from slurm_bridge.model.job import JobRequest
from slurm_bridge.translate.shapes import Form, Shape
from slurm_bridge.translate.translator import Value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request that is ready to be sent, and what it rests on.

    `basis` is the request without the preferences of this attempt: what stays the same when only scores move.
    `moving`: what runs on the nodes is part of why some of them are excluded. `matrices` tell how the scores came
    about, by hook. `shapes` belong to the parts of a heterogeneous request, in order. `told` is what its owner has to
    hear of its form, `ignored` what of it nobody honours; `wanted` is what the workload itself asks of its nodes
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
