"""What hooks get besides their options: a clock, random numbers, their own logger, and counters."""

import itertools
import random
from collections.abc import Callable, Iterator

from loguru import logger

from slurm_bridge import ports
from slurm_bridge.daemon import configuration
from slurm_bridge.hooks import calls
from slurm_bridge.hooks.services import ChainServices, JsonClient
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry import logs
from slurm_bridge.telemetry.metrics import Metrics

_FINE = (calls.Outcome.OK, calls.Outcome.SLOW)


class HookObserver:
    """Counts calls and failures of hooks, and what they do in the background."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        #: Looked up once: hooks are called about a dozen times per workload.
        self._durations: dict[tuple[str, str], Callable[[float], None]] = {}

    def called(self, hook: str, phase: str, outcome: str, seconds: float) -> None:
        observe = self._durations.get((hook, phase))
        if observe is None:
            observe = self._durations[hook, phase] = self._metrics.hook_duration.labels(hook, phase).observe
            # Zero from the start: Prometheus does not see the first increase of a series that is new.
            self._metrics.hook_errors.labels(hook, phase)
        observe(seconds)
        if outcome not in _FINE:
            self._metrics.hook_errors.labels(hook, phase).inc()

    def happened(self, hook: str, what: str, amount: int = 1) -> None:
        self._metrics.hook_events.labels(hook, what).inc(amount)


def finest(lines: Callable[[], Iterator[str]]) -> None:
    """Log what hooks say about every node, at the finest level.

    Loguru evaluates a lazy argument only if its level is shown. The first line is lazy and triggers the other lines.
    """
    others: list[Iterator[str]] = []

    def first() -> str:
        every = lines()
        others.append(every)
        return next(every, "nothing to tell")

    logger.opt(lazy=True).log(logs.FINEST, "{}", first)
    for line in itertools.chain.from_iterable(others):
        logger.log(logs.FINEST, line)


def surroundings(
    settings: Settings, clock: ports.Clock, dice: random.Random, metrics: Metrics, post: JsonClient
) -> ChainServices:
    """The surroundings of every chain that this daemon builds."""
    observer = HookObserver(metrics)
    return ChainServices(
        clock=clock,
        dice=dice,
        observer=observer,
        counters=observer,
        post=post,
        logs=lambda hook: logger.bind(hook=hook),
        finest=finest,
        shows_scores=logs.every_node,
        keeps_lines=False,
        limits=configuration.attempt_limits(settings),
        settle=configuration.settle(settings),
    )
