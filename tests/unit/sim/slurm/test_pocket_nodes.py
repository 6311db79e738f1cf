"""Machines: drained, down, deleted, added, poisoned."""

from pocket_desk import Desk

from slurm_bridge.sim.slurm import state


def test_a_drained_node_keeps_its_jobs_and_takes_none(slurm: Desk) -> None:
    """A job that insists on it is taken in with a warning, and waits."""
    placed = {"partition": "mapped", "required_nodes": ["ext019"]}
    running = slurm.running(**placed)
    slurm.call("POST", "node/ext019", {"state": ["DRAIN"], "reason": "broken fan"})
    answer = slurm.submit(**placed)
    assert "drained" in answer.warnings
    assert slurm.reason(answer.job_id) == "ReqNodeNotAvail"
    assert slurm.state(running) == "RUNNING"
    node = slurm.node("ext019")
    assert (node["state"], node["reason"], node["reason_set_by_user"]) == (
        ["MIXED", "EXTERNAL", "DRAIN"],
        "broken fan",
        "root",
    )
    slurm.call("POST", "nodes/", {"name": ["ext[019-020]"], "state": ["RESUME"]})
    slurm.slurm.tick()
    assert slurm.state(answer.job_id) == "RUNNING"


def test_a_failed_node_fails_its_jobs(slurm: Desk) -> None:
    """NODE_FAIL with the node's name; a job that would rather live on loses the node only."""
    placed = {"partition": "mapped", "tasks": 2, "required_nodes": ["ext019", "ext020"]}
    strict, lenient = slurm.running(**placed), slurm.running(kill_on_node_fail=False, **placed)
    slurm.control.fail_node("ext020")
    assert (slurm.job(strict)["job_state"], slurm.job(strict)["failed_node"]) == (["NODE_FAIL"], "ext020")
    assert list(slurm.spread(lenient)) == ["ext019"]


def test_a_static_node_comes_back(slurm: Desk) -> None:
    """Deleted over REST it is gone until the next reconfigure; deleted from the configuration for good."""
    for delete in (lambda: slurm.call("DELETE", "node/ext001"), lambda: slurm.control.delete_node("ext001")):
        delete()
        assert not slurm.call("GET", "node/ext001").body.get("nodes")
        slurm.call("GET", "reconfigure/")
    assert not slurm.call("GET", "node/ext001").body.get("nodes")
    assert "ext001" not in slurm.call("GET", "partition/debug").body["partitions"][0]["nodes"]["configured"]


def test_a_node_in_use_is_not_deleted(slurm: Desk) -> None:
    """2016; an unknown one is 2018."""
    slurm.running(required_nodes=["ext001"])
    assert slurm.call("DELETE", "node/ext001").errors == [2016]
    assert slurm.call("DELETE", "node/nowhere").errors == [2018]


def test_nodes_are_added_by_a_line_of_configuration(slurm: Desk) -> None:
    """A range in one call; a name that exists is refused with 2168 and unharmed."""
    line = "NodeName=new[1-2] CPUs=4 RealMemory=1000 Feature=fast State=EXTERNAL"
    assert slurm.call("POST", "new/node/", {"node_conf": line}).errors == []
    assert slurm.node("new2")["state"] == ["IDLE", "EXTERNAL", "DYNAMIC_NORM"]
    assert slurm.call("POST", "new/node/", {"node_conf": "NodeName=ext001 CPUs=1"}).errors == [2168]
    assert slurm.node("ext001")["cpus"] == 64


def test_nodes_with_gres_are_added_one_by_one_with_their_devices(slurm: Desk) -> None:
    """22 for several in one line, and without GresConf."""
    line = "CPUs=4 RealMemory=1000 Gres=gpu:a100:2 State=EXTERNAL"
    devices = 'GresConf="Name=gpu,Type=a100,Count=2"'
    for wrong in (f"NodeName=new1 {line}", f"NodeName=new[1-2] {line} {devices}"):
        assert slurm.call("POST", "new/node/", {"node_conf": wrong}).errors == [22]
    assert slurm.call("POST", "new/node/", {"node_conf": f"NodeName=new1 {line} {devices}"}).errors == []
    assert slurm.node("new1")["gres"] == "gpu:a100:2"


def test_a_reconfigure_fails_jobs_that_need_a_deleted_node(slurm: Desk) -> None:
    """Those that only exclude it wait on."""
    slurm.control.add_node(state.Node(name="gone", cpus=4), "debug")
    needing = slurm.pending(hold=True, required_nodes=["gone"])
    excluding = slurm.pending(hold=True, excluded_nodes=["gone"])
    slurm.call("DELETE", "node/gone")
    slurm.control.reconfigure()
    assert [slurm.state(needing), slurm.state(excluding)] == ["NODE_FAIL", "PENDING"]


def test_a_poisoned_node_takes_no_jobs(slurm: Desk) -> None:
    """Until a reconfigure."""
    slurm.control.poison("ext019")
    slurm.control.drain("ext020")
    job_id = slurm.pending(partition="mapped")
    assert slurm.reason(job_id) == "ReqNodeNotAvail"
    slurm.control.reconfigure()
    slurm.slurm.tick()
    assert list(slurm.spread(job_id)) == ["ext019"]


def test_administrators_act_on_jobs(slurm: Desk) -> None:
    """Hold, release, suspend, resume, preempt, end."""
    job_id = slurm.pending()
    slurm.control.hold(job_id)
    assert slurm.reason(job_id) == "JobHeldAdmin"
    slurm.control.release(job_id)
    slurm.slurm.tick()
    slurm.control.suspend(job_id)
    assert slurm.job(job_id)["job_state"] == ["SUSPENDED"]
    slurm.control.resume_job(job_id)
    slurm.control.preempt(job_id)
    assert slurm.state(job_id) == "PREEMPTED"
    other = slurm.running()
    slurm.control.end(other)
    assert slurm.state(other) == "COMPLETED"


def test_plain_users_change_no_nodes(slurm: Desk) -> None:
    """2010, whatever they try."""
    tries = [("POST", "node/ext001"), ("DELETE", "node/ext001"), ("POST", "new/node/"), ("GET", "reconfigure/")]
    answers = [slurm.call(method, path, {}, token="pocket-alice-token") for method, path in tries]
    assert [answer.errors for answer in answers] == [[2010]] * 4
