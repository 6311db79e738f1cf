"""Starts that fail half-way, allocations that are too small, time that runs out: a group is whole or it is not."""

import contextlib
from collections.abc import Iterator

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_farm, support_groups, support_kinds, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_groups import message
from tests.e2e.support_kinds import Objects
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

#: slurmctld looks at time limits every half minute.
LIMIT_SECONDS = 75.0


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Two machines of four CPUs."""
    with support_farm.built(kube, slurm, 0, 0, cpus=4) as farm:
        yield farm


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld) -> World:
    """A site that does not wait long for a start, and that holds Jobs after a timeout."""
    assert farm.nodes
    chosen = {"incomplete_seconds": 2, "bind_seconds": 6}
    return open_world("faults", workloads=chosen, ends={"after_timeout": {"default": "resubmit", "Job": "hold"}})


@contextlib.contextmanager
def unbindable(world: World, pod: str) -> Iterator[None]:
    """The API server takes no binding of the pod of this name."""
    name = f"{world.namespace}-{pod}"
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"object.metadata.name != '{pod}'", "message": "this one stays"}],
    }
    inside = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}}
    bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": inside}
    try:
        world.kube.create(POLICIES, {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec})
        world.kube.create(BINDINGS, {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound})
        wait.until(lambda: is_refused(world, pod), "policy in force", 30, every=0.5)
        yield
    finally:
        world.kube.delete(f"{BINDINGS}/{name}")
        world.kube.delete(f"{POLICIES}/{name}")


def is_refused(world: World, pod: str) -> bool:
    """A binding of this name is refused by the policy, not because there is no such pod."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    try:
        world.kube.create(f"{world.path}/{pod}/binding?dryRun=All", body)
    except support_servers.Refused as refusal:
        return "this one stays" in str(refusal)
    return False


@pytest.mark.real
@pytest.mark.timeout(120)
def test_a_start_that_cannot_be_finished_is_undone_and_tried_again_as_a_whole(world: World) -> None:
    """One member cannot be bound: the others do not run without it for long, and in the end all are new and whole."""
    objects, pods = Objects(world), support_kinds.served(world)
    spec = support_kinds.replicas_spec("united", pods, 3, serviceName="united", podManagementPolicy="Parallel")
    labels = {names.SCHEDULER_PREFIX + "group": "united", names.SCHEDULER_PREFIX + "group-size": "3"}
    spec["template"]["metadata"]["labels"] |= labels
    with unbindable(world, "united-1"):
        objects.create("StatefulSet", "united", spec)
        wait.until(lambda: any(map(support_world.is_bound, world.pods())), "half a start", 20)
        first = {one["metadata"]["uid"] for one in world.pods() if support_world.is_bound(one)}
        wait.until(lambda: not first & support_kinds.uids(world.pods()), "rollback", 40)
    members = support_groups.placed(world, "united", 3, 40)
    job = support_groups.together(world, members)
    support_groups.await_only(world, job.job_id)
    objects.delete("StatefulSet", "united")
    world.await_nothing_in_slurm(30)


@pytest.mark.real
@pytest.mark.timeout(90)
def test_t27_an_allocation_that_is_smaller_than_the_group_starts_nothing(world: World, farm: Farm) -> None:
    """An administrator has made the waiting request smaller: it is given back, and asked for again as it has to be."""
    asked = {names.JOB_PREFIX + "partition": farm.partition, **GANG}
    objects = Objects(world)
    world.slurm.command("scontrol", "update", f"PartitionName={farm.partition}", "State=DOWN")
    try:
        objects.create("Job", "shrunk", support_kinds.job_spec(support_kinds.template(world), 6), asked)
        wait.until(lambda: support_groups.living_of(world, "Job", "shrunk"), "job", 20, every=0.3)
        (first,) = support_groups.living_of(world, "Job", "shrunk")
        world.slurm.command("scontrol", "update", f"JobId={first.job_id}", "NumTasks=2", "NumCPUs=2")
    finally:
        world.slurm.command("scontrol", "update", f"PartitionName={farm.partition}", "State=UP")
    members = support_groups.placed(world, "shrunk", 6, 40)
    job = support_groups.together(world, members)
    assert job.text["tasks"]["number"] == 6
    support_groups.await_only(world, job.job_id)
    objects.delete("Job", "shrunk")
    world.await_nothing_in_slurm(30)


@pytest.mark.real
@pytest.mark.timeout(150)
def test_t43b_a_group_out_of_time_ends_as_a_whole_and_is_held_where_the_site_says_so(world: World) -> None:
    """All members say why; what replaces them waits for the user, and once the user retries all start under one job."""
    objects = Objects(world)
    policy = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    spec = support_kinds.job_spec(support_kinds.template(world), 3, podFailurePolicy={"rules": policy})
    objects.create("Job", "late", spec, GANG)
    old = support_groups.placed(world, "late", 3)
    job = support_groups.together(world, old)
    world.slurm.command("scontrol", "update", f"JobId={job.job_id}", "EndTime=now+1")
    gone = support_kinds.uids(old)

    def replaced() -> bool:
        new = support_kinds.members(world, "late")
        return len(new) == 3 and not gone & support_kinds.uids(new)

    wait.until(replaced, f"new members\n{world.daemon.last_words()}", LIMIT_SECONDS, every=0.5)
    held = support_groups.awaited(world, "late", 3, lambda one: "time limit" in message(one).lower(), "held")
    assert support_groups.living_of(world, "Job", "late") == []
    world.annotate(held[1]["metadata"]["name"], {names.ANNOTATION_RETRY: "once more"})
    again = support_groups.together(world, support_groups.placed(world, "late", 3))
    assert again.owner["members"] != job.owner["members"]
    objects.delete("Job", "late")
    world.await_nothing_in_slurm(30)
