"""Marks on pods and Jobs of one namespace say nothing of the objects of another one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import kinds, names
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.workload import Root
from tests.unit.workloads.heard import Heard
from tests.unit.workloads.sets import all_of, jobset, lws, of_jobset, of_lws

EVIL = "evil"


@pytest.mark.security("identity")
def test_the_jobs_of_another_namespace_make_no_jobset_smaller() -> None:
    """A Job of another namespace with the uid of a JobSet never makes the JobSet start with fewer pods."""
    world = Heard()
    found = jobset(world)
    pods = all_of(world, found)
    done = {"parallelism": 100, "completions": 100}
    labels = {names.LABEL_JOBSET_UID: found.uid, names.LABEL_JOBSET_ATTEMPT: "0"}
    world.put(kinds.JOBS, "x", namespace=EVIL, labels=labels, spec=done, status={"succeeded": 99})
    above = (kinds.JOBSETS, found)
    world.put(kinds.JOBS, "y", namespace=EVIL, labels=labels, spec=done, status={"succeeded": 99}, above=above)
    assert world.wait(*pods[:4]).message.startswith("4 of 5 pods")


@pytest.mark.security("identity")
def test_a_job_counts_for_the_jobset_that_controls_it_only() -> None:
    """Labels alone make no Job a part of a JobSet, not even in the same namespace."""
    world = Heard()
    found = jobset(world)
    pods = all_of(world, found)
    labels = {names.LABEL_JOBSET_UID: found.uid, names.LABEL_JOBSET_ATTEMPT: "0"}
    spec = {"parallelism": 100, "completions": 100}
    world.put(kinds.JOBS, "x", labels=labels, spec=spec, status={"succeeded": 99})
    assert world.wait(*pods[:4]).message.startswith("4 of 5 pods")


@pytest.mark.parametrize("known", [True, False])
def test_a_pod_belongs_to_a_jobset_that_is_there_by_its_uid(known: bool) -> None:
    """Before that it belongs to the name, and waits."""
    world = Heard()
    made = world.made(kinds.JOBSETS, "set", spec={"replicatedJobs": []})
    pod = of_jobset(world, made, "driver", known=known)
    assert world.claim(pod).uid == "JobSet:default/set:0"
    assert world.wait(pod).reason == "GroupMissing"
    found = jobset(world)
    assert world.claim(pod).uid == f"{found.uid}:0"


@pytest.mark.security("identity")
def test_the_uid_of_a_leaderworkerset_makes_nobody_a_member() -> None:
    """No label of a JobSet gets a pod into the group of a LeaderWorkerSet, nor the other way round."""
    world = Heard()
    found = lws(world)
    member, made = of_lws(world, 0, 0), world.made(kinds.JOBSETS, "set", uid=found.uid, namespace=EVIL)
    forged = of_jobset(world, made, "driver", known=False, namespace=EVIL)
    assert world.claim(forged).key != world.claim(member).key


@pytest.mark.security("identity")
@pytest.mark.parametrize(
    ("version", "believed"), [("batch/v1", True), ("batch/v9", False), ("batch", False), ("x.example/v1", False)]
)
def test_an_owner_that_nothing_resolves_is_not_believed(version: str, believed: bool) -> None:
    """An owner reference that the API server cannot resolve makes a pod part of no workload."""
    world = Heard()
    job = world.put(kinds.JOBS, "j", annotations={names.ANNOTATION_GANG: "true"})
    reference = {"apiVersion": version, "kind": "Job", "name": "j", "uid": job.uid, "controller": True}
    pod = world.pod("p", metadata={"ownerReferences": [reference]})
    assert (world.claim(pod).kind == "Job") is believed
    assert bool(world.given.owners.resolve(pod).links) is believed


parts = st.text(st.sampled_from("ab/%:F2"), max_size=4)
fields = st.tuples(st.sampled_from(("Pod", "Group")), parts, parts, parts)


@given(fields, fields)
def test_two_workloads_never_share_a_key(one: tuple[str, str, str, str], other: tuple[str, str, str, str]) -> None:
    """Whatever users write into names."""
    keys = [names.workload_key(*each) for each in (one, other)]
    assert (keys[0] == keys[1]) is (one == other)


@pytest.mark.parametrize(
    "uid", ["Group:default/g", "JobSet:default/set:0", "PodGroup.scheduling.x-k8s.io:default/g", "PodGroup:default/g"]
)
def test_what_is_known_by_its_name_only_shares_its_object_with_nobody(uid: str) -> None:
    """The word before the colon is the same for all of them."""
    kind = uid.partition(":")[0].partition(".")[0]
    root = Root(kind=kind, namespace="default", name=uid.rpartition("/")[2], uid=uid)
    assert root.object_key == root.key


def test_the_parts_and_runs_of_an_object_share_it() -> None:
    """It is filed as the object itself is."""
    whole = Root(kind="JobSet", namespace="default", name="set", uid="u")
    assert {Root(kind="JobSet", namespace="default", name="set", uid=uid).object_key for uid in ("u:0", "u:1:w")} == {
        whole.key
    }


@pytest.mark.security("identity")
@pytest.mark.parametrize("change", [{"namespace": EVIL}, {"name": "other"}, {"uid": "v"}, {"kind": "Job"}])
def test_a_record_speaks_of_one_workload_of_one_namespace(change: dict[str, Any]) -> None:
    """A job belongs to a workload only if kind, namespace, name and uid in its record are those of the workload."""
    given = {"kind": "JobSet", "namespace": "default", "name": "set", "uid": "u"}
    record = Owner(cluster="c", **given, attempt=3)
    assert record.same_workload(Owner(cluster="c", **given))
    assert not record.same_workload(Owner(cluster="c", **{**given, **change}))
    assert record.key == Root(**given).key
