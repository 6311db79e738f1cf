"""An explanation of a pod as viewers get it."""

from collections.abc import Mapping
from typing import Any

from slurm_bridge.explain import text
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.hooks.base import Audience
from slurm_bridge.model import texts
from slurm_bridge.model.verdict import Wait
from slurm_bridge.view import makers, next_steps

#: Letters of the whole explanation.
MOST_TEXT = 256 << 10


def shown(found: Explanation, *, whole: bool) -> Mapping[str, Any]:
    """Plain values. Without `whole` nothing that names nodes or other pods, as not every viewer may list those."""
    obstacle = found.obstacle
    lines = [line for line in found.lines if line.audience is Audience.USER]
    excluded: dict[str, int] = {}
    for reasons in found.reasons:
        for reason, nodes in reasons.shown(operator=False).items():
            excluded[reason] = excluded.get(reason, 0) + len(nodes)
    return {
        "title": texts.bounded(found.subject.title),
        "verdict": "submit" if obstacle is None else "wait" if isinstance(obstacle, Wait) else "refuse",
        "reason": obstacle.reason if obstacle is not None else "",
        "message": obstacle.message if obstacle is not None else "",
        "step": next_steps.step(obstacle.reason, 0, makers.kind_of(found.subject.lead)) if obstacle is not None else "",
        "held_by": list(found.held_by),
        "notes": [texts.bounded(note) for note in found.notes],
        "values": [
            {"field": one.field, "value": texts.bounded(one.value), "source": texts.bounded(one.source)}
            for one in (found.values if whole else ())
        ],
        "hooks": [
            {
                "hook": line.hook,
                "phase": line.phase.value,
                "nodes_in": line.nodes_in,
                "nodes_out": line.nodes_out,
                "reason": texts.bounded(line.reason),
            }
            for line in lines
        ],
        "eligible": sum(len(reasons.eligible) for reasons in found.reasons),
        "closed": {said: len(nodes) for one in found.reasons for said, nodes in sorted(one.closed.items())},
        "excluded": dict(sorted(excluded.items(), key=lambda one: -one[1])),
        "text": text.render(found, verbose=False)[:MOST_TEXT] if whole else "",
    }
