"""Small files between commands: variables for users, and what was applied last."""

import pathlib
import subprocess

import pytest

from localcluster import applied, envfile
from localcluster.config import Config

AWKWARD = {"PLAIN": "unix:///a/b.sock", "SPACES": "/a folder/with 'quotes'", "EMPTY": "", "SIGNS": "a=b#c$HOME"}


def test_variables_survive_a_round_trip(tmp_path: pathlib.Path) -> None:
    """What is written is what programs read, whatever is in it."""
    envfile.write(tmp_path, AWKWARD)
    assert envfile.read(tmp_path) == AWKWARD


@pytest.mark.parametrize("name", AWKWARD)
def test_a_shell_reads_the_same(tmp_path: pathlib.Path, name: str) -> None:
    """People may source the file."""
    envfile.write(tmp_path, AWKWARD)
    command = f'. {tmp_path}/env; printf %s "${name}"'
    assert subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout == AWKWARD[name]


def test_a_missing_file_says_what_to_do(tmp_path: pathlib.Path) -> None:
    """The error says how a cluster is started."""
    with pytest.raises(FileNotFoundError, match="make cluster-up"):
        envfile.read(tmp_path)


def test_a_changed_text_is_applied_again(tmp_path: pathlib.Path) -> None:
    """A text is current from when it was applied until it changes or is forgotten."""
    config = Config(directory=tmp_path)
    assert not applied.is_current(config, "x", "one")
    applied.remember(config, "x", "one")
    assert applied.is_current(config, "x", "one")
    assert not applied.is_current(config, "x", "two")
    assert not applied.is_current(config, "y", "one")
    applied.forget(config, "x")
    assert not applied.is_current(config, "x", "one")
