"""Orders of ports.Slurm over a connection that fails, on the pocket server only."""

import dataclasses

import pytest
from slurm_line import CANCEL, HTML, SUBMIT, UPDATE, Line

from slurm_bridge.model.job import Phase, Refusal, Refused, Unknown
from slurm_bridge.model.names import JobId
from slurm_bridge.sim import faults

#: The job was made; the answer did not say so.
ACTED = {
    "connection closed": faults.Drop(),
    "connection reset": faults.Reset(acted=True),
    "no answer in time": faults.Hang(acted=True),
    "truncated": faults.Truncate(after=30),
    "a proxy's page as 502": faults.Garble(HTML, "text/html", 502),
    "a proxy's page as 504": faults.Garble(HTML, "text/html", 504),
    "a proxy's page as 200": faults.Garble(HTML, "text/html", 200),
    "an empty object": faults.Garble(b"{}"),
    "an empty body": faults.Garble(b""),
    "half of a JSON": faults.Garble(b'{"job_id": 1'),
    "a list": faults.Garble(b"[]"),
}

#: Nothing was made, and nobody could know.
DID_NOT_ACT = {
    "connection reset": faults.Reset(),
    "no answer in time": faults.Hang(),
    "bare 500": faults.Answer(500),
    "bare 502": faults.Answer(502, HTML, "text/html"),
    "bare 503": faults.Answer(503),
    "bare 504": faults.Answer(504),
}


@pytest.mark.parametrize("fault", ACTED.values(), ids=ACTED)
def test_a_lost_answer_is_unknown_and_the_job_exists(line: Line, fault: faults.Fault) -> None:
    """However the answer is lost: Unknown, and `find` shows the one job."""
    line.faults.plan(fault, **SUBMIT)
    outcome, found = line.submit(line.asking(fault))
    assert isinstance(outcome, Unknown), outcome
    assert len(found) == 1


@pytest.mark.parametrize("fault", DID_NOT_ACT.values(), ids=DID_NOT_ACT)
def test_a_lost_question_is_unknown_too(line: Line, fault: faults.Fault) -> None:
    """It looks the same from here: Unknown, and there is no job."""
    line.faults.plan(fault, **SUBMIT)
    outcome, found = line.submit(line.asking(fault))
    assert isinstance(outcome, Unknown), outcome
    assert not found


@pytest.mark.parametrize("fault", [faults.Drop(), faults.Reset(), faults.Answer(503)], ids=["drop", "reset", "503"])
def test_an_order_is_never_sent_twice(line: Line, fault: faults.Fault) -> None:
    """One POST, one DELETE, whatever happens."""
    job_id = line.port.held()
    line.faults.forget()
    line.faults.plan(fault, **SUBMIT)
    line.faults.plan(fault, **CANCEL)
    line.client.submit(line.port.request())
    line.client.cancel(job_id)
    assert (line.faults.count(**SUBMIT), line.faults.count(**CANCEL)) == (1, 1)


def test_a_chosen_id_tells_where_to_look(line: Line) -> None:
    """An unknown submit of a chosen id names it."""
    line.faults.plan(faults.Drop(), **SUBMIT)
    outcome, found = line.submit(job_id=JobId(123_456))
    assert isinstance(outcome, Unknown)
    assert [outcome.job_id] == [job.job_id for job in found] == [123_456]


def test_a_job_made_with_errors_is_unknown_by_name(line: Line) -> None:
    """500 with an error *and* a job_id: Unknown, with that id to look at first."""
    body = b'{"job_id": 77, "errors": [{"error_number": 9207, "error": "invalid flag"}], "warnings": []}'
    line.faults.plan(faults.Garble(body, status=500), **SUBMIT)
    outcome, _ = line.submit()
    assert isinstance(outcome, Unknown)
    assert outcome.job_id == 77


def test_nothing_made_and_only_warnings_is_refused(line: Line) -> None:
    """200 without job_id and with warnings: Slurm has dropped the request."""
    body = b'{"errors": [], "warnings": [{"description": "Expected integer", "source": "#/job/tasks/"}]}'
    line.faults.plan(faults.Answer(200, body), **SUBMIT)
    outcome, found = line.submit()
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.INVALID
    assert not found


@pytest.mark.parametrize("number", [2007, 2105])
def test_a_full_controller_is_busy(line: Line, number: int) -> None:
    """MaxJobCount is reached, or submissions are disabled: the caller tries again later."""
    body = b'{"errors": [{"error_number": %d, "error": "not now"}], "warnings": []}' % number
    line.faults.plan(faults.Answer(422, body), **SUBMIT)
    outcome, _ = line.submit()
    assert isinstance(outcome, Refused)
    assert (outcome.why, outcome.code) == (Refusal.BUSY, number)


@pytest.mark.parametrize("status", [422, 500])
def test_the_number_counts_and_not_the_status(line: Line, status: int) -> None:
    """Slurm 25.11 says with 500 what 26.05 says with 422."""
    body = b'{"errors": [{"error_number": 2000, "error": "Invalid partition"}], "warnings": []}'
    line.faults.plan(faults.Answer(status, body), **SUBMIT)
    outcome, _ = line.submit()
    assert isinstance(outcome, Refused)
    assert (outcome.why, outcome.code) == (Refusal.INVALID, 2000)


# -- cancel and update


def test_a_cancel_without_an_answer_is_unknown(line: Line) -> None:
    """And names the job, which has ended."""
    job_id = line.port.held()
    line.faults.plan(faults.Drop(), **CANCEL)
    outcome = line.client.cancel(job_id)
    assert isinstance(outcome, Unknown)
    assert outcome.job_id == job_id
    assert line.client.states([job_id])[job_id].phase is Phase.ENDED


def test_many_cancels_without_an_answer_are_unknown(line: Line) -> None:
    """Each of them, though all have ended."""
    job_ids = [line.port.held(), line.port.held()]
    line.faults.plan(faults.Drop(), method="DELETE", target="/jobs/")
    outcomes = line.client.cancel_many(job_ids)
    assert [isinstance(outcomes[job_id], Unknown) for job_id in job_ids] == [True, True]
    assert {seen.phase for seen in line.client.states(job_ids).values()} == {Phase.ENDED}


def test_an_update_without_an_answer_is_unknown(line: Line) -> None:
    """It was applied all the same."""
    request = line.port.request(hold=True)
    job_id = line.port.made(request)
    line.faults.plan(faults.Drop(), **UPDATE)
    outcome = line.client.update(job_id, dataclasses.replace(request, comment="new"))
    assert isinstance(outcome, Unknown)
    found = line.client.job(job_id)
    assert found is not None
    assert found.comment == "new"


def test_an_update_that_cannot_be_read_back_is_unknown(line: Line) -> None:
    """200 alone proves nothing."""
    request = line.port.request(hold=True)
    job_id = line.port.made(request)
    line.faults.plan(faults.Answer(500), method="GET", target=r"/job/\d+", times=10)
    outcome = line.client.update(job_id, dataclasses.replace(request, comment="new"))
    assert isinstance(outcome, Unknown)


def test_an_update_that_changed_nothing_is_unknown(line: Line) -> None:
    """Slurm answers 200 although it ignored a field; reading back shows it."""
    request = line.port.request(hold=True)
    job_id = line.port.made(request)
    line.faults.plan(faults.Answer(200, b'{"results": null, "errors": [], "warnings": []}'), **UPDATE)
    outcome = line.client.update(job_id, dataclasses.replace(request, comment="new"))
    assert isinstance(outcome, Unknown)
    assert "comment" in outcome.message


def test_an_update_that_loses_the_race_is_refused(line: Line) -> None:
    """The job starts just before the update arrives: STARTED, and nothing of it is applied."""
    request = line.port.request(hold=True)
    job_id = line.port.made(request)

    def start() -> None:
        line.pocket.slurm.control.release(job_id)
        line.pocket.slurm.tick()

    line.faults.plan(faults.Meanwhile(start), **UPDATE)
    outcome = line.client.update(job_id, dataclasses.replace(request, comment="new", tasks=4))
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.STARTED
    found = line.client.job(job_id)
    assert found is not None
    assert (found.comment, found.tasks) == ("", 1)
