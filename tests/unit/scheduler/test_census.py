"""The census of pods: its indexes say what a plain dictionary would."""

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model.meta import ObjectMeta, OwnerReference
from slurm_bridge.model.pod import Pod, PodSpec, PodStatus
from slurm_bridge.scheduler.census import Census


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


@given(st.lists(st.one_of(pods, st.sampled_from("abcd")), max_size=30))
def test_the_indexes_are_those_of_a_plain_dictionary(changes: list[Pod | str]) -> None:
    """Whatever appears, changes owner or node, ends or goes."""
    made, plain, gone = Census(), dict[str, Pod](), set[str]()
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
        assert set(made.made_by(owner)) == {
            one.uid for one in plain.values() if any(ref.uid == owner for ref in one.metadata.owner_references)
        }
    assert all(made.seen_gone(uid) == (uid in gone) for uid in "abcd")


def test_a_repeated_old_shape_does_no_harm() -> None:
    """A list after a gap can tell of a pod that was never heard of as gone."""
    made = Census()
    made.put(pod("a", "n1"), None)
    assert made.seen_gone("a")
    assert made.on_node("n1") == ()


def test_the_memory_of_the_dead_is_bounded() -> None:
    """The oldest are forgotten; then the API server is asked instead."""
    made = Census(remembered=3)
    for number in range(5):
        made.put(pod(str(number)), None)
    assert [made.seen_gone(str(number)) for number in range(5)] == [False, False, True, True, True]
