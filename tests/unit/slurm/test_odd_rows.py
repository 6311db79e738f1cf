"""Rows of slurmrestd's lists that cannot be read, and bytes that are no UTF-8."""

import contextlib
import json
import math
from collections.abc import Iterator

import pytest
from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import NO_JOB, JobId
from slurm_bridge.runtime.oddities import Oddities
from slurm_bridge.sim import wire
from slurm_bridge.slurm import answers, rows, shapes
from tests.unit.slurm.samples import MakeClient, Script

LATIN = b'{"job_id": 7, "name": "caf\xe9", "job_state": ["PENDING"]}'
GOOD = b'{"job_id": 8, "name": "good", "job_state": ["RUNNING"], "nodes": "n1"}'
#: Ways in which one row of a list makes no sense.
ODD = [
    b'{"job_id": 7, "name": [1]}',
    b'{"job_id": 7, "priority": {"set": true, "number": []}}',
    b'{"job_id": 7, "x": ' + b"[" * 400 + b"]" * 400 + b', "name": 7}',
    b'{"job_id": 7, "memory_per_tres": "gpu:' + b"9" * 5000 + b'"}',
]


def listed(*jobs: bytes) -> bytes:
    """A list of jobs as slurmrestd writes it."""
    return b'{"jobs": [' + b", ".join(jobs) + b'], "errors": [], "warnings": []}'


def say(slurm: Script, body: bytes) -> None:
    """Whatever is asked."""
    for path in ("/jobs/", "/job/5", "/job/7", "/resources/7"):
        slurm.forgets(path)
        slurm.says("GET", path, body)


@contextlib.contextmanager
def logged(lines: list[str]) -> Iterator[None]:
    """What the log says meanwhile."""
    sink = logger.add(lines.append, format="{message}", level="WARNING")
    try:
        yield
    finally:
        logger.remove(sink)


def test_a_name_that_is_no_utf8_is_read_with_replaced_bytes(make: MakeClient, slurm: Script) -> None:
    """The row counts like any other."""
    say(slurm, listed(LATIN, GOOD))
    assert {view.job_id: view.name for view in make().jobs()} == {7: "caf\ufffd", 8: "good"}


@pytest.mark.security("input")
def test_a_job_name_of_any_slurm_user_never_hides_the_other_jobs(make: MakeClient, slurm: Script) -> None:
    """A Slurm job that cannot be read, such as one with a name that is not UTF-8, hides no other job."""
    for odd in ODD:
        say(slurm, listed(LATIN.replace(b"7", b"6"), odd, GOOD))
        views = {view.job_id: view for view in make().jobs()}
        assert (views[JobId(8)].nodes, views[JobId(6)].readable, views[JobId(7)].readable) == (("n1",), True, False)


@pytest.mark.parametrize("odd", ODD)
def test_a_single_job_that_cannot_be_read_is_unknown_and_not_gone(make: MakeClient, slurm: Script, odd: bytes) -> None:
    """None would say that there is no such job."""
    say(slurm, listed(odd))
    with pytest.raises(errors.Unreadable):
        make().job(JobId(7))


def test_a_component_that_cannot_be_read_makes_its_job_unreadable(make: MakeClient, slurm: Script) -> None:
    """Without it the job would look torn, and its pods would be ended."""
    leader = b'{"job_id": 5, "het_job_id": 5, "het_job_id_set": "5-6", "job_state": ["RUNNING"]}'
    lost = b'{"job_id": 6, "het_job_id": 5, "het_job_offset": 1, "name": {}}'
    say(slurm, listed(leader, lost, GOOD))
    views = {view.job_id: view for view in make().jobs()}
    assert (views[JobId(5)].readable, views[JobId(5)].torn) == (False, False)
    say(slurm, listed(leader, lost))
    with pytest.raises(errors.Unreadable):
        make().job(JobId(5))


def test_a_row_without_a_readable_id_may_be_any_job(make: MakeClient, slurm: Script) -> None:
    """It stands for job 0, so that nobody concludes that a job is not in the list."""
    say(slurm, listed(GOOD, b'{"job_id": "seven"}'))
    assert {view.job_id for view in make().jobs() if not view.readable} == {NO_JOB}


def test_a_list_that_is_none_is_no_answer(make: MakeClient, slurm: Script) -> None:
    """Only rows are forgiven."""
    say(slurm, b'{"jobs": 7}')
    with pytest.raises(errors.BadAnswer):
        make(read_tries=1).jobs()


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        (
            shapes.Nodes,
            b'{"nodes": [{"name": "n1", "reason": "caf\xe9"}, {"name": "n2", "cpus": "x"}, {"name": "n3"}]}',
        ),
        (shapes.Partitions, b'{"partitions": [{"name": "a\xe9"}, {"name": "n2", "flags": 3}, {"name": "n3"}]}'),
        (shapes.Reservations, b'{"reservations": [{"name": "\xff"}, {"name": []}, {"name": "n3"}]}'),
        (shapes.States, b'{"jobs": [{"job_id": "1\xe9"}, {"job_id": {}}, {"job_id": 3}]}'),
    ],
)
def test_every_list_costs_only_the_row(shape: type[shapes.Envelope], body: bytes) -> None:
    """Nodes, partitions, reservations and states are read like jobs."""
    found = rows.decode(body, shape)
    assert found is not None
    assert (len(getattr(found[0], shapes.LISTS[shape].name)), len(found[1])) == (2, 1)


def test_half_an_allocation_is_none(make: MakeClient, slurm: Script) -> None:
    """A pod must not be bound by what is left of it."""
    say(slurm, b'{"nodes": [{"node": "n1", "core_bitmap": "0xF"}, {"node": 7}]}')
    with pytest.raises(errors.BadAnswer):
        make(read_tries=1).allocation(JobId(7))


@pytest.mark.parametrize("bitmap", ["0xZZ", "-1", "0x" + "F" * 5000, "", "caf\ufffd"])
def test_a_bitmap_that_is_no_number_is_an_error_of_that_job(make: MakeClient, slurm: Script, bitmap: str) -> None:
    """Nothing but a typed error comes out of it."""
    if not bitmap:
        assert answers.allocation(JobId(7), [shapes.ResourceRow(node="n1", core_bitmap="")], {}) is not None
        return
    say(slurm, json.dumps({"nodes": [{"node": "n1", "core_bitmap": bitmap}]}).encode())
    client = make()
    client._threads = {"n1": 1}
    with pytest.raises(errors.Unreadable):
        client.allocation(JobId(7))


@pytest.mark.security("input")
@pytest.mark.parametrize("text", ["9" * 4301, "9" * 4301 + "+1", "1+" + "9" * 4301, "\u0663", "7_1", "", "-1"])
def test_ids_of_thousands_of_digits_are_nobodys(text: str) -> None:
    """A job id of thousands of digits in Slurm's answer never ends a thread of the daemon."""
    found = answers.states([shapes.StateRow(job_id=text), shapes.StateRow(job_id=8, state="RUNNING")])
    assert {job_id: one.phase for job_id, one in found.items()} == {8: Phase.RUNNING}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, shapes.Number(set=True, number=math.inf)])
def test_a_number_without_end_is_none(value: shapes.MaybeNumber) -> None:
    """`int` would raise."""
    assert shapes.number(value) is None


@pytest.mark.parametrize("text", ["n[1-", "n[1-3]]", "caf\ufffd", "n1 n2", "n[1-999999999]", "n\x1b[2J", ",,"])
def test_a_text_that_is_no_list_of_nodes_is_unknown(text: str) -> None:
    """Neither empty, nor a node that the job would not have left."""
    assert answers.hosts(text) is None


def test_an_unreadable_row_costs_a_count_each_time_and_a_line_once_in_a_while() -> None:
    """A job that stays for weeks does not fill the log."""
    time = [0.0]
    counted: list[tuple[str, str]] = []
    lines: list[str] = []
    oddities = Oddities(lambda: time[0])
    oddities.counted_by(lambda server, kind: counted.append((server, kind)))
    with logged(lines):
        for second in range(0, 7200, 60):
            time[0] = float(second)
            oddities.met("Slurm", "job", "7", "no UTF-8")
    assert (len(counted), len(lines)) == (120, 2)


def test_a_thousand_unreadable_things_do_not_flood_the_log() -> None:
    """Twenty lines in a minute say enough."""
    lines: list[str] = []
    oddities = Oddities(lambda: 0.0)
    with logged(lines):
        for number in range(1000):
            oddities.met("Slurm", "job", str(number), "no UTF-8")
    assert len(lines) == 20


@pytest.mark.security("input")
@pytest.mark.parametrize(("header", "seconds"), [("86400", 120.0), ("9" * 400, 120.0), ("30", 30.0), ("\u0663", None)])
def test_retry_after_is_bounded(make: MakeClient, slurm: Script, header: str, seconds: float | None) -> None:
    """A server or proxy that answers with a Retry-After of a day is asked again within two minutes."""
    slurm.forgets("/jobs/")
    slurm.says("GET", "/jobs/", wire.Response(status=503, body=b"later", headers={"retry-after": header}))
    with pytest.raises(errors.Unavailable) as raised:
        make(read_tries=1).jobs()
    assert raised.value.retry_after == seconds


def test_equal_rows_that_cannot_be_read_are_named_once() -> None:
    """A list of tens of thousands of them must not hold up the thread that reads it."""
    found = rows.decode(listed(*[b"0"] * 3, b'{"job_id": 7, "name": [1]}', GOOD, b"0"), shapes.Jobs)
    assert found is not None
    kept, odd = found
    assert [row.job_id for row in kept.jobs] == [8]
    assert [one.name for one in odd] == ["", "7"]
