"""The properties of queues: their texts, their defaults, and what children get of them."""

import re

import pytest

from slurm_bridge.families.yunikorn.queues.config import properties
from slurm_bridge.families.yunikorn.queues.config.properties import DEFAULTS, PROPERTIES, Properties, Stated
from slurm_bridge.families.yunikorn.queues.priorities import PriorityPolicy
from slurm_bridge.families.yunikorn.queues.settings import PreemptionPolicy, SortPolicy


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("application.sort.policy", "fifo", SortPolicy.FIFO),
        ("application.sort.policy", "fair", SortPolicy.FAIR),
        ("application.sort.policy", "stateaware", SortPolicy.FIFO),
        ("application.sort.priority", "enabled", True),
        ("application.sort.priority", "disabled", False),
        ("priority.offset", "-5", -5),
        ("priority.offset", "2147483647", 2147483647),
        ("priority.policy", "fence", PriorityPolicy.FENCE),
        ("preemption.policy", "disabled", PreemptionPolicy.DISABLED),
        ("preemption.delay", "1m30s", 90.0),
        ("preemption.delay", "0.5s", 0.5),
        ("quota.preemption.delay", "0", 0.0),
        ("quota.preemption.delay", "1h", 3600.0),
        ("application.unschedasks.backoff", "20", 20),
        ("application.unschedasks.backoff.delay", "250ms", 0.25),
    ],
)
def test_a_text_has_a_meaning(name: str, text: str, value: object) -> None:
    """One of each kind."""
    assert PROPERTIES[name].read(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("application.sort.policy", "StateAware"),
        ("application.sort.priority", "yes"),
        ("priority.offset", "1.5"),
        ("priority.offset", "2147483648"),
        ("priority.policy", "disabled"),
        ("preemption.delay", "0"),
        ("preemption.delay", "0s"),
        ("preemption.delay", "30"),
        ("preemption.delay", "-30s"),
        ("preemption.delay", ""),
        ("preemption.delay", "s"),
        ("preemption.delay", "5s later"),
        ("application.unschedasks.backoff", "-1"),
    ],
)
def test_another_text_has_none(name: str, text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        PROPERTIES[name].read(text)


def test_every_property_has_its_own_field_with_a_default() -> None:
    """The table and the two records are complete."""
    fields = [known.field for known in PROPERTIES.values()]
    assert sorted(fields) == sorted(Stated.__slots__) == sorted(Properties.__slots__)


def test_the_defaults_are_those_of_the_rules() -> None:
    """30 s before preempting, no quota preemption, no pause of applications."""
    assert DEFAULTS.preemption_delay == DEFAULTS.backoff_delay == 30.0
    assert DEFAULTS.quota_preemption_delay == DEFAULTS.backoff == 0


def test_offset_and_fences_stay_with_their_queue() -> None:
    """Else they would count on every level."""
    parent = Properties(
        offset=5, priority_policy=PriorityPolicy.FENCE, preemption_policy=PreemptionPolicy.FENCE, preemption_delay=7
    )
    assert properties.handed_down(parent) == Properties(preemption_delay=7)


def test_disabled_preemption_is_handed_down() -> None:
    """What is below a protected queue is protected."""
    parent = Properties(preemption_policy=PreemptionPolicy.DISABLED)
    assert properties.handed_down(parent) == parent


def test_what_a_queue_states_replaces_what_it_is_handed() -> None:
    """Also with a false value."""
    begin = Properties(priority_sorting=True, offset=3, preemption_delay=7)
    stated = Stated(priority_sorting=False, offset=0)
    assert properties.overlaid(begin, stated) == Properties(priority_sorting=False, preemption_delay=7)
