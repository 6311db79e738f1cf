"""The command line as a newcomer types it."""

import io
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

import slurm_bridge
from slurm_bridge import cli

CONFIG = "cluster_id: east\nslurm: {url: 'http://127.0.0.1:1', token_file: /nowhere}\n"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {schedulerName: slurm-bridge-scheduler, containers: [{name: main}]}
"""


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """A command may listen to signals; afterwards pytest does again."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_reader_that_has_enough_ends_the_command_in_silence() -> None:
    """As `| head` does: no traceback."""
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "slurm_bridge", "version"], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.fixture
def config(tmp_path: pathlib.Path) -> str:
    """A configuration whose servers are never asked."""
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return str(path)


@pytest.mark.thorough
def test_the_demo_takes_every_pod_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """The real daemon between both pocket servers; without a terminal it ends by itself."""
    assert cli.main(["demo", "--pods", "5", "--nodes", "4"]) == 0
    shown = capsys.readouterr().out
    assert "jobs left in Slurm: 0" in shown
    assert shown.count(" done ") >= 5


@pytest.mark.thorough
def test_on_a_terminal_the_demo_is_drawn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The same show, with a summary below the last picture."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["demo", "--once", "--pods", "1", "--nodes", "4"]) == 0
    shown = capsys.readouterr().out
    assert [word for word in ("newest events", "the daemon's log", "jobs left in Slurm: 0") if word not in shown] == []


def test_what_run_would_refuse_is_an_error_of_the_configuration(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The chain is built: each of these hooks alone is right, and both want to order the queue."""
    queues = "{partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]}"
    path = tmp_path / "config.yaml"
    path.write_text(f"{CONFIG}hooks: [{{name: vela}}, {{name: yunikorn, options: {{configuration: {queues}}}}}]\n")
    assert cli.main(["check-config", "--config", str(path)]) == 1
    told = capsys.readouterr()
    assert "only one hook can have the phase order" in told.err
    assert told.out == ""


@pytest.mark.parametrize("command", [["check-config"], ["run"], ["explain", "--offline", "x"], ["admission-policies"]])
def test_a_mistake_in_the_options_of_a_hook_has_its_line(
    command: list[str], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In each command that builds the chain."""
    path = tmp_path / "config.yaml"
    path.write_text(f"slrum: {{}}\n{CONFIG}hooks: [{{name: policy, options: {{rule: []}}}}]\n")
    assert cli.main([*command, "--config", str(path)]) == 1
    told = capsys.readouterr().err
    assert "config.yaml:1: slrum: no such key; did you mean slurm?" in told
    assert "hooks[0].options.rule: no such key; did you mean rules?" in told


def test_the_demo_lists_its_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is started for that."""
    assert cli.main(["demo", "--fault", "help"]) == 0
    assert "lost-answers" in capsys.readouterr().out


def test_a_fault_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line that names those that do."""
    assert cli.main(["demo", "--once", "--fault", "earthquake"]) == 1
    assert "slurm-down" in capsys.readouterr().err


def test_an_agent_without_a_token_does_not_start(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The key is named, and no server was asked."""
    assert cli.main(["agent", "--config", config]) == 1
    assert "agent.token_file: an agent needs a file" in capsys.readouterr().err


def test_the_version_is_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    """What is installed says so."""
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == f"slurm-bridge {slurm_bridge.__version__}\n"


def test_an_unknown_command_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, as command lines do."""
    with pytest.raises(SystemExit, match="2"):
        cli.main(["dance"])
    assert "demo" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--pods", "0"), ("--nodes", "3"), ("--pods", "many")])
def test_a_number_that_cannot_be_is_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the option."""
    with pytest.raises(SystemExit, match="2"):
        cli.main(["demo", "--once", option, value])
    assert option in capsys.readouterr().err


def test_a_manifest_is_explained_from_a_file(
    config: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Offline, for people."""
    (tmp_path / "pod.yaml").write_text(POD)
    assert cli.main(["explain", str(tmp_path / "pod.yaml"), "--config", config, "--offline"]) == 0
    assert "would be submitted" in capsys.readouterr().out


def test_manifests_are_explained_from_standard_input_for_machines(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One list; the status is that of the worst."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{POD}---\n{POD.replace('slurm-bridge-scheduler', 'other')}"))
    assert cli.main(["explain", "-", "--config", config, "--offline", "--json"]) == 4
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)] == ["submit", "refuse"]


@pytest.mark.parametrize("subject", ["nothing.yaml", "some/where/pod.yaml", "pod", "team/pod.yaml"])
def test_a_file_that_is_not_there_is_not_taken_for_a_pod(
    subject: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says what can be given."""
    assert cli.main(["explain", subject, "--config", config, "--offline"]) == 1
    assert "neither a file nor NAMESPACE/POD" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: [", "line 1: is not YAML"), ("- a", "has no kind"), ("kind: Pod", "Pod has no metadata")],
)
def test_a_file_that_is_no_manifest_is_named(
    text: str, words: str, config: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with the place where there is one."""
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    assert cli.main(["explain", str(path), "--config", config, "--offline"]) == 1
    shown = capsys.readouterr().err
    assert (str(path) in shown, words in shown) == (True, True)
