"""What `urllib3` looks like to both adapters, with a pocket server right behind it: no socket, no thread.

    line = Line(pocket.handler, clock=clock)
    slurm = SlurmClient(settings, clock=clock, stop=stop, connect=lambda _: DirectPool(line))

The Kubernetes adapter comes by its pool through `direct_kube.DirectAccess`.
"""

from collections.abc import Iterator, Mapping

import urllib3
from urllib3 import exceptions

from tests.direct_line import Answer, Line, NotAnswered, NotReached, Question, Silent


class DirectAnswer:
    """The part of `urllib3.BaseHTTPResponse` that the adapters read."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._pieces: Iterator[bytes] = iter(answer)

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    def read(self, _amount: int, /) -> bytes:
        """The next piece, nothing at the end."""
        try:
            return next(self._pieces, b"")
        except NotAnswered as broken:
            raise exceptions.ProtocolError(str(broken)) from broken

    def read1(self, amount: int, /) -> bytes:
        """Likewise: whatever is there."""
        return self.read(amount)

    def close(self) -> None:
        """Nothing more is read."""
        self._pieces = iter(())

    def shutdown(self) -> None:
        """Wake the reader, which is the caller itself."""
        self.close()


class DirectPool:
    """The part of a connection pool that the adapters ask."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def urlopen(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: urllib3.Timeout,
        **_: object,
    ) -> DirectAnswer:
        """Ask once; nothing is repeated or followed, and answers always come as a stream."""
        patience = timeout.read_timeout
        seconds = float(patience) if isinstance(patience, int | float) else 0.0
        question = Question(method=method, url=url, headers=headers, body=body, patience=seconds)
        try:
            return DirectAnswer(self._line.ask(question))
        except NotReached as problem:
            raise exceptions.ConnectTimeoutError(str(problem)) from problem
        except Silent as problem:
            raise exceptions.TimeoutError(str(problem)) from problem
        except NotAnswered as problem:
            raise exceptions.ProtocolError(str(problem)) from problem

    def close(self) -> None:
        """There is nothing to close."""
