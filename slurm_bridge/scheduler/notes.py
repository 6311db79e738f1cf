"""What pods say of who makes room for whom. Whoever may write on pods may have written nonsense: that says nothing.

on a victim            {"uid": of the asker, or "", "for": its name, or why the queue wants it}
on whoever asked       {"victims": their names by uid, "nodes": on which they are, or were}
"""

import json
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import written


class Going(msgspec.Struct, frozen=True):
    """On a victim."""

    uid: str | None = None
    whom: str = msgspec.field(default="", name="for")


class Room(msgspec.Struct, frozen=True):
    """On whoever asked."""

    victims: dict[str, str] = {}
    nodes: list[str] = []


T = TypeVar("T", Going, Room)


def text(says: Mapping[str, object]) -> str:
    """The same for the same."""
    return json.dumps(says, sort_keys=True, separators=(",", ":"))


def makes_room_for(pods: Iterable[Pod]) -> str | None:
    """The uid of whom these pods leave for, "" where their queue only has too much; None where they do not say so."""
    said = (_read(pod, names.ANNOTATION_MAKES_ROOM, Going).uid for pod in pods)
    return next((one for one in said if one is not None), None)


def whom(pods: Iterable[Pod]) -> str:
    """The name of whom these pods leave for, or why their queue wants them to; "" where they do not say so."""
    return next((one for pod in pods if (one := _read(pod, names.ANNOTATION_MAKES_ROOM, Going).whom)), "")


def room_made_by(pods: Iterable[Pod]) -> Mapping[str, str]:
    """The names of those who leave for these pods, by uid."""
    return next((one for pod in pods if (one := _read(pod, names.ANNOTATION_ROOM, Room).victims)), {})


def room_on(pods: Iterable[Pod]) -> frozenset[str]:
    """The nodes that are cleared for these pods."""
    return frozenset(node for pod in pods for node in _read(pod, names.ANNOTATION_ROOM, Room).nodes)


def _read(pod: Pod, key: str, shape: type[T]) -> T:
    """What is not readable says nothing."""
    text = pod.metadata.annotations.get(key)
    found = written.read(text, shape, most=names.MOST_OF_ROOM) if text else None
    return found if isinstance(found, shape) else shape()
