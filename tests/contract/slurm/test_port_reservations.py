"""`reserve`, `unreserve`, `reservations` and `assign` of ports.Slurm."""

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
import slurm_port
from slurm_desk import NEVER_USED
from slurm_port import Port

from slurm_bridge.model.job import Done, JobView, Refusal, Refused
from slurm_bridge.model.names import JobId
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.slurm import dialogue
from slurm_bridge.slurm.client import SlurmClient

USER = "slurm-bridge"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nook:
    """A name and two nodes of this case."""

    client: SlurmClient
    name: str
    nodes: Sequence[str]

    def reserve(self, *nodes: str, seconds: int = 60) -> object:
        """How it ended."""
        return self.client.reserve(self.name, nodes or self.nodes, USER, seconds)

    def found(self) -> Reservation | None:
        """As the port shows it."""
        return next((one for one in self.client.reservations() if one.name == self.name), None)


@pytest.fixture
def nook(port: Port) -> Iterator[Nook]:
    """Nothing of it is left when the case is over."""
    made = Nook(client=port.client, name=f"{port.desk.job_name}-port", nodes=port.desk.idle("mapped", 2))
    yield made
    port.desk.sweep()
    made.client.unreserve(made.name)


def view(port: Port, job_id: JobId) -> JobView:
    """The job as the port shows it."""
    found = port.client.job(job_id)
    assert found is not None
    return found


def why(outcome: object) -> Refusal:
    """The reason of a refusal."""
    assert isinstance(outcome, Refused), outcome
    return outcome.why


def test_nodes_are_reserved_and_given_back(each_port: Port) -> None:
    """In every version; giving back what is not there is done, too."""
    name, nodes = f"{each_port.desk.job_name}-each", each_port.desk.idle("mapped", 2)
    try:
        assert isinstance(each_port.client.reserve(name, nodes, USER, 60), Done)
        (found,) = [one for one in each_port.client.reservations() if one.name == name]
        assert (sorted(found.nodes), found.users) == (sorted(nodes), (USER,))
    finally:
        for _ in range(2):
            assert isinstance(each_port.client.unreserve(name), Done)
    assert name not in {one.name for one in each_port.client.reservations()}


def test_asked_again_it_lasts_longer_and_has_other_nodes(nook: Nook) -> None:
    """There is one all the time."""
    one, two = nook.nodes
    assert isinstance(nook.reserve(one), Done)
    before = nook.found()
    assert isinstance(nook.reserve(two, seconds=600), Done)
    after = nook.found()
    assert before is not None
    assert after is not None
    assert (before.nodes, after.nodes) == ((one,), (two,))
    assert after.end - before.end == pytest.approx(540, abs=15)


def test_what_cannot_be_reserved_is_refused(nook: Nook, port: Port) -> None:
    """Unknown nodes, and nodes of another reservation."""
    assert why(nook.reserve("nowhere")) is Refusal.UNKNOWN_NODE
    port.client.reserve(f"{nook.name}-2", nook.nodes[:1], USER, 60)
    try:
        assert why(nook.reserve()) is Refusal.OVERLAP
    finally:
        port.client.unreserve(f"{nook.name}-2")


def test_without_the_right_it_is_forbidden(
    nook: Nook, port: Port, tmp_path: pathlib.Path, way: dialogue.Connect
) -> None:
    """With the token of a plain user."""
    nook.reserve(nook.nodes[0])
    token = tmp_path / "users"
    token.write_text(port.desk.servers.user_token)
    with slurm_port.connect(port.desk.servers.url, token, by=way) as theirs:
        assert why(theirs.reserve(f"{nook.name}-3", nook.nodes[1:], USER, 60)) is Refusal.FORBIDDEN
        assert why(theirs.unreserve(nook.name)) is Refusal.FORBIDDEN


def test_a_job_is_assigned_and_taken_out(nook: Nook, port: Port) -> None:
    """With its record; one that started keeps its node. A reservation that a job names is busy."""
    node = nook.nodes[0]
    owner = port.owner()
    nook.reserve(node)
    others = port.desk.others("mapped", node)
    job_id = port.held(owner=owner, partition="mapped", excluded_nodes=others, user=USER, group=USER)
    told = msgspec.structs.replace(owner, note="held")
    assert isinstance(port.client.assign(job_id, told, nook.name, None), Done)
    shown = view(port, job_id)
    assert (shown.reservation, shown.owner, shown.held) == (nook.name, told, True)
    assert why(port.client.unreserve(nook.name)) is Refusal.BUSY
    port.desk.update(job_id, hold=False)
    port.desk.started(job_id)
    assert isinstance(port.client.assign(job_id, owner, "", None), Done)
    shown = view(port, job_id)
    assert (shown.reservation, shown.owner, shown.nodes) == ("", owner, (node,))
    assert isinstance(port.client.unreserve(nook.name), Done)


def test_a_job_is_given_a_turn(nook: Nook, port: Port) -> None:
    """The priority is that from then on."""
    whole: dict[str, Any] = {"partition": "mapped", "excluded_nodes": port.desk.others("mapped", nook.nodes[0])}
    whole["exclusive"] = True
    port.running(**whole)
    owner = port.owner()
    job_id = port.made(port.request(owner=owner, **whole))
    assert isinstance(port.client.assign(job_id, owner, "", 4321), Done)
    assert view(port, job_id).priority == 4321


def test_what_cannot_be_assigned_is_refused(port: Port) -> None:
    """No such reservation, no such job."""
    owner = port.owner()
    job_id = port.held(owner=owner)
    assert why(port.client.assign(job_id, owner, f"{port.desk.job_name}-none", None)) is Refusal.INVALID
    assert why(port.client.assign(JobId(NEVER_USED), owner, "", None)) is Refusal.NO_SUCH_JOB
