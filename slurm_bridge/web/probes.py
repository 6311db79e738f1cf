"""The routes of every process: liveness, readiness, metrics."""

import http
import threading
from collections.abc import Callable
from typing import Final

from slurm_bridge.telemetry.health import Health, Verdict
from slurm_bridge.telemetry.instruments import Instruments
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes

LIVEZ: Final = ("GET", "/livez")
READYZ: Final = ("GET", "/readyz")
METRICS: Final = ("GET", "/metrics")


def routes(health: Health, metrics: Instruments, refresh: Callable[[], None] = lambda: None) -> Routes:
    """The probes and the metrics. `refresh` runs before the numbers are shown, and never during another scrape."""
    lock = threading.Lock()

    def page(_: Request) -> Reply:
        # A refresh takes series away before it sets them anew.
        with lock:
            refresh()
            body, content_type = metrics.page()
        return Reply(body=body, content_type=content_type)

    return {**alone(health), METRICS: page}


def alone(health: Health) -> Routes:
    """The probes without the metrics: for a port that serves nothing else."""
    return {
        LIVEZ: lambda _: _reply(health.livez()),
        READYZ: lambda _: _reply(health.readyz()),
    }


def _reply(verdict: Verdict) -> Reply:
    status = http.HTTPStatus.OK if verdict.good else http.HTTPStatus.SERVICE_UNAVAILABLE
    return Reply.text(str(verdict), status)
