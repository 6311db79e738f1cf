"""The properties of queues: what each may be, its default, and what of it a queue hands down to its children."""

import dataclasses
import enum
import re
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.families.yunikorn.queues.priorities import PriorityPolicy
from slurm_bridge.families.yunikorn.queues.settings import PreemptionPolicy, SortPolicy

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_STRETCH = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ns|us|µs|ms|s|m|h)")
_OFFSETS = range(-(2**31), 2**31)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """The properties that one queue states itself; None is handed down from above."""

    sort_policy: SortPolicy | None = None
    priority_sorting: bool | None = None
    offset: int | None = None
    priority_policy: PriorityPolicy | None = None
    preemption_policy: PreemptionPolicy | None = None
    preemption_delay: float | None = None
    quota_preemption_delay: float | None = None
    backoff: int | None = None
    backoff_delay: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """The properties that hold for a queue; the sort policy is None where no queue on the way up states one.

    `backoff` is the number of asks without room after which an application pauses for `backoff_delay`; 0 is never.
    A quota preemption delay of 0 is no quota preemption.
    """

    sort_policy: SortPolicy | None = None
    priority_sorting: bool = True
    offset: int = 0
    priority_policy: PriorityPolicy = PriorityPolicy.DEFAULT
    preemption_policy: PreemptionPolicy = PreemptionPolicy.DEFAULT
    preemption_delay: float = 30.0
    quota_preemption_delay: float = 0.0
    backoff: int = 0
    backoff_delay: float = 30.0


NOTHING = Stated()
DEFAULTS = Properties()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property: its field, what its text means (ValueError when nothing), and that in words."""

    field: str
    read: Callable[[str], Any]
    allowed: str


def duration(text: str) -> float:
    """Seconds in Go's notation, `1m30s`; ValueError when it is none."""
    stretches = _STRETCH.findall(text)
    if text != "0" and (not stretches or "".join(number + unit for number, unit in stretches) != text):
        raise ValueError(f"{text!r} is not a duration")
    return sum(float(number) * _UNITS[unit] for number, unit in stretches)


def _positive(text: str) -> float:
    seconds = duration(text)
    if not seconds:
        raise ValueError(f"{text!r} is no time at all")
    return seconds


def _offset(text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,10}", text) is None or int(text) not in _OFFSETS:
        raise ValueError(f"{text!r} is not a whole number of 32 bits")
    return int(text)


def _count(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,10}", text) is None:
        raise ValueError(f"{text!r} is not a number of asks")
    return int(text)


def _one_of(field: str, meanings: Mapping[str, Any]) -> Property:
    def read(text: str) -> Any:
        if text not in meanings:
            raise ValueError(f"{text!r} is not allowed")
        return meanings[text]

    return Property(field=field, read=read, allowed=" or ".join(meanings))


def _texts(kinds: type[enum.StrEnum]) -> Mapping[str, enum.StrEnum]:
    return {kind.value: kind for kind in kinds}


_DELAY = "a duration such as 30s or 1m30s"

#: By the name that the configuration has for them.
PROPERTIES: Mapping[str, Property] = {
    # YuniKorn's `stateaware` has been another word for `fifo` since its version 1.6.
    "application.sort.policy": _one_of("sort_policy", {**_texts(SortPolicy), "stateaware": SortPolicy.FIFO}),
    "application.sort.priority": _one_of("priority_sorting", {"enabled": True, "disabled": False}),
    "priority.offset": Property(field="offset", read=_offset, allowed="a whole number of 32 bits"),
    "priority.policy": _one_of("priority_policy", _texts(PriorityPolicy)),
    "preemption.policy": _one_of("preemption_policy", _texts(PreemptionPolicy)),
    "preemption.delay": Property(field="preemption_delay", read=_positive, allowed=f"{_DELAY}, above 0"),
    "quota.preemption.delay": Property(field="quota_preemption_delay", read=duration, allowed=_DELAY),
    "application.unschedasks.backoff": Property(field="backoff", read=_count, allowed="a whole number, 0 or more"),
    "application.unschedasks.backoff.delay": Property(
        field="backoff_delay", read=_positive, allowed=f"{_DELAY}, above 0"
    ),
}


def handed_down(properties: Properties) -> Properties:
    """What the children of a queue begin with: an offset and a fence are of one queue only, a prohibition is of all."""
    disabled = properties.preemption_policy is PreemptionPolicy.DISABLED
    return dataclasses.replace(
        properties,
        offset=DEFAULTS.offset,
        priority_policy=DEFAULTS.priority_policy,
        preemption_policy=PreemptionPolicy.DISABLED if disabled else DEFAULTS.preemption_policy,
    )


def overlaid(begin: Properties, stated: Stated) -> Properties:
    """The properties with what is stated in their place."""
    said = {field.name: getattr(stated, field.name) for field in dataclasses.fields(Stated)}
    return dataclasses.replace(begin, **{name: value for name, value in said.items() if value is not None})
