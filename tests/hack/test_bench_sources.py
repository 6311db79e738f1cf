"""What the benchmark reads: logs of Slurm, numbers of servers, the kernel's files."""

import pathlib

import pytest
from clusterbench import allocations, processes, samples
from clusterbench.workload import Load

LOG = """\
[2026-11-21T14:49:54.104] sched: Allocate JobId=1001 NodeList=ext0016 #CPUs=1 Partition=debug
[2026-11-21T14:49:54.500] sched/backfill: _start_job: Started JobId=1002 in debug on ext0017
[2026-11-21T14:49:54.501] _slurm_rpc_submit_batch_job: JobId=1003 InitPrio=1 usec=310
[2026-11-21T14:49:55.000] sched: _slurm_rpc_allocate_resources JobId=1004 NodeList=ext0001 usec=1090
"""

PAGE = """\
# HELP calls_total How many.
# TYPE calls_total counter
calls_total{verb="POST",resource="pods",subresource="",code="201"} 5
calls_total{verb="POST",resource="pods",subresource="",code="409"} 1
calls_total{verb="POST",resource="pods",subresource="binding",code="201"} 7
calls_total_more{verb="POST"} 100
other_total 3
plain_total 2.5e+01 1700000000000
"""


def test_both_schedulers_of_slurm_start_jobs() -> None:
    """The main loop and backfill say so in different words; nothing else is a start."""
    starts = allocations.parse(LOG.splitlines())
    assert {job: start.node for job, start in starts.items()} == {1001: "ext0016", 1002: "ext0017"}


def test_starts_are_known_to_the_millisecond() -> None:
    """That is why the log is read: Slurm's answers have whole seconds."""
    starts = allocations.parse(LOG.splitlines())
    assert starts[1002].when - starts[1001].when == pytest.approx(0.396, abs=1e-6)


def test_only_what_the_log_says_from_now_on_counts(tmp_path: pathlib.Path) -> None:
    """Job ids come again when a cluster starts anew."""
    file = tmp_path / "slurmctld.log"
    first, *rest = LOG.splitlines(keepends=True)
    file.write_text(first)
    log = allocations.Log(file)
    with file.open("a") as more:
        more.writelines(rest)
    assert list(log.starts()) == [1002]


def test_samples_are_added_up_by_label() -> None:
    """Answers of all codes are calls; other families, longer names among them, are none."""
    found = samples.parse(PAGE, ["calls_total"])
    assert samples.summed(found, ["verb", "resource", "subresource"]) == {"POST pods": 6, "POST pods binding": 7}


def test_a_sample_may_have_no_labels_and_a_time() -> None:
    """Both are allowed by the format."""
    assert samples.summed(samples.parse(PAGE, ["plain_total"]), ["verb"]) == {"": 25.0}


def test_growth_is_what_was_added() -> None:
    """New counters count whole, those that stand still are left out."""
    assert samples.growth({"a": 1, "b": 2}, {"a": 4, "b": 2, "c": 5}) == {"a": 3, "c": 5}


def test_cpu_is_read_behind_the_name() -> None:
    """A name may hold spaces and parentheses; fields are counted after its last one."""
    line = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 100 0 0"
    assert processes.cpu_of_stat(line) * 100 == pytest.approx(300 * 100 / processes._TICKS)


def test_a_machine_is_busy_when_it_is_not_idle() -> None:
    """Waiting for a disk is idle; interrupts and what a hypervisor took are not. Guests are in user time already."""
    text = "cpu  100 10 50 1000 500 5 5 30 70 7\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
    assert processes.busy_of_stat(text) * processes._TICKS == pytest.approx(200)


def test_memory_is_told_in_mebibytes() -> None:
    """Now and at most."""
    text = "Name:\tslurm-bridge\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n"
    assert processes.memory_of_status(text) == {"now": 100.0, "most": 200.0}


def test_a_load_travels_to_another_process() -> None:
    """As one argument, whole."""
    load = Load(namespace="n", scheduler="s", pods=2, partition="closed")
    assert Load.of_argument(*load.arguments()) == load
    assert load.names() == ["pod-0", "pod-1"]


def test_measured_pods_do_not_end_by_themselves() -> None:
    """KWOK would end them while others are still measured."""
    load = Load(namespace="n", scheduler="s", pods=1)
    assert b'"kwok.local/outcome": "run"' in load.manifest("pod-0")
