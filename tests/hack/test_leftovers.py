"""What is left of a cluster is found by looking at the machine."""

import os
import pathlib
import signal
import subprocess

import pytest

from localcluster import leftovers, main, process
from localcluster.config import Config
from localcluster.part import PartError


@pytest.fixture(name="config")
def _config(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A cluster without any engine in reach."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    return Config(directory=tmp_path / "cluster", cache=tmp_path / "cache")


def test_a_server_without_a_record_is_found(config: Config) -> None:
    """A process that lost its pid file is named with its command."""
    places = process.Places(pid=config.pids / "x.json", log=config.logs / "x.log", home=config.directory / "home")
    process.spawn(["/bin/sleep", "60"], places, "")
    process.await_answer(places, lambda: "", 10)
    record = process.running(places.pid)
    assert record is not None
    places.pid.unlink()
    try:
        assert leftovers.found(config) == [f"process {record.pid}: /bin/sleep 60 "]
    finally:
        os.kill(record.pid, signal.SIGKILL)
        os.waitpid(record.pid, 0)
    assert leftovers.found(config) == []


def test_processes_of_users_are_not_ours(config: Config) -> None:
    """A process that only looks at the cluster, or names its folder, goes on."""
    (config.directory / "logs").mkdir(parents=True)
    variables = {"CLUSTER_DIR": str(config.directory), "KUBECONFIG": f"{config.directory}/kubeconfig"}
    with subprocess.Popen(["sleep", "60"], env=variables, cwd=config.directory, executable="/bin/sleep") as user:
        try:
            assert leftovers.found(config) == []
        finally:
            user.kill()


def test_down_fails_while_something_is_left(config: Config) -> None:
    """It names what it could not stop, and keeps the folder with the logs."""
    config.save()
    with subprocess.Popen(["/bin/sleep", "60"], env={**os.environ, "HOME": f"{config.directory}/home"}) as left:
        try:
            with pytest.raises(PartError, match=f"this is left:\n  process {left.pid}: /bin/sleep 60"):
                main.down(config, purge=False)
        finally:
            left.kill()
    assert config.directory.exists()
    main.down(config, purge=False)
    assert not config.directory.exists()
