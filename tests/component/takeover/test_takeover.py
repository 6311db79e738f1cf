"""The whole way from another bridge to this one and back, with the daemon's core before and after it."""

import contextlib
import json
import pathlib

import pytest

from slurm_bridge import errors
from slurm_bridge.model import kinds, marks, names
from slurm_bridge.sim import faults
from tests.component.scheduler.whole_core import Bridge
from tests.component.takeover import other_bridge
from tests.component.takeover.other_bridge import FINALIZER, LEASE, OWN_TAINT, TAINT, Ended, Takeover
from tests.simulation.world import NAMESPACE

RUNNING, WAITING, GANG = ("r0", "r1"), ("w0", "w1"), ("g-0", "g-1")
ALL = (*RUNNING, *WAITING, *GANG)


@pytest.fixture
def takeover(tmp_path: pathlib.Path) -> Takeover:
    """The command beside a cluster of another bridge: running pods, waiting pods, a gang, taints."""
    return scene(tmp_path)


def scene(folder: pathlib.Path) -> Takeover:
    folder.mkdir(exist_ok=True)
    bridge = Bridge(folder)
    for name in RUNNING:
        other_bridge.running(bridge, name)
    for name in WAITING:
        other_bridge.waiting(bridge, name)
    group = {"metadata": {"name": "g", "namespace": NAMESPACE}, "spec": {"minMember": len(GANG)}}
    bridge.kube.create(kinds.COSCHEDULING_PODGROUPS, group)
    job_id = other_bridge.job(bridge, *GANG)
    nodes = other_bridge.nodes_of(bridge, job_id)
    for number, name in enumerate(GANG):
        labels = {names.LABEL_COSCHEDULING: "g"}
        other_bridge.pod(bridge, name, job_id, nodes[number % len(nodes)], labels=labels, finalizers=[])
    other_bridge.tainted(bridge)
    return Takeover(bridge)


def uids(bridge: Bridge) -> dict[str, str]:
    """The incarnation of each pod that is there."""
    return {name: bridge.uid(name) for name in ALL if bridge.exists(name)}


def living(bridge: Bridge) -> dict[str, list[str]]:
    """The records of living jobs that name pods of the scene, by pod or group."""
    found: dict[str, list[str]] = {}
    for job in bridge.slurm.world.jobs.values():
        text = job.ask.text("admin_comment")
        owner = marks.read(text)
        if not job.over and owner is not None and owner.cluster == "sim":
            found.setdefault(owner.name, []).append(job.state)
    return found


def comments(bridge: Bridge) -> dict[str, str]:
    """The record of each living job that is the other bridge's, by its first pod."""
    texts = [job.ask.text("admin_comment") for job in bridge.slurm.world.jobs.values() if not job.over]
    return {json.loads(text)["pods"][0]: text for text in texts if text.startswith('{"pods"')}


def taken_over(takeover: Takeover, before: dict[str, str]) -> None:
    """Our daemon goes on with everything: no pod is lost, no job doubled, waiting pods get nodes."""
    bridge = takeover.bridge
    bridge.start()
    bridge.until(lambda: all(bridge.node_of(name) for name in ALL), 60)
    bridge.run(90, step=2)
    assert uids(bridge) == before
    assert bridge.deletes() == 0
    found = living(bridge)
    assert {name: len(states) for name, states in found.items()} == dict.fromkeys((*RUNNING, *WAITING, "g"), 1)
    assert comments(bridge) == {}
    for name in ALL:
        meta = bridge.manifest(name)["metadata"]
        assert FINALIZER not in meta.get("finalizers", ())
        assert meta["annotations"][names.ANNOTATION_BOUND_BY] == "sim"
    assert other_bridge.taints(bridge, "n1") == [OWN_TAINT]


def test_running_pods_stay_and_waiting_pods_get_jobs_of_this_bridge(takeover: Takeover) -> None:
    """After the takeover, every pod is there, each workload has one job, and waiting pods get nodes."""
    before = uids(takeover.bridge)
    assert takeover.run() == 0
    taken_over(takeover, before)


def test_a_gang_that_was_taken_over_takes_a_pod_in_the_place_of_a_lost_one(takeover: Takeover) -> None:
    """Its job has as many places as the pods that it was taken over with."""
    bridge = takeover.bridge
    keep = {"metadata": {"annotations": {names.ANNOTATION_MEMBER_LOST: "keep"}}}
    bridge.kube.merge(kinds.COSCHEDULING_PODGROUPS, (NAMESPACE, "g"), keep)
    before = uids(bridge)
    takeover.run()
    taken_over(takeover, before)
    job_id, node = bridge.manifest("g-1")["metadata"]["labels"][names.LABEL_JOB_ID], bridge.node_of("g-1")
    bridge.delete("g-1", grace=0)
    bridge.run(5)
    bridge.pod("g-1", labels={names.LABEL_COSCHEDULING: "g"})
    bridge.until(lambda: bridge.node_of("g-1"), 60)
    assert bridge.manifest("g-1")["metadata"]["labels"][names.LABEL_JOB_ID] == job_id
    assert bridge.node_of("g-1") == node
    assert bridge.uid("g-0") == before["g-0"]


def test_a_second_run_finds_nothing_to_do(takeover: Takeover) -> None:
    """All writes are made once."""
    takeover.run()
    writes = takeover.writes()
    assert takeover.run() == 0
    assert takeover.writes() == writes
    assert takeover.lines[-1] == "DONE: nothing"


def test_a_dry_run_writes_nothing_and_counts_all(takeover: Takeover) -> None:
    """Every step is listed with its object."""
    assert takeover.run(apply=False) == 0
    assert takeover.writes() == 0
    text = "\n".join(takeover.lines)
    assert "write the owner record into a running job" in text
    assert "pod default/w0" in text
    assert "node n1" in text


def killed(folder: pathlib.Path, number: int, *, back: bool) -> bool:
    """The command dies before its call of this number, and a second one finishes; False where there is no such call."""
    takeover = scene(folder / str(number))
    before = uids(takeover.bridge)
    if back:
        takeover.run()
    strike = other_bridge.killed_before(number)
    for calls in (takeover.kube_calls, takeover.slurm_calls):
        calls.plan(faults.Meanwhile(strike), times=10_000)
    died = False
    try:
        takeover.run(back=back)
    except Ended:
        died = True
    for calls in (takeover.kube_calls, takeover.slurm_calls):
        calls.clear()
    assert takeover.run(back=back) == 0, takeover.lines
    if back:
        handed_back(takeover)
    elif number % STEP == 0:
        taken_over(takeover, before)
    return died


#: The short form kills before each fourth call.
STEP = 4


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("step", [STEP, pytest.param(1, marks=pytest.mark.thorough)])
def test_killed_before_any_call_and_run_again_it_comes_to_the_same_end(
    tmp_path: pathlib.Path, back: bool, step: int
) -> None:
    """Whichever call is the last one, the next run finishes the work."""
    number = step
    while killed(tmp_path, number, back=back):
        number += step
    assert number > STEP


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_daemon_that_starts_after_an_interrupted_takeover_ends_no_pod(
    tmp_path: pathlib.Path, back: bool, step: int
) -> None:
    """Whichever call was the last one, no pod says that this bridge has bound it by a job of the other bridge."""
    number, died = step, True
    while died:
        takeover = scene(tmp_path / str(number))
        bridge = takeover.bridge
        if back:
            takeover.run()
        before, strike, died = uids(bridge), other_bridge.killed_before(number), False
        for calls in (takeover.kube_calls, takeover.slurm_calls):
            calls.plan(faults.Meanwhile(strike), times=10_000)
        try:
            takeover.run(back=back)
        except Ended:
            died = True
        bridge.start()
        bridge.run(60, step=2)
        assert uids(bridge) == before
        assert bridge.deletes() == 0
        number += step


@pytest.mark.parametrize(("side", "method"), [("kube", "PATCH"), ("slurm", "POST"), ("slurm", "DELETE")])
def test_an_answer_that_is_lost_is_found_out_by_the_next_run(tmp_path: pathlib.Path, side: str, method: str) -> None:
    """A write is made, and its answer does not arrive."""
    takeover = scene(tmp_path)
    before = uids(takeover.bridge)
    calls = takeover.kube_calls if side == "kube" else takeover.slurm_calls
    calls.plan(faults.Reset(acted=True), method=method, nth=2)
    with contextlib.suppress(errors.BridgeError):
        assert takeover.run() == 3
        assert any("run the command again" in line for line in takeover.lines)
    calls.clear()
    assert takeover.run() == 0, takeover.lines
    taken_over(takeover, before)


def handed_back(takeover: Takeover) -> None:
    """The state that the other bridge expects."""
    bridge = takeover.bridge
    assert living(bridge) == {}
    assert set(comments(bridge)) == {f"{NAMESPACE}/{name}" for name in (*RUNNING, GANG[0])}
    for name in (*RUNNING, *GANG):
        meta = bridge.manifest(name)["metadata"]
        assert names.ANNOTATION_BOUND_BY not in meta["annotations"]
        assert meta["annotations"][names.ANNOTATION_SLURM_NODE] == bridge.node_of(name)
        record = json.loads(bridge.slurm.world.jobs[int(meta["labels"][names.LABEL_JOB_ID])].ask.text("admin_comment"))
        assert f"{NAMESPACE}/{name}" in record["pods"]


def test_the_way_back_gives_running_jobs_the_other_record(takeover: Takeover) -> None:
    """Pods of this bridge continue to run for the other bridge; our waiting jobs are cancelled."""
    bridge = takeover.bridge
    before = uids(bridge)
    takeover.run()
    taken_over(takeover, before)
    bridge.waiting("late")
    assert takeover.run(back=True) == 0, takeover.lines
    assert uids(bridge) == before
    assert set(comments(bridge)) == {f"{NAMESPACE}/{name}" for name in (*RUNNING, *WAITING, GANG[0])}
    assert living(bridge) == {}
    for name in ALL:
        assert names.ANNOTATION_BOUND_BY not in bridge.manifest(name)["metadata"]["annotations"]


@pytest.mark.security("neighbours")
def test_jobs_and_pods_of_others_are_left_as_they_are(takeover: Takeover) -> None:
    """Native jobs, other clusters' placeholders and records, pods and taints of another scheduler are not touched."""
    bridge = takeover.bridge
    elsewhere = bridge.world.submit("elsewhere", admin_comment='{"pods":["away/x"]}')
    odd = bridge.world.submit("odd", admin_comment='{"pods":["default/r0"],"more":1}')
    strange = other_bridge.job(bridge, "strange")
    node = other_bridge.nodes_of(bridge, strange)[0]
    other_bridge.pod(bridge, "strange", strange, node, spec={"schedulerName": "their-scheduler", "nodeName": node})
    bridge.kube.merge(kinds.NODES, ("", "n2"), {"spec": {"taints": [{**TAINT, "value": "their-scheduler"}]}})
    jobs = {job.job_id: job for job in bridge.slurm.world.jobs.values()}
    foreign = [one for one in jobs if not jobs[one].ask.text("admin_comment").startswith('{"pods"')]
    foreign += [elsewhere, odd, strange]
    before = {one: (jobs[one].ask, jobs[one].state) for one in foreign}
    pod = bridge.manifest("strange")
    assert takeover.run() == 3
    after = bridge.slurm.world.jobs
    assert {one: (after[one].ask, after[one].state) for one in foreign} == before
    assert bridge.manifest("strange") == pod
    assert other_bridge.taints(bridge, "n2")[0]["value"] == "their-scheduler"
    text = "\n".join(takeover.lines)
    assert "pod away/x of its record is not in this cluster" in text
    assert "its admin_comment is not exactly a record of the other bridge" in text
    assert "pod default/strange has the schedulerName 'their-scheduler'" in text
    assert "its taint is of the scheduler 'their-scheduler'" in text


@pytest.mark.security("input")
def test_a_pod_that_merely_names_a_job_gets_nothing_of_it(takeover: Takeover) -> None:
    """A forged label, a record that names another job's pod, and a pod on another node change no job."""
    bridge = takeover.bridge
    job_id = other_bridge.job(bridge, "real")
    here = other_bridge.nodes_of(bridge, job_id)[0]
    away = next(name for name in bridge.world.fleet.nodes if name != here)
    other_bridge.pod(bridge, "real", job_id, away)
    native = bridge.world.submit("more-native", flags=[], priority=0)
    other_bridge.pod(bridge, "forged", native, here)
    assert takeover.run() == 3
    assert bridge.slurm.world.jobs[job_id].ask.text("admin_comment") == '{"pods":["default/real"]}'
    text = "\n".join(takeover.lines)
    assert f"pod default/real is on node {away}, which is none of the job's nodes" in text
    assert f"Slurm job {native} does not name it in its record" in text
    assert FINALIZER in bridge.manifest("forged")["metadata"]["finalizers"]


@pytest.mark.parametrize("of_part", ["", ".part.a"])
def test_a_held_lease_refuses_until_told_otherwise(takeover: Takeover, of_part: str) -> None:
    """A lease that is renewed meanwhile belongs to a bridge that acts; --force goes on all the same.

    Several daemons with parts have one each. A record of a namespace is renewed by no process.
    """
    bridge = takeover.bridge
    namespace, name = LEASE[0], LEASE[1] + of_part
    record = {"metadata": {"namespace": namespace, "name": f"{LEASE[1]}.namespace.default"}}
    bridge.kube.create(kinds.LEASES, {**record, "spec": {"holderIdentity": "a"}})
    spec = {"holderIdentity": "d1", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    bridge.kube.create(kinds.LEASES, {"metadata": {"namespace": namespace, "name": name}, "spec": spec})
    renewed = {"spec": {"renewTime": "2026-01-01T00:00:02.000000Z"}}
    takeover.kube_calls.plan(
        faults.Meanwhile(lambda: bridge.kube.merge(kinds.LEASES, (namespace, name), renewed)), target="/leases/", nth=2
    )
    with pytest.raises(errors.BadConfiguration, match=f"Lease default/slurm-bridge{of_part} is held by d1"):
        takeover.run()
    assert takeover.writes() == 0
    assert takeover.run(force=True) == 0


def test_the_lease_of_a_killed_daemon_is_waited_for(takeover: Takeover) -> None:
    """A lease that is not renewed for its duration is free."""
    bridge = takeover.bridge
    spec = {"holderIdentity": "d1", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    bridge.kube.create(kinds.LEASES, {"metadata": {"namespace": NAMESPACE, "name": names.SCHEDULER_NAME}, "spec": spec})
    began = bridge.clock.now()
    assert takeover.run() == 0
    assert 15 <= bridge.clock.now() - began < 20


def test_a_pod_of_the_other_bridge_that_runs_refuses(takeover: Takeover) -> None:
    """Its chart has no leader election by default: its pods show that it acts."""
    labels = {"helm.sh/chart": "slurm-bridge-1.2.0", "app.kubernetes.io/component": "controllers"}
    spec = {"nodeName": "n1", "schedulerName": "default-scheduler"}
    takeover.bridge.pod("slurm-bridge-controllers-x", labels=labels, spec=spec)
    with pytest.raises(errors.BadConfiguration, match="pod default/slurm-bridge-controllers-x of the other"):
        takeover.run()


def test_pods_that_are_over_lose_the_finalizer_and_their_job(takeover: Takeover) -> None:
    """A pod that ended while no bridge acted goes, and its job is cancelled."""
    bridge = takeover.bridge
    job_id = int(bridge.manifest("r0")["metadata"]["labels"][names.LABEL_JOB_ID])
    bridge.status("r0", phase="Succeeded")
    assert takeover.run() == 0
    assert bridge.slurm.world.jobs[job_id].over
    assert FINALIZER not in bridge.manifest("r0")["metadata"].get("finalizers", ())


def test_a_gang_of_which_only_some_have_nodes_is_left_alone(takeover: Takeover) -> None:
    """Neither its job nor its pods are changed."""
    bridge = takeover.bridge
    job_id = other_bridge.job(bridge, "h-0", "h-1")
    other_bridge.pod(bridge, "h-0", job_id, other_bridge.nodes_of(bridge, job_id)[0])
    other_bridge.pod(bridge, "h-1", job_id)
    assert takeover.run() == 3
    assert any("only 1 of its 2 pods have nodes" in line for line in takeover.lines)
    assert not bridge.slurm.world.jobs[job_id].over
    assert FINALIZER in bridge.manifest("h-1")["metadata"]["finalizers"]
