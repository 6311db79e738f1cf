"""ports.Slurm while slurmctld is dead or frozen: what is not known is reported as unknown."""

import concurrent.futures
import pathlib

import pytest
from slurm_desk import Desk
from slurm_outages import dead, frozen
from slurm_port import Port, connect

from slurm_bridge import errors
from slurm_bridge.model.job import Phase, Unknown
from slurm_bridge.model.names import JobId

pytestmark = pytest.mark.disruptive


def test_orders_to_a_frozen_slurmctld_are_unknown(port: Port) -> None:
    """A submit and a cancel that were not answered: Unknown, and later both turn out to be done."""
    job_id, owner = port.held(), port.owner()
    with frozen(port.desk), concurrent.futures.ThreadPoolExecutor(2) as pool:
        submit = pool.submit(port.client.submit, port.request(owner=owner, hold=True))
        cancel = pool.submit(port.client.cancel, job_id)
        outcomes = (submit.result(), cancel.result())
    assert isinstance(outcomes[0], Unknown)
    assert isinstance(outcomes[1], Unknown)
    assert outcomes[1].job_id == job_id
    port.desk.until(lambda: port.client.find(owner), "the job that nobody acknowledged is found")
    port.desk.made.extend(job.job_id for job in port.client.find(owner))
    port.desk.until(lambda: port.client.states([job_id])[job_id].phase is Phase.ENDED, "the cancel is carried out")


def test_nothing_is_known_of_a_dead_slurmctld(slurm: Desk, token_file: pathlib.Path) -> None:
    """Orders are Unknown, reads raise TryLater, ping says no; afterwards everything works again."""
    with connect(slurm.servers.url, token_file, read_tries=1) as client:
        port = Port(client=client, desk=slurm)
        owner = port.owner()
        assert not client.find(owner)
        with dead(slurm), concurrent.futures.ThreadPoolExecutor(3) as pool:
            submit = pool.submit(client.submit, port.request(owner=owner))
            read = pool.submit(client.states, [JobId(1)])
            ping = pool.submit(client.ping)
        assert isinstance(submit.result(), Unknown)
        assert isinstance(read.exception(), errors.TryLater)
        assert not ping.result().responding
        assert not client.find(owner)
