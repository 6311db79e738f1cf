"""What a terminal and a pipe are shown of one look."""

import dataclasses
import io

import rich.console

from slurm_bridge.demo import lines, screen
from slurm_bridge.demo.scene import Bar, Calls, Frame, PodRow, PodStage


def row(number: int, stage: PodStage, *, since: float = 0.0) -> PodRow:
    """A pod at a stage."""
    return PodRow(uid=str(number), name=f"pod-{number}", stage=stage, job_id=number, node="ext001", since=since)


def look(*rows: PodRow) -> Frame:
    """With one node half full."""
    bars = (Bar(node="ext001", used=4, cpus=8),)
    calls = Calls(kube=10, slurm=20, kube_rate=1.5, slurm_rate=2.5)
    return Frame(seconds=4.0, rows=rows, bars=bars, calls=calls, news=("pod-1  Scheduled  bound",))


def shown(frame: Frame, *, room: int = 10) -> str:
    """The picture as plain text."""
    console = rich.console.Console(file=io.StringIO(), width=140, force_terminal=False)
    console.print(screen.draw(frame, ["the daemon says"], room=room))
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def test_the_picture_has_pods_nodes_calls_events_and_the_log() -> None:
    """All of it at one look."""
    text = shown(look(row(1, PodStage.BOUND), row(2, PodStage.QUEUED)))
    wanted = ("pod-1", "●●●●○ bound", "●●○○○ queued", "4/8", "1.5 Kubernetes, 2.5 Slurm", "Scheduled", "daemon says")
    assert [word for word in wanted if word not in text] == []


def test_members_of_a_gang_show_their_one_job() -> None:
    """On the terminal and in lines."""
    members = [dataclasses.replace(row(number, PodStage.BOUND), job_id=7, members=2) for number in (1, 2)]
    assert shown(look(*members)).count("7 x 2") == 2
    told: list[str] = []
    lines.LineDisplay(told.append).show(look(*members))
    assert sum(line.endswith("bound     job 7 of 2 pods  ext001") for line in told) == 2


def test_pods_on_their_way_stand_above_those_that_are_over() -> None:
    """Where there is no room for all, the finished ones are left out."""
    rows = [row(1, PodStage.DONE, since=9.0), row(2, PodStage.BOUND, since=1.0), row(3, PodStage.ALLOCATED, since=2.0)]
    assert [one.name for one in screen.chosen(rows, 2)] == ["pod-3", "pod-2"]


def test_only_the_newest_lines_of_the_log_stay() -> None:
    """The corner is small."""
    corner = screen.LogCorner()
    for number in range(10):
        corner.write(f"line {number}\n")
    assert corner.lines[-1] == "line 9"
    assert len(corner.lines) < 10


def test_a_screen_shows_looks_and_leaves_the_last_one() -> None:
    """As a context, so that the terminal is given back whatever happens."""
    console = rich.console.Console(file=io.StringIO(), width=120, height=40, force_terminal=True)
    with screen.Screen(screen.LogCorner(), console) as drawn:
        drawn.begin("on the stage")
        drawn.show(look(row(1, PodStage.BOUND)))
    text = console.file
    assert isinstance(text, io.StringIO)
    assert "on the stage" in text.getvalue()
    assert "pod-1" in text.getvalue()


def test_lines_tell_each_step_once_and_the_calls_now_and_then() -> None:
    """For pipes and logs."""
    told: list[str] = []
    plain = lines.LineDisplay(told.append)
    plain.show(look(row(1, PodStage.QUEUED)))
    plain.show(look(row(1, PodStage.QUEUED)))
    assert [line.split()[3] for line in told if "pod-1" in line] == ["pending", "queued"]
    assert sum("calls per second" in line for line in told) == 1


def test_words_of_a_hook_are_not_markup() -> None:
    """Brackets of a message are shown, and close no tag that is not open."""
    held = dataclasses.replace(row(1, PodStage.PENDING), node="", why="Busy: rack [/r7]")
    assert "Busy: rack [/r7]" in shown(look(held))
