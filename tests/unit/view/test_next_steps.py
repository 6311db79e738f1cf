"""Every reason that a user can see says what to do about it."""

import pathlib
import re

from slurm_bridge.scheduler import words
from slurm_bridge.view import next_steps

PROJECT = pathlib.Path(__file__).resolve().parents[3]


def documented() -> set[str]:
    """The reasons in the table of docs/operating.md."""
    page = (PROJECT / "docs" / "operating.md").read_text()
    section = page.split("## What users see")[1].split("\n## ")[0]
    firsts = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {reason for first in firsts for reason in re.findall(r"`([A-Z]\w+)`", first)}


def test_every_documented_reason_has_a_next_step() -> None:
    """A reason that is new in the table needs a sentence here."""
    found = documented()
    assert len(found) > 30
    assert found - next_steps.OF_BRIDGE.keys() == set()


def test_every_reason_of_slurm_that_has_words_has_a_next_step() -> None:
    """Both tables are of the same reasons."""
    assert next_steps.OF_SLURM.keys() == words.REASONS.keys()


def test_a_step_names_the_job() -> None:
    """So that the command can be copied."""
    assert next_steps.step("Priority", 17).count("sprio -j 17") == 1
    assert all("JOB" not in next_steps.step(reason, 17) for reason in next_steps.OF_SLURM)


def test_an_unknown_reason_leads_to_the_explanation() -> None:
    """Reasons of a site's own hooks are not known here; without a reason there is nothing to do."""
    assert next_steps.step("OurOwn", 0) == next_steps.FOLLOW
    assert next_steps.step("", 0) == ""
