"""The pocket Slurm over HTTP in real time: a server, and a thread that lets the scheduler look round."""

import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from slurm_bridge.sim import faults as faults_
from slurm_bridge.sim import http
from slurm_bridge.sim.slurm import pocket


class PocketSlurmServer:
    """Serves a pocket; started jobs follow their submit within `period`."""

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
        self.http = http.Server(slurm.handler, faults=faults, port=port, tls=tls, unix_socket=unix_socket)
        self._period = period
        self._stopping = threading.Event()
        self._ticker: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.http.url

    @property
    def faults(self) -> faults_.Faults:
        """What shall go wrong, and what was called."""
        return self.http.faults

    def start(self) -> Self:
        """Serve, and let time pass."""
        self.http.start()
        self._stopping.clear()
        self._ticker = threading.Thread(target=self._tick, name="pocket-slurm", daemon=True)
        self._ticker.start()
        return self

    def stop(self) -> None:
        """End all connections and the ticker; the world stays as it is."""
        self._stopping.set()
        self.http.stop()
        if self._ticker is not None:
            self._ticker.join()
            self._ticker = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _tick(self) -> None:
        while not self._stopping.wait(self._period):
            self.slurm.tick()
