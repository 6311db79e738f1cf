"""How ports.Slurm connects to its server: tokens that change, versions that are served, sockets, dead addresses."""

import pathlib

import pytest
from slurm_desk import NEWEST, VERSIONS, Desk
from slurm_port import Port, connect

from slurm_bridge import errors
from slurm_bridge.model.job import Done, Refusal, Refused
from slurm_bridge.model.names import JobId

#: The discard service: nothing listens there on loopback.
NOBODY = "http://127.0.0.1:9"


def refused(port: Port) -> bool:
    """A read gets no further than the token."""
    try:
        port.client.states([JobId(1)])
    except errors.NotAuthenticated:
        return True
    return False


def test_the_newest_version_is_chosen(port: Port) -> None:
    """Of those that both sides speak."""
    assert port.client.version == NEWEST


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_may_be_asked_for(slurm: Desk, token_file: pathlib.Path, version: str) -> None:
    """The real slurmrestd serves all three."""
    with connect(slurm.servers.url, token_file, (version,)) as client:
        assert client.version == version
        assert client.ping().responding


def test_a_token_may_have_the_prefix_of_scontrol(slurm: Desk, token_file: pathlib.Path) -> None:
    """`SLURM_JWT=…` as `scontrol token` prints it."""
    token_file.write_text(f"SLURM_JWT={slurm.servers.operator_token}\n")
    with connect(slurm.servers.url, token_file) as client:
        assert client.ping().responding


def test_a_new_token_is_read_when_the_file_changes(port: Port, token_file: pathlib.Path) -> None:
    """A read works before, fails within a second or so, and works again at once: a refused token is looked up anew."""
    port.client.states([JobId(1)])
    token_file.write_text("nonsense")
    port.desk.until(lambda: refused(port), "the new token is used", 3)
    token_file.write_text(port.desk.servers.operator_token)
    port.client.states([JobId(1)])


def test_an_order_with_a_wrong_token_is_forbidden(port: Port, token_file: pathlib.Path) -> None:
    """FORBIDDEN for every order, and nothing happens."""
    job_id = port.held()
    token_file.write_text("nonsense")
    port.desk.until(lambda: refused(port), "the wrong token is used", 3)
    owner = port.owner()
    outcomes = [
        port.client.submit(port.request(owner=owner)),
        port.client.update(job_id, port.request()),
        port.client.note(job_id, owner),
        port.client.cancel(job_id),
    ]
    assert all(isinstance(outcome, Refused) and outcome.why is Refusal.FORBIDDEN for outcome in outcomes)
    token_file.write_text(port.desk.servers.operator_token)
    assert not port.client.find(owner)
    assert isinstance(port.client.cancel(job_id), Done)


def test_the_token_is_nowhere_to_be_read(port: Port, token_file: pathlib.Path) -> None:
    """Not in the error of a wrong one, not in the client."""
    token_file.write_text("a-very-secret-token")
    with pytest.raises(errors.NotAuthenticated) as caught:
        port.client.states()
    assert "a-very-secret-token" not in f"{caught.value!r} {port.client!r} {vars(port.client)}"


def test_the_user_name_may_be_sent(slurm: Desk, token_file: pathlib.Path) -> None:
    """The token's own."""
    with connect(slurm.servers.url, token_file, user_name="slurm") as client:
        client.states([JobId(1)])


def test_no_server_listens(token_file: pathlib.Path) -> None:
    """Reads raise Unavailable; an order is refused, because nothing was sent."""
    with connect(NOBODY, token_file, read_tries=1) as client:
        with pytest.raises(errors.Unavailable):
            client.states()
        outcome = client.cancel(JobId(1))
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.BUSY


def test_a_unix_socket_serves_as_well(slurm: Desk, token_file: pathlib.Path) -> None:
    """The same answers, without a port."""
    with connect(slurm.servers.socket_url, token_file) as client:
        port = Port(client=client, desk=slurm)
        job_id = port.held()
        assert client.job(job_id) is not None
