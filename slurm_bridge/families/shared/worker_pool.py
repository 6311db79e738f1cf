"""Work beside the passes: a few threads, pieces of work in order, at most one piece for each key."""

import threading
from collections import deque
from collections.abc import Callable

from slurm_bridge.hooks.services import HookServices

#: How long `close` waits for work that is under way; it ends by its own deadlines soon after.
CLOSE_SECONDS = 5.0


class KeyedWorkerPool:
    """Work for a few threads, in order, at most one piece for each key. Work keeps its own result and its failures."""

    def __init__(self, name: str, services: HookServices, *, workers: int, most: int) -> None:
        self._name = name
        self._services = services
        self._workers = workers
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, Callable[[], object]]] = deque()
        self._keys: set[str] = set()
        self._threads: list[threading.Thread] = []
        #: Pieces that are worked on, inline ones among them.
        self._busy = 0
        self._closed = False

    def __len__(self) -> int:
        """Pieces that wait or are worked on."""
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def submit(self, key: str, work: Callable[[], object]) -> bool:
        """Take it in; False when the pool is full or closed, or there is no thread to be had.

        What has this key already is not asked for twice.
        """
        with self._changed:
            if self._closed:
                return False
            if key in self._keys:
                return True
            if len(self._keys) >= self._most:
                return False
            self._keys.add(key)
            if self._services.threads:
                if not self._started():
                    self._keys.discard(key)
                    return False
                self._waiting.append((key, work))
                self._changed.notify()
                return True
            self._busy += 1
        self._do(key, work)
        return True

    def run_inline(self, key: str, work: Callable[[], object]) -> bool:
        """Do it here and now in the place of a thread that has nothing to do; False where all of them have.

        The thread that has just made the work does it fastest: another one would only wait for it to step aside.
        """
        with self._changed:
            if self._closed or key in self._keys or len(self._keys) >= min(self._workers, self._most):
                return False
            self._keys.add(key)
            self._busy += 1
        self._do(key, work)
        return True

    def close(self) -> None:
        """Drop what waits, and let the threads end; those in the middle of something are not waited for very long."""
        with self._changed:
            self._closed = True
            for key, _ in self._waiting:
                self._keys.discard(key)
            self._waiting.clear()
            self._changed.notify_all()
        until = self._services.clock.now() + CLOSE_SECONDS
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - self._services.clock.now()))

    def _started(self) -> bool:
        """One more thread while there is work for it; whether there is any. Called with the lock held."""
        if len(self._threads) < min(self._workers, len(self._keys)):
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._services.log.warning(f"{self._name}: no further thread: {error}")
            else:
                self._threads.append(thread)
        return bool(self._threads)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (not self._waiting or self._busy >= self._workers):
                    self._changed.wait()
                if not self._waiting:
                    return
                key, work = self._waiting.popleft()
                self._busy += 1
            self._do(key, work)

    def _do(self, key: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a defect of one piece of work must not end the thread of all others
            self._services.log.warning(f"{self._name}: {key}: {type(error).__name__}: {error}")
        finally:
            with self._changed:
                self._busy -= 1
                self._keys.discard(key)
                if self._waiting:
                    self._changed.notify()
