"""Calls and watches of one API server, each over connections of its own."""

from typing import Protocol

from slurm_bridge import ports
from slurm_bridge.kube import status
from slurm_bridge.runtime.http.client import Client, Credentials, Stream
from slurm_bridge.runtime.http.connections import Now
from slurm_bridge.runtime.http.messages import Answer, Limits, Pool, Request


class Access(Credentials, Protocol):
    """Where the server is and who we are there (`config.Access`)."""

    @property
    def prefix(self) -> str: ...

    def pool(self, limits: Limits, now: Now, /, *, endless: bool = False) -> Pool: ...

    def anonymous_pool(self, limits: Limits, now: Now, /, *, endless: bool = False) -> Pool:
        """Connections on which nothing says who we are."""


class Transport:
    """The connections to one API server; safe to use from any thread."""

    def __init__(self, access: Access, *, clock: ports.Clock, limits: Limits) -> None:
        self._prefix = access.prefix
        self._calls = Client(access.pool(limits, clock.now), limits, clock.now, access)
        # Of its own, so that a watch which comes to its end does not push out a connection that calls use.
        self._watches = Client(access.pool(limits, clock.now, endless=True), limits, clock.now, access)

    def call(self, request: Request) -> Answer:
        """Ask and read the whole answer, whatever it says."""
        return self._calls.ask(request, self._prefix)

    def stream(self, request: Request) -> Stream:
        """Ask for an answer that goes on for minutes; one that is no success is raised."""
        answer = self._watches.open(request, self._prefix)
        if isinstance(answer, Answer):
            raise status.refusal(request, answer)
        return answer

    def close(self) -> None:
        """Give up idle connections; those in use end with their requests."""
        self._calls.close()
        self._watches.close()


def checked(request: Request, answer: Answer) -> bytes:
    """The body of a success; anything else is raised."""
    if not answer.ok:
        raise status.refusal(request, answer)
    return bytes(answer.body)
