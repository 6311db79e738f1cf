"""The observer sees what must never be; without that, its silence would prove nothing."""

import json

from slurm_bridge.model import names
from tests.e2e import support_observer
from tests.e2e.support_observer import Seen
from tests.e2e.support_servers import Json, SlurmJob


def pod(uid: str, *, node: str = "", job_id: int = 1, **metadata: str) -> Json:
    """A pod that waits, or is bound by this job."""
    marks = {"labels": {names.LABEL_JOB_ID: str(job_id)}, "annotations": {names.ANNOTATION_SLURM_NODE: node}}
    meta = {"name": uid, "uid": uid, **(marks if node else {}), **metadata}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}]
    spec = {"containers": containers, **({"nodeName": node} if node else {})}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def member(uid: str, node: str, *, job_id: int = 1) -> Json:
    """A pod of Job j."""
    made = pod(uid, node=node, job_id=job_id)
    made["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "j"}]
    return made


def job(job_id: int, uid: str, *states: str, nodes: str = "a") -> SlurmJob:
    """A placeholder of this pod."""
    owner = {"kind": "Pod", "name": uid, "uid": uid}
    return SlurmJob(job_id=job_id, states=frozenset(states or ("RUNNING",)), owner=owner, nodes=nodes, text={})


def gang(cpus: dict[str, int], *, job_id: int = 1, uid: str = "j", whole: int = 0) -> SlurmJob:
    """A placeholder of all pods of Job j with so many CPUs of each node, or a further component of one."""
    nodes = [{"name": name, "cpus": {"count": count}, "memory": {"allocated": 640}} for name, count in cpus.items()]
    text = {"job_resources": {"nodes": {"allocation": nodes}}, "het_job_id": {"number": whole}}
    owner = {"kind": "Job", "name": "j", "uid": uid}
    states = frozenset({"RUNNING"})
    return SlurmJob(job_id=job_id, states=states, owner=owner, nodes=",".join(cpus), text=text)


def wrong(*looks: tuple[list[Json], list[SlurmJob]]) -> list[str]:
    """Which invariants are broken after these looks."""
    seen = Seen()
    for pods, jobs in looks:
        support_observer.judge(seen, pods, jobs)
    return sorted(line.split(":", 1)[0] for line in seen.wrong)


def test_what_is_right_is_not_reported() -> None:
    """One job per pod, where it says, and both gone together."""
    assert wrong(([pod("u", node="a")], [job(1, "u")]), ([], [job(1, "u", "CANCELLED")])) == []


def test_two_living_jobs_of_one_pod_are_seen() -> None:
    """I1; an ended one beside is no twin."""
    assert wrong(([pod("u")], [job(1, "u"), job(2, "u", "PENDING")])) == ["I1"]
    assert wrong(([pod("u")], [job(1, "u", "CANCELLED"), job(2, "u")])) == []


def test_a_pod_on_a_node_that_its_job_does_not_have_is_seen() -> None:
    """I2, also when the job belongs to another pod."""
    assert wrong(([pod("u", node="b")], [job(1, "u", nodes="a")])) == ["I2"]
    assert wrong(([pod("u", node="a")], [job(1, "v")])) == ["I2"]


def test_a_crowded_node_is_seen() -> None:
    """I3: one pod of one CPU too many."""
    most = support_observer.CPUS
    assert wrong(([pod(f"u{number}", node="a", job_id=number) for number in range(most)], [])) == []
    assert wrong(([pod(f"u{number}", node="a", job_id=number) for number in range(most + 1)], [])) == ["I3"]


def test_more_members_on_a_node_than_their_job_got_there_are_seen() -> None:
    """I3, although the node has room, and I2 where the job has nothing at all; ended members hold nothing."""
    pods = [member("u0", "a"), member("u1", "a"), member("u2", "b")]
    assert wrong((pods, [gang({"a": 2, "b": 1})])) == []
    assert wrong((pods, [gang({"a": 1, "b": 2})])) == ["I3"]
    assert wrong((pods, [gang({"a": 3})])) == ["I2"]
    pods[0]["status"]["phase"] = "Succeeded"
    assert wrong((pods, [gang({"a": 1, "b": 2})])) == []


def test_components_of_a_heterogeneous_job_count_together() -> None:
    """They are one placeholder; a pod may be on a node of any."""
    pods = [member("u0", "a"), member("u1", "b")]
    whole = [gang({"a": 1}, whole=1), gang({"b": 1}, job_id=2, whole=1)]
    assert wrong((pods, whole)) == []
    assert wrong((pods, whole[:1])) == ["I2"]


def test_a_member_that_another_gangs_job_bound_is_seen() -> None:
    """I2: the record names another Job."""
    assert wrong(([member("u0", "a")], [gang({"a": 1}, uid="k")])) == ["I2"]


def test_a_pod_that_goes_while_its_job_lives_is_seen() -> None:
    """I7, when it is gone and already when it is being deleted."""
    begin = ([pod("u", node="a")], [job(1, "u")])
    assert wrong(begin, ([], [job(1, "u")])) == ["I7"]
    assert wrong(begin, ([pod("u", node="a", deletionTimestamp="now")], [job(1, "u")])) == ["I7"]


def victim(asker: str) -> Json:
    """A pod of Job j that is being deleted, and says for which pod."""
    made = pod("u", node="a", deletionTimestamp="now")
    made["metadata"]["annotations"][names.ANNOTATION_MAKES_ROOM] = json.dumps({"uid": asker, "for": "x"})
    made["status"]["conditions"] = [{"type": "DisruptionTarget", "reason": "EvictionByEvictionAPI"}]
    return made


def test_an_eviction_is_right_for_one_that_waits_and_says_so() -> None:
    """I7 otherwise: both have to agree, and the pod that others are evicted for has no node yet."""
    begin, asker = ([pod("u", node="a")], [job(1, "u")]), pod("v")
    asker["metadata"]["annotations"] = {names.ANNOTATION_ROOM: json.dumps({"victims": {"u": "u"}})}
    assert wrong(begin, ([victim("v"), asker], [job(1, "u")])) == []
    assert wrong(begin, ([victim("v"), pod("v")], [job(1, "u")])) == ["I7"]
    asker["spec"]["nodeName"] = "a"
    assert wrong(begin, ([victim("v"), asker], [job(1, "u")])) == ["I7"]
