"""The command line of the takeover, and the page about it."""

import io
import pathlib

import pytest

from slurm_bridge import cli
from slurm_bridge.settings import profiles
from slurm_bridge.takeover import backward, forward, steps

#: The annotations of the other bridge.
THEIRS = (
    "account constraints cpu-per-task exclusive gres group-id job-name licenses max-nodes mem-per-node min-nodes"
    " partition priority qos reservation timelimit user-id wckey"
).split()
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "migrating.md"


def test_values_come_from_a_file_or_from_standard_input(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration is printed, and warnings go to standard error."""
    text = "schedulerConfig: {partition: gpu}\ntypo: 1\n"
    file = tmp_path / "values.yaml"
    file.write_text(text)
    assert cli.main(["takeover", "--values", str(file), "--cluster-id", "east"]) == 0
    from_file = capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert cli.main(["takeover", "--values", "-", "--cluster-id", "east"]) == 0
    assert capsys.readouterr() == from_file
    assert "cluster_id: east" in from_file.out
    assert "  partition: gpu" in from_file.out
    assert "warning: typo: no value of the chart" in from_file.err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line."""
    assert cli.main(["takeover", "--values", "/nowhere"]) == 1
    assert capsys.readouterr().err == "slurm-bridge: /nowhere cannot be read: FileNotFoundError\n"


def test_it_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """One of three, and a configuration for two of them."""
    assert cli.main(["takeover", "--dry-run"]) == 1
    assert "takeover needs --config FILE" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["takeover"])
    assert "one of the arguments --dry-run --apply --values is required" in capsys.readouterr().err


def test_the_page_has_every_annotation_of_the_other_bridge_every_default_and_every_step() -> None:
    """What a user of the other bridge looks for."""
    page = PAGE.read_text()
    for key in THEIRS:
        assert f"`{key}`" in page, key
    for values in profiles.PROFILES.values():
        for key in values:
            assert f"`{key}" in page, key
    for step in (forward.MARK, forward.RELEASE, steps.AdoptJob.does, steps.CancelJob.does, steps.ChangeNode.does):
        assert step in page, step
    assert backward.WITHDRAWN not in page
