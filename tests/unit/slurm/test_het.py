"""Several rows that are one job."""

import pytest

from slurm_bridge.model.job import Done, Phase, Refusal
from slurm_bridge.slurm import answers, het, shapes
from tests.unit.slurm.samples import owner, problem, request


def row(job_id: int, leader: int = 0, offset: int = 0, words: str = "RUNNING", **fields) -> shapes.JobRow:
    """One job, or one component."""
    known = {"job_state": [words], "het_job_id": leader, "het_job_offset": offset}
    return shapes.JobRow(job_id=job_id, **(known | fields))


def family(*words: str, ids: str = "7,900", **fields) -> list[shapes.JobRow]:
    """Leader 900 and component 7, as a restarted slurmctld lists them: by id."""
    first, second = words or ("RUNNING", "RUNNING")
    return [row(7, 900, 1, second, het_job_id_set=ids), row(900, 900, 0, first, het_job_id_set=ids, **fields)]


@pytest.mark.parametrize(
    ("release", "served"),
    [
        ("26.05.3", True),
        ("26.05.5", True),
        ("26.11.0", True),
        ("26.05.10", True),
        ("26.05.3-rc1", True),
        ("26.05.2", False),
        ("25.11.9", False),
        ("", False),
        ("unknown", False),
    ],
)
def test_a_release_takes_components_or_not(release, served):
    """Numbers are compared, not texts; what cannot be read does not."""
    assert het.served_by(release) is served


def test_the_leader_comes_first_whatever_the_order():
    """By offset, not by id."""
    assert [one.job_id for one in het.parts(900, family())] == [900, 7]
    assert het.job(900, family()).job_id == 900


@pytest.mark.parametrize(
    ("words", "torn"),
    [
        (("RUNNING", "RUNNING"), False),
        (("RUNNING", "CANCELLED"), True),
        (("TIMEOUT", "RUNNING"), True),
        (("PENDING", "CANCELLED"), True),
        (("CANCELLED", "CANCELLED"), False),
    ],
)
def test_one_that_ended_alone_tears_the_whole(words, torn):
    """Be it the leader; when all have ended nothing is torn any more."""
    assert het.job(900, family(*words)).torn is torn


def test_one_that_is_forgotten_tears_the_whole():
    """Its id stays in the set."""
    assert het.job(900, family()[1:]).torn
    assert not het.job(900, family("CANCELLED", "CANCELLED")[1:]).torn
    assert het.job(900, [row(900, 900, het_job_id_set="901-903,7")]).torn


@pytest.mark.parametrize("ids", ["", "what?", "7-x", "900"])
def test_a_set_that_nobody_understands_tears_nothing(ids):
    """The rows alone say it then."""
    assert not het.job(900, family(ids=ids)).torn


def test_lists_have_leaders_and_jobs_of_their_own():
    """A component is only there when its leader is not."""
    rows = [row(3), *family(), row(9, 8, 1), row(10, 8, 2, "CANCELLED")]
    assert [(one.job_id, one.torn) for one in het.jobs(rows, [])] == [(3, False), (900, False), (9, True), (10, False)]


@pytest.mark.parametrize(
    ("reasons", "shown"),
    [
        (("Resources", "PartitionTimeLimit"), "PartitionTimeLimit"),
        (("PartitionDown", "Resources"), "PartitionDown"),
        (("Priority", "None"), "Priority"),
        (("None", "None"), ""),
    ],
)
def test_the_leader_speaks_for_whoever_has_a_reason(reasons, shown):
    """The others only wait with it."""
    rows = [row(5, 5, 0, "PENDING", state_reason=reasons[0]), row(6, 5, 1, "PENDING", state_reason=reasons[1])]
    assert het.job(5, rows).reason == shown


def test_one_that_is_held_holds_all():
    """One that has ended does not."""
    rows = [row(5, 5, 0, "PENDING"), row(6, 5, 1, "PENDING", hold=True)]
    assert het.job(5, rows).held
    assert not het.job(5, [rows[0], row(6, 5, 1, "CANCELLED", hold=True)]).held


def test_states_put_the_leader_first():
    """Offsets follow the ids after it."""
    rows = [shapes.StateRow(job_id=f"{job_id}+{(job_id - 900) % 2**32}", state=[word]) for job_id, word in ROWS]
    found = answers.states(rows, components=False)
    assert list(found) == [900]
    assert [one.state.phase for one in found[900].components] == [Phase.RUNNING, Phase.ENDED, Phase.PENDING]


ROWS = ((8, "PENDING"), (7, "CANCELLED"), (900, "RUNNING"))


def test_states_of_all_keep_what_has_lost_its_leader():
    """Under its own id; its leader has no state."""
    rows = [shapes.StateRow(job_id="9+1", state=["RUNNING"])]
    assert list(answers.states(rows, components=False)) == [9]


def body(*rows: shapes.JobRow) -> dict[str, object]:
    """An answer with these."""
    return {"jobs": [{name: getattr(one, name) for name in NAMES if getattr(one, name) is not None} for one in rows]}


NAMES = ("job_id", "job_state", "het_job_id", "het_job_offset", "het_job_id_set")


def test_a_component_alone_is_torn_when_its_leader_is_forgotten(make, slurm):
    """One more look tells."""
    slurm.says("GET", "/job/7", body(family()[0]))
    slurm.says("GET", "/job/900", body(*family()))
    assert not make().job(7).torn
    slurm.says("GET", "/job/8", body(row(8, 901, 1)))
    slurm.says("GET", "/job/901", {"jobs": [], "errors": [problem(2017)]}, 404)
    assert make().job(8).torn


def test_components_of_an_unknown_job_are_none(make, slurm):
    """As the job itself."""
    slurm.says("GET", "/job/9", {"jobs": [], "errors": [problem(2017)]}, 404)
    assert list(make().components(9)) == []


def test_all_components_say_whose_they_are(make, slurm):
    """The leader's owner counts, whatever the component was made with."""
    slurm.says("POST", "/job/submit", {"job_id": 5})
    make().submit(request(owner=owner("first"), components=(request(owner=owner("second")),)))
    (sent,) = slurm.asked("POST", "/job/submit")
    assert sent.count(b"first") == 2
    assert b"second" not in sent


def test_a_server_that_refuses_components_is_not_asked_again(make, slurm):
    """A controller older than slurmrestd says so by its error number only."""
    ping = {"pings": [{"responding": True}], "meta": {"slurm": {"release": "26.05.5"}}}
    slurm.says("GET", "/ping/", ping)
    slurm.says("POST", "/job/submit", {"errors": [problem(2189)]}, 500)
    client = make()
    assert client.heterogeneous()
    assert client.submit(request()).why is Refusal.INVALID
    assert client.heterogeneous()
    assert client.submit(request(components=(request(),))).why is Refusal.INVALID
    assert not client.heterogeneous()


def test_a_heterogeneous_job_is_never_updated(make, slurm):
    """Nothing is sent."""
    outcome = make().update(9, request(components=(request(),)))
    assert outcome.why is Refusal.INVALID
    assert "heterogeneous" in outcome.message
    assert len(slurm.calls) == 0


def test_a_nested_component_is_not_sent(make, slurm):
    """One level is all there is."""
    nested = request(components=(request(components=(request(),)),))
    assert make().submit(nested).why is Refusal.INVALID
    assert len(slurm.calls) == 0
    slurm.says("POST", "/job/submit", {"job_id": 5})
    assert make().submit(request(components=(request(),))) == Done(job_id=5)
