"""What pods say of evictions for queues. Users may write on pods: what is not readable says nothing.

on a victim      {"uid": of the asker, or "", "for": its name, or what the queue is over}
on the asker     {"victims": their names by uid, "nodes": on which they are, or were}
"""

import json
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import written


class VictimNote(msgspec.Struct, frozen=True):
    """On a victim."""

    uid: str | None = None
    cause: str = msgspec.field(default="", name="for")


class AskerNote(msgspec.Struct, frozen=True):
    """On the asker."""

    victims: dict[str, str] = {}
    nodes: list[str] = []


T = TypeVar("T", VictimNote, AskerNote)


def text(says: Mapping[str, object]) -> str:
    """The same for the same."""
    return json.dumps(says, sort_keys=True, separators=(",", ":"))


def makes_room_for(pods: Iterable[Pod]) -> str | None:
    """The uid of the workload that these pods leave for, "" for none; None where they do not say that they leave."""
    said = (_read(pod, names.ANNOTATION_MAKES_ROOM, VictimNote).uid for pod in pods)
    return next((one for one in said if one is not None), None)


def cause(pods: Iterable[Pod]) -> str:
    """The name of the workload that these pods leave for, or what their queue is over; "" where they do not say so."""
    return next((one for pod in pods if (one := _read(pod, names.ANNOTATION_MAKES_ROOM, VictimNote).cause)), "")


def room_made_by(pods: Iterable[Pod]) -> Mapping[str, str]:
    """The names of the workloads that leave for these pods, by uid."""
    return next((one for pod in pods if (one := _read(pod, names.ANNOTATION_ROOM, AskerNote).victims)), {})


def room_on(pods: Iterable[Pod]) -> frozenset[str]:
    """The nodes that are cleared for these pods."""
    return frozenset(node for pod in pods for node in _read(pod, names.ANNOTATION_ROOM, AskerNote).nodes)


def _read(pod: Pod, key: str, shape: type[T]) -> T:
    """What is not readable says nothing."""
    text = pod.metadata.annotations.get(key)
    found = written.read(text, shape, most=names.MOST_OF_ROOM) if text else None
    return found if isinstance(found, shape) else shape()
