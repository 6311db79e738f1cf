"""The routes that every daemon has: is it alive, is it of use, what does it count."""

import http
from collections.abc import Callable
from typing import Final

from slurm_bridge.telemetry.health import Health, Verdict
from slurm_bridge.telemetry.instruments import Instruments
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Routes

LIVEZ: Final = ("GET", "/livez")
READYZ: Final = ("GET", "/readyz")
METRICS: Final = ("GET", "/metrics")


def routes(health: Health, metrics: Instruments, refresh: Callable[[], None] = lambda: None) -> Routes:
    """More of them can be joined to these. `refresh`: called before the numbers are shown."""
    return {**alone(health), METRICS: lambda _: _page(metrics, refresh)}


def alone(health: Health) -> Routes:
    """The probes without the numbers: for a port that nothing else keeps busy."""
    return {
        LIVEZ: lambda _: _reply(health.livez()),
        READYZ: lambda _: _reply(health.readyz()),
    }


def _reply(verdict: Verdict) -> Reply:
    status = http.HTTPStatus.OK if verdict.good else http.HTTPStatus.SERVICE_UNAVAILABLE
    return Reply.text(str(verdict), status)


def _page(metrics: Instruments, refresh: Callable[[], None]) -> Reply:
    refresh()
    body, content_type = metrics.page()
    return Reply(body=body, content_type=content_type)
