"""The webhook over HTTPS: a process of its own, and the daemon."""

import contextlib
import http.client
import json
import pathlib
import random
import ssl
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trustme

from slurm_bridge import app, errors, ports
from slurm_bridge.daemon import configuration as daemon_configuration
from slurm_bridge.daemon.admission_api import AdmissionReviewer
from slurm_bridge.daemon.namespace_labels import NamespaceLabels
from slurm_bridge.daemon.review_turns import SMALL_ONES
from slurm_bridge.daemon.webhook import WebhookService
from slurm_bridge.demo import pocket
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import kinds, names
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.sim import faults
from slurm_bridge.telemetry.admission import AdmissionMetrics
from slurm_bridge.web.admission import MUTATE
from slurm_bridge.web.routes import Request, RouteTable
from tests import wait
from tests.bad_manifests import pod
from tests.component.daemon.running import configuration, running
from tests.unit.admission import reviews

Json = dict[str, Any]


@pytest.fixture
def world() -> Iterator[pocket.PocketWorld]:
    """Both servers."""
    with pocket.world(nodes=1) as made:
        yield made


@pytest.fixture
def authority() -> trustme.CA:
    """Of the certificate."""
    return trustme.CA()


@pytest.fixture
def web(authority: trustme.CA, tmp_path: pathlib.Path) -> Json:
    """Settings with a certificate for loopback."""
    file = tmp_path / "tls.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(file))
    return {"port": 0, "tls": {"cert": str(file)}}


class Caller:
    """What the API server and the kubelet do."""

    def __init__(self, authority: trustme.CA, port: int) -> None:
        self._port, self._context = port, ssl.create_default_context()
        authority.configure_trust(self._context)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Status and content."""
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=wait.PATIENCE, context=self._context)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if "json" in answer.headers["content-type"] else text

    def review(self, manifest: Json, namespace: str = "team", step: str = "validate") -> Json:
        """The response to a review."""
        given = reviews.body(manifest, asked=reviews.Asked(namespace=namespace))
        status, content = self.ask("POST", f"/admission/{step}", given)
        assert status == 200
        response: Json = content["response"]
        return response

    def changed(self, namespace: str) -> bool:
        """Whether a pod that names no scheduler becomes the bridge's there."""
        return "patch" in self.review(pod("web", ""), namespace, "mutate")


@contextlib.contextmanager
def serving(given: app.Configuration, authority: trustme.CA) -> Iterator[tuple[WebhookService, Caller]]:
    """A webhook that runs; it has ended well with the block."""
    status: list[int] = []
    with app.webhook(given) as service:
        thread = threading.Thread(target=lambda: status.append(service.run()), name="webhook")
        thread.start()
        try:
            yield service, Caller(authority, service.server.port)
        finally:
            service.supervisor.stop.set()
            thread.join(30)
    assert status == [0]


def test_t62_it_answers_reviews_without_slurm(
    world: pocket.PocketWorld, authority: trustme.CA, web: Json, tmp_path: pathlib.Path
) -> None:
    """It needs neither a token nor an answer of Slurm, and it is ready when it serves."""
    path = tmp_path / "config.json"
    absent = {"url": "http://127.0.0.1:9", "token_file": str(tmp_path / "absent")}
    given = configuration(world, path, web=web, managed_namespaces=["team"], slurm=absent)
    alone = app.Configuration(path=path, environ={}, overrides=[one for one in given.overrides if "slurm" not in one])
    with serving(alone, authority) as (_, caller):
        assert caller.ask("GET", "/readyz")[0] == 200
        assert caller.changed("team")
        assert not caller.changed("other")
        refused = caller.review(pod("web", names.SCHEDULER_NAME, {names.JOB_PREFIX + "qos": "a b"}))
        assert "use a name" in refused["status"]["message"]
        assert caller.ask("POST", "/admission/validate", b"{}")[0] == 400
        assert caller.ask("POST", "/admission/validate", b"x" * ((3 << 20) + 1))[0] == 413
        page = caller.ask("GET", "/metrics")[1]
        labels = 'kind="Pod",outcome="refused",webhook="validate"'
        assert f"slurm_bridge_admission_review_duration_seconds_count{{{labels}}} 1.0" in page


def test_t63_a_new_configuration_counts_from_the_next_review_on(
    world: pocket.PocketWorld, authority: trustme.CA, web: Json, tmp_path: pathlib.Path
) -> None:
    """No restart is needed; one that cannot work changes nothing."""
    path = tmp_path / "config.json"
    with serving(configuration(world, path, web=web), authority) as (service, caller):
        assert not caller.changed("team")
        assert service.reloader is not None
        configuration(world, path, web=web, managed_namespaces=["kube-system"])
        assert service.reloader.now() is not None
        assert not caller.changed("kube-system")
        configuration(world, path, web=web, managed_namespaces=["team"])
        assert service.reloader.now() is None
        assert caller.changed("team")


def test_namespaces_are_managed_by_their_labels(
    world: pocket.PocketWorld, authority: trustme.CA, web: Json, tmp_path: pathlib.Path
) -> None:
    """One that is younger than the watch is read; those of the cluster and of the bridge are never managed."""
    path = tmp_path / "config.json"
    for name, labels in (("blue", {"slurm": "yes"}), ("red", {})):
        world.kube.create(kinds.NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    given = configuration(world, path, web=web, managed_namespace_selector="slurm=yes")
    with serving(given, authority) as (_, caller):
        wait.until(lambda: caller.ask("GET", "/readyz")[0] == 200, "readiness", every=0.02)
        assert caller.changed("blue")
        assert not caller.changed("red")
        assert not caller.changed("absent")
        assert not caller.changed("kube-system")


def test_young_namespaces_are_read_over_one_connection(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> None:
    """It is opened at the first namespace that the watch does not know, and kept."""
    opened: list[ports.Cluster] = []
    settings, clock = configuration(world, tmp_path / "config.json").load(), SystemClock()
    with app.both(settings, clock) as (cluster, _):

        def reads() -> ports.Cluster:
            opened.append(cluster)
            return cluster

        labels = NamespaceLabels(lambda: cluster, clock, random.Random(1), reads)
        assert labels.of("absent") == {}
        assert opened == []
        labels.follow()
        try:
            for number in range(3):
                assert labels.of(f"absent-{number}") == {}
        finally:
            labels.stop()
    assert opened == [cluster]


def test_a_review_waits_for_no_namespace_in_a_turn(
    world: pocket.PocketWorld, web: Json, tmp_path: pathlib.Path
) -> None:
    """While reads of a namespace are not answered, more reviews than there are turns are answered about others."""
    given = configuration(world, tmp_path / "config.json", web=web, managed_namespace_selector="slurm=yes").load()
    asked, may_answer = threading.Semaphore(0), threading.Event()

    class Slow(NamespaceLabels):
        """Knows all but one namespace."""

        def of(self, name: str) -> Mapping[str, str]:
            if name == "slow":
                asked.release()
                assert may_answer.wait(wait.PATIENCE)
            return {"slurm": "yes"}

        def follow(self) -> None:
            """The watch is of no interest."""

    def unused() -> ports.Cluster:
        raise AssertionError

    labels = Slow(unused, SystemClock(), random.Random(1))
    config = daemon_configuration.changeable(given, ChainServices(clock=SystemClock(), threads=False))
    metrics = AdmissionMetrics(version="0")
    routes = AdmissionReviewer(given, config, labels, metrics, SystemClock()).routes()
    with contextlib.closing(config.chain), ThreadPoolExecutor(SMALL_ONES + 1) as pool:

        def review(namespace: str) -> int:
            body = reviews.body(pod("web", ""), asked=reviews.Asked(namespace=namespace))
            request = Request(method="POST", path=MUTATE, query={}, headers={}, body=body, client="")
            return RouteTable(routes).answer(request).status

        late = [pool.submit(review, "slow") for _ in range(SMALL_ONES)]
        for _ in late:
            assert asked.acquire(timeout=wait.PATIENCE)
        try:
            assert pool.submit(review, "team").result(wait.PATIENCE) == 200
        finally:
            may_answer.set()
        assert [one.result(wait.PATIENCE) for one in late] == [200] * SMALL_ONES


def test_the_daemon_serves_it_too(
    world: pocket.PocketWorld, authority: trustme.CA, web: Json, tmp_path: pathlib.Path
) -> None:
    """Where the settings say so; every replica answers."""
    given = {"web": web, "admission": {"enabled": True}, "managed_namespaces": ["team"]}
    with running(world, tmp_path / "config.json", **given) as daemon:
        caller = Caller(authority, daemon.daemon.server.port)
        wait.until(lambda: caller.ask("GET", "/readyz")[0] == 200, "readiness", every=0.02)
        assert caller.changed("team")


def test_a_daemon_that_cannot_list_namespaces_schedules_all_the_same(
    world: pocket.PocketWorld, web: Json, tmp_path: pathlib.Path
) -> None:
    """Only reviews need their labels: the daemon is not ready for these, and pods are bound."""
    given = {"web": web, "admission": {"enabled": True}, "managed_namespace_selector": "batch=yes"}
    world.kube_calls.plan(
        faults.Answer(403, b"", "application/json"), method="GET", target=r"/namespaces\?", times=10_000
    )
    with running(world, tmp_path / "config.json", **given) as daemon:
        spec = {"schedulerName": names.SCHEDULER_NAME, "containers": [{"name": "main", "image": "none"}]}
        world.kube.create(kinds.PODS, {"metadata": {"name": "one", "namespace": "default"}, "spec": spec})

        def bound() -> bool:
            found = world.kube.get(kinds.PODS, "default", "one")
            return bool(found and found["spec"].get("nodeName"))

        wait.until(bound, "its node", 30, every=0.05)
        assert "namespaces" in str(daemon.daemon.health.readyz())


def test_without_a_certificate_it_does_not_start(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> None:
    """The API server calls webhooks over HTTPS only."""
    path = tmp_path / "config.json"
    with pytest.raises(errors.BadConfiguration, match=r"web\.tls"), app.webhook(configuration(world, path)):
        pass
    with (
        pytest.raises(errors.BadConfiguration, match=r"admission: needs web\.tls"),
        app.daemon(configuration(world, path, admission={"enabled": True})),
    ):
        pass
