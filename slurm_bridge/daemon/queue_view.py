"""The queues of a hook, as an HTTP page and as metrics."""

import http
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slurm_bridge.hooks.chain import Chain
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes

PATH = "/queues"


def routes(chain: Callable[[], Chain | None], away: Callable[[], str]) -> Routes:
    """The route of the page. It answers 503, and says why, while this replica does not lead."""

    def show(_: Request) -> Reply:
        at_work = chain()
        if at_work is None:
            return Reply.text(f"{away()}\n", http.HTTPStatus.SERVICE_UNAVAILABLE)
        found = pictured(at_work)
        if found is None:
            return Reply.text("there are no queues: this process runs no hook with queues\n", http.HTTPStatus.NOT_FOUND)
        return Reply.json(found)

    return {("GET", PATH): show}


def pictured(chain: Chain) -> Mapping[str, Any] | None:
    """The picture of the first hook that has queues; None if there is none."""
    for hook in chain.hooks:
        if hook.can.shows_queues is not None:
            return hook.can.shows_queues.picture()
    return None


def refresh(metrics: Metrics, chain: Chain | None) -> None:
    """Update the gauges of the queues; queues that no longer exist disappear."""
    amounts = {
        "used": metrics.queue_used,
        "guaranteed": metrics.queue_guaranteed,
        "max": metrics.queue_max,
        "pending": metrics.queue_pending,
    }
    counts = {"running": metrics.queue_running, "waiting": metrics.queue_waiting}
    for gauge in (*amounts.values(), *counts.values()):
        gauge.clear()
    found = pictured(chain) if chain is not None else None
    for path, queue in _queues(found or {}):
        for field, gauge in amounts.items():
            for kind, amount in queue[field].items():
                gauge.labels(path, kind).set(amount)
        for field, gauge in counts.items():
            gauge.labels(path).set(queue[field])


def _queues(found: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """By name; where each partition has queues of its own it is in the name, as YuniKorn writes it."""
    for partition in found.get("partitions", ()):
        yield from ((f"[{partition['partition']}]{path}", queue) for path, queue in _queues(partition))
    if found.get("queues"):
        yield from ((queue["path"], queue) for queue in _walk(found["queues"]))


def _walk(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield queue
    for child in queue["queues"]:
        yield from _walk(child)
