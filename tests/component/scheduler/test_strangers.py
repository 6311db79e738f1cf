"""What users of one namespace write never reaches the workloads of another one."""

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod, PodSpec
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler.effects.look_up import AT_A_TIME
from slurm_bridge.scheduler.workload_pods import MOST_JOBS, WorkloadPods
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.preemptive_bridge import AFTER, go, important, preemptive
from tests.component.scheduler.whole_core import Bridge
from tests.effort import Work
from tests.simulation.world import NAMESPACE

EVIL = "evil"

TEMPLATE = {
    "spec": {
        "schedulerName": names.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}],
    }
}


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """A world with a second namespace."""
    made = Bridge(tmp_path)
    made.kube.create(kinds.NAMESPACES, {"metadata": {"name": EVIL}})
    return made


def jobset(bridge: Bridge, pods: int, **annotations: str) -> str:
    """The victim's JobSet; its uid."""
    template = {**TEMPLATE, "metadata": {"annotations": {"kwok.local/outcome": "run"}}}
    job = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}
    body = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": job}}]}
    metadata = {"name": "set", "namespace": NAMESPACE, "annotations": annotations}
    return str(bridge.kube.create(kinds.JOBSETS, {"metadata": metadata, "spec": body})["metadata"]["uid"])


def batch(bridge: Bridge, name: str, pods: int = 1, **annotations: str) -> str:
    """The victim's Job; its uid."""
    template = {**TEMPLATE, "metadata": {"annotations": {"kwok.local/outcome": "run", **annotations}}}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 9, "template": template}
    made = bridge.kube.create(kinds.JOBS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
    return str(made["metadata"]["uid"])


def controller(kind: str, name: str, uid: str, version: str = "batch/v1") -> dict[str, Any]:
    """A reference that anybody can write."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


def marks(uid: str, name: str = "set") -> dict[str, str]:
    """The labels of a pod of a JobSet."""
    return {
        names.LABEL_JOBSET_NAME: name,
        names.LABEL_JOBSET_UID: uid,
        names.LABEL_JOBSET_ATTEMPT: "0",
        names.LABEL_JOBSET_PART: "w",
        names.LABEL_JOBSET_GLOBAL_INDEX: "0",
    }


def mine(bridge: Bridge, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """The pods there, by name."""
    found = bridge.kube.list(kinds.PODS, namespace)
    return sorted((pod for pod in found if pod["spec"]["schedulerName"] == names.SCHEDULER_NAME), key=_name)


def _name(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["name"])


def bound(pods: list[dict[str, Any]]) -> bool:
    """All of them have nodes."""
    return all(pod["spec"].get("nodeName") for pod in pods)


def owned(bridge: Bridge, namespace: str) -> Iterator[state.SlurmJob]:
    """The jobs that stand for workloads there."""
    for job in bridge.jobs():
        owner = bridge.world.observer.owner(job)
        if owner is not None and owner.namespace == namespace:
            yield job


def refuses(bridge: Bridge, name: str, node: str, **more: Any) -> None:
    """A pod that its user puts on a node himself, and whose kubelet does not take it."""
    bridge.pod(name, EVIL, spec={"nodeName": node}, **more)
    bridge.hear()
    failed = {"status": {"phase": "Failed", "reason": "OutOfcpu"}}
    bridge.kube.merge(kinds.PODS, (EVIL, name), failed, subresource="status")
    bridge.settle()


@pytest.mark.security("identity")
@pytest.mark.parametrize("version", ["batch/v9", "batch/v1", "x.example/v1"])
def test_a_forged_label_joins_no_gang_of_another_namespace(bridge: Bridge, version: str) -> None:
    """A pod with a forged `jobset-uid` label never joins the gang of another namespace, and gets none of its nodes."""
    bridge.slurm.control.pause()
    uid = jobset(bridge, 2)
    bridge.run(3)
    for number in range(2):
        bridge.pod(f"e{number}", EVIL, labels=marks(uid), ownerReferences=[controller("Job", "x", "u", version)])
    bridge.run(3)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bound(mine(bridge)))
    (job,) = owned(bridge, NAMESPACE)
    assert job.ask.tasks == 2
    theirs = {pod["metadata"]["labels"].get(names.LABEL_JOB_ID) for pod in mine(bridge, EVIL)}
    assert str(job.job_id) not in theirs


@pytest.mark.security("identity")
def test_an_owner_reference_joins_no_gang_of_another_namespace(bridge: Bridge) -> None:
    """Pods of a Job that names a JobSet of another namespace as its owner join no gang of that JobSet."""
    bridge.slurm.control.pause()
    uid = jobset(bridge, 2)
    bridge.run(3)
    above = [controller("JobSet", "set", uid, "jobset.x-k8s.io/v1alpha2")]
    template = {**TEMPLATE, "metadata": {"labels": marks(uid)}}
    meta = {"name": "x", "namespace": EVIL, "labels": marks(uid), "ownerReferences": above}
    bridge.kube.create(kinds.JOBS, {"metadata": meta, "spec": {"template": template}})
    bridge.run(3)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bound(mine(bridge)))
    (job,) = owned(bridge, NAMESPACE)
    assert job.ask.tasks == 2
    assert not any(pod["metadata"]["labels"].get(names.LABEL_JOB_ID) == str(job.job_id) for pod in mine(bridge, EVIL))


@pytest.mark.security("identity")
def test_the_account_of_another_namespace_is_refused_whatever_labels_say(bridge: Bridge) -> None:
    """An account that the policy allows to one namespace is never charged for a pod of another one."""
    rules = {"rules": [{"namespaces": [NAMESPACE], "allow": {"account": ["physics"]}}]}
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=[{"name": "policy", "options": rules}])
    bridge.slurm.control.pause()
    uid = jobset(bridge, 2)
    charge = {names.JOB_PREFIX + "account": "physics"}
    more = {"labels": marks(uid), "ownerReferences": [controller("Job", "a", "u", "batch/v9")]}
    bridge.pod("a", EVIL, annotations=charge, **more)
    bridge.run(5)
    assert all(job.ask.texts.get("account") != "physics" for job in bridge.jobs())
    (job,) = owned(bridge, NAMESPACE)
    assert job.ask.tasks == 2


@pytest.mark.security("identity")
def test_the_end_of_a_strangers_pod_restarts_no_group(bridge: Bridge) -> None:
    """When a pod is deleted and its group restarts as a whole, no pod of another namespace ends."""
    bridge.slurm.control.pause()
    uid = jobset(bridge, 2, **{names.ANNOTATION_MEMBER_LOST: "restart-group"})
    bridge.run(3)
    bridge.pod("e", EVIL, labels=marks(uid), ownerReferences=[controller("Job", "x", "u", "batch/v9")])
    bridge.run(3)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bound(mine(bridge)))
    before = [pod["metadata"]["uid"] for pod in mine(bridge)]
    bridge.run(5)
    bridge.kube.delete(kinds.PODS, (EVIL, "e"), grace=0)
    bridge.run(10)
    assert [pod["metadata"]["uid"] for pod in mine(bridge)] == before
    assert not any(pod["metadata"].get("deletionTimestamp") for pod in mine(bridge))


@pytest.mark.security("identity")
@pytest.mark.parametrize("namespace", [EVIL, NAMESPACE])
def test_what_one_group_learns_of_a_node_is_not_held_against_another(bridge: Bridge, namespace: str) -> None:
    """A node whose kubelet refuses a pod of one named group is not excluded for any other group."""
    nodes = [node["metadata"]["name"] for node in bridge.kube.list(kinds.NODES)]
    for number, node in enumerate(nodes):
        labels = {names.GROUP: "bad", names.GROUP_SIZE: str(len(nodes))}
        bridge.pod(f"e{number}", namespace, spec={"nodeName": node}, labels=labels)
        bridge.hear()
        failed = {"status": {"phase": "Failed", "reason": "OutOfcpu"}}
        bridge.kube.merge(kinds.PODS, (namespace, f"e{number}"), failed, subresource="status")
    bridge.settle()
    for number in range(2):
        bridge.pod(f"g-{number}", labels={names.GROUP: "good", names.GROUP_SIZE: "2"})
    bridge.run(10)
    assert bridge.node_of("g-0")
    assert bridge.node_of("g-1")


@pytest.mark.security("identity")
@pytest.mark.parametrize("version", ["batch/v1", "batch/v9"])
def test_a_forged_controller_leaves_nobody_else_without_nodes(bridge: Bridge, version: str) -> None:
    """A refused pod that names the Job of another namespace as its controller does not affect that Job."""
    uid = batch(bridge, "work")
    bridge.run(5)
    for node in [node["metadata"]["name"] for node in bridge.kube.list(kinds.NODES)]:
        refuses(bridge, f"e-{node}", node, ownerReferences=[controller("Job", "work", uid, version)])
    (first,) = mine(bridge)
    bridge.kube.delete(kinds.PODS, (NAMESPACE, _name(first)), grace=0)
    bridge.run(2)
    bridge.until(lambda: mine(bridge) and bound(mine(bridge)))


@pytest.mark.security("identity")
def test_a_forged_controller_parks_nobody_else(bridge: Bridge) -> None:
    """A pod that reaches its time limit parks no pod of another namespace, whichever controller it names."""
    bridge = Bridge(bridge.folder, world=bridge.world, ends={"after_timeout": {"Job": "hold"}})
    uid = batch(bridge, "work")
    bridge.run(5)
    bridge.pod("e", EVIL, ownerReferences=[controller("Job", "work", uid, "batch/v9")])
    bridge.run(5)
    (job,) = owned(bridge, EVIL)
    bridge.slurm.control.end(job.job_id, "TIMEOUT")
    bridge.run(10)
    (first,) = mine(bridge)
    bridge.kube.delete(kinds.PODS, (NAMESPACE, _name(first)), grace=0)
    bridge.run(2)
    bridge.until(lambda: mine(bridge) and bound(mine(bridge)))


def test_a_hold_ends_with_the_object_that_is_held(bridge: Bridge) -> None:
    """Nothing is remembered of Jobs that have gone."""
    bridge = Bridge(bridge.folder, world=bridge.world, ends={"after_timeout": {"Job": "hold"}})
    batch(bridge, "work")
    bridge.run(5)
    (job,) = owned(bridge, NAMESPACE)
    bridge.slurm.control.end(job.job_id, "TIMEOUT")
    bridge.run(10)
    assert len(bridge.core.context.held) == 1
    bridge.kube.delete(kinds.JOBS, (NAMESPACE, "work"))
    bridge.run(10)
    assert len(bridge.core.context.held) == 0


@pytest.mark.security("identity")
def test_forged_job_ids_open_nothing(bridge: Bridge) -> None:
    """Job ids that users write on their own pods do not open the breaker."""
    settings = {"mirror": {"vanished_minimum": 3}, "slurm": {"job_ids": None}}
    bridge = Bridge(bridge.folder, world=bridge.world, **settings)
    job = bridge.bound("a", annotations={"kwok.local/outcome": "run"})
    bridge.run(3)
    for number in range(12):
        label = {names.LABEL_JOB_ID: str(900_000 + number)}
        bridge.pod(f"e{number}", EVIL, spec={"nodeName": f"n{number % 4 + 1}"}, labels=label, cpu="10m")
    bridge.run(3)
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    del bridge.slurm.world.jobs[job.job_id]
    bridge.run(30)
    context = bridge.core.context
    assert not context.config.ends.breaker.open(*context.table.vanished())
    assert not bridge.exists("a")


def test_after_a_restart_many_vanished_jobs_are_doubted_all_the_same(bridge: Bridge) -> None:
    """A slurmctld that lost its memory while no daemon ran costs no pod: what pods name is all that is known then."""
    settings = {"mirror": {"vanished_minimum": 3}, "slurm": {"job_ids": None}}
    bridge = Bridge(bridge.folder, world=bridge.world, **settings)
    for number in range(4):
        bridge.bound(f"p{number}", annotations={"kwok.local/outcome": "run"})
    bridge.world.crash_slurm(1e6)
    bridge.start()
    bridge.run(60, step=2)
    assert bridge.deletes() == 0
    assert all(bridge.exists(f"p{number}") for number in range(4))


def test_a_pod_is_no_member_of_a_workload_of_another_namespace(bridge: Bridge) -> None:
    """Whatever claims it: the census keeps it by itself."""
    bridge.pod("a")
    bridge.settle()
    pod_index, uid = bridge.core.pod_index, bridge.uid("a")
    members = pod_index.workload(bridge.key("a"))
    assert members is not None
    pod_index.move(uid, dataclasses.replace(members.root, namespace=EVIL, name="b", uid="other"))
    assert pod_index.root_of(uid) == bridge.key("a")


@pytest.mark.security("identity")
def test_preemption_ends_no_gang_whose_job_a_victim_names(bridge: Bridge) -> None:
    """If a preempted pod names the job of a gang of another namespace, no pod of that gang ends."""
    preemptive(bridge)
    gang = ("gang-0", "gang-1")
    for name in gang:
        important(bridge, name, labels={names.GROUP: "train", names.GROUP_SIZE: "2"})
    bridge.until(lambda: all(map(bridge.node_of, gang)))
    (job,) = bridge.jobs()
    bait = {"spec": {"priority": 0}, "cpu": "3"}
    bridge.pod("bait", EVIL, **bait)
    bridge.until(lambda: bridge.manifest("bait", EVIL)["spec"].get("nodeName"))
    bridge.pod("high", EVIL, cpu="3", spec={"priority": 1})
    go(bridge, AFTER - 1.5)
    bridge.kube.merge(kinds.PODS, (EVIL, "bait"), {"metadata": {"labels": {names.LABEL_JOB_ID: str(job.job_id)}}})
    bridge.slurm.control.pause()
    go(bridge, 20)
    bridge.slurm.control.unpause()
    go(bridge, 40)
    assert not any(map(bridge.leaving, gang))
    assert not bridge.of(job).over


@pytest.mark.security("fairness")
def test_the_job_of_a_group_with_the_longest_name_can_be_given_back(bridge: Bridge) -> None:
    """The owner record of the longest allowed group name has room for the note that gives its job back."""
    bridge.slurm.control.pause()
    bridge.pod("a", labels={}, annotations={names.GROUP: "\U0001f600" * 63 + "abc", names.GROUP_SIZE: "1"})
    bridge.run(5)
    (job,) = bridge.jobs()
    bridge.annotate("a", exclusive="true")
    bridge.until(lambda: bridge.of(job).over)
    bridge.until(lambda: bridge.submits() == 2)


def test_a_group_name_that_would_fill_the_owner_record_is_refused(bridge: Bridge) -> None:
    """With words on the pod."""
    bridge.pod("a", annotations={names.GROUP: "\U0001f600" * 64, names.GROUP_SIZE: "1"})
    bridge.run(5)
    assert bridge.condition("a")[0] == "GroupNameInvalid"


def naming_jobs(bridge: Bridge, pods: int) -> None:
    """A group of bound pods of another namespace, each of which names a job that there is not."""
    for number in range(pods):
        bridge.pod(
            f"e{number}",
            EVIL,
            labels={names.LABEL_JOB_ID: str(40_000_000 + number)},
            annotations={names.GROUP: "g", names.GROUP_SIZE: str(pods)},
            spec={"nodeName": "n3"},
        )


@pytest.mark.security("fairness")
def test_pods_that_name_many_jobs_are_looked_at_a_few_at_a_time(bridge: Bridge) -> None:
    """However many jobs the pods of one group name, no step of the scheduler reads more than eight of them."""
    naming_jobs(bridge, 50)
    bridge.hear()
    most = before = 0
    while bridge.core.schedule_step():
        after = bridge.slurm_calls.count(method="GET", target="/job/")
        most, before = max(most, after - before), after
    assert most == AT_A_TIME
    assert before >= 50


@pytest.mark.security("fairness")
def test_pods_that_name_ended_jobs_cost_the_bindings_of_others_nothing(bridge: Bridge) -> None:
    """Pods on other nodes that name ended jobs do not make the check of a node slower."""
    bridge.bound("a")
    naming_jobs(bridge, 100)
    bridge.until(lambda: len(bridge.core.context.table.ended()) == 100)
    with Work() as work:
        bridge.bound("b")
    assert work.calls["Crew.pods"] < 50


@pytest.mark.security("fairness")
def test_a_pod_that_names_another_job_each_second_leaves_nothing_behind() -> None:
    """A bound pod whose job id is rewritten again and again does not use more and more memory."""
    members = WorkloadPods(Root(kind="Pod", namespace=EVIL, name="e", uid="u"))
    for job_id in range(1, 1000):
        metadata = ObjectMeta(name="e", namespace=EVIL, uid="u", labels={names.LABEL_JOB_ID: str(job_id)})
        members.put(Pod(metadata=metadata, spec=PodSpec(node_name="n1")), 0.0)
    assert len(members.served) <= MOST_JOBS
    assert members.named == {999}
