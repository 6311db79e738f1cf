"""Switches are preferred, blocks are required."""

from slurm_desk import Desk, number

from slurm_bridge.model import hostlist


def blocks(desk: Desk) -> tuple[str, str, str]:
    """Two nodes of one block, and one of another."""
    nodes = desk.nodes()
    one, two, *_ = desk.machines("block1")
    (other, *_) = [name for name in desk.machines("a100") if "block1" not in nodes[name]["features"]]
    return one, two, other


def test_nodes_of_one_block_are_accepted(each: Desk) -> None:
    """In a partition with blocks."""
    one, two, _ = blocks(each)
    assert each.submit(partition="blocks", nodes="2", tasks=2, required_nodes=[one, two]).verdict == (200, [])


def test_nodes_of_two_blocks_are_refused(each: Desk) -> None:
    """There 422 with 2014, though the same nodes are accepted below switches."""
    one, _, other = blocks(each)
    wanted = {"nodes": "2", "tasks": 2, "required_nodes": [one, other]}
    assert each.submit(partition="blocks", **wanted).verdict == (422, [2014])
    assert each.submit(partition="debug", **wanted).verdict == (200, [])


def test_a_segment_that_does_not_divide_is_refused(each: Desk) -> None:
    """Five nodes in segments of two: 422 with 2178."""
    assert each.submit(partition="blocks", nodes="5", tasks=5, segment_size=2).verdict == (422, [2178])


def test_one_switch_is_kept_where_it_can_be(slurm: Desk) -> None:
    """Three nodes below one switch."""
    job_id = slurm.running(nodes="3", tasks=3, required_switches=1)
    nodes = slurm.nodes()
    found = hostlist.expand(slurm.job(job_id)["nodes"])
    racks = {feature for name in found for feature in nodes[name]["features"] if feature.startswith("rack")}
    assert len(racks) == 1


def test_one_switch_is_given_up_after_a_while(slurm: Desk) -> None:
    """More nodes than any switch has: the job starts all the same, when `wait_for_switch` seconds are over."""
    job_id = slurm.pending(nodes="6", tasks=6, required_switches=1, wait_for_switch=1)
    slurm.servers.pass_time(2)
    assert slurm.started(job_id)


def test_the_wait_is_a_bare_number(each: Desk) -> None:
    """The object form is answered 200 and creates nothing."""
    answer = each.submit(nodes="2", tasks=2, required_switches=1, wait_for_switch=number(5))
    assert answer.verdict == (200, [])
    assert not answer.job_id
