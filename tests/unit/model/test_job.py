"""State words come down to one phase, and doubt is a phase of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import job
from slurm_bridge.model.job import Phase


def states(*words: str) -> job.JobStates:
    """A job with one component for each string of words."""
    parts = tuple(
        job.Component(offset=offset, state=job.JobState(frozenset(text.split()))) for offset, text in enumerate(words)
    )
    return job.JobStates(components=parts)


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ("PENDING", Phase.PENDING),
        ("PENDING REQUEUED", Phase.PENDING),
        ("PENDING SPECIAL_EXIT", Phase.PENDING),
        ("PENDING REQUEUE_HOLD", Phase.PENDING),
        ("RUNNING", Phase.RUNNING),
        ("RUNNING CONFIGURING", Phase.STARTING),
        ("RUNNING POWER_UP_NODE", Phase.STARTING),
        ("RUNNING COMPLETING", Phase.ENDED),
        ("RUNNING STOPPED", Phase.STOPPED),
        ("SUSPENDED", Phase.STOPPED),
        ("CANCELLED COMPLETING", Phase.ENDED),
        ("COMPLETED", Phase.ENDED),
        ("FAILED", Phase.ENDED),
        ("FAILED LAUNCH_FAILED", Phase.ENDED),
        ("TIMEOUT", Phase.ENDED),
        ("NODE_FAIL", Phase.ENDED),
        ("PREEMPTED", Phase.ENDED),
        ("BOOT_FAIL", Phase.ENDED),
        ("DEADLINE", Phase.ENDED),
        ("OUT_OF_MEMORY", Phase.ENDED),
        ("", Phase.UNKNOWN),
        ("HIBERNATING", Phase.UNKNOWN),
        ("REVOKED", Phase.UNKNOWN),
        ("RUNNING HIBERNATING", Phase.RUNNING),
        ("RUNNING PENDING", Phase.UNKNOWN),
    ],
)
def test_words_mean_this_phase(words: str, phase: Phase) -> None:
    """Only a plain RUNNING may be bound; an unknown word is unknown and not gone."""
    assert job.JobState(frozenset(words.split())).phase is phase


@given(st.frozensets(st.sampled_from([*job.BASE_STATES, *job.NOT_YET, "COMPLETING", "X", "RECONFIG_FAIL"])))
def test_no_combination_of_words_crashes(words: frozenset[str]) -> None:
    """Slurm may say anything."""
    assert job.JobState(words).phase in Phase


@pytest.mark.parametrize(
    ("components", "phase", "torn"),
    [
        (("RUNNING",), Phase.RUNNING, False),
        (("RUNNING", "RUNNING"), Phase.RUNNING, False),
        (("RUNNING", "RUNNING CONFIGURING"), Phase.STARTING, False),
        (("PENDING", "RUNNING"), Phase.PENDING, False),
        (("RUNNING", "CANCELLED"), Phase.RUNNING, True),
        (("CANCELLED", "COMPLETED"), Phase.ENDED, False),
        (("RUNNING", "HIBERNATING"), Phase.UNKNOWN, False),
    ],
)
def test_a_group_is_as_far_as_its_slowest_component(components: tuple[str, ...], phase: Phase, torn: bool) -> None:
    """A component that ended while another lives tears the group."""
    group = states(*components)
    assert (group.phase, group.torn) == (phase, torn)
