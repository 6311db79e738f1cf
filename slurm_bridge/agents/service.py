"""The life of an agent: start, serve, drain, stop.

start   the door opens, caches fill; until they are full every question is refused with 503
serve   questions are answered by the pipelines
drain   further questions are refused with 503, those inside get their answers
stop    the door closes, the watches end
"""

import dataclasses
import pathlib
import threading

from loguru import logger

import slurm_bridge
from slurm_bridge import errors, ports
from slurm_bridge.agents.bearer import AcceptedTokens
from slurm_bridge.agents.cache import AgentCache
from slurm_bridge.agents.desk import AgentHandler, Sampler
from slurm_bridge.runtime.threads import Supervisor
from slurm_bridge.telemetry.agents import AgentMetrics
from slurm_bridge.telemetry.health import Health
from slurm_bridge.web import probes, tls
from slurm_bridge.web.server import Bounds, HttpServer

#: How long the threads may take to end, beside the drain: longer than a question to Slurm takes.
STOP_SECONDS = 20.0
#: How long no request must have come before the door closes: clients need a moment to hear that they should not.
QUIET = 0.5
#: The time between two looks whether the watches live.
LOOK = 0.5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where an agent listens, and what one client may take."""

    host: str
    port: int
    token_file: pathlib.Path
    files: tls.Files | None = None
    drain_seconds: float = 10.0
    bounds: Bounds = dataclasses.field(default_factory=lambda: Bounds(connections=256, idle=60.0))


class AgentService:
    """Everything joined; `run` is its whole life."""

    def __init__(
        self, place: ListenAddress, cache: AgentCache, sampler: Sampler, clock: ports.Clock, metrics: AgentMetrics
    ) -> None:
        self._place, self._clock, self.cache = place, clock, cache
        self.metrics, self.health = metrics, Health(clock.now)
        self.supervisor = Supervisor(_report)
        tokens = AcceptedTokens(place.token_file)
        # A file that holds no token ends the agent here, not at the first question.
        tokens.all()
        self._sampler = sampler
        self.desk = AgentHandler(sampler, tokens, clock, metrics, cache.problem)
        self.door = self._opened(place)
        for kind, numbers in self.cache.numbers().items():
            self.metrics.informer(kind, numbers)
        self.supervisor.add("watchdog", self._watch)
        self.supervisor.add("slurm", self.cache.follow_slurm)
        self.supervisor.add("web", self.door.run, carries=True)
        self.health.alive_while("threads", lambda: ", ".join((*self.supervisor.dead(), *self.cache.dead())))
        self.health.ready_while("caches", self.cache.problem)
        self.health.ready_while("serves", lambda: "about to stop" if self.supervisor.stop.is_set() else "")

    def run(self) -> int:
        """Runs until it is stopped; returns the exit status."""
        self.cache.start()
        logger.info("slurm-bridge agent {} serves on port {}", slurm_bridge.__version__, self.door.port)
        try:
            return self.supervisor.live(self._drain, seconds=self._place.drain_seconds + STOP_SECONDS)
        finally:
            self.cache.stop()

    def _opened(self, place: ListenAddress) -> HttpServer:
        def refresh() -> None:
            self.metrics.nodes.set(self._sampler.nodes_count)

        try:
            routes = {**probes.routes(self.health, self.metrics, refresh), **self.desk.routes()}
            return HttpServer(place.host, place.port, routes, bounds=place.bounds, files=place.files)
        except errors.BadConfiguration as problem:
            # A door names the daemon's keys.
            raise errors.BadConfiguration(f"agent: {str(problem).partition(': ')[2]}") from problem

    def _watch(self, stop: threading.Event) -> None:
        """Threads that the supervisor does not own end the process too."""
        while not self._clock.wait(stop, LOOK):
            if dead := self.cache.dead():
                raise errors.BridgeError(f"the watches of {', '.join(dead)} have ended")
        # Not only when the others have ended, too: one of them may be waiting for Slurm.
        self.desk.close()

    def _drain(self) -> None:
        self.desk.close()
        if not self.desk.drained(self._place.drain_seconds, quiet=QUIET):
            logger.warning("questions are left unanswered after {} s", self._place.drain_seconds)


def _report(name: str, problem: Exception | None) -> None:
    if problem is None:
        logger.error("thread {} ended without being told to", name)
    else:
        logger.opt(exception=problem).error("thread {} failed", name)
