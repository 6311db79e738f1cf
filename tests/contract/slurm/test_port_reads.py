"""The reads of ports.Slurm: states, job, jobs, allocation, find, nodes, partitions, ping."""

from slurm_desk import NEVER_USED, Desk
from slurm_port import Port

from slurm_bridge.model.job import Gres, Memory, MemoryPer, Phase
from slurm_bridge.model.names import JobId

UNKNOWN = JobId(NEVER_USED)
GPU = Gres(name="gpu", count=2)


def phase(port: Port, job_id: JobId) -> Phase:
    """Where a job is."""
    return port.client.states([job_id])[job_id].phase


def test_states_follow_a_job(port: Port) -> None:
    """Pending, running, ended."""
    job_id = port.held()
    assert phase(port, job_id) is Phase.PENDING
    port.desk.update(job_id, hold=False)
    port.desk.started(job_id)
    assert phase(port, job_id) is Phase.RUNNING
    port.client.cancel(job_id)
    assert phase(port, job_id) is Phase.ENDED


def test_states_of_some_are_only_those(each_port: Port) -> None:
    """Unknown ids are left out, and so are all other jobs."""
    one, two, _ = each_port.held(), each_port.held(), each_port.held()
    assert set(each_port.client.states([two, UNKNOWN, one])) == {one, two}
    assert each_port.client.states([UNKNOWN]) == {}


def test_states_of_no_ids_are_empty(each_port: Port) -> None:
    """No ids are not all ids."""
    each_port.held()
    assert each_port.client.states([]) == {}


def test_states_of_all(each_port: Port) -> None:
    """Without ids, the jobs of all users."""
    one, two = each_port.held(), each_port.held()
    assert {one, two} <= set(each_port.client.states())


def test_states_of_thousands_are_asked_in_pieces(port: Port) -> None:
    """More ids than fit into one address."""
    job_id = port.held()
    many = [job_id, *(JobId(number) for number in range(NEVER_USED, NEVER_USED + 3000))]
    assert set(port.client.states(many)) == {job_id}


def test_an_unknown_job_is_none(each_port: Port) -> None:
    """No exception."""
    assert each_port.client.job(UNKNOWN) is None


def test_a_job_says_why_it_waits(each_port: Port) -> None:
    """The reason is Slurm's word."""
    found = each_port.client.job(each_port.held())
    assert found is not None
    assert (found.reason, found.held, found.state.phase) == ("JobHeldUser", True, Phase.PENDING)


def test_a_running_job_has_nodes_and_times(port: Port) -> None:
    """They come with the start."""
    job_id = port.running(tasks=2, minimum_nodes=2, maximum_nodes=2)
    found = port.client.job(job_id)
    assert found is not None
    assert len(found.nodes) == 2
    assert found.start_time >= found.submit_time > 0
    assert found.end_time > found.start_time
    assert found.time_limit_minutes == 5


def test_jobs_lists_all_users(each_port: Port) -> None:
    """Ours with their owners, others without."""
    ours, foreign = each_port.held(), each_port.desk.held()
    listed = {job.job_id: job for job in each_port.client.jobs()}
    assert listed[ours].owner is not None
    assert listed[JobId(foreign)].owner is None


def test_the_list_agrees_with_the_single_job(each_port: Port) -> None:
    """Both ways to read a job give the same record."""
    job_id = each_port.held(tasks=3, memory=Memory(mib=7, per=MemoryPer.CPU), comment="same")
    (listed,) = [job for job in each_port.client.jobs() if job.job_id == job_id]
    assert listed == each_port.client.job(job_id)


def test_find_knows_the_workload_in_every_attempt(each_port: Port) -> None:
    """All placeholders of one workload, and no other's."""
    owner = each_port.owner()
    first = each_port.held(owner=owner)
    second = each_port.held(owner=each_port.owner(uid=owner.uid, attempt=1))
    each_port.held()
    assert {job.job_id for job in each_port.client.find(owner)} == {first, second}
    assert each_port.client.find(each_port.owner()) == []


def test_find_sees_ended_jobs(each_port: Port) -> None:
    """As long as Slurm remembers them."""
    owner = each_port.owner()
    job_id = each_port.held(owner=owner)
    each_port.client.cancel(job_id)
    (found,) = each_port.client.find(owner)
    assert found.state.phase is Phase.ENDED


# -- allocation


def test_an_allocation_says_what_is_held_where(each_port: Port) -> None:
    """CPUs, memory and GPUs per node, in every version."""
    job_id = each_port.running(
        partition="gpu", constraints="gpu", tasks=2, cpus_per_task=3, minimum_nodes=2, maximum_nodes=2, gres=(GPU,)
    )
    allocation = each_port.client.allocation(job_id)
    assert allocation is not None
    assert sorted(allocation.nodes) == sorted(each_port.desk.resources(job_id))
    assert [(share.cpus, share.memory_mib) for share in allocation.shares] == [(3, 100), (3, 100)]
    assert [share.gres for share in allocation.shares] == [(GPU,), (GPU,)]


def test_an_allocation_counts_cpus_where_cores_have_two_threads(port: Port) -> None:
    """One task of one CPU holds a whole core: two CPUs."""
    job_id = port.running(partition="smt")
    allocation = port.client.allocation(job_id)
    assert allocation is not None
    assert [share.cpus for share in allocation.shares] == [2]


def test_nothing_is_held_before_the_start_and_after_the_end(each_port: Port) -> None:
    """None while pending, when ended, and when unknown."""
    pending, ended = each_port.held(), each_port.held()
    each_port.client.cancel(ended)
    assert [each_port.client.allocation(job_id) for job_id in (pending, ended, UNKNOWN)] == [None, None, None]


def test_nothing_is_held_after_a_running_job_was_cancelled(port: Port) -> None:
    """None at once."""
    job_id = port.running()
    port.client.cancel(job_id)
    assert port.client.allocation(job_id) is None


# -- nodes, partitions, ping


def test_nodes_have_their_size(each_port: Port) -> None:
    """CPUs, memory, threads, GPUs, features, partitions."""
    nodes = {node.name: node for node in each_port.client.nodes()}
    raw = each_port.desk.nodes()
    assert set(nodes) == set(raw)
    typed = nodes[each_port.desk.machines("v100")[0]]
    assert typed.gres == (Gres(name="gpu", count=8, type="v100"),)
    assert (typed.cpus, typed.memory_mib) == (raw[typed.name]["cpus"], raw[typed.name]["real_memory"])
    assert typed.features[0] == "v100"
    assert {"debug", "gpu"} <= set(typed.partitions)
    assert nodes[each_port.desk.machines("smt")[0]].threads_per_core == 2
    assert nodes[each_port.desk.machines("plain")[0]].gres == ()


def test_a_drained_node_says_why(each_port: Port) -> None:
    """DRAIN among its states, and the reason."""
    (name,) = each_port.desk.idle("mapped")
    each_port.desk.ask("POST", f"node/{name}", {"state": ["DRAIN"], "reason": "contract"})
    (node,) = [node for node in each_port.client.nodes() if node.name == name]
    each_port.desk.ask("POST", f"node/{name}", {"state": ["RESUME"]})
    assert "DRAIN" in node.states
    assert node.reason == "contract"


def test_partitions_have_their_limits(each_port: Port) -> None:
    """Default and maximum time, states, nodes."""
    partitions = {partition.name: partition for partition in each_port.client.partitions()}
    limited, debug = partitions["limited"], partitions["debug"]
    assert (limited.default_minutes, limited.maximum_minutes) == (5, 10)
    assert (debug.default_minutes, debug.maximum_minutes) == (None, None)
    assert partitions["closed"].states == {"DOWN"}
    assert set(partitions["smt"].nodes) == set(each_port.desk.machines("smt"))


def test_an_exclusive_partition_shows_where_the_version_does(each_port: Port) -> None:
    """At least v0.0.45 says so; no version says it of others."""
    partitions = {partition.name: partition for partition in each_port.client.partitions()}
    if each_port.desk.version == "v0.0.45":
        assert partitions["exclusive"].exclusive
    assert not partitions["debug"].exclusive


def test_a_partition_of_root_shows_where_the_version_does(each_port: Port) -> None:
    """From v0.0.45 on; the operator's token is let in, and a plain user is not."""
    desk = each_port.desk
    desk.servers.keep_for_root("batch", only=True)
    try:
        partitions = {partition.name: partition for partition in each_port.client.partitions()}
        refused = desk.plain_user.submit(partition="batch")
        job_id = desk.held(partition="batch")
    finally:
        desk.servers.keep_for_root("batch", only=False)
    assert partitions["batch"].root_only == (desk.version == "v0.0.45")
    assert not partitions["debug"].root_only
    assert refused.verdict == (422, [2002])
    assert desk.job(job_id)["partition"] == "batch"


def test_ping_tells_the_version_of_slurm(each_port: Port) -> None:
    """And that slurmctld answers."""
    ping = each_port.client.ping()
    assert ping.responding
    assert ping.version.count(".") == 2
    assert not ping.problem


def test_ping_looks_inside(slurm: Desk, port: Port, token_file: object) -> None:
    """With a wrong token ping is answered 200 and means no."""
    token_file.write_text("nonsense")  # type: ignore[attr-defined]
    assert not port.client.ping().responding
    assert slurm.get("ping/").status == 200
