"""What an operator does to nodes: drain, resume, add, remove."""

import pytest
from slurm_desk import VERSIONS, Desk

DRAIN = {"state": ["DRAIN"], "reason": "contract"}
RESUME = {"state": ["RESUME"]}


def test_a_drained_node_has_the_reason_and_its_author(each: Desk) -> None:
    """DRAIN beside the other words, the reason and its author; RESUME takes them away."""
    (node,) = each.idle("mapped")
    assert each.ask("POST", f"node/{node}", DRAIN).verdict == (200, [])
    drained = each.node(node)
    assert each.ask("POST", f"node/{node}", RESUME).verdict == (200, [])
    assert "DRAIN" in drained["state"]
    assert (drained["reason"], drained["reason_set_by_user"]) == ("contract", "slurm")
    assert "DRAIN" not in each.node(node)["state"]
    assert each.node(node)["reason"] == ""


def test_many_nodes_drain_in_one_call(each: Desk) -> None:
    """POST nodes/ takes the names as `name`."""
    nodes = each.idle("mapped", 2)
    assert each.ask("POST", "nodes/", {"name": nodes, **DRAIN}).verdict == (200, [])
    drained = [each.node(node)["state"] for node in nodes]
    assert each.ask("POST", "nodes/", {"name": nodes, **RESUME}).verdict == (200, [])
    assert all("DRAIN" in words for words in drained)
    assert not any("DRAIN" in each.node(node)["state"] for node in nodes)


def test_names_under_another_key_are_none(each: Desk) -> None:
    """`nodes` is not the field: 422 with 2018."""
    assert each.ask("POST", "nodes/", {"nodes": each.machines("mapped"), **DRAIN}).verdict == (422, [2018])


def test_an_unknown_node_is_refused(each: Desk) -> None:
    """422 with 2018."""
    assert each.ask("POST", "node/nowhere", DRAIN).verdict == (422, [2018])


def test_a_plain_user_may_not_drain(each: Desk) -> None:
    """422 with 2010."""
    assert each.plain_user.ask("POST", f"node/{each.machines('mapped')[0]}", DRAIN).verdict == (422, [2010])


def test_a_drained_node_keeps_its_jobs_and_takes_none(slurm: Desk) -> None:
    """What runs there runs on; a new job for it waits, with a warning at submit."""
    (node,) = slurm.idle("mapped")
    placed = {"partition": "mapped", "required_nodes": [node]}
    running = slurm.running(**placed)
    slurm.ask("POST", f"node/{node}", DRAIN)
    answer = slurm.submit(**placed)
    reason = slurm.job(answer.job_id)["state_reason"]
    state = slurm.state(running)
    slurm.ask("POST", f"node/{node}", RESUME)
    assert "drained" in answer.warnings
    assert reason.startswith("ReqNodeNotAvail")
    assert state == {"RUNNING"}
    slurm.started(answer.job_id)


def test_a_range_of_nodes_is_added_in_one_call(slurm: Desk) -> None:
    """New external nodes are idle at once, and dynamic."""
    assert slurm.add_nodes("added1", "added2").verdict == (200, [])
    for name in ("added1", "added2"):
        assert {"IDLE", "EXTERNAL", "DYNAMIC_NORM"} <= set(slurm.node(name)["state"])


def test_nodes_with_gres_are_added_one_by_one(slurm: Desk) -> None:
    """A line for two of them is refused: 500 with 22, and neither is there. So is one without GresConf."""
    slurm.added.extend(["added1", "added2"])
    line, devices = "CPUs=4 RealMemory=4000 State=EXTERNAL Gres=gpu:2", 'GresConf="Name=gpu,Count=2,File=/dev/gpu[0-1]"'
    for wrong in (f"NodeName=added1,added2 {line} {devices}", f"NodeName=added1 {line}"):
        assert slurm.ask("POST", "new/node", {"node_conf": wrong}).verdict == (500, [22])
        assert not slurm.get("node/added1").json.get("nodes")
    assert slurm.ask("POST", "new/node", {"node_conf": f"NodeName=added1 {line} {devices}"}).verdict == (200, [])


def test_a_node_joins_the_partition_of_a_feature_when_it_is_added(slurm: Desk) -> None:
    """The partition has a NodeSet of that feature. A feature that comes later does not move the node."""
    slurm.added.extend(["added1", "added2"])
    for name, feature in (("added1", "dynamic"), ("added2", "other")):
        line = f"NodeName={name} CPUs=4 RealMemory=4000 State=EXTERNAL Feature={feature}"
        assert slurm.ask("POST", "new/node", {"node_conf": line}).verdict == (200, [])
    slurm.ask("POST", "nodes/", {"name": ["added2"], "features": ["other", "dynamic"]})
    assert slurm.node("added1")["partitions"] == ["dynamic"]
    assert slurm.node("added2")["partitions"] == []


def test_fewer_features_are_taken_out_of_use_in_the_same_call(slurm: Desk) -> None:
    """Without `features_act` they are refused: 422 with 2031."""
    slurm.added.append("added1")
    line = "NodeName=added1 CPUs=4 RealMemory=4000 State=EXTERNAL Feature=one,two"
    assert slurm.ask("POST", "new/node", {"node_conf": line}).verdict == (200, [])
    fewer = {"name": ["added1"], "features": ["one"]}
    assert slurm.ask("POST", "nodes/", fewer).verdict == (422, [2031])
    assert slurm.ask("POST", "nodes/", {**fewer, "features_act": ["one"]}).verdict == (200, [])
    assert slurm.node("added1")["features"] == ["one"]


def test_an_existing_node_is_not_added_again(slurm: Desk) -> None:
    """422 with 2168 in v0.0.44 and v0.0.45, and the node is unharmed."""
    (node,) = slurm.idle("mapped")
    for version in VERSIONS[1:]:
        body = {"node_conf": f"NodeName={node} CPUs=4 RealMemory=4000 State=EXTERNAL"}
        assert slurm.at(version).ask("POST", "new/node", body).verdict == (422, [2168])
    assert "IDLE" in slurm.node(node)["state"]


def test_nodes_cannot_be_added_in_v0_0_43(slurm: Desk) -> None:
    """404: the call came with v0.0.44."""
    assert slurm.at("v0.0.43").ask("POST", "new/node", {"node_conf": "NodeName=added1"}).status == 404


def test_a_removed_node_is_gone(slurm: Desk) -> None:
    """DELETE takes it away; a second one is refused with 2018."""
    slurm.add_nodes("added1")
    assert slurm.ask("DELETE", "node/added1").verdict == (200, [])
    assert not slurm.get("node/added1").json.get("nodes")
    assert slurm.ask("DELETE", "node/added1").verdict == (422, [2018])


def test_a_script_never_lands_on_external_nodes(each: Desk) -> None:
    """A batch job is refused with 2014 where all nodes are external."""
    assert each.submit(flags=..., script="#!/bin/sh\ntrue\n").verdict == (422, [2014])


@pytest.mark.disruptive
def test_a_failed_node_ends_its_jobs(slurm: Desk) -> None:
    """Jobs on a node that goes DOWN end as NODE_FAIL, not requeued; without kill_on_node_fail one runs on, smaller.

    For a node that goes DOWN slurmctld 26.05 looks through the components of every heterogeneous job, also those that
    it forgot (MinJobAge after their end) while the leader is still known: it reads memory that it has given back, and
    now and then dies of it (SIGSEGV). A reconfigure reads all jobs anew, without those; and because it fails a job that
    has lost one, this comes after the cases that look at such a job.
    """
    slurm.reconfigure()
    nodes = slurm.idle("mapped", 2)
    placed = {"partition": "mapped", "tasks": 2, "required_nodes": nodes}
    strict, lenient = slurm.running(**placed), slurm.running(kill_on_node_fail=False, **placed)
    slurm.ask("POST", f"node/{nodes[1]}", {"state": ["DOWN"], "reason": "contract"})
    slurm.until(lambda: "NODE_FAIL" in slurm.state(strict), "the job ends")
    left = slurm.job(lenient)
    slurm.ask("POST", f"node/{nodes[1]}", RESUME)
    assert (left["job_state"], left["nodes"]) == (["RUNNING"], nodes[0])
    slurm.idle("mapped", 1)
