"""The pocket Slurm over HTTP in real time: a server, and a thread that runs the scheduler."""

import ssl
import threading
from pathlib import Path

from slurm_bridge.sim import faults as faults_
from slurm_bridge.sim import http, runner
from slurm_bridge.sim.slurm import pocket


class PocketSlurmServer(runner.RunningServer):
    """Serves a pocket Slurm; jobs start within `period` of their submission."""

    def __init__(
        self,
        slurm: pocket.PocketSlurm,
        *,
        faults: faults_.Faults | None = None,
        port: int = 0,
        period: float = 0.02,
        tls: ssl.SSLContext | None = None,
        unix_socket: Path | None = None,
    ) -> None:
        self.slurm = slurm
        self._period = period
        server = http.Server(slurm.handler, faults=faults, port=port, tls=tls, unix_socket=unix_socket)
        super().__init__(server, self._tick, name="pocket-slurm")

    def _tick(self, stopping: threading.Event) -> None:
        while not stopping.wait(self._period):
            self.slurm.tick()
