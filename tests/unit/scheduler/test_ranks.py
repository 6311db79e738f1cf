"""Ranks of members: unique, in the order of their indices, and the same for a member that is made again."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod, PodSpec
from slurm_bridge.scheduler.placement import ranks
from slurm_bridge.workloads import gangs


def member(name: str, *, index: int | None = None, job: int | None = None, rank: str | None = None) -> Pod:
    """A pod; one that has a rank is bound."""
    labels = {names.LABEL_JOBSET_GLOBAL_INDEX: str(job)} if job is not None else {}
    annotations = {names.ANNOTATION_COMPLETION_INDEX: str(index)} if index is not None else {}
    annotations |= {names.ANNOTATION_RANK: rank} if rank is not None else {}
    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", uid=f"u-{name}", labels=labels, annotations=annotations),
        spec=PodSpec(node_name="n" if rank is not None else ""),
    )


def ranked(*pods: Pod, tasks: int | None = None) -> dict[str, int]:
    """Their ranks by name."""
    ordered = sorted(pods, key=gangs.rank)
    found = ranks.ranks(ordered, tasks or len(pods))
    return {pod.metadata.name: found[pod.uid] for pod in pods}


def test_an_index_is_the_rank() -> None:
    """As the program of the pod counts itself, also where other members are not there yet."""
    assert ranked(member("b", index=1), member("a", index=2), member("c", index=0)) == {"b": 1, "a": 2, "c": 0}
    assert ranked(member("x", index=2), tasks=4) == {"x": 2}


def test_members_of_several_jobs_are_counted_job_by_job() -> None:
    """Their indices repeat, so the order counts."""
    pods = [member(f"{job}-{index}", job=job, index=index) for job in (1, 0) for index in (0, 1)]
    assert ranked(*pods) == {"0-0": 0, "0-1": 1, "1-0": 2, "1-1": 3}


def test_ranks_have_no_gap_where_an_index_has_ended_for_good() -> None:
    """A rank that is not below the number of tasks would be an error of the program."""
    assert ranked(member("a", index=0), member("c", index=2), member("d", index=3)) == {"a": 0, "c": 1, "d": 2}


def test_a_member_that_is_made_again_takes_the_place_of_the_lost_one() -> None:
    """With its index, or without one by its place among the others."""
    there = [member(f"w-{index}", index=index, rank=str(index)) for index in (0, 1, 3)]
    assert ranked(*there, member("w-new", index=2))["w-new"] == 2
    named = [member("a", rank="0"), member("b", rank="1"), member("d", rank="3")]
    assert ranked(*named, member("c"))["c"] == 2
    assert ranked(*named, member("z"))["z"] == 2


def test_a_forged_rank_costs_no_member_its_own() -> None:
    """Text, huge numbers and ranks of others on bound pods leave ranks unique, and unbound pods are not believed."""
    forged = [member("a", rank="x"), member("b", rank="9" * 400), member("c", rank="0"), member("d", rank="0")]
    found = ranked(*forged, member("e"))
    assert sorted(found.values()) == [0, 1, 2, 3, 4]
    unbound = member("f", index=0)
    unbound.metadata.annotations[names.ANNOTATION_RANK] = "7"
    assert ranked(unbound) == {"f": 0}


@given(st.data())
def test_ranks_are_the_same_however_often_the_binding_is_interrupted(data: st.DataObject) -> None:
    """Any part of the members is bound, the daemon starts anew, and the others get what they would have had."""
    kinds: list[dict[str, Any]] = [{"name": f"p{number}"} for number in range(6)]
    if data.draw(st.booleans()):
        kinds = [{**one, "index": number} for number, one in enumerate(kinds)]
    whole = ranked(*(member(**one) for one in kinds))
    bound = data.draw(st.sets(st.integers(0, 5)))
    again = [
        member(**one, rank=str(whole[one["name"]]) if number in bound else None) for number, one in enumerate(kinds)
    ]
    assert ranked(*again) == whole
    assert sorted(whole.values()) == list(range(6))


def test_local_ranks_count_the_members_on_each_node() -> None:
    """From 0 on every node, in rank order."""
    pods = [member(name) for name in ("a", "b", "c", "d")]
    nodes = {pod.uid: node for pod, node in zip(pods, ("n1", "n2", "n1", "n2"), strict=True)}
    assert ranks.local_ranks(pods, nodes) == {"u-a": 0, "u-b": 0, "u-c": 1, "u-d": 1}
