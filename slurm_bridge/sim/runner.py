"""Runs a pocket server in real time: its HTTP server, and the thread of its background work."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from slurm_bridge.sim import faults as faults_
from slurm_bridge.sim import http


class RunningServer:
    """Starts and stops the server and the thread; the state of the world survives a stop.

    `life` is the background work: it runs until its event is set.
    """

    def __init__(self, server: http.Server, life: Callable[[threading.Event], None], *, name: str) -> None:
        self.http = server
        self._life = life
        self._name = name
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.http.url

    @property
    def faults(self) -> faults_.Faults:
        """The faults and the journal of calls."""
        return self.http.faults

    def start(self) -> Self:
        """Serve, and start the background work."""
        self.http.start()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._life, args=(self._stopping,), name=self._name, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close every connection at once, and end the thread."""
        self._stopping.set()
        self.http.stop()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
