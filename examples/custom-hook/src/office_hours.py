"""A hook that holds jobs outside office hours."""

import datetime as dt
import zoneinfo
from typing import ClassVar, Literal

import pydantic

from slurm_bridge.hooks.base import Admit, Ask, Session
from slurm_bridge.model.verdict import Wait

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

WEEK: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class OfficeHoursOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """When the office is open, by the clock on its wall."""

    timezone: str = "UTC"
    opens: dt.time = dt.time(8)
    closes: dt.time = dt.time(18)
    days: tuple[Day, ...] = pydantic.Field(default=WEEK[:5], min_length=1)

    @pydantic.field_validator("timezone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"{name!r} is no time zone such as Europe/Berlin") from error
        return name

    @pydantic.model_validator(mode="after")
    def _opens_first(self) -> "OfficeHoursOptions":
        if self.opens >= self.closes:
            raise ValueError(f"opens ({self.opens:%H:%M}) must be before closes ({self.closes:%H:%M})")
        return self


class OfficeHours:
    """Admits while the office is open; else the job waits, and is looked at again when it opens."""

    Options: ClassVar = OfficeHoursOptions

    def __init__(self, options: OfficeHoursOptions) -> None:
        self._options = options
        self._zone = zoneinfo.ZoneInfo(options.timezone)

    def admit(self, session: Session, _ask: Ask) -> Admit | Wait:
        now = dt.datetime.fromtimestamp(session.now, self._zone)
        if self._open(now):
            return Admit()
        opening = self._next_opening(now)
        message = f"the office opens on {opening:%A at %H:%M} ({self._options.timezone})"
        # Unix time knows no summer time: the difference of wall clocks would be an hour off twice a year.
        return Wait(reason="OutsideOfficeHours", message=message, retry_after=opening.timestamp() - session.now)

    def _open(self, now: dt.datetime) -> bool:
        return self._works(now) and self._options.opens <= now.time() < self._options.closes

    def _next_opening(self, now: dt.datetime) -> dt.datetime:
        """Today, or on one of the seven days that follow: one of them is a working day."""
        days = (now.date() + dt.timedelta(days=ahead) for ahead in range(8))
        openings = (dt.datetime.combine(day, self._options.opens, self._zone) for day in days)
        return next(opening for opening in openings if opening > now and self._works(opening))

    def _works(self, day: dt.datetime) -> bool:
        return WEEK[day.weekday()] in self._options.days
