"""Bars of long commands: on a terminal only, and no trace of them afterwards."""

import io

import pytest

from slurm_bridge.runtime import progress


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_it_is() -> None:
    """Half of the bar, the numbers, and what is done now."""
    stream = Terminal()
    with progress.bar("checking", stream) as bar:
        bar.step(2, 4, "partitions")
        assert stream.getvalue().endswith("checking [############............] 2/4 partitions")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_elsewhere_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines are printed all the same."""
    stream = io.StringIO()
    with progress.bar("checking", stream) as bar:
        bar.step(1, 2, "partitions")
        bar.line("found")
    assert (stream.getvalue(), capsys.readouterr().out) == ("", "found\n")


def test_a_line_takes_the_place_of_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """It does not stand behind it."""
    stream = Terminal()
    with progress.bar("checking", stream) as bar:
        bar.step(1, 2, "partitions")
        bar.line("found")
        assert stream.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr().out == "found\n"


@pytest.mark.parametrize("numbers", [(0, 0), (5, 2)])
def test_numbers_that_cannot_be_break_no_bar(numbers: tuple[int, int]) -> None:
    """No step at all, or more than there are."""
    stream = Terminal()
    with progress.bar("checking", stream) as bar:
        bar.step(*numbers, "x")
    assert stream.getvalue().count("[") >= 1


def test_names_of_users_move_no_cursor() -> None:
    """Their names are shown while their objects are handed over."""
    stream = Terminal()
    with progress.bar("handing over", stream) as bar:
        bar.step(1, 2, "pod \x1b[2J\nteam/a" + "x" * 200)
        drawn = stream.getvalue().rpartition("\x1b[K")[2]
    assert "\x1b" not in drawn
    assert "\n" not in drawn
    assert len(drawn) < 120
