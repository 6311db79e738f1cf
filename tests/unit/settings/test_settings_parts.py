"""The keys of parts: what a daemon of several is told, and mistakes that would have two of them, or none, at work."""

import pytest

from slurm_bridge import errors
from slurm_bridge.daemon import parts
from slurm_bridge.settings import loader
from slurm_bridge.settings.model import Settings

BASE = ("cluster_id=one", "slurm.url=http://localhost", "slurm.token_file=/run/token")


def settings(*flags: str) -> Settings:
    """The smallest that work, and these flags."""
    return loader.load(None, {}, (*BASE, *flags))


def test_without_parts_one_daemon_serves_everything() -> None:
    """As ever."""
    assert parts.of(settings()) is None


def test_a_daemon_knows_its_part_and_all_others() -> None:
    """The environment may say which one it is, so that several Deployments share one file."""
    made = parts.of(loader.load(None, {"SLURM_BRIDGE__PARTS__OWN": "b"}, (*BASE, "parts.names=[a, b]")))
    assert made is not None
    assert (made.own, made.every) == ("b", ("a", "b"))
    assert made.lease("b") == "slurm-bridge.part.b"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("parts.names=[a, b]",), "parts.own: has to be the one of a, b that this daemon serves"),
        (("parts.own=c", "parts.names=[a, b]"), "parts.own: is not among names (a, b)"),
        (("parts.own=a",), "parts.own: is not among names (none)"),
        (("parts.own=a", "parts.names=[a, a]"), "parts.names: names a more than once"),
        (("parts.own=A", "parts.names=[A]"), "parts.names"),
        (
            ("parts.own=a", "parts.names=[a]", "leader_election.enabled=false"),
            "parts: needs leader_election.enabled, because daemons agree on their parts by leases",
        ),
    ],
)
def test_a_mistake_is_told(flags: tuple[str, ...], said: str) -> None:
    """With its key."""
    with pytest.raises(errors.BadConfiguration) as refused:
        settings(*flags)
    assert said in str(refused.value)
