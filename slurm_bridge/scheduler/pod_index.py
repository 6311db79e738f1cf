"""The pods of this bridge as last heard: by workload, by the objects that made or group them, and by node.

Fed by watches only. The workload of a pod is looked up when the pod is first seen, and again when an object that
decides about it has changed. A pod that is bound stays with the workload whose job it names.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeVar

from slurm_bridge.model import names
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler.workload_pods import PLACED, WorkloadPods, job_id_of

K = TypeVar("K")

#: How many ended workloads are remembered, so that their jobs are cancelled without asking whether they really ended.
REMEMBERED = 50_000


#: A workload of one: what a pod is where no object groups pods.
def alone(pod: Pod) -> Root:
    """The workload that is this pod."""
    return Root(kind="Pod", namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.uid)


def _owners(pod: Pod) -> Iterable[str]:
    return (owner.name for owner in pod.metadata.owner_references)


def _within(pod: Pod, root: Root) -> Root:
    """This workload, or the pod by itself where that is one of another namespace: whatever says so is wrong."""
    return root if root.namespace == pod.metadata.namespace else alone(pod)


class PodIndex:
    """Thread-safe; the pods in it are frozen. All pods of a workload are of its own namespace.

    `claim` tells to which workload a pod belongs, `handles` the names of the objects that may have a say in that.
    """

    def __init__(
        self,
        claim: Callable[[Pod], Root] = alone,
        *,
        handles: Callable[[Pod], Iterable[str]] = _owners,
        now: Callable[[], float] = lambda: 0.0,
        remembered: int = REMEMBERED,
    ) -> None:
        self._claim, self._handles, self._now = claim, handles, now
        self._remembered = remembered
        self._lock = threading.RLock()
        self._pods: dict[str, Pod] = {}
        self._roots: dict[str, WorkloadKey] = {}
        self._crews: dict[WorkloadKey, WorkloadPods] = {}
        self._by_handle: dict[tuple[str, str], dict[str, None]] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        #: Those whose last pod went. Of a group it stays known which jobs its members were on: others may come under
        #: the same name before the next look, and the job is not theirs.
        self._gone: OrderedDict[WorkloadKey, WorkloadPods | None] = OrderedDict()
        #: Pods that were bound by a job that is not ours, and that job.
        self._disowned: dict[str, names.JobId] = {}

    def put(self, old: Pod | None, new: Pod | None) -> WorkloadKey:
        """A pod appeared, changed or went; the key of its workload, empty when there was none to hear of."""
        pod = new or old
        if pod is None:
            return NO_WORKLOAD
        root = None if pod.uid in self._roots else _within(pod, self._claim(pod))
        with self._lock:
            known = self._crews[self._roots[pod.uid]].root if pod.uid in self._roots else root
            assert known is not None
            if new is None:
                uid = pod.uid
                self._unfile(uid)
                self._disowned.pop(uid, None)
                if self._pods.pop(uid, None) is not None:
                    self._crews[self._roots.pop(uid)].remove(uid)
                self._bury(known.key)
            else:
                # Its crew takes the new shape for the old one: it is there at every moment.
                self._unfile(pod.uid)
                self._add(new, known)
            return known.key

    def move(self, pod_uid: str, root: Root) -> None:
        """The pod belongs to that workload."""
        with self._lock:
            pod, before = self._pods.get(pod_uid), self._roots.get(pod_uid)
            if pod is None or before == root.key or _within(pod, root) is not root:
                return
            self._unfile(pod_uid)
            self._add(pod, root)
            if before is not None:
                self._crews[before].remove(pod_uid)
                self._leave(before)

    def reclaim(
        self, pod_uids: Iterable[str], settled: Callable[[Pod], bool] = lambda pod: pod.bound
    ) -> frozenset[WorkloadKey]:
        """Ask anew where these pods belong, if it is not settled; all workloads that they left or joined."""
        touched: set[WorkloadKey] = set()
        for uid in pod_uids:
            pod, before = self._pods.get(uid), self._roots.get(uid)
            if pod is None or before is None or settled(pod):
                continue
            root = _within(pod, self._claim(pod))
            if root.key != before:
                self.move(uid, root)
                touched |= {before, root.key}
        return frozenset(touched)

    def _add(self, pod: Pod, root: Root) -> None:
        self._pods[pod.uid] = pod
        self._roots[pod.uid] = root.key
        buried = self._gone.pop(root.key, None)
        disowned = pod.uid in self._disowned and self._disowned[pod.uid] == job_id_of(pod)
        if not disowned:
            self._disowned.pop(pod.uid, None)
        crew = self._crews.get(root.key)
        if crew is None:
            crew = self._crews[root.key] = buried if buried is not None else WorkloadPods(root)
        crew.put(pod, self._now(), disowned=disowned)
        for handle in self._handles(pod):
            self._by_handle.setdefault((pod.metadata.namespace, handle), {})[pod.uid] = None
        if pod.bound and not pod.terminal:
            self._on_node.setdefault(pod.spec.node_name, {})[pod.uid] = None

    def _unfile(self, uid: str) -> None:
        """Out of the indexes that its change may have made wrong."""
        pod = self._pods.get(uid)
        if pod is not None:
            for handle in self._handles(pod):
                _take_out(self._by_handle, (pod.metadata.namespace, handle), uid)
            _take_out(self._on_node, pod.spec.node_name, uid)

    def _leave(self, key: WorkloadKey) -> None:
        """One less, which may have been the last."""
        if not self._crews.get(key):
            self._crews.pop(key, None)

    def _bury(self, key: WorkloadKey) -> None:
        """A member has gone for good."""
        if self._crews.get(key):
            return
        left = self._crews.pop(key, None)
        # A pod never comes again under its uid, and of a group that had no job nothing has to be known.
        self._gone[key] = left if left is not None and left.root.kind != "Pod" and left.served else None
        while len(self._gone) > self._remembered:
            self._gone.popitem(last=False)

    def let_go(self, namespace: str) -> None:
        """Another daemon serves this namespace: its pods are not ours any more. None of them has gone."""
        with self._lock:
            for uid in [uid for uid, pod in self._pods.items() if pod.metadata.namespace == namespace]:
                self._unfile(uid)
                self._disowned.pop(uid, None)
                del self._pods[uid]
                key = self._roots.pop(uid)
                self._crews[key].remove(uid)
                self._leave(key)
            for key in [key for key in self._gone if names.namespace_of(key) == namespace]:
                del self._gone[key]

    def disown(self, pod_uid: str, job_id: names.JobId) -> bool:
        """The pod was bound by this job, which is not ours: from now on it counts as bound by another scheduler.

        False when that is known already, or the pod has changed meanwhile.
        """
        with self._lock:
            pod = self._pods.get(pod_uid)
            if pod is None or job_id_of(pod) != job_id or pod_uid in self._disowned:
                return False
            self._disowned[pod_uid] = job_id
            self._crews[self._roots[pod_uid]].disown(pod_uid)
            return True

    @property
    def disowned(self) -> int:
        """How many pods were bound by jobs that are not ours, as far as these were looked at."""
        return len(self._disowned)

    def handles(self, pod: Pod) -> Iterable[str]:
        """The names of the objects that may have a say in whose this pod is."""
        return self._handles(pod)

    def get(self, uid: str) -> Pod | None:
        """The pod of this uid, None when it was never there or is gone."""
        return self._pods.get(uid)

    def workload(self, key: WorkloadKey) -> WorkloadPods | None:
        """The pods of this workload, None when it has none."""
        return self._crews.get(key)

    def root_of(self, pod_uid: str) -> WorkloadKey | None:
        """The key of the workload that this pod belongs to."""
        return self._roots.get(pod_uid)

    def is_of(self, pod: Pod, owner: Owner) -> bool:
        """The job of this owner is that of the pod's own workload, whatever job the pod names.

        Of a pod that has gone only its namespace is known.
        """
        root = self._roots.get(pod.uid)
        return root == owner.key if root is not None else owner.namespace == pod.metadata.namespace

    def seen_gone(self, key: WorkloadKey) -> bool:
        """We watched its last pod go."""
        return key in self._gone

    def named(self, namespace: str, name: str) -> tuple[str, ...]:
        """The uids of the pods in whose workload an object of this name may have a say."""
        with self._lock:
            return tuple(self._by_handle.get((namespace, name), ()))

    def on_node(self, node: str) -> tuple[Pod, ...]:
        """Our pods that are bound there and not over."""
        with self._lock:
            return tuple(self._pods[uid] for uid in self._on_node.get(node, ()))

    def placed_on(self, node: str) -> tuple[tuple[Pod, WorkloadKey], ...]:
        """Those of them that a job of their workload may have put there, with their workloads."""
        with self._lock:
            there = ((uid, self._roots[uid]) for uid in self._on_node.get(node, ()))
            return tuple((self._pods[uid], key) for uid, key in there if self._crews[key].standing(uid) in PLACED)

    def uids(self) -> tuple[str, ...]:
        """Every pod."""
        with self._lock:
            return tuple(self._pods)

    def roots(self) -> tuple[WorkloadKey, ...]:
        """Every workload that has pods."""
        with self._lock:
            return tuple(self._crews)


def _take_out(files: dict[K, dict[str, None]], name: K, uid: str) -> None:
    filed = files.get(name)
    if filed is None:
        return
    filed.pop(uid, None)
    if not filed:
        del files[name]
