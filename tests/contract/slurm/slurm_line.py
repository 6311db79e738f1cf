"""The adapter on a line that fails at a chosen moment: a pocket Slurm of one case alone, and the hand on the line."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import slurm_pocket
from slurm_desk import NEWEST, Desk
from slurm_port import Port, connect

from slurm_bridge import errors
from slurm_bridge.model.job import JobView, Outcome
from slurm_bridge.sim import faults
from slurm_bridge.slurm.client import SlurmClient
from tests import wait

SUBMIT: dict[str, Any] = {"method": "POST", "target": "/job/submit"}
UPDATE: dict[str, Any] = {"method": "POST", "target": r"/job/\d+"}
CANCEL: dict[str, Any] = {"method": "DELETE", "target": "/job/"}
STATES: dict[str, Any] = {"method": "GET", "target": "/jobs/state/"}
HTML = b"<html><body>Bad gateway</body></html>"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The adapter, its pocket Slurm, and the hand on the line between them."""

    port: Port
    #: Of an adapter that gives up soon.
    hasty: Port
    faults: faults.Faults
    pocket: slurm_pocket.Pocket

    @property
    def client(self) -> SlurmClient:
        return self.port.client

    def asking(self, fault: faults.Fault) -> Port:
        """Who meets this fault: the hasty one an answer that never comes."""
        if not isinstance(fault, faults.Hang):
            return self.port
        wait.until(self._agreed, "version of the hasty adapter")
        return self.hasty

    def _agreed(self) -> object:
        with contextlib.suppress(errors.TryLater):
            return self.hasty.client.version
        return None

    def submit(self, by: Port | None = None, **fields: Any) -> tuple[Outcome, list[JobView]]:
        """What the adapter says, and what there is."""
        request = self.port.request(hold=True, **fields)
        outcome = (by or self.port).submit(request)
        return outcome, list(self.client.find(request.owner))


@contextlib.contextmanager
def breakable(folder: Path) -> Iterator[Line]:
    """A line for as long as the block lasts; the version is negotiated already."""
    hand, file = faults.Faults(), folder / "token"
    file.write_text(slurm_pocket.OPERATOR_TOKEN)
    with (
        slurm_pocket.serving(hand) as pocket,
        connect(pocket.url, file) as client,
        connect(pocket.url, file, read_timeout=0.5) as hasty,
    ):
        desk = Desk(servers=pocket, version=NEWEST, job_name="faulty", token=pocket.operator_token)
        client.ping()
        hand.forget()
        ports = Port(client=client, desk=desk), Port(client=hasty, desk=desk)
        yield Line(port=ports[0], hasty=ports[1], faults=hand, pocket=pocket)
