"""The command line as a newcomer types it."""

import pytest

import slurm_bridge
from slurm_bridge import cli


def test_the_demo_takes_every_pod_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Both adapters and both pocket servers agree: each pod is submitted, bound to a node, and succeeds."""
    assert cli.main(["demo", "--once", "--pods", "5", "--nodes", "2"]) == 0
    shown = capsys.readouterr().out
    assert [shown.count(word) for word in (" submitted ", " bound ", " succeeded ")] == [5, 5, 5]
    assert "5 pods done" in shown


def test_the_version_is_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    """What is installed says so."""
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == f"slurm-bridge {slurm_bridge.__version__}\n"


def test_an_unknown_command_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, as command lines do."""
    with pytest.raises(SystemExit, match="2"):
        cli.main(["dance"])
    assert "demo" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--pods", "0"), ("--nodes", "-1"), ("--pods", "many")])
def test_a_number_that_cannot_be_is_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the option."""
    with pytest.raises(SystemExit, match="2"):
        cli.main(["demo", "--once", option, value])
    assert option in capsys.readouterr().err
