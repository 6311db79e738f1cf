"""Chains of owners: how far up they are read, whose annotations count, and that nothing strange above stops it."""

from typing import Any

import pytest

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import Job, JobSet
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube import access, resources
from slurm_bridge.workloads import chain, owners, voices
from tests.unit.workloads.heard import Heard
from tests.unit.workloads.owned import QUEUES, Family, reference


@pytest.fixture
def family() -> Family:
    """A world in which objects own each other."""
    return Family()


def test_a_bare_pod_has_no_chain_and_no_problem(family: Family) -> None:
    """Nothing is asked of the server for it."""
    pod = family.child()
    before = len(family.line.faults.journal)
    assert family.owners().resolve(pod) == chain.OwnerChain()
    assert len(family.line.faults.journal) == before


def test_the_chain_is_followed_to_its_end(family: Family) -> None:
    """A Deployment's pod has its ReplicaSet below the Deployment, which speaks."""
    deployment = family.owner(kinds.DEPLOYMENTS, "d")
    pod = family.child(family.owner(kinds.REPLICASETS, "r", deployment))
    chain = family.owners().resolve(pod)
    assert [link.name for link in chain.links] == ["r", "d"]
    assert chain.problem == ""
    assert chain.speaker is not None
    assert chain.speaker.kind is kinds.DEPLOYMENTS


def test_the_highest_job_or_set_speaks(family: Family) -> None:
    """A JobSet above a Job speaks for the pods of both."""
    job = family.owner(kinds.JOBS, "j", family.owner(kinds.JOBSETS, "set"))
    speaker = family.owners().resolve(family.child(job)).speaker
    assert speaker is not None
    assert speaker.name == "set"


def test_t08_a_readable_owner_above_a_jobset_does_not_hide_it(family: Family) -> None:
    """Whatever manages JobSets does not speak for them."""
    jobset = family.owner(kinds.JOBSETS, "set", family.owner(kinds.STATEFULSETS, "manager"))
    chain = family.owners().resolve(family.child(family.owner(kinds.JOBS, "j", jobset)))
    assert [link.name for link in chain.links] == ["j", "set", "manager"]
    assert chain.speaker is not None
    assert chain.speaker.name == "set"


def test_t08_an_owner_of_an_unknown_kind_ends_the_chain_with_a_problem(family: Family) -> None:
    """What was read below it still counts."""
    jobset = family.owner(kinds.JOBSETS, "set", reference(QUEUES, "q"))
    chain = family.owners().resolve(family.child(family.owner(kinds.JOBS, "j", jobset)))
    assert chain.speaker is not None
    assert chain.speaker.name == "set"
    assert "Queue q (example.com/v1) is of a kind that is not read" in chain.problem


def test_t08_a_forbidden_parent_ends_the_chain_with_a_problem() -> None:
    """The daemon's rights are the operator's choice, not the pod's fault."""
    family = Family(rights=(access.AccessRule(verbs=("get",), resources=("pods", "replicasets.apps")),))
    pod = family.child(family.owner(kinds.REPLICASETS, "r", family.owner(kinds.DEPLOYMENTS, "d")))
    chain = family.owners().resolve(pod)
    assert [link.name for link in chain.links] == ["r"]
    assert "Deployment d" in chain.problem
    assert "could not be read" in chain.problem


def test_t08_an_unserved_kind_ends_the_chain_with_a_problem() -> None:
    """A reference to a JobSet in a cluster without JobSets is a leftover."""
    family = Family(served={**resources.SERVED, "jobset.x-k8s.io": ()})
    chain = family.owners().resolve(family.child(reference(kinds.JOBSETS, "set")))
    assert chain.links == ()
    assert "does not serve" in chain.problem


def test_t08_a_missing_owner_ends_the_chain_with_a_problem(family: Family) -> None:
    """It may have been deleted a moment ago."""
    chain = family.owners().resolve(family.child(reference(kinds.JOBS, "gone")))
    assert chain.links == ()
    assert "Job gone (batch/v1) does not exist" in chain.problem


def test_t08_an_owner_of_the_same_name_and_another_uid_is_missing(family: Family) -> None:
    """A recreated Job does not speak for the pods of the old one."""
    family.owner(kinds.JOBS, "j")
    chain = family.owners().resolve(family.child(reference(kinds.JOBS, "j")))
    assert chain.links == ()
    assert "another object has its name" in chain.problem


def test_t08_a_cycle_of_owners_ends(family: Family) -> None:
    """Two objects that own each other are each met once."""
    family.owner(kinds.REPLICASETS, "a")
    a = family.kube.get(kinds.REPLICASETS, "default", "a")
    assert a is not None
    b = family.owner(kinds.REPLICASETS, "b", reference(kinds.REPLICASETS, "a", a["metadata"]["uid"]))
    family.kube.merge(kinds.REPLICASETS, ("default", "a"), {"metadata": {"ownerReferences": [b]}})
    chain = family.owners().resolve(family.child(b))
    assert [link.name for link in chain.links] == ["b", "a"]
    assert chain.problem == "ReplicaSet b owns itself through other objects"


def test_t08_a_chain_deeper_than_32_ends(family: Family) -> None:
    """Such a chain is an attack, and is not read to the end."""
    above: tuple[dict[str, object], ...] = ()
    for number in range(40):
        above = (family.owner(kinds.REPLICASETS, f"r{number}", *above),)
    chain = family.owners().resolve(family.child(*above))
    assert len(chain.links) == owners.DEEPEST
    assert "more than 32 levels of owners" in chain.problem


def test_the_controller_is_followed_before_other_owners(family: Family) -> None:
    """An owner that only wants to be told about the end does not make the pods."""
    other = {**family.owner(kinds.DEPLOYMENTS, "other"), "controller": False}
    assert family.chain(family.child(other, family.owner(kinds.REPLICASETS, "r"))) == ["r"]


def test_another_owner_is_followed_where_the_controller_cannot_be_read(family: Family) -> None:
    """An unknown controller does not hide a JobSet that is named beside it."""
    jobset = {**family.owner(kinds.JOBSETS, "set"), "controller": False}
    assert family.chain(family.child(reference(QUEUES, "q"), jobset)) == ["set"]


def test_the_topmost_is_the_highest_controller(family: Family) -> None:
    """A reference that does not control says nothing of what makes the pods."""
    deployment = family.owner(kinds.DEPLOYMENTS, "d")
    made = voices.topmost(family.owners().resolve(family.child(family.owner(kinds.REPLICASETS, "r", deployment))))
    assert made is not None
    assert (made.kind, made.name, made.uid) == ("Deployment", "d", deployment["uid"])
    beside = family.child({**family.owner(kinds.REPLICASETS, "other"), "controller": False}, name="beside")
    assert voices.topmost(family.owners().resolve(beside)) is None
    gone = family.child(reference(kinds.REPLICASETS, "r", "an-earlier-one"), name="gone")
    assert voices.topmost(family.owners().resolve(gone)) is None


def test_the_topmost_of_a_schedules_pods_is_their_job(family: Family) -> None:
    """Each Job of a CronJob is a run of its own."""
    job = family.owner(kinds.JOBS, "run-1", family.owner(kinds.CRONJOBS, "nightly"))
    made = voices.topmost(family.owners().resolve(family.child(job)))
    assert made is not None
    assert made.name == "run-1"


def test_a_leader_pod_leads_on_to_its_set(family: Family) -> None:
    """A LeaderWorkerSet's workers are owned by a StatefulSet that their leader pod owns."""
    lws = family.owner(kinds.LEADERWORKERSETS, "lws")
    family.pod("leader", ownerReferences=[lws])
    leader = reference(kinds.PODS, "leader", family.seen("leader").uid)
    chain = family.owners().resolve(family.child(family.owner(kinds.STATEFULSETS, "workers", leader)))
    assert [link.name for link in chain.links] == ["workers", "leader", "lws"]
    assert chain.speaker is not None
    assert chain.speaker.name == "lws"


def test_a_pod_that_makes_pods_speaks_for_itself(family: Family) -> None:
    """The executors of a driver do not get the driver's annotations; they are an application with it all the same."""
    family.pod("driver", annotations={names.JOB_PREFIX + "gres": "gpu:1"})
    pod = family.child(reference(kinds.PODS, "driver", family.seen("driver").uid))
    chain = family.owners().resolve(pod)
    assert [link.name for link in chain.links] == ["driver"]
    assert chain.speaker is None
    assert [str(one) for one in voices.alone(pod, chain, "x").sources] == [f"Pod/{pod.metadata.name}"]
    assert chain.topmost is not None
    assert chain.topmost.name == "driver"


def test_what_is_above_a_driver_speaks_for_its_executors(family: Family) -> None:
    """Where its kind may be read."""
    job = family.owner(kinds.JOBS, "spark")
    family.pod("driver", ownerReferences=[job])
    pod = family.child(reference(kinds.PODS, "driver", family.seen("driver").uid))
    speaker = family.owners().resolve(pod).speaker
    assert speaker is not None
    assert speaker.name == "spark"


def test_configuration_adds_kinds(family: Family) -> None:
    """A kind that was named is read; here the cluster does not serve it, which is another problem than before."""
    pod = family.child(reference(QUEUES, "q"))
    assert "not read" in family.owners().resolve(pod).problem
    assert "does not serve" in family.owners(QUEUES).resolve(pod).problem


@pytest.mark.parametrize(("kind", "record"), [(kinds.JOBS, Job), (kinds.JOBSETS, JobSet)])
def test_what_informers_hold_costs_no_call(family: Family, kind: Kind[Any], record: type[Any]) -> None:
    """A Job, or another object that makes pods and is watched."""
    world, held = Heard(), record(metadata=ObjectMeta(name="j", namespace="default", uid="u"))
    world.stores[kind].take(ports.Put(held))
    pod = family.child(reference(kind, "j", "u"))
    calls = len(family.line.faults.journal)
    reader = owners.Owners(family.cluster, family.clock, known=world.known)
    assert reader.resolve(pod).links[0].object is held
    assert len(family.line.faults.journal) == calls


def test_t08_another_object_of_the_name_that_informers_hold_is_not_the_owner(family: Family) -> None:
    """The server is asked, and knows that the owner is gone."""
    world, held = Heard(), Job(metadata=ObjectMeta(name="j", namespace="default", uid="young"))
    world.stores[kinds.JOBS].take(ports.Put(held))
    reader = owners.Owners(family.cluster, family.clock, known=world.known)
    chain = reader.resolve(family.child(reference(kinds.JOBS, "j", "old")))
    assert (chain.links, "does not exist" in chain.problem) == ((), True)


def test_a_job_that_was_asked_for_is_known_from_then_on(family: Family) -> None:
    """A pod that is claimed by it does not fall back to what informers do not hold yet."""
    reader = family.owners()
    pod = family.child(family.owner(kinds.JOBS, "j"))
    assert reader.known.find(kinds.JOBS, "default", "j") is None
    reader.resolve(pod)
    assert reader.known.find(kinds.JOBS, "default", "j") is not None
    family.clock.advance(owners.OwnerLimits().found)
    assert reader.known.find(kinds.JOBS, "default", "j") is None


def test_a_job_that_the_informer_has_not_heard_of_is_asked_for(family: Family) -> None:
    """A pod may be heard of before the Job that made it; without the Job's annotations it would be sent astray."""
    assert family.chain(family.child(family.owner(kinds.JOBS, "j"))) == ["j"]


def test_an_answer_is_good_for_a_while(family: Family) -> None:
    """A thousand pods of a ReplicaSet cost one look at it; an edit is seen when the answer is old."""
    reader = family.owners()
    pod = family.child(family.owner(kinds.REPLICASETS, "r", queue="a"))
    for _ in range(3):
        reader.resolve(pod)
    assert family.line.faults.count(method="GET", target="replicasets/r") == 1
    family.kube.merge(kinds.REPLICASETS, ("default", "r"), {"metadata": {"annotations": {"queue": "b"}}})
    family.clock.advance(owners.OwnerLimits().found)
    assert reader.resolve(pod).links[0].object.metadata.annotations == {"queue": "b"}


def test_an_absent_owner_is_remembered_for_a_shorter_while(family: Family) -> None:
    """A forbidden or missing owner must not cost a call for each of its pods, nor be absent for long."""
    reader, pod = family.owners(), family.child(reference(kinds.REPLICASETS, "r"))
    reader.resolve(pod)
    reader.resolve(pod)
    assert family.line.faults.count(method="GET", target="replicasets/r") == 1
    family.clock.advance(owners.OwnerLimits().absent)
    reader.resolve(pod)
    assert family.line.faults.count(method="GET", target="replicasets/r") == 2


def test_a_stolen_uid_hides_nothing(family: Family) -> None:
    """A pod that names the uid of another owner under a wrong name does not make it absent for its own pods."""
    real = family.owner(kinds.REPLICASETS, "r")
    reader = family.owners()
    thief = reader.resolve(family.pod("thief", ownerReferences=[{**real, "name": "x"}]))
    assert "does not exist" in thief.problem
    assert [link.name for link in reader.resolve(family.child(real)).links] == ["r"]


def test_what_is_remembered_is_bounded(family: Family) -> None:
    """The answer that was used least recently makes room."""
    reader = family.owners(limits=owners.OwnerLimits(remembered=2))
    pods = [family.pod(name, ownerReferences=[family.owner(kinds.REPLICASETS, f"r-{name}")]) for name in "abc"]
    for pod in (*pods, pods[0]):
        reader.resolve(pod)
    assert family.line.faults.count(method="GET", target="replicasets/r-a") == 2


def test_a_server_that_does_not_answer_is_no_absence(family: Family) -> None:
    """Its annotations may matter, so the workload waits for it, and no wrong answer is cached."""
    reader, pod = family.owners(), family.child(family.owner(kinds.REPLICASETS, "r"))
    family.line.faults.plan(faults.Drop(), target="replicasets/r")
    with pytest.raises(errors.Unanswered):
        reader.resolve(pod)
    assert [link.name for link in reader.resolve(pod).links] == ["r"]


def reads(family: Family) -> int:
    """How many objects the server was asked for."""
    return sum(call.method == "GET" for call in family.line.faults.journal)


@pytest.mark.security("fairness")
def test_a_pod_with_thousands_of_owner_references_costs_eight_reads(family: Family) -> None:
    """Of thousands of owner references of a pod at most eight are followed, its controller first."""
    many = [reference(kinds.REPLICASETS, f"r{number}") for number in range(2000)]
    pod = family.child(*many)
    reader = family.owners()
    before = reads(family)
    reader.resolve(pod)
    assert reads(family) - before <= owners.MOST_REFERENCES + 1
    reader.resolve(pod)
    assert reads(family) - before <= owners.MOST_REFERENCES + 1


@pytest.mark.security("fairness")
def test_a_namespace_that_has_used_up_its_reads_waits_and_others_do_not(family: Family) -> None:
    """Pods that name ever new owners wait for a budget of their namespace, while those of other namespaces go on."""
    reader = family.owners(limits=owners.OwnerLimits(reads_at_once=10, reads_per_second=1))
    pods = [family.child(reference(kinds.REPLICASETS, f"r{number}"), name=f"p{number}") for number in range(11)]
    for pod in pods[:10]:
        reader.resolve(pod)
    with pytest.raises(errors.TryLater) as problem:
        reader.resolve(pods[10])
    assert problem.value.retry_after == 1.0
    family.clock.advance(2)
    reader.resolve(family.child(reference(kinds.REPLICASETS, "later"), name="later"))


def test_a_budget_is_of_each_namespace_and_fills_with_time() -> None:
    """Two calls at once, one more each second."""
    budget = owners.NamespaceBudget(at_once=2, per_second=1)
    assert [budget.take("a", 0.0) > 0 for _ in range(3)] == [False, False, True]
    assert budget.take("b", 0.0) == 0
    assert budget.take("a", 1.0) == 0
    assert budget.take("a", 1.0) > 0
