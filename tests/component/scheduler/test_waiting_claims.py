"""Claims that wait for their first pod: Slurm allocates, a node is selected, and the pod is bound after its claims."""

import dataclasses
from collections.abc import Mapping

import pytest

from slurm_bridge.hooks import chain
from slurm_bridge.hooks.base import GO, Admit, Ask, Session
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import kinds, names
from slurm_bridge.model.storage import BOUND_BY_CONTROLLER
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.sim import faults
from tests.component.scheduler.claimed_volumes import HOOKS, LOCAL, MADE, Storage, on, using
from tests.component.scheduler.gang_scenes import gang, job_of, member
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

CLAIMS = f"/namespaces/{NAMESPACE}/persistentvolumeclaims/"
SCRATCH = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}


@pytest.fixture
def bridge(bridge: Bridge) -> Bridge:
    """With the hook that honours such claims."""
    return Bridge(bridge.folder, world=bridge.world, hooks=HOOKS)


@pytest.fixture
def storage(bridge: Bridge) -> Storage:
    """Its classes, and what binds claims."""
    return Storage(bridge)


def test_the_pod_is_bound_after_its_claim(bridge: Bridge, storage: Storage) -> None:
    """The node of the allocation is selected; until the claim is bound, the pod says what it waits for."""
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    job = bridge.job("a")
    bridge.run(20)
    assert bridge.node_of("a") == ""
    assert storage.annotations()[names.ANNOTATION_SELECTED_BY].endswith(f"/{job.job_id}/{storage.selected()}")
    reason, message = bridge.condition("a")
    assert reason == "WaitsForVolumes"
    assert f"PersistentVolumeClaim {NAMESPACE}/data (node {storage.selected()})" in message
    storage.answers = True
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == storage.selected()
    assert bridge.job("a").job_id == job.job_id
    assert bridge.kube_calls.count(method="PATCH", target=CLAIMS) == 1


def test_an_ephemeral_claim_waits_likewise(bridge: Bridge, storage: Storage) -> None:
    """It has the name of its pod, and is made by a controller."""
    uid = bridge.pod("a", spec=SCRATCH)
    storage.claim("a-scratch", pod=("a", uid))
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == storage.selected("a-scratch")


@pytest.mark.security("input")
def test_a_claim_that_was_not_made_for_the_pod_is_not_written(bridge: Bridge, storage: Storage) -> None:
    """A claim that merely has the name of an ephemeral volume's claim is not written; its own user starts with it."""
    storage.claim("a-scratch")
    bridge.pod("a", spec=SCRATCH)
    bridge.run(20)
    reason, message = bridge.condition("a")
    assert reason == "VolumeNotReady"
    assert f"PersistentVolumeClaim {NAMESPACE}/a-scratch was not created for pod {NAMESPACE}/a" in message
    assert bridge.submits() == 0
    assert bridge.kube_calls.count(method="PATCH", target=CLAIMS) == 0
    bridge.pod("owner", spec=using("a-scratch"))
    storage.until(lambda: bridge.node_of("owner"))


def test_a_bound_claim_wakes_its_pod_at_once(bridge: Bridge, storage: Storage) -> None:
    """Nothing polls: in the moment in which the watch tells of the claim its pod is bound."""
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    bridge.run(30)
    storage.answers = True
    storage.step()
    bridge.settle()
    assert bridge.node_of("a") == storage.selected()


def test_a_claim_that_is_heard_of_before_its_volume_costs_no_job(bridge: Bridge, storage: Storage) -> None:
    """Two watches tell of them in any order: a volume that is not known yet is waited for."""
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    job, node = bridge.job("a").job_id, storage.selected()
    storage.name("data", "made")
    bridge.run(20)
    assert bridge.node_of("a") == ""
    assert bridge.condition("a")[0] == "WaitsForVolumes"
    storage.volume("made", node, of=MADE)
    storage.bind("data", "made")
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == node
    assert bridge.job("a").job_id == job


def test_a_node_that_the_provisioner_gives_up_is_given_back(bridge: Bridge, storage: Storage) -> None:
    """It takes the annotation away; the next allocation is on another node, and an event says why."""
    storage.refuses = {"n1", "n2", "n3"}
    storage.claim()
    bridge.pod("a", spec=using("data"))
    storage.until(lambda: bridge.node_of("a"), 120)
    assert bridge.node_of("a") == "n4"
    assert sorted(storage.refused) == ["n1", "n2", "n3"]
    told = sorted(message for reason, message in bridge.events("a") if reason == "VolumeBindingFailed")
    assert f"PersistentVolumeClaim {NAMESPACE}/data is not provisioned: its provisioner gave up node n1" in told[0]


def test_a_provisioner_that_never_answers_costs_the_nodes_for_a_while(bridge: Bridge, storage: Storage) -> None:
    """After `volume_seconds` the choice is taken back, and another node is tried."""
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=HOOKS, workloads={"volume_seconds": 20})
    storage.bridge, storage.answers = bridge, False
    storage.claim()
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    first, job = storage.selected(), bridge.job("a")
    storage.until(lambda: storage.selected() not in ("", first), 60)
    assert bridge.of(job).over
    assert "to be bound to a volume, for more than 20 s" in bridge.note(job)
    storage.answers = True
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == storage.selected()


def test_a_volume_that_an_administrator_made_is_kept_for_the_claim(bridge: Bridge, storage: Storage) -> None:
    """Only nodes with a free volume are offered, and the smallest that will do is taken."""
    storage.volume("large", "n3", size="9Gi")
    storage.volume("small", "n3", size="2Gi")
    storage.volume("tiny", "n2", size="1Mi")
    storage.claim(of=LOCAL)
    bridge.pod("a", spec=using("data"))
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == "n3"
    volume = bridge.kube.get(kinds.PERSISTENTVOLUMES, "", "small")
    assert volume is not None
    assert volume["spec"]["claimRef"]["uid"] == storage.read()["metadata"]["uid"]
    assert volume["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert storage.selected() == ""


def test_without_a_volume_anywhere_nothing_is_submitted(bridge: Bridge, storage: Storage) -> None:
    """The pod says why, in kube-scheduler's words."""
    storage.claim(of=LOCAL)
    bridge.pod("a", spec=using("data"))
    bridge.run(10)
    assert "4 node(s) didn't find available persistent volumes to bind" in bridge.condition("a")[1]
    assert bridge.submits() == 0
    storage.volume("v", "n2")
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == "n2"


def test_two_pods_never_take_one_volume(bridge: Bridge, storage: Storage) -> None:
    """Both may have been allocated the node; the second one's allocation is given back, and it waits for a volume."""
    storage.volume("v", "n1")
    for name in ("one", "two"):
        storage.claim(name, of=LOCAL)
        bridge.pod(name, spec=using(name))
    bridge.settle()
    storage.until(lambda: bridge.node_of("one") or bridge.node_of("two"))
    bridge.run(60)
    assert sorted(map(bool, map(bridge.node_of, ("one", "two")))) == [False, True]
    storage.volume("w", "n2")
    storage.until(lambda: bridge.node_of("one") and bridge.node_of("two"))


def test_no_pod_of_a_gang_is_bound_before_all_its_claims(bridge: Bridge, storage: Storage) -> None:
    """One claim is late, and all members wait for it."""
    for number in range(3):
        storage.claim(f"c-{number}")
        member(bridge, f"g-{number}", size=3, spec=using(f"c-{number}"))
    storage.answers = False
    storage.until(lambda: all(storage.selected(f"c-{number}") for number in range(3)))
    storage.answers = True
    storage.provision("c-0")
    storage.answers = False
    bridge.run(20)
    assert [bridge.node_of(f"g-{number}") for number in range(3)] == ["", "", ""]
    assert {bridge.condition(f"g-{number}")[0] for number in range(3)} == {"WaitsForVolumes"}
    storage.answers = True
    storage.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(3)))
    assert all(bridge.node_of(f"g-{number}") == storage.selected(f"c-{number}") for number in range(3))


def test_members_that_share_a_claim_use_the_node_of_the_first(bridge: Bridge, storage: Storage) -> None:
    """The volume then says where all of them can be: the next allocation is there."""
    storage.claim("shared")
    for number in range(2):
        member(bridge, f"g-{number}", size=2, spec=using("shared"), cpu="1")
    storage.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(2)), 120)
    assert {bridge.node_of(f"g-{number}") for number in range(2)} == {storage.selected("shared")}


def test_a_member_that_joins_a_running_gang_waits_for_its_claim(bridge: Bridge, storage: Storage) -> None:
    """Its node is the one that the job has left: a provisioner that gives it up is asked again."""
    pods = gang(bridge, 3, lost="keep")
    bridge.until(lambda: all(bridge.node_of(name) for name in pods))
    job = job_of(bridge)
    bridge.delete("g-2", grace=0)
    bridge.run(2)
    storage.claim()
    storage.refuses = {"n1", "n2", "n3", "n4"}
    member(bridge, "g-4", size=3, lost="keep", spec=using("data"))
    storage.until(lambda: len(storage.refused) > 1)
    assert bridge.condition("g-4")[0] in ("WaitsForVolumes", "VolumeBindingFailed")
    assert (bridge.node_of("g-4"), bool(bridge.node_of("g-0"))) == ("", True)
    storage.refuses = set()
    storage.until(lambda: bridge.node_of("g-4"))
    assert not bridge.of(job).over
    assert bridge.node_of("g-4") == storage.selected()


def test_a_claim_that_is_deleted_meanwhile_gives_the_nodes_back(bridge: Bridge, storage: Storage) -> None:
    """The pod then waits without a job; no node is blamed for it."""
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    job = bridge.job("a")
    bridge.kube.delete(kinds.PERSISTENTVOLUMECLAIMS, (NAMESPACE, "data"))
    bridge.run(20)
    assert bridge.of(job).over
    assert bridge.condition("a") == ("VolumeNotReady", f"PersistentVolumeClaim {NAMESPACE}/data does not exist")
    storage.claim()
    storage.answers = True
    storage.until(lambda: bridge.node_of("a"))


def test_a_claim_of_a_class_that_does_not_exist(bridge: Bridge, storage: Storage) -> None:
    """The class is named, and nothing is submitted."""
    storage.claim(of="gone")
    bridge.pod("a", spec=using("data"))
    bridge.run(5)
    assert (
        bridge.condition("a")[1]
        == f"PersistentVolumeClaim {NAMESPACE}/data is not bound, and its StorageClass gone does not exist"
    )
    assert bridge.submits() == 0


def test_another_scheduler_selected_the_node_first(bridge: Bridge, storage: Storage) -> None:
    """Only that node is offered, and its choice is not touched."""
    storage.claim()
    storage.answers = False
    storage.annotate(selected_node="n4")
    bridge.pod("a", spec=using("data"))
    bridge.run(20)
    assert bridge.condition("a")[0] == "WaitsForVolumes"
    assert bridge.kube_calls.count(method="PATCH", target=CLAIMS) == 0
    storage.answers = True
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == "n4"


def test_a_choice_of_another_scheduler_is_never_taken_back(bridge: Bridge, storage: Storage) -> None:
    """Also when its volume takes too long."""
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=HOOKS, workloads={"volume_seconds": 10})
    storage.bridge, storage.answers = bridge, False
    storage.claim()
    storage.annotate(selected_node="n4")
    bridge.pod("a", spec=using("data"))
    bridge.run(60)
    assert storage.annotations().keys() == {"volume.kubernetes.io/selected-node"}


def test_a_job_that_ends_while_its_claim_waits(bridge: Bridge, storage: Storage) -> None:
    """The next job selects its own node, and has all the time for that."""
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    job = bridge.job("a")
    bridge.run(200)
    bridge.slurm.control.end(job.job_id, "NODE_FAIL")
    bridge.until(lambda: [one for one in bridge.jobs(bridge.uid("a")) if not one.over], 120)
    bridge.until(lambda: f"/{bridge.job('a').job_id}/" in storage.annotations()[names.ANNOTATION_SELECTED_BY])
    bridge.run(200)
    storage.answers = True
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == storage.selected()


@pytest.mark.parametrize("fault", [faults.Answer(409), faults.Drop(), faults.Answer(503)])
def test_a_write_that_fails_is_made_once_in_the_end(bridge: Bridge, storage: Storage, fault: faults.Fault) -> None:
    """A conflict, a lost answer, and a server that cannot serve now: the pod starts with the same job."""
    storage.claim()
    bridge.kube_calls.plan(fault, method="PATCH", target=CLAIMS)
    bridge.pod("a", spec=using("data"))
    storage.until(lambda: bridge.node_of("a"))
    assert len(bridge.jobs(bridge.uid("a"))) == 1


@pytest.mark.security("neighbours")
@pytest.mark.parametrize("status", [500, 503])
def test_a_write_that_is_never_served_costs_the_nodes_for_a_while(
    bridge: Bridge, storage: Storage, status: int
) -> None:
    """While a webhook lets no claim of a pod be written, the pod says so, and pods with other claims start."""
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=HOOKS, workloads={"volume_seconds": 60})
    storage.bridge = bridge
    storage.claim()
    bridge.kube_calls.plan(faults.Answer(status), method="PATCH", target=f"{CLAIMS}data", times=1000)
    bridge.pod("a", spec=using("data"))
    bridge.until(lambda: bridge.condition("a")[0] == "WaitsForVolumes", 10)
    assert "; not written yet: " in bridge.condition("a")[1]
    assert f"HTTP {status}" in bridge.condition("a")[1]
    job = bridge.job("a")
    storage.claim("other")
    bridge.pod("b", spec=using("other"))
    storage.until(lambda: bridge.node_of("b"), 10)
    bridge.run(40)
    assert not bridge.of(job).over
    assert bridge.kube_calls.count(method="PATCH", target=f"{CLAIMS}data") <= 8
    bridge.until(lambda: bridge.of(job).over, 20)
    assert "; not written yet: PATCH" in bridge.note(job)


class Later:
    """Lets no pod be bound as long as `waits`."""

    waits = True

    def verify(self, _session: Session, _workload: Workload, _nodes: Mapping[str, str]) -> Admit | Wait:
        return Wait(reason="Later", message="not yet", retry_after=1.0) if self.waits else GO


def test_slow_claims_use_up_no_patience_of_other_waits(bridge: Bridge, storage: Storage) -> None:
    """Each kind of waiting has its own time, which begins once: what alternates cannot hold the nodes for ever."""
    later, config = Later(), bridge.core.context.config
    later.waits = False
    made = chain.Chain([*config.chain.hooks, Hook(name="later", hook=later)], ChainServices(clock=bridge.clock))
    made.see({need: feed.store for need, feed in bridge.seen.items()})
    bridge.core.configure(dataclasses.replace(config, chain=made))
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    job = bridge.job("a")
    bridge.run(100)
    for seconds in (30, 20):
        later.waits = True
        storage.touch(str(seconds))
        bridge.until(lambda: bridge.condition("a")[0] == "Later", 20)
        bridge.run(seconds)
        assert not bridge.of(job).over
        later.waits = False
        bridge.until(lambda: bridge.condition("a")[0] == "WaitsForVolumes", 20)
    later.waits = True
    storage.touch("last")
    bridge.until(lambda: bridge.of(job).over, 20)
    assert "not yet" in bridge.note(job)


def test_without_the_right_to_write_the_nodes_are_given_back(bridge: Bridge, storage: Storage) -> None:
    """The pod says what is forbidden, and Slurm is asked less and less."""
    storage.claim()
    bridge.kube_calls.plan(faults.Answer(403), method="PATCH", target=CLAIMS, times=1000)
    bridge.pod("a", spec=using("data"))
    bridge.run(120)
    assert any("cannot be written" in message for _, message in bridge.events("a"))
    assert bridge.node_of("a") == ""
    assert bridge.submits() <= 8


def test_a_restart_goes_on_waiting(bridge: Bridge, storage: Storage) -> None:
    """What was selected stands on the claim; nothing is written again."""
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    job = bridge.job("a")
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=HOOKS)
    storage.bridge = bridge
    bridge.run(10)
    assert bridge.kube_calls.count(method="PATCH", target=CLAIMS) == 0
    storage.answers = True
    storage.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id == job.job_id


@pytest.mark.security("input")
@pytest.mark.parametrize("mark", ["x", "", "///", "test/1/n1", "9" * 5000, "test/\uff19/n1", "test/-1/n1"])
def test_forged_marks_on_a_claim_harm_nobody(bridge: Bridge, storage: Storage, mark: str) -> None:
    """Whatever a user writes on a claim in place of the bridge, the claim is bound and pods beside it start."""
    storage.claim()
    storage.claim("other")
    storage.annotate(selected_by=mark)
    bridge.pod("a", spec=using("data"))
    bridge.pod("b", spec=using("other"))
    storage.until(lambda: bridge.node_of("a") and bridge.node_of("b"))
    assert bridge.node_of("a") == storage.selected()


@pytest.mark.security("neighbours")
def test_a_claim_that_never_binds_keeps_no_other_pod_waiting(bridge: Bridge, storage: Storage) -> None:
    """Pods with and without claims start while the claim of another pod is never bound."""
    storage.claim()
    storage.answers = False
    bridge.pod("a", spec=using("data"))
    storage.until(storage.selected)
    bridge.bound("plain")
    storage.claim("other")
    bridge.pod("b", spec=using("other"))
    storage.until(lambda: storage.selected("other"))
    storage.provision("other")
    bridge.until(lambda: bridge.node_of("b"))
    assert bridge.node_of("a") == ""


class Asked:
    """Remembers which workloads were admitted."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def admit(self, _session: Session, ask: Ask) -> Admit:
        self.names.append(ask.workload.lead.metadata.name)
        return GO


@pytest.mark.security("fairness")
def test_claims_that_change_cost_pods_without_claims_nothing(bridge: Bridge, storage: Storage) -> None:
    """Claims that a user changes all the time cause no evaluation of waiting pods without claims."""
    asked = Asked()
    bridge.recover()
    one = chain.Chain([Hook(name="asked", hook=asked)], ChainServices(clock=bridge.clock))
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=one))
    bridge.slurm.control.pause()
    storage.claim()
    bridge.pod("plain", cpu="64")
    bridge.pod("claiming", cpu="64", spec=using("data"))
    bridge.run(5)
    asked.names.clear()
    for number in range(5):
        storage.annotate(selected_by=str(number))
        bridge.run(1.5)
    assert set(asked.names) == {"claiming"}


class TestSoleClaims:
    """ReadWriteOncePod: one pod at a time."""

    REASON = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )

    def test_a_second_pod_waits_until_the_first_has_gone(self, bridge: Bridge, storage: Storage) -> None:
        """On no node may it run meanwhile, and it says why."""
        storage.claim(mode="ReadWriteOncePod")
        bridge.pod("first", spec=using("data"))
        storage.until(lambda: bridge.node_of("first"))
        bridge.pod("second", spec=using("data"))
        bridge.run(10)
        assert self.REASON in bridge.condition("second")[1]
        assert bridge.jobs(bridge.uid("second")) == []
        bridge.delete("first", grace=0)
        storage.until(lambda: bridge.node_of("second"))

    def test_of_two_that_were_allocated_one_is_bound(self, bridge: Bridge, storage: Storage) -> None:
        """Both were in Slurm's queue before either ran."""
        storage.claim(mode="ReadWriteOncePod")
        for name in ("one", "two"):
            bridge.pod(name, spec=using("data"))
        storage.until(lambda: bridge.node_of("one") or bridge.node_of("two"))
        bridge.run(60)
        assert sorted(map(bool, map(bridge.node_of, ("one", "two")))) == [False, True]

    def test_members_of_a_gang_that_share_one_are_told(self, bridge: Bridge, storage: Storage) -> None:
        """They could never start together."""
        storage.claim(mode="ReadWriteOncePod")
        for number in range(2):
            member(bridge, f"g-{number}", size=2, spec=using("data"))
        bridge.run(10)
        assert "pods g-0 and g-1 of the gang use it" in bridge.condition("g-0")[1]
        assert bridge.submits() == 0


def test_a_labelled_volume_keeps_its_pod_in_its_zones(bridge: Bridge, storage: Storage) -> None:
    """Several zones are written with two underscores between them."""
    zone = "topology.kubernetes.io/zone"
    for node, where in (("n1", "a"), ("n2", "b"), ("n3", "c")):
        bridge.kube.merge(kinds.NODES, ("", node), {"metadata": {"labels": {zone: where}}})
    storage.volume("v", "n1", nodeAffinity=on("n1", "n3", "n2"))
    bridge.kube.merge(kinds.PERSISTENTVOLUMES, ("", "v"), {"metadata": {"labels": {zone: "b__c"}}})
    storage.claim(of=LOCAL)
    storage.bind("data", "v")
    bridge.slurm.control.pause()
    bridge.pod("a", spec=using("data"))
    bridge.run(5)
    assert set(bridge.job("a").ask.excluded) == {"n1", "s4"}
