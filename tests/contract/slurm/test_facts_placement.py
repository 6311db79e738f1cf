"""Which nodes a job gets: required, excluded, counted, exclusive."""

import itertools

from slurm_desk import WHOLE_NODE, Desk, number, value

from slurm_bridge.model import hostlist


def names(desk: Desk, job_id: int) -> list[str]:
    """The nodes that a job got."""
    return list(hostlist.expand(desk.job(job_id)["nodes"]))


def test_required_nodes_without_a_count_are_all_taken(slurm: Desk) -> None:
    """Twenty tasks over three names take all three, though one would do."""
    wanted = slurm.idle("plain", 3)
    assert names(slurm, slurm.running(tasks=20, required_nodes=wanted)) == wanted


def test_required_nodes_longer_than_the_count_are_candidates(slurm: Desk) -> None:
    """With a range of nodes that is shorter than the list, Slurm chooses among the names."""
    wanted = slurm.idle("plain", 3)
    found = names(slurm, slurm.running(tasks=20, nodes="1-2", required_nodes=wanted))
    assert set(found) < set(wanted)
    assert len(found) <= 2


def test_a_maximum_alone_does_not_make_candidates(each: Desk) -> None:
    """More names than maximum_nodes without a minimum: 422 with 2006."""
    wanted = each.idle("plain", 3)
    assert each.submit(tasks=20, maximum_nodes=2, required_nodes=wanted).verdict == (422, [2006])


def test_required_nodes_as_many_as_the_count_are_exactly_those(slurm: Desk) -> None:
    """Of equal length the list is hard."""
    first, _, third = slurm.idle("plain", 3)
    job_id = slurm.running(tasks=20, minimum_nodes=2, maximum_nodes=2, required_nodes=[first, third])
    assert names(slurm, job_id) == [first, third]


def test_required_nodes_shorter_than_the_count_are_among_those(slurm: Desk) -> None:
    """The names are in it; the rest is free."""
    *_, third = slurm.idle("plain", 3)
    found = names(slurm, slurm.running(tasks=20, nodes="2", required_nodes=[third]))
    assert third in found
    assert len(found) == 2


def test_fewer_tasks_than_required_nodes_are_refused(each: Desk) -> None:
    """422 with 2025."""
    wanted = each.idle("plain", 2)
    assert each.submit(tasks=1, required_nodes=wanted).verdict == (422, [2025])


def test_a_required_node_outside_the_partition_is_refused(each: Desk) -> None:
    """422 with 2014."""
    (plain,) = each.idle("plain")
    assert each.submit(partition="smt", required_nodes=[plain]).verdict == (422, [2014])


def test_excluding_every_node_is_refused(each: Desk) -> None:
    """422 with 2014."""
    assert each.submit(partition="smt", excluded_nodes=each.machines("smt")).verdict == (422, [2014])


def test_a_hostlist_may_be_compressed(each: Desk) -> None:
    """One entry may stand for many names."""
    wanted = each.idle("plain", 2)
    job_id = each.held(tasks=2, required_nodes=[hostlist.compress(wanted)])
    assert hostlist.expand(each.job(job_id)["required_nodes"]) == tuple(wanted)


def test_an_empty_list_at_submit_restricts_nothing(each: Desk) -> None:
    """`[]` is no restriction for both lists; `[""]` is none for the excluded one."""
    job = each.job(each.held(required_nodes=[], excluded_nodes=[""]))
    assert (job["required_nodes"], job["excluded_nodes"]) == ("", "")


def test_exclusion_without_a_count_packs(slurm: Desk) -> None:
    """Eight tasks with one GPU slurm fill one node outside the excluded ones."""
    first, *others = slurm.idle("gpu", 3)
    excluded = [name for name in slurm.machines("gpu") if name not in others]
    typed = [*slurm.machines("v100"), *slurm.machines("a100")]
    job_id = slurm.running(partition="gpu", tasks=8, tres_per_task="gres/gpu:1", excluded_nodes=excluded + typed)
    found = names(slurm, job_id)
    assert len(found) == 1
    assert first not in found


def test_tasks_without_a_count_share_a_node(slurm: Desk) -> None:
    """Eight tasks of one CPU run on one node."""
    assert len(names(slurm, slurm.running(tasks=8, constraints="plain"))) == 1


def test_a_maximum_spreads(slurm: Desk) -> None:
    """Given a maximum, Slurm takes as many nodes as it may."""
    slurm.idle("plain", 3)
    assert len(names(slurm, slurm.running(tasks=8, maximum_nodes=3, constraints="plain"))) == 3


def test_a_range_of_nodes_spreads(slurm: Desk) -> None:
    """`nodes: "1-3"` is the same as a maximum."""
    slurm.idle("plain", 3)
    assert len(names(slurm, slurm.running(tasks=8, nodes="1-3", constraints="plain"))) == 3


def test_a_maximum_beyond_the_tasks_spreads_unless_few_nodes_are_preferred(slurm: Desk) -> None:
    """One task with a maximum of three takes three nodes; with PREFER_MINIMUM_NODE_COUNT it takes one."""
    few = ["EXTERNAL_JOB", "PREFER_MINIMUM_NODE_COUNT"]
    assert len(names(slurm, slurm.running(tasks=1, maximum_nodes=3, constraints="plain"))) == 3
    assert len(names(slurm, slurm.running(tasks=1, maximum_nodes=3, constraints="plain", flags=few))) == 1


def test_minimum_and_maximum_override_nodes(slurm: Desk) -> None:
    """Where both are given, the count as text is ignored."""
    job_id = slurm.running(tasks=8, nodes="1", minimum_nodes=2, maximum_nodes=2)
    assert len(names(slurm, job_id)) == 2


def test_constraints_choose_by_feature(slurm: Desk) -> None:
    """A job goes where its feature is."""
    (found,) = names(slurm, slurm.running(constraints="v100"))
    assert found in slurm.machines("v100")


def test_nodes_come_in_one_order(slurm: Desk) -> None:
    """The record's hostlist and the resources name the nodes in the same order."""
    job_id = slurm.running(tasks=3, nodes="3")
    assert list(slurm.resources(job_id)) == names(slurm, job_id)


# -- whole nodes


def test_not_shared_takes_all_cpus_but_not_all_memory(slurm: Desk) -> None:
    """`shared: ["none"]` takes every CPU of the node, and the memory that was asked for."""
    job_id = slurm.running(constraints="plain", **WHOLE_NODE)
    ((name, node),) = slurm.resources(job_id).items()
    assert slurm.cpus(job_id) == {name: slurm.node(name)["cpus"]}
    assert node["mem_alloc"] == 100


def test_not_shared_takes_all_gpus(slurm: Desk) -> None:
    """On a node with GPUs, it takes all of them, though none was asked for."""
    job_id = slurm.running(partition="gpu", constraints="gpu", **WHOLE_NODE)
    (node,) = slurm.resources(job_id).values()
    assert [(gres["name"], gres["count"]) for gres in node["gres"]] == [("gpu", 8)]


def test_exclusive_fails_and_creates_the_job(slurm: Desk) -> None:
    """`shared: ["exclusive"]` answers 500 with 9207, and a job with the whole node runs."""
    answer = slurm.submit(shared=["exclusive"], constraints="plain")
    assert answer.status == 500
    assert answer.job_id
    slurm.started(answer.job_id)
    ((name, cpus),) = slurm.cpus(answer.job_id).items()
    assert cpus == slurm.node(name)["cpus"]


def test_an_exclusive_partition_gives_whole_nodes(slurm: Desk) -> None:
    """There every job has every CPU of its node."""
    job_id = slurm.running(partition="exclusive", constraints="plain")
    ((name, cpus),) = slurm.cpus(job_id).items()
    assert cpus == slurm.node(name)["cpus"]


def test_a_whole_node_is_given_back_at_once(slurm: Desk) -> None:
    """A cancelled job's nodes are free in the next answer: no epilog, no COMPLETING."""
    job_id = slurm.running(constraints="plain", **WHOLE_NODE)
    (name,) = names(slurm, job_id)
    slurm.delete(job_id)
    assert "COMPLETING" not in slurm.state(job_id)
    assert {"ALLOCATED", "COMPLETING"}.isdisjoint(slurm.node(name)["state"])


# -- what else a job may wait for


def test_licenses_run_out(slurm: Desk) -> None:
    """A job that needs more licenses than are free waits with reason Licenses; more than there are is refused."""
    slurm.running(licenses="ansys:2")
    waiting = slurm.pending(licenses="ansys:1")
    slurm.until(lambda: slurm.job(waiting)["state_reason"] == "Licenses", "the reason is known")
    assert slurm.submit(licenses="ansys:3").errors == [2048]


def test_a_reservation_is_for_its_users(slurm: Desk) -> None:
    """Its users get its node, others are refused with 2052."""
    (node,) = [name for name, found in slurm.nodes().items() if "RESERVED" in found["state"]]
    slurm.started(slurm.plain_user.pending(reservation="held", required_nodes=[node]))
    assert slurm.submit(reservation="held", user_id="5003", group_id="5003").verdict == (422, [2052])


def test_root_may_enter_any_reservation(slurm: Desk) -> None:
    """Root is not among its users and enters all the same."""
    slurm.started(slurm.pending(reservation="held", user_id="0", group_id="0"))


def test_a_waiting_job_says_for_what(slurm: Desk) -> None:
    """A full node: Resources for the first in line."""
    (node,) = slurm.idle("plain")
    slurm.running(required_nodes=[node], **WHOLE_NODE)
    waiting = slurm.pending(required_nodes=[node])
    slurm.until(lambda: slurm.job(waiting)["state_reason"] == "Resources", "the reason is known")
    assert value(slurm.job(waiting)["start_time"]) != value(slurm.job(waiting)["submit_time"])


def test_a_freed_node_goes_to_the_highest_priority(slurm: Desk) -> None:
    """Of two that wait for one node, the more urgent gets it, though it came later."""
    (node,) = slurm.idle("plain")
    whole = {"required_nodes": [node], **WHOLE_NODE}
    victim = slurm.running(**whole)
    early = slurm.pending(priority=number(10), **whole)
    urgent = slurm.pending(priority=number(20), **whole)
    slurm.delete(victim)
    slurm.started(urgent)
    assert slurm.state(early) == {"PENDING"}


def test_single_gpu_jobs_fill_a_node_first(slurm: Desk) -> None:
    """Four jobs with one GPU each pack by themselves."""
    one, two = slurm.idle("gpu", 2)
    others = [name for name in slurm.machines("gpu") if name not in (one, two)]
    excluded = [*others, *slurm.machines("v100"), *slurm.machines("a100")]
    jobs = [slurm.pending(partition="gpu", tres_per_node="gres/gpu:1", excluded_nodes=excluded) for _ in range(4)]
    found = list(itertools.chain.from_iterable(names(slurm, slurm.started(job_id)) for job_id in jobs))
    assert len(set(found)) == 1
