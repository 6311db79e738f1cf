"""The truth table of orders: what each answer, and each kind of silence, says about what Slurm did."""

import pytest

from slurm_bridge import errors
from slurm_bridge.model.job import Done, Refusal, Refused, Unknown
from slurm_bridge.slurm import outcomes
from tests.unit.slurm.samples import VERSIONS, answer, problem, recorded

HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (answer({"job_id": 7, "errors": [], "warnings": []}), Done(job_id=7)),
        (answer({"job_id": {"set": True, "number": 7}, "errors": None}), Done(job_id=7)),
        (answer({"job_id": 7, "warnings": [{"description": "held"}]}), Done(job_id=7, warnings=("held",))),
    ],
)
def test_a_job_without_errors_is_done(given, expected):
    """Success is 2xx, a positive id, and no error."""
    assert outcomes.of_submit(given) == expected


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (answer({"errors": [problem(2000)]}, 422), Refusal.INVALID),
        (answer({"errors": [problem(2000)]}, 500), Refusal.INVALID),
        (answer({"errors": [problem(9202)]}, 500), Refusal.INVALID),
        (answer({"errors": [problem(2011)], "job_id": 5}, 422), Refusal.EXISTS),
        (answer({"errors": [problem(2018)]}, 422), Refusal.UNKNOWN_NODE),
        (answer({"errors": [problem(2058)]}, 422), Refusal.OVERLAP),
        (answer({"errors": [problem(2017)]}, 404), Refusal.FORBIDDEN),
        (answer({"errors": [problem(2002)]}, 403), Refusal.FORBIDDEN),
        (answer({"errors": [problem(1007)]}, 511), Refusal.FORBIDDEN),
        *((answer({"errors": [problem(number)]}, 422), Refusal.BUSY) for number in (2007, 2016, 2020, 2055, 2105)),
        (answer({"warnings": [{"description": "not a number"}]}), Refusal.INVALID),
        (answer("<html>no</html>", 403, "text/html"), Refusal.FORBIDDEN),
        (answer("too fast", 429, "text/plain"), Refusal.BUSY),
        (answer("moved", 302, "text/html"), Refusal.BUSY),
        (answer("what?", 400, "text/plain"), Refusal.INVALID),
    ],
)
def test_a_clear_no_is_refused(given, why):
    """The number decides where there is one, whatever the status; without one the status does."""
    outcome = outcomes.of_submit(given)
    assert isinstance(outcome, Refused)
    assert outcome.why is why


@pytest.mark.parametrize(
    "given",
    [
        *(answer({"errors": [problem(number)]}, 500) for number in (-1, 11, 1, 1000, 1800, 1805, 5004, 7000)),
        answer({"errors": [problem(2000), problem(-1)]}, 500),
        answer({"errors": [problem(1)]}, 403),
        answer(HTML, 502, "text/html"),
        answer(HTML, 504, "text/html"),
        answer("busy", 503, "text/plain"),
        answer("Unspecified error", 500, "text/plain"),
        answer('{"job_id": 7, "err', 200),
        answer("", 200),
        answer({"errors": []}),
        answer([], 200),
        answer({"job_id": "seven"}, 200),
    ],
)
def test_anything_doubtful_is_unknown(given):
    """An unknown outcome points to the id that was chosen, if one was."""
    assert isinstance(outcomes.of_submit(given), Unknown)
    assert outcomes.of_submit(given, 41).job_id == 41


def test_a_job_with_errors_exists_and_is_not_trusted():
    """A 500 that names a job has created it without a part of the request."""
    outcome = outcomes.of_submit(answer({"job_id": 7, "errors": [problem(9207, "Unknown flag")]}, 500))
    assert isinstance(outcome, Unknown)
    assert outcome.job_id == 7
    assert "Unknown flag" in outcome.message


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_submits(version):
    """What a real slurmrestd answered in each version."""
    assert isinstance(outcomes.of_submit(recorded(version, "submit")), Done)
    assert outcomes.of_submit(recorded(version, "submit_refused")).code == 2000
    assert outcomes.of_submit(recorded(version, "submit_taken")).why is Refusal.EXISTS
    assert outcomes.of_submit(recorded(version, "submit_created_with_errors")).job_id > 0
    assert outcomes.of_submit(recorded(version, "submit_nothing_created")).why is Refusal.INVALID


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_updates(version):
    """Done, started, over, and a node that nobody knows."""
    assert outcomes.of_update(recorded(version, "update"), 9) == Done(job_id=9)
    assert outcomes.of_update(recorded(version, "update_started"), 9).why is Refusal.STARTED
    assert outcomes.of_update(recorded(version, "update_over"), 9).why is Refusal.OVER
    assert outcomes.of_update(recorded(version, "update_unknown_node"), 9).why is Refusal.UNKNOWN_NODE


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_cancels(version):
    """Silence is success; an ended and an unknown job are named in a 200."""
    assert outcomes.of_cancel(recorded(version, "cancel"), [9]) == {9: Done(job_id=9)}
    many = outcomes.of_cancel(recorded(version, "cancel_many"), [999999, 1])
    assert many[999999].why is Refusal.NO_SUCH_JOB
    assert many[1] == Done(job_id=1)


def test_a_cancel_that_names_its_job_over_is_refused():
    """Slurm repeats the id as text, for a component with its offset."""
    said = {"status": [{"error": {"code": 2021, "message": "done"}, "step_id": "12+0"}], "errors": []}
    assert outcomes.of_cancel(answer(said), [12])[12].why is Refusal.OVER


def test_a_cancel_without_a_controller_is_unknown():
    """Slurmrestd says 403 and error 1 when it reached nobody: that is no refusal."""
    outcome = outcomes.of_cancel(answer({"status": [], "errors": [problem(1)]}, 403), [12])[12]
    assert isinstance(outcome, Unknown)
    assert outcome.job_id == 12


@pytest.mark.parametrize("given", [answer({}), answer("", 200), answer("<html>", 200, "text/html")])
def test_an_empty_success_of_a_cancel_is_unknown(given):
    """Silence is success only where Slurm itself is silent."""
    assert isinstance(outcomes.of_cancel(given, [12])[12], Unknown)


def test_an_update_that_failed_for_one_record_is_not_done():
    """A 200 may carry an error per record."""
    outcome = outcomes.of_update(answer({"results": [{"error_code": 2084, "error": "over"}], "errors": []}), 9)
    assert outcome.why is Refusal.OVER


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        (errors.Unavailable("refused"), Refusal.BUSY),
        (errors.NoCommonVersion("old"), Refusal.BUSY),
        (errors.BadConfiguration("no token"), Refusal.BUSY),
        (errors.NotAuthenticated("who"), Refusal.FORBIDDEN),
        (errors.Unanswered("silence"), None),
        (errors.BadAnswer("half"), None),
    ],
)
def test_an_order_without_an_answer_ends_in_an_outcome(raised, why):
    """Nothing sent is a refusal; anything else is unknown."""
    outcome = outcomes.of_problem(raised, 5)
    if why is None:
        assert outcome == Unknown(message=str(raised), job_id=5)
    else:
        assert outcome == Refused(why=why, code=0, message=str(raised))
