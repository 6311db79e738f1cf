"""A run that is continued in several ways from one moment, of which the part before is played only once.

Each way is played by a copy of the process. It says how it ended, and is gone; the run itself goes on afterwards.
"""

import os
import warnings
from collections.abc import Callable

#: The most that a copy says.
_MOST = 1 << 16


class Branches:
    """The copies of one run; in a copy `name` is its name."""

    def __init__(self) -> None:
        self.name = ""
        self._tell: int | None = None
        #: How many copies there were, and what those said that did not end well.
        self.count = 0
        self.failures: list[str] = []

    def branch(self, name: str, begin: Callable[[], object]) -> None:
        """A copy begins with this and goes on from here; copies have no copies of their own."""
        if self._tell is not None:
            return
        listen, tell = os.pipe()
        with warnings.catch_warnings():
            # Threads of the test runner are not needed in the copy.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            os.close(listen)
            self.name, self._tell = name, tell
            begin()
            return
        os.close(tell)
        with os.fdopen(listen, errors="replace") as said:
            words = said.read()
        _, status = os.waitpid(process, 0)
        self.count += 1
        if words or status:
            self.failures.append(f"{name}: {words or f'ended with {status}'}")

    def play(self, run: Callable[[], object]) -> None:
        """The run to its end, which in a copy is the end of the process."""
        try:
            run()
        except BaseException as problem:
            self._end(f"{type(problem).__name__}: {problem}")
            raise
        self._end("")

    def _end(self, words: str) -> None:
        if self._tell is not None:
            os.write(self._tell, words.encode(errors="replace")[:_MOST])
            os._exit(0)
