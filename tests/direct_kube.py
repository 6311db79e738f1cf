"""A way to the pocket API server for the Kubernetes adapter: no kubeconfig, no socket, no thread.

    line = Line(pocket.handler, clock=clock)
    cluster = KubeClient(DirectAccess(line, token=pocket.token), clock=clock, dice=dice)

A watch over such a line tells everything that has happened, then ends: its reader asks again later.
"""

from collections.abc import Mapping

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

    def renew(self) -> None:
        """The token is the one that the pocket was born with."""

    def pool(self, _connections: int, /) -> DirectPool:
        """Any number of connections."""
        return DirectPool(self._line)

    def nobodys_pool(self, connections: int, /) -> DirectPool:
        """There is no connection that could know us."""
        return self.pool(connections)
