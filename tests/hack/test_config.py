"""What a cluster's parameters are made of."""

import pathlib

from localcluster.config import Config


def test_variables_override_defaults(tmp_path: pathlib.Path) -> None:
    """Every variable chooses its field, in the field's type."""
    config = Config.from_environment({"CLUSTER_DIR": str(tmp_path), "NODES": "7", "ACCOUNTING": "1"})
    assert (config.directory, config.nodes, config.accounting, config.gpus) == (tmp_path, 7, True, 8)


def test_repair_never_resizes(tmp_path: pathlib.Path) -> None:
    """What is not said stays as the running cluster has it; what is said wins."""
    Config(directory=tmp_path, nodes=1000, cpus=32).save()
    config = Config.resolve({"CLUSTER_DIR": str(tmp_path), "CPUS": "16"})
    assert (config.nodes, config.cpus) == (1000, 16)


def test_record_survives_a_round_trip(tmp_path: pathlib.Path) -> None:
    """`status` and `down` see exactly the cluster that was started."""
    config = Config(directory=tmp_path, accounting=True)
    config.save()
    assert Config.load(tmp_path) == config


def test_two_clusters_share_no_port() -> None:
    """Another PORT_BASE moves every port."""
    one, two = Config(port_base=20000), Config(port_base=21000)
    assert two.port("lws-health") - one.port("lws-health") == 1000
