"""Completion in real shells, and as kubectl asks for it."""

import argparse
import os
import pathlib
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Sequence

import pytest

from localcluster import packages
from slurm_bridge import cli
from slurm_bridge.cli import command_line, completion, completion_words

#: Bytes that a shell has drawn, and how long it may take to start on a busy machine.
SECONDS = 30.0


def shell(name: str) -> str:
    """The shell, installed where that is possible; else the test is skipped with the words of the installation."""
    try:
        packages.require(packages.Tool(program=name, packages=(name,)))
    except Exception as missing:  # noqa: BLE001 - no network, no root, another system: all the same here
        pytest.skip(f"{name} is not installed: {missing}")
    found = shutil.which(name)
    assert found is not None
    return found


@pytest.fixture
def script(tmp_path: pathlib.Path) -> "dict[str, pathlib.Path]":
    """The scripts of all shells, as files."""
    made = {name: tmp_path / name for name in completion.SHELLS}
    for name, path in made.items():
        path.write_text(completion.script(name, command_line.parser()))
    return made


LINES = [
    ("slurm-bridge queu", "queues"),
    ("slurm-bridge explain --conf", "--config"),
    ("slurm-bridge queues --url somewhere relo", "reload"),
    ("slurm-bridge completion zs", "zsh"),
    ("slurm-bridge run --only web", "webhook"),
    ("slurm-bridge check --config conf", "config.yaml"),
]


@pytest.mark.parametrize(("line", "wanted"), LINES)
def test_bash_completes(line: str, wanted: str, script: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Commands, options, values, and names of files."""
    (tmp_path / "config.yaml").touch()
    words = line.split()
    asked = (
        f"source {script['bash']}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        '_slurm_bridge; echo "${COMPREPLY[@]}"'
    )
    command = (shell("bash"), "--norc", "-c", asked)
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert wanted in shown.stdout.split()


@pytest.mark.parametrize(("line", "wanted"), LINES)
def test_fish_completes(line: str, wanted: str, script: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Likewise, with the description of each."""
    (tmp_path / "config.yaml").touch()
    command = (shell("fish"), "-N", "-c", f"source {script['fish']}; complete -C '{line}'")
    environ = {**os.environ, "HOME": str(tmp_path)}
    shown = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True, timeout=SECONDS
    )
    assert wanted in [one.partition("\t")[0] for one in shown.stdout.splitlines()]


def test_zsh_completes(script: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    """As typed on a terminal: only there zsh completes. One start for all lines, because it takes seconds."""
    program = shell("zsh")
    (tmp_path / "config.yaml").touch()
    (tmp_path / ".zshrc").write_text(
        f"PS1='ready> '; autoload -U compinit; compinit -u -D; source {script['zsh']}; unsetopt LIST_BEEP\n"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execve(program, ("zsh", "-d", "-i"), {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "dumb"})  # noqa: S606 - no shell before the shell
    try:
        drawn(terminal, "ready> ")
        for line, wanted in LINES:
            # The line is cleared before the next one.
            os.write(terminal, f"{line}\t".encode())
            assert drawn(terminal, wanted), (line, wanted)
            os.write(terminal, b"\x15")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def drawn(terminal: int, wanted: str) -> bool:
    """Whether the shell draws this in time."""
    seen, until = "", time.monotonic() + SECONDS
    while wanted not in seen and time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    return wanted in seen


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["wh"], ["why\twhy pods wait, and what to do: one line for each", ":4"]),
        (["queues", "--url", "x", "rel"], ["reload\tmake the daemon read the stored configuration again", ":4"]),
        (["explain", "--kubeconfig", ""], [":0"]),
        (["jobs", "--end"], ["--ended\tshow pods that have ended, too", ":4"]),
        (["no-such-command", "x"], [":4"]),
    ],
)
def test_kubectl_is_answered_in_its_own_form(
    words: Sequence[str], wanted: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Words with descriptions, and whether names of files follow."""
    assert cli.complete_plugin(words) == 0
    assert capsys.readouterr().out.splitlines() == list(wanted)


def test_the_plugin_has_the_commands_for_users(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the daemon are not among them."""
    names = {one.name for one in completion_words.tree(command_line.plugin_parser()).commands}
    assert {"why", "jobs", "retry", "explain", "queues"} <= names
    assert not {"run", "agent", "takeover"} & names
    with pytest.raises(SystemExit, match="0"):
        cli.plugin(["--help"])
    assert "kubectl slurm" in capsys.readouterr().out


def test_letters_that_shells_obey_stay_words(tmp_path: pathlib.Path) -> None:
    """In names, values and descriptions."""
    evil = f"'; touch {tmp_path}/made; echo $(touch {tmp_path}/made) `touch {tmp_path}/made` \"\\"
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("--way", choices=(evil,), help=evil.replace("%", "%%"))
    commands = parser.add_subparsers()
    commands.add_parser("one", help=evil)
    for name, ask in (("bash", 'COMP_WORDS=(tool --way ""); COMP_CWORD=2; _tool'), ("fish", "complete -C 'tool '")):
        path = tmp_path / name
        path.write_text(completion.script(name, parser))
        subprocess.run((shell(name), "-c", f"source {path}; {ask}"), capture_output=True, check=False, timeout=SECONDS)
    assert not (tmp_path / "made").exists()
