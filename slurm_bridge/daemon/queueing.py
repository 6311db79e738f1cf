"""The queues of a hook that keeps some, for whoever asks over HTTP, and as metrics."""

import http
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slurm_bridge.hooks.chain import Chain
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Routes

PATH = "/queues"


def routes(chain: Callable[[], Chain | None]) -> Routes:
    """The page; there is no chain to ask where this process does not lead, or not yet."""

    def show() -> Reply:
        at_work = chain()
        found = pictured(at_work) if at_work is not None else None
        if found is None:
            return Reply.text(
                "there are no queues: no hook that keeps some is at work here\n", http.HTTPStatus.NOT_FOUND
            )
        return Reply.json(found)

    return {("GET", PATH): lambda _: show()}


def pictured(chain: Chain) -> Mapping[str, Any] | None:
    """What the first hook with queues shows; None where there is none, or this process does not lead."""
    for hook in chain.hooks:
        if hook.can.shows_queues is not None:
            return hook.can.shows_queues.picture()
    return None


def refresh(metrics: Metrics, chain: Chain | None) -> None:
    """The numbers of now; queues that are gone are not shown any more."""
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
    for queue in _walk(found["queues"]) if found is not None and found["queues"] else ():
        for field, gauge in amounts.items():
            for kind, amount in queue[field].items():
                gauge.labels(queue["path"], kind).set(amount)
        for field, gauge in counts.items():
            gauge.labels(queue["path"]).set(queue[field])


def _walk(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield queue
    for child in queue["queues"]:
        yield from _walk(child)
