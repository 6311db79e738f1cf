"""List and watch without a thread: each pump asks for what is new and hands it on, as the reflector does."""

from collections.abc import Callable
from typing import Generic, TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.informers.store import Change, Store
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.workloads import kind_table

T = TypeVar("T", bound=Object)


class Feed(Generic[T]):
    """Keeps one store equal to the API server, as far as the weather allows."""

    def __init__(
        self,
        cluster: ports.Cluster,
        kind: Kind[T],
        handler: Callable[[T | None, T | None], object],
        *,
        news: Callable[[int], bool],
    ) -> None:
        self._cluster, self._kind, self._handler = cluster, kind, handler
        self._news = news
        self.store: Store[T] = Store(kind_table.INDEXES.get(kind))

    def pump(self) -> bool:
        """Take what there is; False when the server could not be asked, or said that our version is too old.

        A watch that stays open says nothing while nothing changes: so no list is asked for before something has.
        """
        since = self.store.resource_version
        if since and not self._news(int(since)):
            return True
        try:
            self._take()
        except errors.Expired:
            self.store.expire()
            return False
        except errors.BridgeError:
            return False
        return True

    def _take(self) -> None:
        if not self.store.resource_version:
            self._tell(self.store.replace(self._cluster.list(self._kind)))
            self.store.mark_synced()
            return
        for change in self._cluster.watch(self._kind, self.store.resource_version):
            self._tell(self.store.take(change))

    def _tell(self, changes: tuple[Change[T], ...]) -> None:
        for change in changes:
            self._handler(change.old, change.new)
