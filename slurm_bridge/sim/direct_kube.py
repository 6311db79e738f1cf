"""A way to the pocket API server for the Kubernetes adapter: no kubeconfig, no socket, no thread.

    line = Line(pocket.handler, clock=clock)
    cluster = KubeClient(DirectAccess(line, token=pocket.token), clock=clock, dice=dice)

A watch over such a line tells everything that has happened, then ends: who follows it asks again later.
"""

from collections.abc import Mapping
from http import HTTPStatus

from slurm_bridge.runtime.http.connections import Now
from slurm_bridge.runtime.http.messages import Answer, Limits
from slurm_bridge.sim.direct_line import Line
from slurm_bridge.sim.direct_pool import DirectPool


class DirectAccess:
    """Where the pocket API server is and who we are there."""

    def __init__(self, line: Line, *, token: str) -> None:
        self._line = line
        self._token = token

    def __repr__(self) -> str:
        return "DirectAccess()"

    @property
    def prefix(self) -> str:
        """Nobody shares this host."""
        return ""

    def headers(self) -> Mapping[str, str]:
        """Who we are."""
        return {"authorization": f"Bearer {self._token}"}

    def renewed(self, answer: Answer, _: Mapping[str, str]) -> bool:
        """The token is the one that the pocket was born with; a 401 is asked again with it, as the real one is."""
        return answer.status == HTTPStatus.UNAUTHORIZED

    def pool(self, _limits: Limits, _now: Now, /, *, endless: bool = False) -> DirectPool:  # noqa: ARG002 - an Access
        """Any number of connections; none of them could know us."""
        return DirectPool(self._line)

    anonymous_pool = pool
