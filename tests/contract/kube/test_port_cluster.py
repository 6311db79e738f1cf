"""Every verb of ports.Cluster, as our adapter speaks it, against whatever server the harness gives."""

import concurrent.futures
import contextlib
import os
import queue
import random
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Self

import msgspec
import pytest

from localcluster.config import Config
from slurm_bridge import errors, ports
from slurm_bridge.informers.informer import Informer
from slurm_bridge.informers.reflector import ReflectorSubject
from slurm_bridge.kube import client
from slurm_bridge.model import kinds
from slurm_bridge.model.lease import Lease, LeaseSpec
from slurm_bridge.model.meta import Manifest, Object, ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.workloads import kind_table
from tests import wait
from tests.e2e import support_definitions, support_kai, support_servers

NOBODY = "nobody"
OTHER_UID = "00000000-0000-0000-0000-000000000000"
UNSERVED = kinds.Kind(group="nowhere.example", versions=("v1",), plural="things", kind="Thing", record=Object)


@pytest.fixture(scope="module")
def cluster(cluster_port: client.KubeClient) -> client.KubeClient:
    """Our adapter, as an administrator."""
    return cluster_port


@pytest.fixture(scope="module")
def namespace(cluster: client.KubeClient) -> Iterator[str]:
    """A namespace in which pods can be made (its service account comes a moment after it)."""
    made = cluster.create(kinds.NAMESPACES, "", {"metadata": {"name": f"port-{secrets.token_hex(3)}"}})
    name = made.metadata.name
    eventually(lambda: cluster.create(kinds.PODS, name, pod_manifest("first")))
    yield name
    cluster.delete(kinds.NAMESPACES, made)


def eventually(call: Callable[[], object], *, tries: int = 100) -> object:
    """What the call returns once it is allowed."""
    pause = threading.Event()
    for _ in range(tries):
        try:
            return call()
        except (errors.NotAuthorized, errors.Conflict):
            pause.wait(0.1)
    return call()


def pod_manifest(name: str, **metadata: object) -> Manifest:
    """A pod that nobody schedules."""
    spec = {"schedulerName": NOBODY, "containers": [{"name": "main", "image": "none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def lease_manifest(name: str, **metadata: object) -> Manifest:
    """The cheapest object there is."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, **metadata}, "spec": {}}


@pytest.fixture
def pod(cluster: client.KubeClient, namespace: str) -> Pod:
    """A pod of this case alone."""
    return cluster.create(kinds.PODS, namespace, pod_manifest(f"pod-{secrets.token_hex(4)}"))


@pytest.fixture
def lease(cluster: client.KubeClient, namespace: str) -> Lease:
    """A lease of this case alone."""
    return cluster.create(kinds.LEASES, namespace, lease_manifest(f"lease-{secrets.token_hex(4)}"))


def another(item: Lease | Pod) -> Lease | Pod:
    """The same name, another incarnation."""
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, uid=OTHER_UID))


#: What a local cluster without frameworks does not have: defined for a case of its own.
NOT_IN_THE_CLUSTER = (support_kai.GROUP, "kubeflow.org")


@pytest.fixture
def defined(server_kind: str, kind: kinds.Kind) -> Iterator[None]:
    """The kind is served, if need be for this case alone."""
    with contextlib.ExitStack() as stack:
        if server_kind == "real" and kind.group in NOT_IN_THE_CLUSTER:
            kube = stack.enter_context(contextlib.closing(support_servers.Kubernetes(Config.resolve(os.environ))))
            if kind.group == support_kai.GROUP:
                stack.enter_context(support_kai.defined(kube))
            else:
                served = support_definitions.served(kube, kind.group, kind.versions[0], kind.kind, kind.plural)
                stack.enter_context(served)
        yield


class TestServed:
    @pytest.mark.usefixtures("defined")
    @pytest.mark.parametrize("kind", kind_table.RESOURCES, ids=lambda kind: f"{kind.plural}.{kind.group or 'core'}")
    def test_every_kind(self, cluster: client.KubeClient, kind: kinds.Kind) -> None:
        """Each kind of the table is served in a version that we speak, and can be listed."""
        assert cluster.served(kind) in kind.versions
        assert cluster.list(kind).resource_version

    def test_not_served(self, cluster: client.KubeClient) -> None:
        """A kind that the server does not know is None."""
        assert cluster.served(UNSERVED) is None


class TestCreate:
    def test_returns_what_was_made(self, pod: Pod, namespace: str) -> None:
        """A created object comes back with identity and version."""
        assert pod.metadata.namespace == namespace
        assert pod.uid
        assert pod.metadata.resource_version
        assert pod.spec.scheduler_name == NOBODY

    def test_taken_name(self, cluster: client.KubeClient, namespace: str, pod: Pod) -> None:
        """A name can be taken once."""
        with pytest.raises(errors.Conflict) as caught:
            cluster.create(kinds.PODS, namespace, pod_manifest(pod.metadata.name))
        assert caught.value.reason == "AlreadyExists"

    def test_unacceptable(self, cluster: client.KubeClient, namespace: str) -> None:
        """What cannot be an object is invalid."""
        with pytest.raises(errors.Invalid):
            cluster.create(kinds.PODS, namespace, pod_manifest("Not_A_Name"))

    def test_absent_namespace(self, cluster: client.KubeClient) -> None:
        """Nothing can be made in a namespace that is not there."""
        with pytest.raises(errors.NotFound):
            cluster.create(kinds.PODS, "absent", pod_manifest("a"))

    def test_namespace_on_its_way_out(self, cluster: client.KubeClient) -> None:
        """Nothing can be made in a namespace that is being deleted, and that is not reported as a missing right."""
        doomed = cluster.create(kinds.NAMESPACES, "", {"metadata": {"name": f"doomed-{secrets.token_hex(3)}"}})
        name = doomed.metadata.name
        held = cluster.create(kinds.LEASES, name, lease_manifest("held", finalizers=["example.com/hold"]))
        cluster.delete(kinds.NAMESPACES, doomed)
        with pytest.raises(errors.Conflict):
            cluster.create(kinds.LEASES, name, lease_manifest("late"))
        cluster.patch(kinds.LEASES, held, {"metadata": {"finalizers": None}})


class TestGet:
    def test_present(self, cluster: client.KubeClient, namespace: str, pod: Pod) -> None:
        """An object is what was made of it."""
        found = cluster.get(kinds.PODS, namespace, pod.metadata.name)
        assert found is not None
        assert found.uid == pod.uid

    @pytest.mark.parametrize("where", ["", "absent"])
    def test_absent(self, cluster: client.KubeClient, namespace: str, where: str) -> None:
        """An object that is not there is None, also where its namespace is not."""
        assert cluster.get(kinds.PODS, where or namespace, "absent") is None


class TestList:
    def test_scope(self, cluster: client.KubeClient, namespace: str) -> None:
        """Namespace, labels and fields choose."""
        mark = secrets.token_hex(4)
        one = cluster.create(kinds.PODS, namespace, pod_manifest(f"one-{mark}", labels={"mark": mark}))
        cluster.create(kinds.PODS, namespace, pod_manifest(f"two-{mark}"))
        by_label = cluster.list(kinds.PODS, ports.Scope(labels=f"mark={mark}"))
        assert [item.uid for item in by_label.items] == [one.uid]
        fields = f"spec.schedulerName={NOBODY},metadata.name=one-{mark}"
        assert len(cluster.list(kinds.PODS, ports.Scope(namespace=namespace, fields=fields)).items) == 1
        assert cluster.list(kinds.PODS, ports.Scope(namespace="absent")).items == ()
        assert (
            cluster.list(kinds.PODS, ports.Scope(fields="spec.schedulerName=other", labels=f"mark={mark}")).items == ()
        )

    def test_many_pages(self, cluster: client.KubeClient, namespace: str) -> None:
        """More than one page is still one listing, complete and without doubles."""
        mark = secrets.token_hex(4)
        labels = {"mark": mark}
        names = [f"many-{mark}-{number}" for number in range(520)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(
                pool.map(
                    lambda name: cluster.create(kinds.LEASES, namespace, lease_manifest(name, labels=labels)), names
                )
            )
        listing = cluster.list(kinds.LEASES, ports.Scope(namespace=namespace, labels=f"mark={mark}"))
        assert sorted(item.metadata.name for item in listing.items) == sorted(names)


class TestWatch:
    @pytest.mark.streams
    def test_changes_in_order(self, cluster: client.KubeClient, namespace: str) -> None:
        """A watch from a list's version tells every change after it, in order."""
        scope = ports.Scope(namespace=namespace, labels=f"mark={secrets.token_hex(4)}")
        since = cluster.list(kinds.LEASES, scope).resource_version
        labels = dict([str(scope.labels).split("=")])
        with Watching(cluster, since, scope) as watching:
            made = cluster.create(kinds.LEASES, namespace, lease_manifest(f"w-{secrets.token_hex(4)}", labels=labels))
            changed = cluster.patch(kinds.LEASES, made, {"spec": {"holderIdentity": "me"}})
            cluster.delete(kinds.LEASES, changed)
            first, second, third = (watching.next() for _ in range(3))
        assert first == ports.Put(made)
        assert second == ports.Put(changed)
        assert isinstance(third, ports.Gone)
        assert third.object.uid == made.uid
        assert third.object.metadata.resource_version not in ("", changed.metadata.resource_version)

    def test_history(self, cluster: client.KubeClient, namespace: str, lease: Lease) -> None:
        """What happened between list and watch is told by the watch."""
        cluster.patch(kinds.LEASES, lease, {"metadata": {"labels": {"later": "yes"}}})
        scope = ports.Scope(namespace=namespace, fields=f"metadata.name={lease.metadata.name}")
        with Watching(cluster, lease.metadata.resource_version, scope) as watching:
            change = watching.next()
        assert isinstance(change, ports.Put)
        assert change.object.metadata.labels == {"later": "yes"}

    @pytest.mark.streams
    def test_leaving_the_scope(self, cluster: client.KubeClient, namespace: str) -> None:
        """An object that no longer fits the selector is gone for this watch."""
        mark = secrets.token_hex(4)
        made = cluster.create(kinds.LEASES, namespace, lease_manifest(f"l-{mark}", labels={"mark": mark}))
        scope = ports.Scope(namespace=namespace, labels=f"mark={mark}")
        with Watching(cluster, made.metadata.resource_version, scope) as watching:
            cluster.patch(kinds.LEASES, made, {"metadata": {"labels": {"mark": None}}})
            change = watching.next()
        assert isinstance(change, ports.Gone)
        assert change.object.uid == made.uid

    def test_close_from_another_thread(self, cluster: client.KubeClient, namespace: str) -> None:
        """Closing wakes a thread that waits for the next change."""
        since = cluster.list(kinds.LEASES).resource_version
        watching = Watching(cluster, since, ports.Scope(namespace=namespace, labels="nothing=here"))
        with watching:
            pass
        assert not watching.is_alive()


class Watching(threading.Thread):
    """Follows a watch beside the case; what it heard is taken with `next`."""

    def __init__(self, cluster: client.KubeClient, since: str, scope: ports.Scope) -> None:
        super().__init__(daemon=True)
        self._changes = cluster.watch(kinds.LEASES, since, scope)
        self._heard: queue.SimpleQueue[object] = queue.SimpleQueue()

    def run(self) -> None:
        for change in self._changes:
            if not isinstance(change, ports.Bookmark):
                self._heard.put(change)

    def next(self) -> object:
        """The next change, within reason."""
        return self._heard.get(timeout=wait.PATIENCE)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._changes.close()
        self.join(wait.PATIENCE)


class TestPatch:
    def test_merges(self, cluster: client.KubeClient, namespace: str) -> None:
        """Named fields change, null removes, the rest stays."""
        labels = {"keep": "1", "drop": "1"}
        made = cluster.create(kinds.LEASES, namespace, lease_manifest(f"p-{secrets.token_hex(4)}", labels=labels))
        changed = cluster.patch(kinds.LEASES, made, {"metadata": {"labels": {"drop": None, "new": "1"}}})
        assert changed.metadata.labels == {"keep": "1", "new": "1"}
        assert changed.uid == made.uid

    @pytest.mark.parametrize("subresource", ["", "status"])
    def test_another_incarnation(self, cluster: client.KubeClient, pod: Pod, subresource: str) -> None:
        """A patch for another incarnation changes nothing."""
        with pytest.raises(errors.Conflict):
            cluster.patch(kinds.PODS, another(pod), {"metadata": {"labels": {"x": "y"}}}, subresource)
        found = cluster.get(kinds.PODS, *pod.key)
        assert found is not None
        assert found.metadata.resource_version == pod.metadata.resource_version

    def test_status(self, cluster: client.KubeClient, pod: Pod) -> None:
        """The status is patched on its own path."""
        assert cluster.patch(kinds.PODS, pod, {"status": {"message": "words"}}, "status").status.message == "words"

    def test_absent(self, cluster: client.KubeClient, lease: Lease) -> None:
        """What is gone cannot be patched."""
        cluster.delete(kinds.LEASES, lease)
        with pytest.raises(errors.NotFound):
            cluster.patch(kinds.LEASES, lease, {"metadata": {"labels": {"x": "y"}}})


class TestDelete:
    def test_deletes(self, cluster: client.KubeClient, pod: Pod) -> None:
        """A deleted object is gone, and cannot be deleted again."""
        cluster.delete(kinds.PODS, pod, grace_seconds=0)
        assert cluster.get(kinds.PODS, *pod.key) is None
        with pytest.raises(errors.NotFound):
            cluster.delete(kinds.PODS, pod)

    def test_another_incarnation(self, cluster: client.KubeClient, pod: Pod) -> None:
        """A delete for another incarnation leaves this one."""
        with pytest.raises(errors.Conflict):
            cluster.delete(kinds.PODS, another(pod))
        assert cluster.get(kinds.PODS, *pod.key) is not None

    def test_finalizer(self, cluster: client.KubeClient, namespace: str) -> None:
        """An object with a finalizer stays, marked, until the finalizer is removed."""
        held = lease_manifest(f"held-{secrets.token_hex(4)}", finalizers=["example.com/hold"])
        made = cluster.create(kinds.LEASES, namespace, held)
        cluster.delete(kinds.LEASES, made)
        found = cluster.get(kinds.LEASES, *made.key)
        assert found is not None
        assert found.metadata.deletion_timestamp
        cluster.patch(kinds.LEASES, found, {"metadata": {"finalizers": None}})
        assert cluster.get(kinds.LEASES, *made.key) is None


class TestEvict:
    def test_evicts(self, cluster: client.KubeClient, pod: Pod) -> None:
        """A pending pod without a budget goes."""
        cluster.evict(*pod.key, pod.uid)
        found = cluster.get(kinds.PODS, *pod.key)
        assert found is None or found.terminating

    def test_another_incarnation(self, cluster: client.KubeClient, pod: Pod) -> None:
        """An eviction for another incarnation leaves this one."""
        with pytest.raises(errors.Conflict):
            cluster.evict(*pod.key, OTHER_UID)
        assert cluster.get(kinds.PODS, *pod.key) is not None

    def test_absent(self, cluster: client.KubeClient, namespace: str) -> None:
        """What is gone cannot be evicted."""
        with pytest.raises(errors.NotFound):
            cluster.evict(namespace, "absent", OTHER_UID)


def binding(pod: Pod, **changes: object) -> ports.Binding:
    """Binds to a node that no kubelet watches."""
    fields = {"namespace": pod.metadata.namespace, "pod": pod.metadata.name, "uid": pod.uid, "node": "no-such-node"}
    return ports.Binding(**{**fields, **changes})


class TestBind:
    def test_one_write(self, cluster: client.KubeClient, pod: Pod) -> None:
        """A binding sets the node and leaves its marks in the same write."""
        version = pod.metadata.resource_version
        cluster.bind(binding(pod, resource_version=version, annotations={"a": "1"}, labels={"l": "1"}))
        found = cluster.get(kinds.PODS, *pod.key)
        assert found is not None
        assert found.spec.node_name == "no-such-node"
        assert found.metadata.annotations.items() >= {"a": "1"}.items()
        assert found.metadata.labels.items() >= {"l": "1"}.items()

    @pytest.mark.parametrize("stale", [{"uid": OTHER_UID}, {"resource_version": "1"}], ids=["uid", "version"])
    def test_not_the_pod_we_saw(self, cluster: client.KubeClient, pod: Pod, stale: dict[str, str]) -> None:
        """A binding for another incarnation or version does nothing."""
        with pytest.raises(errors.Conflict):
            cluster.bind(binding(pod, **stale))
        found = cluster.get(kinds.PODS, *pod.key)
        assert found is not None
        assert not found.bound

    def test_twice(self, cluster: client.KubeClient, pod: Pod) -> None:
        """A bound pod never moves."""
        cluster.bind(binding(pod))
        with pytest.raises(errors.Conflict):
            cluster.bind(binding(pod, node="elsewhere"))

    def test_absent(self, cluster: client.KubeClient, pod: Pod) -> None:
        """A pod that is gone cannot be bound."""
        cluster.delete(kinds.PODS, pod, grace_seconds=0)
        with pytest.raises(errors.NotFound):
            cluster.bind(binding(pod))


class TestEvent:
    @pytest.mark.parametrize("warning", [False, True])
    def test_note(self, cluster: client.KubeClient, pod: Pod, *, warning: bool) -> None:
        """A note becomes an event in the namespace of its object."""
        name = pod.metadata.name
        fields = {"kind": "Pod", "api_version": "v1", "namespace": pod.metadata.namespace, "name": name, "uid": pod.uid}
        cluster.event(ports.Note(**fields, reason="Waiting", message="é" * 2000, warning=warning))
        events = cluster.list(kinds.EVENTS, ports.Scope(namespace=pod.metadata.namespace)).items
        assert any(event.metadata.name.startswith(name) for event in events)

    def test_cluster_wide_object(self, cluster: client.KubeClient) -> None:
        """A note about a node is accepted, too."""
        name = f"node-{secrets.token_hex(4)}"
        note = ports.Note(
            kind="Node", api_version="v1", namespace="", name=name, uid="u", reason="Why", message="words"
        )
        cluster.event(note)
        events = cluster.list(kinds.EVENTS, ports.Scope(namespace="default")).items
        assert any(event.metadata.name.startswith(name) for event in events)


class TestLease:
    def test_life(self, cluster: client.KubeClient, namespace: str) -> None:
        """A lease is absent, then ours, then renewed; a write of an old version, or a second creation, is refused."""
        name = f"leader-{secrets.token_hex(4)}"
        assert cluster.lease(namespace, name) is None
        spec = LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time="2026-01-02T03:04:05.000006Z")
        new = Lease(metadata=ObjectMeta(namespace=namespace, name=name), spec=spec)
        first = cluster.write_lease(new)
        assert cluster.lease(namespace, name) == first
        assert first.spec == spec
        second = cluster.write_lease(msgspec.structs.replace(first, spec=LeaseSpec(holder_identity="you")))
        assert second.spec.holder_identity == "you"
        for late in (first, new):
            with pytest.raises(errors.Conflict):
                cluster.write_lease(late)

    def test_deleted(self, cluster: client.KubeClient, lease: Lease) -> None:
        """Renewing a lease that was deleted meanwhile is refused: the uid that we send does not become a new lease."""
        cluster.delete(kinds.LEASES, lease)
        with pytest.raises(errors.Conflict, match="UID"):
            cluster.write_lease(lease)


class TestInformer:
    @pytest.mark.streams
    def test_follows(self, cluster: client.KubeClient, namespace: str) -> None:
        """An informer on this port holds what there is, and hears of what comes and goes."""
        mark = secrets.token_hex(4)
        heard: queue.SimpleQueue[tuple[Object | None, Object | None]] = queue.SimpleQueue()
        subject = ReflectorSubject(cluster=cluster, kind=kinds.LEASES, scope=ports.Scope(labels=f"mark={mark}"))
        before = cluster.create(kinds.LEASES, namespace, lease_manifest(f"b-{mark}", labels={"mark": mark}))
        informer = Informer(
            subject,
            clock=SystemClock(),
            dice=random.Random(1),
            handlers=(lambda old, new: heard.put((old, new)),),
        )
        informer.start()
        try:
            assert heard.get(timeout=10) == (None, before)
            after = cluster.create(kinds.LEASES, namespace, lease_manifest(f"a-{mark}", labels={"mark": mark}))
            assert heard.get(timeout=10) == (None, after)
            cluster.delete(kinds.LEASES, before)
            old, new = heard.get(timeout=10)
            assert (old and old.uid, new) == (before.uid, None)
            assert [item.uid for item in informer.store.all()] == [after.uid]
        finally:
            informer.stop()
