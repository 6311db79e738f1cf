"""Equal workloads are planned once for each version of the cluster, where every hook says that it is steady.

A steady hook ships with the bridge, and what it says follows from a workload without its names and uids, and from the
version of the cluster alone. The plan of the first workload is then that of all workloads with the same template: each
has its own name, owner, comment, pods and beginning.
"""

import dataclasses

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.emitter import Emission
from slurm_bridge.hooks.plans import Plan
from slurm_bridge.model.job import JobRequest
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate import members
from slurm_bridge.translate.templates import MOST
from slurm_bridge.translate.translator import RequestTemplate, Translated


@dataclasses.dataclass(frozen=True, slots=True)
class _KnownPlan:
    """A plan, and for each of its values the place of the translated one that it is, or None for one of its own."""

    plan: Plan
    places: tuple[int | None, ...]


class PlanCache:
    """Plans by template, of a chain that is `steady`; used without a lock, at worst a plan is worked out twice.

    Those of another version of the cluster are dropped together: each holds sets of nodes of its own.
    """

    def __init__(self, *, steady: bool) -> None:
        self._steady = steady
        self._known: tuple[int, dict[RequestTemplate, _KnownPlan]] = (-1, {})

    def get(self, snapshot: ClusterSnapshot, translated: Translated, now: float) -> Plan | None:
        """The plan of an equal workload, as that of this one; it begins now."""
        if not self._steady or translated.template is None:
            return None
        version, plans = self._known
        kept = plans.get(translated.template) if version == snapshot.version else None
        return _filled(kept, translated, now) if kept is not None else None

    def keep(self, snapshot: ClusterSnapshot, translated: Translated, plan: Plan) -> None:
        """For the next workloads that are equal."""
        if not self._steady or translated.template is None or not _is_common(translated, plan):
            return
        own = {id(value): place for place, value in enumerate(translated.values)}
        version, plans = self._known
        if version != snapshot.version or len(plans) >= MOST:
            plans = {}
            self._known = snapshot.version, plans
        plans[translated.template] = _KnownPlan(plan, tuple(own.get(id(value)) for value in plan.values))


def _filled(kept: _KnownPlan, mine: Translated, now: float) -> Plan:
    like, values = kept.plan, mine.values
    request = _named(like.request, mine.request)
    return Plan(
        request=request,
        basis=request if like.basis is like.request else _named(like.basis, mine.request),
        values=tuple(
            [one if place is None else values[place] for one, place in zip(like.values, kept.places, strict=True)]
        ),
        state=frozen_records.replaced(like.state, started=now),
        course=like.course,
        lines=like.lines,
        eligible=like.eligible,
        emission=Emission(request, like.emission.territory, like.emission.allowed),
        hints=like.hints,
        shapes=mine.shapes,
        form=like.form,
        told=like.told,
        moving=like.moving,
        wanted=like.wanted,
    )


def _named(request: JobRequest, mine: JobRequest) -> JobRequest:
    return frozen_records.replaced(request, name=mine.name, owner=mine.owner, comment=mine.comment)


def _is_common(translated: Translated, plan: Plan) -> bool:
    """Nothing of what is the workload's own became something else on the way."""
    mine, sent = translated.request, plan.request
    same = (mine.name, mine.owner, mine.comment) == (sent.name, sent.owner, sent.comment)
    whose = {value.source for value in translated.values if value.field in ("name", "owner", "comment")}
    changed = [value for value in plan.values if not any(value is one for one in translated.values)]
    mixed = any(value.source.startswith(source) for value in changed for source in whose)
    pods = {members.subject(pod) for shape in translated.shapes for pod in shape.pods}
    mixed = mixed or any(value.subject in pods or any(one in value.source for one in pods) for value in changed)
    return same and not mixed and plan.shapes is translated.shapes and not (plan.ignored or plan.matrices)
