"""Bytes that are no UTF-8 in the name of a job: slurmrestd passes them on, and everything else stays readable."""

from slurm_desk import Desk
from slurm_port import Port

from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import JobId

LATIN = b"caf\xe9"


def stranger(desk: Desk) -> JobId:
    """A batch job of an ordinary kind, held, with such a name; it is ended with the case."""
    job_id = desk.servers.batch(LATIN)
    desk.made.append(job_id)
    return JobId(job_id)


def test_slurmrestd_passes_on_what_is_no_utf8(each_port: Port) -> None:
    """That is why it has to be replaced."""
    stranger(each_port.desk)
    assert LATIN in each_port.desk.get("jobs/").text.encode(errors="surrogateescape")


def test_a_name_that_is_no_utf8_hides_no_other_job(each_port: Port) -> None:
    """The list of all has both, the name of the one with a replaced byte."""
    ours, theirs = each_port.held(), stranger(each_port.desk)
    names = {view.job_id: view.name for view in each_port.client.jobs()}
    assert names[theirs] == "caf\ufffd"
    assert ours in names


def test_a_job_whose_name_is_no_utf8_is_read_by_its_id(each_port: Port) -> None:
    """Alone, and by its state."""
    theirs = stranger(each_port.desk)
    view = each_port.client.job(theirs)
    assert view is not None
    assert (view.name, view.owner, view.readable) == ("caf\ufffd", None, True)
    assert each_port.client.states([theirs])[theirs].phase is Phase.PENDING
    assert theirs in each_port.client.states()


def test_nodes_and_partitions_are_read_beside_such_a_job(each_port: Port) -> None:
    """They do not speak of it."""
    stranger(each_port.desk)
    assert each_port.client.nodes()
    assert each_port.client.partitions()
    each_port.client.reservations()
