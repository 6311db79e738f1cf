"""The observer says when a group that requires one rack is in two; elsewhere it may be where it likes."""

import dataclasses
import pathlib

import pytest

from slurm_bridge.model import names
from tests.simulation import fleet, racks, troupes
from tests.simulation.broken_promise import Broken
from tests.simulation.manual_daemon import Hand
from tests.simulation.troupes import Form, Size, Troupe
from tests.simulation.world import World

PAIR = Troupe(form=Form.LABELS, name="t", leader=Size(), worker=Size(), workers=1, minimum=2)


@pytest.mark.parametrize(
    ("level", "nodes", "silent"),
    [
        ("rack", ("n01", "n04"), True),
        ("rack", ("n04", "n05"), False),
        ("hall", ("n04", "n05"), True),
        ("hall", ("n08", "n09"), False),
        ("", ("n01", "n11"), True),
    ],
)
def test_i11_one_domain(tmp_path: pathlib.Path, level: str, nodes: tuple[str, str], *, silent: bool) -> None:
    """Of the level that it requires."""
    world = World(1, tmp_path / "token", fleet=fleet.hall(racks.MACHINES))
    world.slurm.world.config = dataclasses.replace(world.slurm.world.config, configuring_seconds=0.0)
    world.observer.racks.require("t", level)
    for kind, manifest in troupes.manifests(PAIR, names.SCHEDULER_NAME):
        world.kube.create(kind, manifest)
    world.pass_time(1.0)
    hand = Hand(world)
    group = next(pod.group for pod in world.observer.pods.values() if pod.ours)
    others = tuple(sorted(world.slurm.world.nodes.keys() - set(nodes)))
    two = {"tasks": 2, "minimum_nodes": 2, "maximum_nodes": 2, "excluded_nodes": others}
    job_id = hand.ask(hand.request("t", group, kind="Group", cpus=1, **two))
    hand.bind("t-0", nodes[0], job_id)
    if silent:
        hand.bind("t-1", nodes[1], job_id)
        return
    with pytest.raises(Broken, match="I11"):
        hand.bind("t-1", nodes[1], job_id)
