"""What an amount of memory is counted for, and what a job without one takes."""

from slurm_desk import Desk, number, value


def test_memory_per_node_does_not_grow_with_tasks(slurm: Desk) -> None:
    """Four tasks on one node take the amount once."""
    job_id = slurm.running(tasks=4, memory_per_node=number(300), nodes="1")
    assert [node["mem_alloc"] for node in slurm.resources(job_id).values()] == [300]


def test_memory_per_node_is_taken_on_every_node(slurm: Desk) -> None:
    """Two nodes take it twice."""
    job_id = slurm.running(tasks=2, nodes="2", memory_per_node=number(300))
    assert [node["mem_alloc"] for node in slurm.resources(job_id).values()] == [300, 300]


def test_memory_per_cpu_grows_with_tasks_and_cpus(slurm: Desk) -> None:
    """Four tasks of two CPUs take it eight times."""
    job_id = slurm.running(
        tasks=4, cpus_per_task=2, nodes="1", memory_per_node=..., memory_per_cpu=number(50), constraints="plain"
    )
    assert [node["mem_alloc"] for node in slurm.resources(job_id).values()] == [400]


def test_memory_per_cpu_doubles_with_two_threads_per_core(slurm: Desk) -> None:
    """One task of one CPU gets a whole core there: two CPUs and twice the memory."""
    job_id = slurm.running(partition="smt", memory_per_node=..., memory_per_cpu=number(500))
    assert value(slurm.job(job_id)["cpus"]) == 2
    assert [node["mem_alloc"] for node in slurm.resources(job_id).values()] == [1000]


def test_memory_per_node_does_not_double_with_threads(slurm: Desk) -> None:
    """Three tasks take two cores, and the memory that was asked for."""
    job_id = slurm.running(partition="smt", tasks=3, memory_per_node=number(300))
    assert value(slurm.job(job_id)["cpus"]) == 4
    assert [node["mem_alloc"] for node in slurm.resources(job_id).values()] == [300]


def test_memory_per_gpu_grows_with_gpus(slurm: Desk) -> None:
    """`memory_per_tres` counts per GPU."""
    job_id = slurm.running(
        partition="gpu",
        constraints="gpu",
        tres_per_node="gres/gpu:2",
        memory_per_node=...,
        memory_per_tres="gres/gpu:700",
    )
    assert [node["mem_alloc"] for node in slurm.resources(job_id).values()] == [1400]


def test_without_memory_the_job_takes_the_whole_node(slurm: Desk) -> None:
    """Leaving memory out takes all memory of the node, though only one CPU."""
    job_id = slurm.running(memory_per_node=..., constraints="plain")
    ((name, node),) = slurm.resources(job_id).items()
    assert node["mem_alloc"] == slurm.node(name)["real_memory"]
    assert slurm.cpus(job_id) == {name: 1}
