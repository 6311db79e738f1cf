"""What `runtime.http` asks for both adapters, with a pocket server right behind it: no socket, no thread.

    line = Line(pocket.handler, clock=clock)
    slurm = SlurmClient(settings, clock=clock, stop=stop, connect=lambda _: DirectPool(line))

The Kubernetes adapter comes by its pool through `direct_kube.DirectAccess`.
"""

from collections.abc import Iterator, Mapping

from slurm_bridge import errors
from slurm_bridge.runtime.http.messages import ConnectionDropped, HttpRequest
from tests.direct_line import Answer, Line, NotAnswered, NotReached, Question, Silent


class DirectAnswer:
    """Implements runtime.http's Response."""

    def __init__(self, request: HttpRequest, answer: Answer) -> None:
        self._request = request
        self._answer = answer
        self._pieces: Iterator[bytes] = iter(answer)

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    def read(self) -> bytes:
        """The next piece, nothing at the end."""
        try:
            return next(self._pieces, b"")
        except NotAnswered as broken:
            raise errors.BadAnswer(f"{self._request}: the answer ended early: {broken}") from broken

    def close(self) -> None:
        """Nothing more is read."""
        self._pieces = iter(())

    def shutdown(self) -> None:
        """Wake the reader, which is the caller itself."""
        self.close()


class DirectPool:
    """Implements runtime.http's Pool."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def send(self, request: HttpRequest, target: str, headers: Mapping[str, str], silence: float) -> DirectAnswer:
        """Ask once; nothing is repeated or followed, and answers always come as a stream."""
        patience = silence if request.seconds is None else request.seconds
        question = Question(method=request.method, url=target, headers=headers, body=request.body, patience=patience)
        try:
            return DirectAnswer(request, self._line.ask(question))
        except NotReached as problem:
            raise errors.Unavailable(f"{request}: not reached: {problem}") from problem
        except Silent as problem:
            raise errors.Unanswered(f"{request}: {problem}") from problem
        except NotAnswered as problem:
            raise ConnectionDropped(f"{request}: the connection broke: {problem}") from problem

    def close(self) -> None:
        """There is nothing to close."""
