"""The whole show, small: the real daemon between both pocket servers, over real HTTP."""

import dataclasses
import threading

import pytest

from slurm_bridge import cli, errors
from slurm_bridge.demo import lines, scene, show, troubles
from slurm_bridge.demo.scene import Frame, PodStage
from slurm_bridge.demo.show import DemoOptions, Summary

SMALL = DemoOptions(pods=4, nodes=4, once=True, deadline=60.0)


class Watcher:
    """Keeps every look, and may stop the show at one."""

    def __init__(self, stop: threading.Event | None = None, *, until: PodStage = PodStage.DONE) -> None:
        self.frames: list[Frame] = []
        self._stop, self._until = stop, until

    def begin(self, text: str) -> None:
        """Nothing to keep."""

    def show(self, frame: Frame) -> None:
        """Keep it."""
        self.frames.append(frame)
        if self._stop is not None and frame.count(self._until):
            self._stop.set()


def summary(**changes: object) -> Summary:
    """A show that went well."""
    usual = Summary(
        seconds=3.0, outcomes=(("Pod a/b", "done"),), last=Frame(seconds=3.0), faults=(), struck=0, daemon=0
    )
    return dataclasses.replace(usual, **changes)  # type: ignore[arg-type]


def test_every_example_and_every_pod_is_taken_to_its_end() -> None:
    """Each pod is bound to a node, succeeds, and leaves nothing in Slurm."""
    told: list[str] = []
    ended = show.play(SMALL, lines.LineDisplay(told.append), threading.Event())
    assert ended.good, str(ended)
    assert (ended.last.left, ended.last.count(PodStage.DONE)) == (0, len(ended.last.rows))
    assert {stage for stage in scene.WAY if any(f" {stage.value}" in line for line in told)} == set(scene.WAY)
    assert "jobs left in Slurm: 0" in str(ended)


@pytest.mark.thorough
def test_gangs_are_seen_with_one_job_for_all_their_pods() -> None:
    """Those of a Job, of a PodGroup, and of a group by name whose pods differ: one job, although of two components."""
    watched = Watcher()
    ended = show.play(dataclasses.replace(SMALL, pods=20), watched, threading.Event())
    assert ended.good, str(ended)
    for start in (
        "gang-",
        "job-gang-",
        "band-",
        "podgroup-",
        "coscheduling-podgroup-",
        "kai-podgroup-",
        "generic-group-",
    ):
        rows = [row for row in ended.last.rows if row.name.startswith(start)]
        assert len({row.job_id for row in rows}) == 1, start
        assert {row.members for row in rows} == {len(rows)}, start
    assert all(row.job_id for row in ended.last.rows)
    assert "placed together, by 10 jobs" in str(ended)


@pytest.mark.thorough
def test_the_show_goes_well_although_answers_are_lost() -> None:
    """Submits and bindings are carried out and their answers dropped."""
    ended = show.play(dataclasses.replace(SMALL, faults=("lost-answers",)), Watcher(), threading.Event())
    assert ended.good, str(ended)
    assert ended.struck >= 2


def test_a_stop_ends_the_show_in_order() -> None:
    """The daemon ends as it was told, whatever was under way."""
    stop = threading.Event()
    ended = show.play(dataclasses.replace(SMALL, once=False), Watcher(stop, until=PodStage.BOUND), stop)
    assert ended.daemon == 0


def test_a_show_that_does_not_end_in_time_says_what_has_not_ended() -> None:
    """It is not good."""
    ended = show.play(dataclasses.replace(SMALL, deadline=0.0), Watcher(), threading.Event())
    assert not ended.good
    assert "has not ended" in str(ended)


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"outcomes": (("Pod a/b", "failed"),)}, False),
        ({"outcomes": (("Pod a/b", ""),)}, False),
        ({"outcomes": (("Pod a/b", "gone"),)}, False),
        ({"outcomes": (("Pod a/b", "gone"),), "faults": ("controller-crash",)}, True),
        ({"last": Frame(seconds=3.0, left=1)}, False),
        ({"daemon": 1}, False),
    ],
)
def test_what_counts_as_a_good_end(changes: dict[str, object], good: bool) -> None:
    """Everything done, nothing left, the daemon ended in order; only a crash may cost a bare pod its node."""
    assert summary(**changes).good is good


def test_an_unknown_fault_is_refused_with_those_that_there_are() -> None:
    """Before anything starts."""
    with pytest.raises(errors.BadConfiguration, match=r"'earthquake': there are .*lost-answers"):
        troubles.trouble("earthquake")


def test_every_fault_is_listed_with_its_words() -> None:
    """One line each."""
    assert [line.split()[0] for line in troubles.listed().splitlines()] == list(troubles.TROUBLES)


def test_a_hook_of_the_command_line_is_in_the_chain() -> None:
    """It replaces the one of its name: office hours on no day of this week hold every workload."""
    told: list[str] = []
    closed = {"name": "office-hours", "budget_ms": 5000, "options": {"opens": "00:00", "closes": "00:01", "days": []}}
    options = dataclasses.replace(SMALL, hooks=(closed,))
    with pytest.raises(errors.BadConfiguration, match="days"):
        show.play(options, lines.LineDisplay(told.append), threading.Event())


@pytest.mark.parametrize("hook", ["[office-hours]", "{options: {}}", "{name: [", "7"])
def test_a_hook_of_the_command_line_that_is_none(hook: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what to use."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", "--hook", hook])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "use a name, or a mapping with the key name" in said or "is not YAML" in said
