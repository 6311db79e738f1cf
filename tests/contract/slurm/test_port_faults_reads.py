"""Reads, tokens and versions of ports.Slurm over a connection that fails, on the pocket server only."""

import dataclasses
import pathlib

import pytest
from slurm_desk import NEWEST
from slurm_line import HTML, STATES, SUBMIT, Line
from slurm_port import connect

from slurm_bridge import errors
from slurm_bridge.model.job import Done, Refused
from slurm_bridge.model.names import JobId
from slurm_bridge.sim import faults


def test_a_read_is_tried_again(line: Line) -> None:
    """A single failure is not reported."""
    job_id = line.port.held()
    for fault in (faults.Answer(500), faults.Drop(), faults.Reset(), faults.Truncate()):
        line.faults.plan(fault, **STATES)
        assert job_id in line.client.states([job_id])


NO_ANSWERS: dict[str, tuple[faults.Fault, type[errors.TryLater]]] = {
    "bare 500": (faults.Answer(500), errors.TryLater),
    "bare 503": (faults.Answer(503), errors.Unavailable),
    "null for a list": (faults.Answer(200, b'{"jobs": null, "errors": [], "warnings": []}'), errors.BadAnswer),
    "not JSON": (faults.Answer(200, HTML, "text/html"), errors.BadAnswer),
    "truncated": (faults.Truncate(), errors.TryLater),
    "silence": (faults.Hang(), errors.Unanswered),
}


@pytest.mark.parametrize("case", NO_ANSWERS, ids=lambda case: case.replace(" ", "-"))
def test_a_read_that_fails_is_no_empty_answer(line: Line, case: str) -> None:
    """It raises, so that it is not taken for "no jobs"."""
    fault, expected = NO_ANSWERS[case]
    line.faults.plan(fault, times=10, **STATES)
    with pytest.raises(expected):
        line.asking(fault).client.states()


def test_an_answer_has_a_limit(line: Line, tmp_path: pathlib.Path) -> None:
    """A longer answer is not read."""
    line.faults.plan(faults.Garble(b'{"jobs": [' + b" " * 200_000 + b"]}"), times=10, **STATES)
    with (
        connect(line.pocket.url, tmp_path / "token", max_answer_bytes=100_000) as client,
        pytest.raises(errors.BadAnswer),
    ):
        client.states()


def test_a_redirect_is_not_followed(line: Line) -> None:
    """The token would travel with it."""
    elsewhere = (("Location", f"{line.pocket.url}/elsewhere"),)
    line.faults.plan(faults.Answer(307, headers=elsewhere), times=10)
    with pytest.raises(errors.BridgeError):
        line.client.states()
    assert line.faults.count(target="/elsewhere") == 0


# -- tokens and versions


def test_a_refused_token_is_read_again_once(line: Line, tmp_path: pathlib.Path) -> None:
    """The file has a new token: the call is sent once more, also an order, because a refused one did nothing."""
    line.pocket.slurm.tokens.clear()
    line.pocket.slurm.tokens["rotated"] = "slurm"

    def rotate() -> None:
        (tmp_path / "token").write_text("rotated")

    line.faults.plan(faults.Meanwhile(rotate), **SUBMIT)
    assert isinstance(line.client.submit(line.port.request()), Done)
    assert line.faults.count(**SUBMIT) == 2


def test_a_version_that_disappears_is_negotiated_anew(line: Line) -> None:
    """slurmrestd was replaced by one that speaks less: the next call goes on in another version."""
    assert line.client.version == NEWEST
    _serve(line, "v0.0.43", "v0.0.44")
    job_id = line.port.held()
    assert line.client.version == "v0.0.44"
    assert line.client.job(job_id) is not None


def test_no_common_version_is_said(line: Line) -> None:
    """Reads raise it; an order is refused, because it was never sent."""
    _serve(line)
    with pytest.raises(errors.NoCommonVersion, match="serves none of"):
        line.client.states()
    assert isinstance(line.client.cancel(JobId(1)), Refused)


@pytest.mark.parametrize("newest", ["v0.0.40", "v0.0.41", "v0.0.42"])
def test_a_slurm_without_external_jobs_is_named(line: Line, newest: str) -> None:
    """Its release and its newest version are in the error, and what is needed."""
    _serve(line, *(version for version in ("v0.0.40", "v0.0.41", "v0.0.42") if version <= newest))
    world = line.pocket.slurm.world
    world.config = dataclasses.replace(world.config, release="24.11.5")
    with pytest.raises(errors.NoExternalJobs, match=f"Slurm 24.11.5 serves API version {newest}, .* since 25.05"):
        line.client.states()
    assert isinstance(line.client.cancel(JobId(1)), Refused)


def test_a_version_that_the_settings_leave_out_is_named(line: Line, tmp_path: pathlib.Path) -> None:
    """Slurm is new enough, and the settings allow other versions only."""
    _serve(line, "v0.0.42", "v0.0.43")
    with (
        connect(line.pocket.url, tmp_path / "token", ("v0.0.45",)) as client,
        pytest.raises(errors.NoCommonVersion, match=r"serves v0\.0\.43, which slurm\.api_versions \(v0\.0\.45\)"),
    ):
        client.states()


def _serve(line: Line, *versions: str) -> None:
    world = line.pocket.slurm.world
    world.config = dataclasses.replace(world.config, versions=versions)


# -- time


def test_a_cache_saves_calls(line: Line, tmp_path: pathlib.Path) -> None:
    """Nodes, partitions and ping are asked once within the time that they may be stale."""
    with connect(line.pocket.url, tmp_path / "token", cache_ttl=60.0) as client:
        for _ in range(3):
            client.nodes()
            client.partitions()
    assert line.faults.count(target="/nodes/") == 1
    assert line.faults.count(target="/partitions/") == 1


def test_a_reissued_id_is_another_job(line: Line) -> None:
    """After a kill -9 the id of a lost job comes again: its owner tells them apart."""
    request = line.port.request(hold=True)
    lost = line.port.made(request)
    line.pocket.kill()
    line.pocket.start()
    again = line.port.held()
    found = line.client.job(lost)
    assert again == lost
    assert found is not None
    assert found.owner != request.owner
    assert not line.client.find(request.owner)
