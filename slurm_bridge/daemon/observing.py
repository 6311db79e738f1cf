"""What hooks are given beside their options: time, dice, a logger of their own, and somebody who counts."""

import random

from loguru import logger

from slurm_bridge import ports
from slurm_bridge.daemon import configuration
from slurm_bridge.hooks import calls, chain
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry.metrics import Metrics

_FINE = (calls.Outcome.OK.value, calls.Outcome.SLOW.value)


class Observer:
    """Counts what hooks take and how they fail."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def called(self, hook: str, phase: str, outcome: str, seconds: float) -> None:
        self._metrics.hook_duration.labels(hook, phase).observe(seconds)
        if outcome not in _FINE:
            self._metrics.hook_errors.labels(hook, phase).inc()


def surroundings(settings: Settings, clock: ports.Clock, dice: random.Random, metrics: Metrics) -> chain.Surroundings:
    """For every chain that this daemon builds."""
    return chain.Surroundings(
        clock=clock,
        dice=dice,
        observer=Observer(metrics),
        logs=lambda hook: logger.bind(hook=hook),
        limits=configuration.attempt_limits(settings),
        settle=configuration.settle(settings),
    )
