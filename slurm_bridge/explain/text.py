"""An explanation as text, and as JSON."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slurm_bridge.explain import attempts, members, preemption, queue_preemption, scores
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.explain.nodes import NodeReasons
from slurm_bridge.hooks.base import Audience
from slurm_bridge.hooks.explain import Line
from slurm_bridge.model import hostlist
from slurm_bridge.model import texts as printable
from slurm_bridge.model.job import JobView
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.scheduler import words
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Value


def render(found: Explanation, *, verbose: bool) -> str:
    """The paragraphs; empty ones are left out."""
    held = [f"  held by {' and '.join(f'hook {name}' for name in found.held_by)}"] if found.held_by else []
    body = [] if found.body is None else json.dumps(found.body, indent=2, ensure_ascii=False).splitlines()
    paragraphs = (
        ("", [found.subject.title, f"  {_verdict(found)}", *held]),
        ("to know", list(found.notes)),
        ("gang", list(_values(found.subject.gang))),
        ("members", list(members.lines(found, most=None if verbose else members.MOST))),
        ("slots", list(members.slots(found.slots))),
        ("form", list(_form(found))),
        ("values", list(_values((*found.values,)))),
        ("for hooks", [f"{key} = {value}" for key, value in found.hints.items()]),
        ("hooks", [str(line) for line in _lines(found.lines, operator=verbose)]),
        *(
            (f"nodes for {one.members}" if one.members else "nodes", list(_nodes(one, operator=verbose)))
            for one in found.reasons
        ),
        *((f"scores of {hook}", list(scores.lines(one))) for hook, one in found.matrices.items()),
        ("attempts", list(attempts.lines(found.tries))),
        ("preemption", list(preemption.lines(found.preemption)) if found.preemption is not None else []),
        ("room in queues", list(queue_preemption.lines(queue_preemption.look(found.subject)))),
        ("submission: POST /job/submit", body),
        ("the pod says", list(_condition(found.subject.lead))),
        ("Slurm says now", list(_jobs(found))),
    )
    shown = []
    for head, lines in paragraphs:
        plain = [printable.plain(line) for line in lines]
        if plain:
            shown.append("\n".join([head, *(f"  {line}" for line in plain)] if head else plain))
    return "\n\n".join(shown)


def _verdict(found: Explanation) -> str:
    if found.obstacle is None and found.placeholder is not None:
        return f"is in Slurm as job {found.placeholder.job_id}; submitted now, it would look like this"
    if found.obstacle is None:
        return "would be submitted"
    verb = "would wait" if isinstance(found.obstacle, Wait) else "would be refused"
    return f"{verb}: {found.obstacle.reason}: {found.obstacle.message}"


def _values(values: tuple[Value, ...]) -> Iterator[str]:
    name, value = (max((len(getattr(one, of)) for one in values), default=0) for of in ("field", "value"))
    for one in values:
        yield f"{one.field:<{name}}  {one.value:<{min(value, 40)}}  {one.source}"


def _lines(lines: Iterable[Line], *, operator: bool) -> Iterator[Line]:
    return (line for line in lines if operator or line.audience is Audience.USER)


def _form(found: Explanation) -> Iterator[str]:
    """How one job stands for several pods."""
    if found.form is not None and found.form is not Form.SINGLE:
        yield f"{found.form.name}: {found.form.value}"
    if found.told:
        yield found.told


def _nodes(reasons: NodeReasons, *, operator: bool) -> Iterator[str]:
    if not (reasons.eligible or reasons.excluded):
        return
    yield f"{len(reasons.eligible)} eligible{_named(reasons.eligible)}"
    for said, nodes in sorted(reasons.closed.items()):
        yield f"{len(nodes)} of these on which Slurm starts no job now ({said}){_named(nodes)}"
    for reason, nodes in sorted(reasons.shown(operator=operator).items()):
        yield f"{len(nodes)} {reason}{_named(nodes)}"


def _named(nodes: Iterable[str]) -> str:
    text = hostlist.compress(nodes)
    return f": {text}" if text else ""


def _condition(pod: Pod) -> Iterator[str]:
    for line in pod.status.conditions:
        if line.type == "PodScheduled":
            yield f"PodScheduled={line.status} {line.reason or ''} {line.message or ''}".rstrip()


def _jobs(found: Explanation) -> Iterator[str]:
    if found.jobs is None:
        return
    if not found.jobs:
        yield "it has no job"
    for view in found.jobs:
        assert view.owner is not None
        placeholder = Placeholder(job_id=view.job_id, owner=view.owner, state=view.state, since=0.0, view=view)
        said = words.waiting(placeholder) if placeholder.alive else words.ended(placeholder)
        where = f" on {hostlist.compress(view.nodes)}" if view.nodes else ""
        note = f"; note: {view.owner.note}" if view.owner.note else ""
        yield f"{said}{where}, attempt {view.owner.attempt}{note}"


def document(found: Explanation, *, verbose: bool) -> Mapping[str, Any]:
    """The JSON document; every key is always present."""
    obstacle, root = found.obstacle, found.subject.root
    return {
        "subject": found.subject.title,
        "workload": {"kind": root.kind, "namespace": root.namespace, "name": root.name, "uid": root.uid},
        "verdict": "submit" if obstacle is None else "wait" if isinstance(obstacle, Wait) else "refuse",
        "reason": obstacle.reason if obstacle is not None else "",
        "message": obstacle.message if obstacle is not None else "",
        "held_by": list(found.held_by),
        "notes": list(found.notes),
        "gang": [_machine_value(one) for one in found.subject.gang],
        "members": [dataclasses.asdict(row) for row in members.rows(found)],
        "slots": [members.machine_slot(slot) for slot in found.slots],
        "form": found.form.name if found.form is not None else "",
        "told": found.told,
        "values": [_machine_value(one) for one in found.values],
        "hints": dict(found.hints),
        "hooks": [_machine_line(line) for line in _lines(found.lines, operator=verbose)],
        "nodes": [_machine_nodes(one, operator=verbose) for one in found.reasons],
        "scores": {hook: scores.machine(one) for hook, one in found.matrices.items()},
        "attempts": [attempts.machine(one) for one in found.tries],
        "preemption": preemption.machine(found.preemption) if found.preemption is not None else None,
        "room_in_queues": queue_preemption.machine(queue_preemption.look(found.subject)),
        "submission": found.body,
        "jobs": [_machine_job(view) for view in found.jobs] if found.jobs is not None else None,
    }


def _machine_value(one: Value) -> Mapping[str, Any]:
    return {"field": one.field, "value": one.value, "source": one.source}


def _machine_line(line: Line) -> Mapping[str, Any]:
    return {
        "hook": line.hook,
        "phase": line.phase.value,
        "nodes_in": line.nodes_in,
        "nodes_out": line.nodes_out,
        "members": line.members,
        "reason": line.reason,
        "milliseconds": round(line.milliseconds, 3),
    }


def _machine_nodes(reasons: NodeReasons, *, operator: bool) -> Mapping[str, Any]:
    excluded = {reason: sorted(nodes) for reason, nodes in sorted(reasons.shown(operator=operator).items())}
    closed = {said: sorted(nodes) for said, nodes in sorted(reasons.closed.items())}
    return {"members": reasons.members, "eligible": sorted(reasons.eligible), "closed": closed, "excluded": excluded}


def _machine_job(view: JobView) -> Mapping[str, Any]:
    return {
        "job_id": view.job_id,
        "states": sorted(view.state.words),
        "reason": view.reason,
        "start_time": view.start_time,
        "partition": view.partition,
        "nodes": list(view.nodes or ()),
        "attempt": view.owner.attempt if view.owner is not None else 0,
    }
