"""The census of pods: its indexes say what a plain dictionary would, and crews what a list of their pods would."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta, OwnerReference
from slurm_bridge.model.names import JobId
from slurm_bridge.model.pod import Pod, PodSpec, PodStatus
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.workload_pods import PLACED, PickedPods, PodState, job_id_of, standing


def pod(uid: str, node: str = "", owner: str = "", phase: str = "Running") -> Pod:
    """A pod, perhaps on a node, perhaps made by somebody."""
    owners = (OwnerReference(api_version="v1", kind="Job", name=owner, uid=owner, controller=True),) if owner else ()
    meta = ObjectMeta(name=uid, namespace="team", uid=uid, owner_references=owners)
    return Pod(metadata=meta, spec=PodSpec(node_name=node), status=PodStatus(phase=phase))


pods = st.builds(
    pod,
    st.sampled_from("abcd"),
    st.sampled_from(("", "n1", "n2")),
    st.sampled_from(("", "j1", "j2")),
    st.sampled_from(("Pending", "Running", "Failed")),
)


def single(uid: str) -> names.WorkloadKey:
    """The workload that is this pod."""
    return names.workload_key("Pod", "team", uid, uid)


def group(name: str, uid: str = "") -> names.WorkloadKey:
    """The workload of these pods."""
    return names.workload_key("Job", "team", name, uid or name)


@given(st.lists(st.one_of(pods, st.sampled_from("abcd")), max_size=30))
def test_the_indexes_are_those_of_a_plain_dictionary(changes: list[Pod | str]) -> None:
    """Whatever appears, changes owner or node, ends or goes."""
    made, plain, gone = PodIndex(), dict[str, Pod](), set[str]()
    for change in changes:
        if isinstance(change, str):
            made.put(plain.get(change), None)
            gone |= {change} & plain.keys()
            plain.pop(change, None)
        else:
            made.put(plain.get(change.uid), change)
            plain[change.uid] = change
    assert {uid: made.get(uid) for uid in made.uids()} == plain
    for node in ("n1", "n2"):
        there = {one.uid for one in plain.values() if one.spec.node_name == node and not one.terminal}
        assert {one.uid for one in made.on_node(node)} == there
    for owner in ("j1", "j2"):
        assert set(made.named("team", owner)) == {
            one.uid for one in plain.values() if any(ref.name == owner for ref in one.metadata.owner_references)
        }
    assert all(made.seen_gone(single(uid)) == (uid in gone - plain.keys()) for uid in "abcd")


def test_a_repeated_old_shape_does_no_harm() -> None:
    """A list after a gap can tell of a pod that was never heard of as gone."""
    made = PodIndex()
    made.put(pod("a", "n1"), None)
    assert made.seen_gone(single("a"))
    assert made.on_node("n1") == ()


def test_the_memory_of_the_dead_is_bounded() -> None:
    """The oldest are forgotten; then the API server is asked instead."""
    made = PodIndex(remembered=3)
    for number in range(5):
        made.put(pod(str(number)), None)
    assert [made.seen_gone(single(str(number))) for number in range(5)] == [False, False, True, True, True]


def group_of(one: Pod) -> Root:
    """Pods of one owner belong together."""
    owner = one.metadata.owner_references[0].name if one.metadata.owner_references else one.uid
    return Root(kind="Job", namespace="team", name=owner, uid=owner)


def member(uid: str, *, job: str = "", owner: str = "j1", **more: str) -> Pod:
    """A pod of a group, perhaps bound by a job."""
    one = pod(uid, "n1" if job else "", owner, **more)
    labels = {names.LABEL_JOB_ID: job} if job else {}
    meta = ObjectMeta(
        name=uid, namespace="team", uid=uid, owner_references=one.metadata.owner_references, labels=labels
    )
    return Pod(metadata=meta, spec=one.spec, status=one.status)


members = st.builds(
    member,
    st.sampled_from("abcdef"),
    job=st.sampled_from(("", "7", "8")),
    phase=st.sampled_from(("Pending", "Running", "Succeeded", "Failed")),
)


@given(st.lists(st.one_of(members, st.sampled_from("abcdef")), max_size=40))
def test_a_crew_counts_what_a_list_of_its_pods_would(changes: list[Pod | str]) -> None:
    """However its members come, change and go."""
    made, plain = PodIndex(group_of), dict[str, Pod]()
    for change in changes:
        if isinstance(change, str):
            if change in plain:
                made.put(plain.pop(change), None)
        else:
            made.put(plain.get(change.uid), change)
            plain[change.uid] = change
    workload_pods = made.workload(group("j1"))
    assert (workload_pods is None) == (not plain)
    if workload_pods is None:
        return
    for stands in PodState:
        expected = {one.uid for one in plain.values() if standing(one) is stands}
        assert {one.uid for one in workload_pods.pods(stands)} == expected
        assert workload_pods.count(stands) == len(expected) == len(PickedPods(workload_pods, stands))
    assert workload_pods.named == {job_id_of(one) for one in plain.values() if standing(one) in PLACED}


def test_a_crew_remembers_the_jobs_of_members_that_have_gone() -> None:
    """Or nobody could tell those who come later from those who were there."""
    made = PodIndex(group_of)
    bound = member("a", job="7", phase="Running")
    made.put(None, member("b"))
    made.put(None, bound)
    made.put(bound, None)
    workload_pods = made.workload(group("j1"))
    assert workload_pods is not None
    assert workload_pods.served == {JobId(7)}
    assert workload_pods.named == frozenset()


def test_a_pod_that_moves_leaves_its_crew_behind() -> None:
    """The last one to leave leaves nothing; it was not seen to its end, for it lives on elsewhere."""
    made = PodIndex(group_of)
    made.put(None, member("a"))
    made.move("a", dataclasses.replace(group_of(member("a")), uid="elsewhere"))
    assert made.workload(group("j1")) is None
    assert not made.seen_gone(group("j1"))
    assert made.root_of("a") == group("j1", "elsewhere")


def test_a_group_whose_last_member_went_is_known_when_others_come() -> None:
    """The jobs that its members were on, and what was lost of them: else others would be taken for their successors."""
    made = PodIndex(group_of)
    made.put(None, member("a", job="7"))
    made.put(member("a", job="7"), None)
    assert made.seen_gone(group("j1"))
    made.put(None, member("b"))
    again = made.workload(group("j1"))
    assert again is not None
    assert (again.served, again.of_job(names.JobId(7)).lost, again.on(names.JobId(7))) == ({7}, True, 0)
    assert again.count(*PodState) == 1
    assert not made.seen_gone(group("j1"))


def test_who_is_bound_is_not_claimed_anew() -> None:
    """It belongs to the job that it names, whatever its controller says later."""
    where = {"a": "before", "b": "before"}
    made = PodIndex(lambda one: Root(kind="Job", namespace="team", name="j", uid=where[one.uid]))
    made.put(None, member("a", job="7", phase="Running"))
    made.put(None, member("b"))
    where.update(a="after", b="after")
    assert made.reclaim(made.uids()) == {group("j", "before"), group("j", "after")}
    assert (made.root_of("a"), made.root_of("b")) == (group("j", "before"), group("j", "after"))
