"""Groups that pods name: the built-in PodGroup, that of the coscheduling plugin, and a mere name with a size."""

import msgspec
import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import PodGroup
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Gang, MemberLost, Workload
from slurm_bridge.workloads import base
from slurm_bridge.workloads.kind_table import WATCHED
from slurm_bridge.workloads.known import Options
from tests.unit.workloads.heard import Heard, Members

KEY = names.JOB_PREFIX + "partition"


def grouped(world: Heard, name: str, group: str = "g", **values: object) -> Pod:
    """A pod that names a built-in PodGroup."""
    return world.pod(name, spec={"schedulingGroup": {"podGroupName": group}}, **values)


def labelled(world: Heard, name: str, group: str = "g", **values: object) -> Pod:
    """A pod that names a PodGroup of the coscheduling plugin."""
    return world.pod(name, labels={names.LABEL_COSCHEDULING: group}, **values)


def sized(world: Heard, name: str, size: str = "2", **values: object) -> Pod:
    """A pod that names a group and its size, as annotations."""
    return world.pod(name, annotations={names.GROUP: "g", names.GROUP_SIZE: size}, **values)


def gang_of(count: int, workload: str = "") -> dict[str, object]:
    """What the API server returns of a gang's spec."""
    made_from = {"workload": {"workloadName": workload, "podGroupTemplateName": "t"}} if workload else None
    policy = {"gang": {"minCount": count}}
    return {"disruptionMode": "Pod", "podGroupTemplateRef": made_from, "schedulingPolicy": policy}


def test_a_built_in_gang_is_gathered_from_its_minimum_on() -> None:
    """Nobody says how many more there will be."""
    world = Heard()
    world.put(kinds.PODGROUPS, "g", spec=gang_of(2))
    one, two, three = (grouped(world, f"p-{number}") for number in (1, 2, 3))
    wait = world.wait(one)
    assert (wait.reason, wait.message) == ("GangIncomplete", "1 of 2 pods of PodGroup default/g is there")
    found = world.whole(three, two, one)
    assert (found.root.kind, found.root.uid, found.job_name) == ("PodGroup", "uid-g", "g")
    assert found.pods == (one, two, three)
    assert found.gang == Gang(minimum=2, size=None)


def test_t05_voices_of_a_built_in_group_are_podgroup_then_job_then_workload() -> None:
    """Of two that say the same the later counts; each key stays with the object that said it."""
    world = Heard()
    world.put(kinds.PODGROUPS, "g", spec=gang_of(1, "w"), annotations={KEY: "group", "only": "group"})
    job = world.put(kinds.JOBS, "j", annotations={KEY: "job"})
    world.put(kinds.WORKLOADS, "w", annotations={KEY: "workload"})
    found = world.whole(grouped(world, "p", above=(kinds.JOBS, job)))
    assert [str(source) for source in found.sources] == ["Pod/p", "PodGroup/g", "Job/j", "Workload/w"]
    assert [source.annotations.get(KEY) for source in found.sources] == [None, "group", "job", "workload"]


def test_t05_a_missing_workload_is_tolerated() -> None:
    """It may come later, or never."""
    world = Heard()
    world.put(kinds.PODGROUPS, "g", spec=gang_of(1, "w"))
    assert [str(source) for source in world.whole(grouped(world, "p")).sources] == ["Pod/p", "PodGroup/g"]


def test_t05_a_workload_without_its_kind_being_served_is_tolerated() -> None:
    """Both belong to one API group, but rights and versions differ."""
    world = Heard(*(kind for kind in WATCHED if kind is not kinds.WORKLOADS))
    world.put(kinds.PODGROUPS, "g", spec=gang_of(1, "w"))
    assert len(world.whole(grouped(world, "p")).sources) == 2


@pytest.mark.parametrize("policy", [{"gang": {"minCount": 1}}, {"basic": {}}])
def test_t05_the_job_is_named_like_the_group(policy: dict[str, object]) -> None:
    """Whatever made the pods, and however they are scheduled."""
    world = Heard()
    world.put(kinds.PODGROUPS, "g", spec={"schedulingPolicy": policy})
    job = world.put(kinds.JOBS, "j")
    assert world.whole(grouped(world, "p", above=(kinds.JOBS, job))).job_name == "g"


def test_a_group_with_the_basic_policy_speaks_for_pods_that_are_placed_one_by_one() -> None:
    """It is a group of annotations."""
    world = Heard()
    world.put(kinds.PODGROUPS, "g", spec={"schedulingPolicy": {"basic": {}}}, annotations={KEY: "gpu"})
    pod = grouped(world, "p")
    found = world.whole(pod)
    assert (found.root.uid, found.gang) == (pod.uid, None)
    assert found.sources[-1].annotations == {KEY: "gpu"}


@pytest.mark.parametrize("make", [grouped, labelled])
def test_pods_of_a_missing_group_wait_for_it(make: object) -> None:
    """They share a name until they share an object, and each group of each kind has its own."""
    world = Heard()
    one, two = make(world, "a"), make(world, "b")  # type: ignore[operator]
    assert world.claim(one) == world.claim(two)
    wait = world.wait(one, two)
    assert wait.reason == "GroupMissing"
    assert "PodGroup default/g" in wait.message
    assert world.claim(grouped(world, "a")) != world.claim(labelled(world, "a"))


def test_a_group_that_appears_goes_or_comes_back_is_another_workload_each_time() -> None:
    """What was known of pods by its name is asked again by the handles that they are filed under."""
    world = Heard()
    pod = grouped(world, "p")
    roots = [world.claim(pod)]
    group = world.put(kinds.PODGROUPS, "g", spec=gang_of(1))
    roots.append(world.claim(pod))
    world.drop(kinds.PODGROUPS, group)
    roots.append(world.claim(pod))
    world.put(kinds.PODGROUPS, "g", uid="other", spec=gang_of(1))
    roots.append(world.claim(pod))
    assert [root.uid for root in roots] == ["PodGroup:default/g", "uid-g", "PodGroup:default/g", "other"]
    assert base.handles(pod) == ("g",)
    stale = base.gather(roots[1], Members(pod), world.given)
    assert stale == base.Moved(roots[3])


def test_a_changed_minimum_counts_from_then_on() -> None:
    """The plugin's object may be edited; the members that are there may suffice now."""
    world = Heard()
    world.put(kinds.COSCHEDULING_PODGROUPS, "g", spec={"minMember": 3})
    pods = labelled(world, "a"), labelled(world, "b")
    assert "2 of 3" in world.wait(*pods).message
    world.put(kinds.COSCHEDULING_PODGROUPS, "g", spec={"minMember": 2})
    assert world.whole(*pods).gang == Gang(minimum=2)


def test_the_plugins_group_speaks_louder_than_the_owner_of_its_pods() -> None:
    """Manifests that were written for it mean what they meant."""
    world = Heard()
    world.put(kinds.COSCHEDULING_PODGROUPS, "g", annotations={KEY: "group"})
    job = world.put(kinds.JOBS, "j", annotations={KEY: "job"})
    found = world.whole(labelled(world, "p", above=(kinds.JOBS, job)))
    assert [str(source) for source in found.sources] == ["Pod/p", "Job/j", "PodGroup/g"]
    assert found.controller is not None
    assert found.controller.uid == "uid-j"


def test_a_kind_that_is_not_served_claims_nothing() -> None:
    """Its marks on a pod are somebody's leftovers; the pod is placed as if they were not there."""
    world = Heard(kinds.JOBS)
    for pod in (grouped(world, "a"), labelled(world, "b")):
        assert world.claim(pod).uid == pod.uid
    world.stores[kinds.PODGROUPS] = world.stores[kinds.JOBS]
    assert world.claim(grouped(world, "a")).kind == "PodGroup"


def test_the_built_in_group_comes_before_the_plugins_and_that_before_a_name() -> None:
    """A pod may bear the marks of all three."""
    world = Heard()
    world.put(kinds.PODGROUPS, "g", spec=gang_of(1))
    world.put(kinds.COSCHEDULING_PODGROUPS, "c", uid="plugin")
    labels = {names.LABEL_COSCHEDULING: "c", names.GROUP: "n"}
    every = grouped(world, "p", labels=labels)
    assert world.claim(every).uid == "uid-g"
    assert world.claim(world.pod("p", labels=labels)).uid == "plugin"
    assert world.claim(world.pod("p", labels={names.GROUP: "n"})).uid == "Group:default/n"
    assert set(base.handles(every)) == {"g", "c"}


@pytest.mark.parametrize("group", ["builtin", "plugin", "name"])
def test_t10_groups_of_one_name_in_two_namespaces_stay_apart(group: str) -> None:
    """Be they known or not."""
    world = Heard()
    make = {"builtin": grouped, "plugin": labelled, "name": sized}[group]
    here, there = make(world, "p"), make(world, "p", namespace="other", uid="uid-other")
    assert world.claim(here) != world.claim(there)
    world.put(kinds.PODGROUPS, "g", namespace="other", uid="other", spec=gang_of(1))
    world.put(kinds.COSCHEDULING_PODGROUPS, "g", namespace="other", uid="theirs")
    assert world.claim(here).namespace == "default"
    assert world.claim(here).uid.endswith("default/g")
    assert world.claim(there).namespace == "other"


def test_t11_members_that_are_over_leaving_bound_or_gated_do_not_count() -> None:
    """Only those that a placeholder could still give a node."""
    world = Heard()
    world.put(kinds.PODGROUPS, "g", spec=gang_of(2))
    fit = grouped(world, "fit")
    others = [
        grouped(world, "done", status={"phase": "Succeeded"}),
        grouped(world, "failed", status={"phase": "Failed"}),
        grouped(world, "leaving", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        msgspec.structs.replace(fit, spec=msgspec.structs.replace(fit.spec, node_name="n1")),
        world.pod("gated", spec={"schedulingGroup": {"podGroupName": "g"}, "schedulingGates": [{"name": "x"}]}),
    ]
    assert "1 of 2" in world.wait(fit, *others).message
    assert base.gather(world.claim(fit), Members(*others), world.given) is None


def test_a_named_group_is_as_large_as_its_pods_say() -> None:
    """As labels or as annotations, without any object, whoever makes the pods."""
    world = Heard()
    one, two = (
        sized(world, "a-1"),
        world.pod("a-0", labels={names.GROUP: "g", names.GROUP_SIZE: "2"}),
    )
    assert world.wait(one).message == "1 of 2 pods of Group default/g is there"
    found = world.whole(one, two)
    assert found.pods == (two, one)
    assert (found.gang, found.job_name, found.controller) == (Gang(minimum=2, size=2), "g", None)


@pytest.mark.parametrize("size", ["", "0", "-1", "two", "1.5", "٣", "9" * 40])
def test_a_group_without_a_size_waits_and_says_what_is_allowed(size: str) -> None:
    """A guess could start half of it."""
    world = Heard()
    wait = world.wait(sized(world, "p", size))
    assert wait.reason == "GroupSizeUnknown"
    assert names.GROUP_SIZE in wait.message
    assert "Pod default/p" in wait.message
    assert "the same on each" in wait.message


def test_pods_that_do_not_agree_on_the_size_wait() -> None:
    """Each of them may be right."""
    world = Heard()
    wait = world.wait(sized(world, "a", "2"), sized(world, "b", "3"))
    assert wait.reason == "GroupSizeUnknown"
    assert "'3', another pod says 2" in wait.message


def test_what_follows_a_loss_is_said_by_the_loudest_voice_or_else_by_the_setting() -> None:
    """Words that mean nothing are left to the translation, which tells the user."""
    world = Heard(options=Options(member_lost=MemberLost.RESTART))
    lost = {names.ANNOTATION_MEMBER_LOST: "keep"}

    def policy(**values: object) -> MemberLost:
        found = world.whole(*(sized(world, name, **values) for name in ("a", "b")))
        assert found.gang is not None
        return found.gang.member_lost

    assert policy() is MemberLost.RESTART
    job = world.put(kinds.JOBS, "j", annotations=lost)
    assert policy(above=(kinds.JOBS, job)) is MemberLost.KEEP
    loud = world.put(kinds.JOBS, "j", annotations={names.ANNOTATION_MEMBER_LOST: "restart-group"})
    marks = {names.GROUP: "g", names.GROUP_SIZE: "2", **lost}
    said = world.whole(*(world.pod(one, annotations=marks, above=(kinds.JOBS, loud)) for one in ("a", "b"))).gang
    assert said is not None
    assert said.member_lost is MemberLost.RESTART
    job = world.put(kinds.JOBS, "j", annotations={names.ANNOTATION_MEMBER_LOST: "whatever"})
    assert policy(above=(kinds.JOBS, job)) is MemberLost.RESTART


def test_a_started_group_stays_together_whatever_is_known_since() -> None:
    """Its object may be gone or made anew; those that have nodes are among the members, and no minimum counts."""
    world = Heard()
    group = world.put(kinds.PODGROUPS, "g", spec=gang_of(4))
    one, two = grouped(world, "a"), grouped(world, "b")
    root = world.claim(one)
    found = base.gather(root, Members(one, two), world.given, started=True)
    assert isinstance(found, Workload)
    assert (found.root, found.pods) == (root, (one, two))
    world.drop(kinds.PODGROUPS, group)
    found = base.gather(root, Members(one, two), world.given, started=True)
    assert isinstance(found, Workload)
    assert (found.root, found.pods) == (root, (one, two))


def test_the_object_of_a_workload_is_found() -> None:
    """Both PodGroups have one kind and are told apart by their uids; a mere name has no object."""
    world = Heard()
    ours = world.put(kinds.PODGROUPS, "g", spec=gang_of(1))
    theirs = world.put(kinds.COSCHEDULING_PODGROUPS, "g", uid="theirs")
    for pod, kind, found in (
        (grouped(world, "p"), kinds.PODGROUPS, ours),
        (labelled(world, "p"), kinds.COSCHEDULING_PODGROUPS, theirs),
    ):
        assert base.subject(world.claim(pod), world.known) == base.WorkloadObject(kind=kind, object=found)
    assert base.subject(world.claim(sized(world, "p")), world.known) is None
    assert base.subject(world.claim(world.pod("p")), world.known) is None


def test_the_policy_of_a_later_version_is_read_as_basic() -> None:
    """A policy that we have no word for makes no gang."""
    made = msgspec.convert({"metadata": {}, "spec": {"schedulingPolicy": {"fancy": {}}}}, PodGroup)
    assert made.spec.scheduling_policy.gang is None
