"""Jobs wait outside office hours, exactly until the office opens."""

import datetime as dt
import importlib.metadata
import pathlib
import tomllib
import types
import zoneinfo
from typing import Any

import office_hours
import pydantic
import pytest

from slurm_bridge import errors
from slurm_bridge.hooks import chain, registry
from slurm_bridge.hooks.base import Admit
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime.clock import VirtualClock

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
NINE_TO_FIVE = {"timezone": "Europe/Berlin", "opens": "09:00", "closes": "17:00"}

#: What the repository's own package declares.
DECLARED = tomllib.loads((pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["entry-points"]


def ask(when: str, **options: Any) -> Admit | Wait:
    """The hook's answer at this moment in Berlin."""
    hook = office_hours.OfficeHours(office_hours.OfficeHoursOptions.model_validate({**NINE_TO_FIVE, **options}))
    now = dt.datetime.fromisoformat(when).replace(tzinfo=BERLIN).timestamp()
    session: Any = types.SimpleNamespace(now=now)
    asked: Any = None
    return hook.admit(session, asked)


@pytest.mark.parametrize("when", ["2026-03-02 09:00", "2026-03-02 16:59:59", "2026-03-06 12:00"])
def test_open(when: str) -> None:
    """From the opening to just before closing, Monday to Friday."""
    assert ask(when) == Admit()


@pytest.mark.parametrize(
    ("when", "opening", "hours"),
    [
        ("2026-03-02 08:00", "Monday at 09:00", 1),
        ("2026-03-02 17:00", "Tuesday at 09:00", 16),
        ("2026-03-06 18:00", "Monday at 09:00", 63),
        ("2026-03-07 09:00", "Monday at 09:00", 48),
        ("2026-03-27 17:00", "Monday at 09:00", 63),
        ("2026-10-23 17:00", "Monday at 09:00", 65),
    ],
)
def test_closed(when: str, opening: str, hours: float) -> None:
    """The job waits exactly until the opening; a weekend with a change of clocks is an hour shorter or longer."""
    assert ask(when) == Wait(
        reason="OutsideOfficeHours",
        message=f"the office opens on {opening} (Europe/Berlin)",
        retry_after=hours * 3600,
    )


def test_one_day_a_week() -> None:
    """Just after closing it is a whole week, less the hours of work."""
    found = ask("2026-03-02 17:00", days=["mon"])
    assert isinstance(found, Wait)
    assert found.retry_after == (7 * 24 - 8) * 3600


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timezone": "Mars/Olympus"}, "'Mars/Olympus' is no time zone"),
        ({"timezone": "../etc/passwd"}, "is no time zone"),
        ({"opens": "18:00", "closes": "09:00"}, r"opens \(18:00\) must be before closes \(09:00\)"),
        ({"days": []}, "at least 1 item"),
        ({"days": ["monday"]}, "Input should be 'mon'"),
        ({"hours": 8}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    """Each is refused in words that say what is right."""
    with pytest.raises(pydantic.ValidationError, match=said):
        office_hours.OfficeHoursOptions.model_validate(options)


def installed() -> dict[str, importlib.metadata.EntryPoint]:
    """The entry points as an installation would make them."""
    group = "slurm_bridge.hooks"
    return {
        name: importlib.metadata.EntryPoint(name=name, value=value, group=group)
        for name, value in DECLARED[group].items()
    }


def test_the_bridge_takes_it() -> None:
    """By the name in pyproject.toml, as a layer of the chain, with its options checked."""
    around = chain.ChainServices(clock=VirtualClock())
    config = registry.HookConfig(name="office-hours", options=NINE_TO_FIVE)
    made = registry.build([config], around, installed())
    assert [hook.name for hook in made.hooks][-1] == "office-hours"
    wrong = registry.HookConfig(name="office-hours", options={"opens": "late"})
    with pytest.raises(errors.BadConfiguration, match=r"hook office-hours: options\.opens: "):
        registry.build([wrong], around, installed())
