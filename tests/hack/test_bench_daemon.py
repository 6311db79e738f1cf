"""The daemon that the benchmark starts."""

import pathlib

import pytest
import yaml
from clusterbench import contestants, idle_cost

from slurm_bridge.settings import loader

ENV = {
    "SLURMRESTD_URL": "http://127.0.0.1:1",
    "SLURM_TOKEN_FILE": "token",
    "KUBECONFIG_DAEMON": "kubeconfig",
    "DAEMON_NAMESPACE": "slurm-bridge",
}


@pytest.mark.parametrize("others", [{}, idle_cost.SETTINGS], ids=["as shipped", "waiting"])
def test_its_configuration_is_one_that_the_daemon_accepts(tmp_path: pathlib.Path, others: dict[str, object]) -> None:
    """Keys that are renamed are noticed here and not on a cluster of a thousand nodes."""
    for name in ("token", "kubeconfig"):
        (tmp_path / name).touch()
    env = {**ENV, "SLURM_TOKEN_FILE": str(tmp_path / "token"), "KUBECONFIG_DAEMON": str(tmp_path / "kubeconfig")}
    file = tmp_path / "slurm-bridge.yaml"
    file.write_text(yaml.safe_dump(contestants.configuration(env, 8080, others)))
    settings = loader.load(file, {})
    assert settings.scheduler_names == (contestants.OURS.scheduler,)


def test_each_contestant_has_pods_of_its_own() -> None:
    """Two schedulers that answer to one name would both bind."""
    names = [one.scheduler for one in contestants.CONTESTANTS.values()]
    assert len(set(names)) == len(names)
