"""Agents as the scheduler asks them: here or over HTTP, and not at all for a while once they keep failing."""

import dataclasses
import http
import threading
from collections.abc import Callable
from typing import Protocol

from slurm_bridge import ports
from slurm_bridge.families.vela import wire
from slurm_bridge.families.vela.options import AgentOptions
from slurm_bridge.families.vela.pipeline import NotSampled, PodRefused
from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.families.vela.smart import AgentFailure
from slurm_bridge.hooks.services import JsonClient, NotAnswered, Target

#: By these an agent says that it is the pod: what users write must not cost others the agent.
POD_REFUSED = frozenset({http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, http.HTTPStatus.UNPROCESSABLE_ENTITY})


class SamplingAgent(Protocol):
    """An agent, or this process, with nodes; `cluster` is its name."""

    @property
    def cluster(self) -> str: ...

    def sample(self, request: SamplingRequest, strategy: str, /) -> SamplingResponse:
        """Nodes for a pod. Raises NotSampled; called from several threads."""


class RemoteAgent:
    """An agent that is a service of its own."""

    def __init__(self, options: AgentOptions, post: JsonClient) -> None:
        self._target = Target(url=options.url, token_file=options.token_file, ca_file=options.ca_file)
        self._seconds = options.timeout_seconds
        self._post = post
        self.cluster = options.name

    def sample(self, request: SamplingRequest, strategy: str) -> SamplingResponse:
        body = wire.request_body(dataclasses.replace(request, seconds=self._seconds))
        try:
            answer = self._post(self._target, wire.path(strategy), body, seconds=self._seconds)
            return wire.response_of(answer, self.cluster)
        except (NotAnswered, wire.UnreadableMessage) as error:
            refused = isinstance(error, NotAnswered) and error.status in POD_REFUSED
            raise (PodRefused if refused else NotSampled)(str(error)) from error


class AgentMember:
    """One agent, and how it has done lately.

    After `failures` in a row it is left out for `pause_seconds`: an agent that hangs would else delay every caller.
    Then it is asked again, and one more failure is enough for the next pause.
    """

    def __init__(
        self, agent: SamplingAgent, options: AgentOptions, clock: ports.Clock, *, patience: "Patience"
    ) -> None:
        self._agent = agent
        self._clock = clock
        self._patience = patience
        self._lock = threading.Lock()
        self._failed = 0
        self._until = 0.0
        self.name = options.name
        self.remote = bool(options.url)
        self.seconds = options.timeout_seconds

    def ask(self, request: SamplingRequest, strategy: str) -> SamplingResponse | AgentFailure:
        """Its answer, or why there is none."""
        if (left := self._paused()) > 0:
            return AgentFailure(why=f"failed {self._failed} times in a row and is left out for another {left:.0f} s")
        try:
            answer = self._agent.sample(request, strategy)
        except PodRefused as error:
            return AgentFailure(why=str(error))
        except NotSampled as error:
            self._count(failed=True)
            return AgentFailure(why=str(error))
        self._count(failed=False)
        return answer

    def willing(self) -> bool:
        """It is not left out at this moment."""
        return self._paused() <= 0

    def late(self) -> AgentFailure:
        """It has not answered in time; its call ends by its own deadline, and counts as what it then is."""
        return AgentFailure(why=f"did not answer within {self.seconds:g} s")

    def _paused(self) -> float:
        if not self.remote:
            return 0.0
        with self._lock:
            return self._until - self._clock.now()

    def _count(self, *, failed: bool) -> None:
        if not failed and not self._failed:
            return
        with self._lock:
            back = not failed and self._failed > 0
            self._failed = self._failed + 1 if failed else 0
            if self._failed >= self._patience.failures:
                self._until = self._clock.now() + self._patience.pause_seconds
        if back:
            self._patience.returned()


class Patience:
    """What all agents of a hook share: how much failing is too much, and how often one of them has come back."""

    def __init__(self, failures: int, pause_seconds: float, came_back: Callable[[], None] = lambda: None) -> None:
        self.failures = failures
        self.pause_seconds = pause_seconds
        self._came_back = came_back
        self._lock = threading.Lock()
        #: Moves when an agent that failed answers again.
        self.version = 0

    def returned(self) -> None:
        """Workloads that wait for nodes may find some now."""
        with self._lock:
            self.version += 1
        self._came_back()
