"""Which pod is sampled first: exactly one sort plugin decides."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from slurm_bridge.families.vela import extensions

#: When something was created: any values that compare, as long as they are of one kind.
Moment = Any


class SortPlugin(Protocol):
    """A key for each pod: smaller ones first."""

    def key(self, priority: int | None, created: Moment, /) -> Any: ...


class PrioritySort:
    """The higher priority, none being 0, and among equal ones the older pod."""

    def key(self, priority: int | None, created: Moment) -> Any:
        return (-(priority or 0), created)


class AgeSort:
    """The older pod, whatever its priority."""

    def key(self, _priority: int | None, created: Moment) -> Any:
        return (created,)


SORTS: Mapping[str, Callable[[], SortPlugin]] = {"PrioritySort": PrioritySort, "AgeSort": AgeSort}


def sort(name: str) -> SortPlugin:
    """The sort plugin of this name; ValueError names one that cannot be had."""
    made: SortPlugin = extensions.build(
        "sort plugin", name, extensions.find("sort plugin", extensions.SORTS, name, SORTS), {"key": 2}
    )
    return made


def only(kind: str, names: Sequence[str], known: Sequence[str]) -> str:
    """The one plugin of a kind; ValueError names all of several, or the one that is unknown."""
    allowed = ", ".join(known)
    if len(names) != 1:
        said = " and ".join(names) if names else "none"
        raise ValueError(f"{kind} plugins {said}: exactly one can be configured, out of {allowed}")
    if names[0] not in known:
        raise ValueError(f"{kind} plugin {names[0]!r} is not known; there are {allowed}")
    return names[0]
