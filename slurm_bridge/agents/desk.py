"""The routes of an agent: tokens, what is refused and why, and the samples themselves.

401  no token, or a wrong one             503  told to stop, caches not filled yet, or no idle pipeline in time:
400  unreadable, or an unknown strategy        nothing was done, asking again later is right
413  longer than allowed (the door says)  500  a plugin or a strategy failed
                                          422  a plugin cannot read what the pod asks for
"""

import contextlib
import http
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Final, Protocol

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.agents.bearer import AcceptedTokens
from slurm_bridge.families.vela import pipeline, wire
from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.telemetry.agents import AgentMetrics
from slurm_bridge.web.replies import JSON, Reply
from slurm_bridge.web.routes import Request, Route, Routes

#: What a question counts under whose strategy is none: users must not make new series of numbers.
_UNKNOWN: Final = "unknown"
_SCHEME: Final = "bearer "


class Sampler(Protocol):
    """What makes the samples, `vela.pipeline.Agent`; called by several threads at once."""

    @property
    def strategies(self) -> Collection[str]:
        """Those that can be asked for."""

    @property
    def nodes_count(self) -> int:
        """Nodes of the shard."""

    def sample(self, request: SamplingRequest, strategy: str) -> SamplingResponse:
        """Raises NotSampled."""


class AgentHandler:
    """Answers over HTTP. `problem` says why nothing can be answered yet; empty when it can."""

    def __init__(
        self,
        sampler: Sampler,
        tokens: AcceptedTokens,
        clock: ports.Clock,
        metrics: AgentMetrics,
        problem: Callable[[], str],
    ) -> None:
        self._sampler, self._tokens, self._clock, self._metrics = sampler, tokens, clock, metrics
        self._problem = problem
        self._changed = threading.Condition()
        self._inside = 0
        self._came = float("-inf")
        self._closed = False

    def routes(self) -> Routes:
        """The documented paths, and the same without a version."""
        sample, status = self._guarded(self._sample), self._guarded(self._status)
        return {
            ("POST", wire.SAMPLES): sample,
            ("GET", wire.STATUS): status,
            ("POST", wire.SAMPLES_ALIAS): sample,
            ("GET", wire.STATUS_ALIAS): status,
        }

    def close(self) -> None:
        """From now on no request is let in."""
        with self._changed:
            self._closed = True

    @property
    def closed(self) -> bool:
        """It was told to stop."""
        return self._closed

    def drained(self, seconds: float, *, quiet: float = 0.0) -> bool:
        """Wait, at most so long, until no request is being answered and none has come for a while.

        Returns whether none is being answered. A request on its way would otherwise find a closed port, which looks
        like an agent that died.
        """
        until = self._clock.now() + seconds
        with self._changed:
            while (left := until - self._clock.now()) > 0:
                restless = self._came + quiet - self._clock.now()
                if not self._inside and restless <= 0:
                    return True
                self._changed.wait(left if self._inside else min(left, restless))
            return not self._inside

    def _guarded(self, route: Route) -> Route:
        def answer(request: Request) -> Reply:
            try:
                said = request.headers.get("authorization", "")
                known = said[: len(_SCHEME)].lower() == _SCHEME and self._tokens.knows(said[len(_SCHEME) :].strip())
            except errors.BadConfiguration as problem:
                logger.error("no request can be let in: {}", problem)
                return Reply.text("the agent has no token to compare with\n", http.HTTPStatus.SERVICE_UNAVAILABLE)
            if not known:
                return Reply.text(
                    "send `Authorization: Bearer TOKEN` with the agent's token\n",
                    http.HTTPStatus.UNAUTHORIZED,
                    www_authenticate="Bearer",
                )
            return route(request)

        return answer

    def _status(self, _: Request) -> Reply:
        status = "draining" if self._closed else "starting" if self._problem() else "ok"
        routes = tuple(wire.path(name) for name in sorted(self._sampler.strategies))
        return Reply(body=wire.status_body(status, routes, self._sampler.nodes_count), content_type=JSON)

    def _sample(self, request: Request) -> Reply:
        strategy = request.names["strategy"]
        counted = strategy if strategy in self._sampler.strategies else _UNKNOWN
        begin = self._clock.now()
        with self.counted() as closed:
            if closed:
                reply = _later("this agent is about to stop")
            elif problem := self._problem():
                reply = _later(f"this agent does not know its nodes yet: {problem}")
            else:
                reply = self._answer(request, strategy)
        self._metrics.requests.labels(counted, str(reply.status.value)).observe(self._clock.now() - begin)
        return reply

    def _answer(self, request: Request, strategy: str) -> Reply:
        try:
            response = self._sampler.sample(wire.read_request(request.body), strategy)
        except (wire.UnreadableMessage, pipeline.UnknownStrategy) as problem:
            return Reply.text(f"{problem}\n", http.HTTPStatus.BAD_REQUEST)
        except pipeline.PodRefused as problem:
            return Reply.text(f"{problem}\n", http.HTTPStatus.UNPROCESSABLE_ENTITY)
        except pipeline.Busy as problem:
            return _later(str(problem))
        except pipeline.NotSampled as problem:
            logger.opt(exception=problem).error("no sample by strategy {}", strategy)
            return Reply.text(f"{problem}\n", http.HTTPStatus.INTERNAL_SERVER_ERROR)
        self._metrics.sampled.labels(strategy).inc(len(response.nodes))
        return Reply(body=wire.write_response(response), content_type=JSON)

    @contextlib.contextmanager
    def counted(self) -> Iterator[bool]:
        """A request that is counted is waited for at the end; yields whether it is too late for that."""
        with self._changed:
            closed = self._closed
            self._inside += 1
            self._came = self._clock.now()
        try:
            yield closed
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()


def _later(why: str) -> Reply:
    return Reply.text(f"{why}\n", http.HTTPStatus.SERVICE_UNAVAILABLE, retry_after="1")
