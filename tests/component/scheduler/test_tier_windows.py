"""A job waits for the best nodes only for a while, whatever the daemon's clock says of the time."""

import dataclasses
import json
import pathlib

import msgspec
import pytest

from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.model import kinds, marks
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.fleet import Fleet
from tests.simulation.world import World

NODES = {f"n{number}": f"n{number}" for number in range(3)}

#: Three tiers of so many seconds, the best node alone first.
HOOKS = [
    {"name": "policy"},
    {"name": "eligibility", "options": {"volumes": False}},
    {
        "name": "kube-scheduler",
        "options": {"first_tier": 1, "widen_after_seconds": 2.0, "priorities": [{"name": "LeastRequested"}]},
    },
]


def bridge_of(folder: pathlib.Path, ahead: float) -> Bridge:
    """The best node is n0 by all that the daemon has read, and has become full since then."""
    world = World(1, folder / "token", fleet=Fleet(nodes=NODES))
    for name in ("n1", "n2"):
        foreign = {"image": "none", "name": "main", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}
        spec = {"nodeName": name, "containers": [foreign]}
        world.kube.create(kinds.PODS, {"metadata": {"name": f"on-{name}"}, "spec": spec})
    for other in world.slurm.control.jobs().values():
        world.slurm.control.end(other.job_id, "CANCELLED")
    bridge = Bridge(folder, world=world, hooks=HOOKS)
    bridge.clock = world.clock_of(ahead)  # type: ignore[assignment]
    bridge.start()
    bridge.settle()
    world.submit("neighbour", required_nodes=["n0"], cpus_per_task=world.fleet.cpus)
    world.pass_time(1.0)
    return bridge


def job(bridge: Bridge) -> state.SlurmJob:
    """The one of the pod."""
    (found,) = (one for one in bridge.world.ours("PENDING", "RUNNING"))
    return found


def attempt(bridge: Bridge) -> int:
    """At which one the job says that it is."""
    owner = marks.read(job(bridge).ask.text("admin_comment"))
    assert owner is not None
    return PlanState.of_running(owner.plan).attempt


@pytest.mark.parametrize("ahead", [0.0, 600.0, -600.0], ids=["right", "ahead", "behind"])
def test_a_full_tier_is_left_in_time(tmp_path: pathlib.Path, ahead: float) -> None:
    """It is Slurm's look at the job that counts, by its own clock."""
    bridge = bridge_of(tmp_path, ahead)
    bridge.pod("a")
    bridge.settle()
    assert (job(bridge).ask.required, job(bridge).ask.excluded) == ((), ("n1", "n2"))
    bridge.until(lambda: bridge.node_of("a"), seconds=30.0)
    assert bridge.node_of("a") in {"n1", "n2"}
    assert attempt(bridge) == 1


@pytest.mark.parametrize("ahead", [0.0, 600.0, -600.0], ids=["right", "ahead", "behind"])
def test_a_restart_goes_on_with_the_attempt_of_the_record(tmp_path: pathlib.Path, ahead: float) -> None:
    """What a process before this one has tried is not tried again."""
    bridge = bridge_of(tmp_path, ahead)
    for name in ("n1", "n2"):
        bridge.world.submit("neighbour", required_nodes=[name], cpus_per_task=bridge.world.fleet.cpus)
    bridge.pod("a")
    bridge.until(lambda: attempt(bridge) == 1 if bridge.world.ours("PENDING") else False, seconds=30.0)
    bridge.start()
    seen = []
    bridge.until(lambda: seen.append(attempt(bridge)) or seen[-1] > 1, seconds=30.0)  # type: ignore[func-returns-value]
    assert seen == sorted(seen)
    assert seen[0] == 1


@pytest.mark.parametrize("ahead", [0.0, 600.0, -600.0], ids=["right", "ahead", "behind"])
def test_a_tier_that_the_job_has_already_is_left_in_time(tmp_path: pathlib.Path, ahead: float) -> None:
    """Nothing is written for it when the record speaks of other attempts, as one of an earlier version may."""
    bridge = bridge_of(tmp_path, ahead)
    bridge.pod("a")
    bridge.settle()
    waiting = job(bridge)
    owner = marks.read(waiting.ask.text("admin_comment"))
    assert owner is not None
    text = marks.write(msgspec.structs.replace(owner, plan=f"earlier:0:{int(bridge.clock.wall())}"))
    ask = dataclasses.replace(waiting.ask, texts={**waiting.ask.texts, "admin_comment": text})
    bridge.slurm.world.put(dataclasses.replace(waiting, ask=ask))
    bridge.start()
    bridge.until(lambda: bridge.node_of("a"), seconds=30.0)


def test_a_tier_whose_update_is_refused_is_left_for_the_next(tmp_path: pathlib.Path) -> None:
    """What Slurm did not take this time says nothing of what it takes next."""
    bridge = bridge_of(tmp_path, 0.0)
    for name in ("n1", "n2"):
        bridge.world.submit("neighbour", required_nodes=[name], cpus_per_task=bridge.world.fleet.cpus)
    wrong = {"error_number": 2014, "error": "Requested node configuration is not available", "source": "update_job"}
    refusal = faults.Answer(422, json.dumps({"errors": [wrong], "warnings": []}).encode())
    bridge.slurm_calls.plan(refusal, method="POST", target=r"/job/\d+")
    bridge.pod("a")
    bridge.until(lambda: bridge.world.ours("PENDING") and attempt(bridge) == 2, seconds=60.0)
