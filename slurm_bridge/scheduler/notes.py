"""What pods say of who makes room for whom. Whoever may write on pods may have written nonsense: that says nothing.

on a victim            {"uid": of the asker, or "", "for": its name, or why the queue wants it}
on whoever asked       {"victims": their names by uid, "nodes": on which they are, or were}
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod


def text(says: Mapping[str, object]) -> str:
    """The same for the same."""
    return json.dumps(says, sort_keys=True, separators=(",", ":"))


def makes_room_for(pods: Iterable[Pod]) -> str | None:
    """The uid of whom these pods leave for, "" where their queue only has too much; None where they do not say so."""
    said = (_read(pod, names.ANNOTATION_MAKES_ROOM).get("uid") for pod in pods)
    return next((one for one in said if isinstance(one, str)), None)


def whom(pods: Iterable[Pod]) -> str:
    """The name of whom these pods leave for, or why their queue wants them to; "" where they do not say so."""
    said = (_read(pod, names.ANNOTATION_MAKES_ROOM).get("for") for pod in pods)
    return next((one for one in said if isinstance(one, str) and one), "")


def room_made_by(pods: Iterable[Pod]) -> Mapping[str, str]:
    """The names of those who leave for these pods, by uid."""
    for pod in pods:
        victims = _read(pod, names.ANNOTATION_ROOM).get("victims")
        if isinstance(victims, dict) and victims and all(isinstance(one, str) for one in victims.values()):
            return victims
    return {}


def room_on(pods: Iterable[Pod]) -> frozenset[str]:
    """The nodes that are cleared for these pods."""
    found = (_read(pod, names.ANNOTATION_ROOM).get("nodes") for pod in pods)
    lists = (one for one in found if isinstance(one, list))
    return frozenset(node for one in lists for node in one if isinstance(node, str))


def _read(pod: Pod, key: str) -> Mapping[str, Any]:
    try:
        found = json.loads(pod.metadata.annotations.get(key, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
