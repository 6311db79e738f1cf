"""Who goes for whom is shown with the queues: as values, and as text."""

import pathlib

import pytest

from slurm_bridge.families.yunikorn import text
from slurm_bridge.families.yunikorn.picture import Picture
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge

SOON = {"preemption.delay": "1s"}


@pytest.fixture
def borrowed(tmp_path: pathlib.Path) -> Queues:
    """Queue b has all that it has together with a, which is entitled to a half of it."""
    mine = queue("a", resources={"guaranteed": {"vcore": "2"}}, properties=SOON)
    team = queue("team", mine, queue("b"), resources={"max": {"vcore": "4"}})
    queues = Queues(Bridge(tmp_path), team, evict_seconds=60)
    for number in range(4):
        queues.pod(f"b{number}", "root.team.b", annotations={"kwok.local/terminating": f"{10 * number}s"})
        queues.bridge.run(2)
    return queues


def picture(queues: Queues) -> Picture:
    """As it is now."""
    found = queues.hook.picture()
    assert found is not None
    return found


def after(queues: Queues, seconds: float) -> None:
    """Time passes, and who has to go does."""
    for _ in range(int(seconds)):
        queues.bridge.step(1.0)
        queues.bridge.core.preempt_step()


def test_nobody_goes_for_nobody(borrowed: Queues) -> None:
    """Nothing is shown of it."""
    assert picture(borrowed)["preemption"] == []
    assert "making room" not in "\n".join(text.lines(picture(borrowed)))


def test_whoever_asked_is_shown_with_those_who_go(borrowed: Queues) -> None:
    """Since when, out of which queues, and who has gone already."""
    borrowed.pod("mine", "root.team.a", cpu="2")
    after(borrowed, 6)
    (one,) = picture(borrowed)["preemption"]
    assert (one["for"], one["queue"], one["why"]) == ("default/mine", "root.team.a", "")
    assert 0 <= one["seconds"] <= 6
    assert one["victims"] == [
        {"workload": "default/b3", "queue": "root.team.b", "state": "goes"},
        {"workload": "default/b2", "queue": "root.team.b", "state": "goes"},
    ]
    said = "\n".join(text.lines(picture(borrowed)))
    assert "making room:\n  default/mine  root.team.a, for " in said
    assert "default/b3 (root.team.b) has to go, default/b2 (root.team.b) has to go" in said
    after(borrowed, 20)
    (one,) = picture(borrowed)["preemption"]
    assert [victim["state"] for victim in one["victims"]] == ["goes", "gone"]
    assert "default/b2 has gone" in "\n".join(text.lines(picture(borrowed)))
    after(borrowed, 30)
    assert picture(borrowed)["preemption"] == []
