"""The routes that every daemon has: is it alive, is it of use, what does it count."""

import http
from collections.abc import Mapping
from typing import Final

from slurm_bridge.telemetry.health import Health, Verdict
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.web.replies import Reply, Route

LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"
METRICS: Final = "/metrics"


def routes(health: Health, metrics: Metrics) -> Mapping[str, Route]:
    """By path; more of them can be joined to these."""
    return {
        LIVEZ: lambda: _reply(health.livez()),
        READYZ: lambda: _reply(health.readyz()),
        METRICS: lambda: _page(metrics),
    }


def _reply(verdict: Verdict) -> Reply:
    status = http.HTTPStatus.OK if verdict.good else http.HTTPStatus.SERVICE_UNAVAILABLE
    return Reply.text(str(verdict), status)


def _page(metrics: Metrics) -> Reply:
    body, content_type = metrics.page()
    return Reply(body=body, content_type=content_type)
