"""A way to the pocket API server for the Kubernetes adapter: no kubeconfig, no socket, no thread.

    line = Line(pocket.handler, clock=clock)
    cluster = KubeClient(DirectAccess(line, token=pocket.token), clock=clock, dice=dice)

A watch over such a line tells everything that has happened, then ends: its reader asks again later.
"""

from collections.abc import Mapping
from http import HTTPStatus

from slurm_bridge.runtime.http.connections import Now
from slurm_bridge.runtime.http.messages import HttpAnswer, HttpLimits
from tests.direct_line import Line
from tests.direct_pool import DirectPool


class DirectAccess:
    """The address of the pocket API server, and our token there."""

    def __init__(self, line: Line, *, token: str) -> None:
        self._line = line
        self._token = token

    def __repr__(self) -> str:
        return "DirectAccess()"

    @property
    def prefix(self) -> str:
        """The API server has no path prefix."""
        return ""

    def headers(self) -> Mapping[str, str]:
        """The authorization."""
        return {"authorization": f"Bearer {self._token}"}

    def renewed(self, answer: HttpAnswer, _: Mapping[str, str]) -> bool:
        """The token is the one that the pocket was born with; a 401 is asked again with it, as the real one is."""
        return answer.status == HTTPStatus.UNAUTHORIZED

    def pool(self, _limits: HttpLimits, _now: Now, /, *, endless: bool = False) -> DirectPool:  # noqa: ARG002 - an Access
        """Any number of connections; none of them could know us."""
        return DirectPool(self._line)

    anonymous_pool = pool
