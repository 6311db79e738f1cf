"""The hook kube-scheduler as the daemon has it: fed by informers, asked in a session of a chain."""

import contextlib
import pathlib
import random
import time
from collections.abc import Callable, Iterable, Iterator

from localcluster.config import PROJECT
from scheduleroracle import pods
from scheduleroracle.answers import PLUGINS, Answer, renewed
from scheduleroracle.draws import Json
from slurm_bridge import ports
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.daemon import configuration
from slurm_bridge.daemon.feeds import Feeds
from slurm_bridge.hooks import chain as chains
from slurm_bridge.hooks import explain, needs
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.kube import client as kube_client
from slurm_bridge.kube import config as kube_config
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.settings import loader
from slurm_bridge.translate import resources, translator
from slurm_bridge.translate.rules import Rules

HOOK = "kube-scheduler"
CONFIGURATION = PROJECT / "examples" / "hooks" / "kube-scheduler-1.36.yaml"
_RULES = Rules(cluster_id="oracle", partition="main")
_SECONDS = 30.0
_PAUSE = 0.003


class Behind(Exception):
    """The informers have not seen everything in time."""


class Bridge:
    """Answers about pods of the cluster that the informers see."""

    def __init__(self, cluster: ports.Cluster, feeds: Feeds, cache: ClusterCache, chain: Chain) -> None:
        self._cluster, self._feeds, self._cache, self._chain = cluster, feeds, cache, chain
        views = feeds.views(chain.needs, lambda _old, _new: None)
        chain.see(views)
        self._nodes = feeds.watch("nodes", kinds.NODES, ports.EVERYWHERE, cache.on_node).store
        self._pods = feeds.watch("pods", kinds.PODS, ports.Scope(fields="spec.nodeName!="), cache.on_pod).store
        own = ports.Scope(fields=f"spec.schedulerName={pods.SCHEDULER},spec.nodeName=")
        self._waiting = feeds.watch("pods:own", kinds.PODS, own, cache.on_pod).store
        self._stores = {
            "Node": self._nodes,
            **{kind.kind: view for kind in _VIEWED for need, view in views.items() if need.value == kind.plural},
        }

    def await_objects(self, made: Iterable[Json]) -> None:
        """Until the informers have these objects, and none of another cluster."""
        every = [*made]
        names = {
            store: [one for one in every if self._of(one) is store]
            for store in (self._nodes, self._pods, self._waiting)
        }

        def seen() -> bool:
            return all(len(store) == len(some) for store, some in names.items()) and all(map(self._has, every))

        _until(seen)

    def _of(self, manifest: Json) -> needs.View | None:
        """The informer that has it; None for kinds that the hook does not look at."""
        if manifest["kind"] == "Pod":
            return self._pods if "nodeName" in manifest["spec"] else self._waiting
        return self._stores.get(manifest["kind"])

    def _has(self, made: Json) -> bool:
        store, metadata = self._of(made), made["metadata"]
        found = store.get(metadata.get("namespace", ""), metadata["name"]) if store is not None else None
        return store is None or (found is not None and found.uid == metadata["uid"])

    def ask(self, made: Json) -> Answer:
        """About this pod, which is read from the API server."""
        metadata = made["metadata"]
        pod = self._cluster.get(kinds.PODS, metadata["namespace"], metadata["name"])
        assert pod is not None
        snapshot = self._cache.snapshot()
        with self._chain.session(snapshot, now=time.time()) as session:
            ask = _asked(pod)
            fit = session.filter_nodes(ask, snapshot.names)
            reasons = frozenset(reason for one in session.denied for reason in one.counts())
            if not fit:
                return Answer(
                    fit=frozenset(),
                    message=renewed(explain.unavailable(snapshot.names, session.denied)),
                    reasons=reasons,
                )
            scores = session.rate_nodes(ask, fit).nodes
            rows = session.matrices[HOOK].rows
            parts = {
                PLUGINS.get(row.name, row.name): {name: row.weight * row.scores[name] for name in fit} for row in rows
            }
            return Answer(fit=frozenset(fit), scores={name: scores[name] for name in fit}, parts=parts, reasons=reasons)


_VIEWED = (
    kinds.PERSISTENTVOLUMECLAIMS,
    kinds.PERSISTENTVOLUMES,
    kinds.CSINODES,
    kinds.SERVICES,
    kinds.REPLICASETS,
    kinds.STATEFULSETS,
)


@contextlib.contextmanager
def started(kubeconfig: pathlib.Path) -> Iterator[Bridge]:
    """The informers run, and end with it."""
    clock, dice = SystemClock(), random.Random(1)
    cluster = kube_client.KubeClient(kube_config.from_kubeconfig(kubeconfig), clock=clock, dice=dice)
    feeds, cache = Feeds(cluster, clock, dice), ClusterCache(resources.requests_of)
    around = ChainServices(clock=clock, dice=dice, seen=cache.snapshot, threads=False)
    configured = configuration.changeable(loader.load(CONFIGURATION, {}), around).chain
    # Eligibility and policy have other words, and look at Slurm's nodes.
    chain = Chain([hook for hook in configured.hooks if hook.name == HOOK], around)
    found = Bridge(cluster, feeds, cache, chain)
    feeds.start()
    try:
        _until(lambda: feeds.synced)
        yield found
    finally:
        feeds.stop()
        chain.close()
        cluster.close()


def _asked(pod: Pod) -> Ask:
    root = Root(kind="Pod", namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.uid)
    workload = Workload(root=root, pods=(pod,), sources=(), job_name=pod.metadata.name)
    translated = translator.translate(workload, _RULES)
    assert not isinstance(translated, Reject), f"{root}: {translated.message}"
    return chains.asked(workload, translated)


def _until(over: Callable[[], bool]) -> None:
    end = time.monotonic() + _SECONDS
    while not over():
        if time.monotonic() > end:
            raise Behind(f"the informers have not seen all objects within {_SECONDS:.0f} s")
        time.sleep(_PAUSE)
