"""Every expression of the board and of the alerts has data while daemons work, in a real Prometheus.

Two daemons are scraped: one with the shipped configuration, queues and APIs, under the load of `make run`, and one with
the node controller, the webhook, and agents that do not answer. Grafana is not among the tests.
"""

import contextlib
import itertools
import json
import math
import pathlib
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import trustme
import yaml

from hack import board_files
from hack.monitoring_table import ALERTS, BOARD
from slurm_bridge.demo import pocket, work
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests import bad_manifests, wait
from tests.component.daemon.running import Running, running
from tests.monitoring import support_prometheus
from tests.monitoring.support_prometheus import Prometheus
from tests.unit.admission import reviews

#: How long there is work, at most; each expression has data at some time until then.
SECONDS = 60.0

#: Alerts that may fire while servers break connections on purpose, and a user writes nonsense.
MAY_FIRE = {"SlurmBridgeHookBackground", "SlurmBridgeSurprises", "SlurmBridgeUnreadable", "SlurmBridgeOrphans"}

#: Pods without a label fill the nodes; those of the small queue wait for its quota.
QUEUES = {
    "partitions": [
        {
            "name": "default",
            "placementrules": [{"name": "provided"}, {"name": "fixed", "value": "root.teams"}],
            "queues": [
                {
                    "name": "root",
                    "submitacl": "*",
                    "queues": [
                        {"name": "teams", "resources": {"guaranteed": {"vcore": "4"}}},
                        {"name": "small", "resources": {"guaranteed": {"vcore": "1"}, "max": {"vcore": "4"}}},
                    ],
                }
            ],
        }
    ]
}

PANELS = [(panel.title, query.expr) for row in BOARD for panel in row.panels for query in panel.queries]
RULES = [(alert.name, alert.value) for alert in ALERTS]


def shipped() -> dict[str, Any]:
    """The configuration of deploy/, with queues and the APIs; values of the pocket world come over it."""
    found: dict[str, Any] = yaml.safe_load(work.configuration())
    found["hooks"].append({"name": "yunikorn", "options": {"configuration": QUEUES}})
    # So few jobs may wait in Slurm that other workloads wait outside.
    found["scheduling"] = {"workers": 2, "unstarted_window": 4}
    found["web"] = {"submission": {"enabled": True}, "administration": {"enabled": True}}
    return found


def families(certificate: pathlib.Path) -> dict[str, Any]:
    """The parts of a daemon that the shipped configuration leaves out."""
    agents = [{"name": "silent", "url": "http://127.0.0.1:9", "timeout_seconds": 0.2}]
    return {
        "cluster_id": "families",
        "leader_election": {"enabled": False, "namespace": "default"},
        "hooks": [
            {"name": "policy"},
            {"name": "vela", "options": {"agents": agents, "max_retries": 3, "backoff_seconds": 1}},
        ],
        "nodes": {"enabled": True, "settle_seconds": 0.5},
        "web": {"tls": {"cert": str(certificate)}},
        "admission": {"enabled": True},
        "managed_namespaces": ["team"],
    }


class Load:
    """What users and administrators do to both daemons, again and again."""

    def __init__(self, board: Running, families: Running) -> None:
        self._board, self._families = board, families
        self._numbers = itertools.count(1_000)
        self._nodes = itertools.cycle((True, None))

    def begin(self) -> None:
        """The objects of `make run`; some answers get lost."""
        world = self._board.world
        work.create(world.cluster, work.programme(40).manifests)
        world.slurm_calls.plan(faults.Drop(), method="POST", target="/job/submit", nth=3)
        wrong = work.pod(999)
        wrong["metadata"]["annotations"][f"{names.JOB_PREFIX}timelimit"] = "soon"
        world.kube.create(kinds.PODS, wrong)
        unreadable = work.pod(998)
        unreadable["spec"]["priority"] = "high"
        world.kube.create(kinds.PODS, unreadable)
        self._families.world.kube.add_nodes("external", labels={names.LABEL_EXTERNAL_NODE: "true"})
        address = [{"type": "InternalIP", "address": "127.0.0.1"}]
        changes = {"status": {"addresses": address}}
        self._families.world.kube.merge(kinds.NODES, ("", "external"), changes, "status")

    def step(self) -> None:
        """More pods than the nodes and the small queue hold, a cordoned node, a review, and callers without a token."""
        number = next(self._numbers)
        for manifest in work.beside(12, number * 20):
            self._board.world.kube.create(work.kind_of(manifest), manifest)
        small = work.pod(number * 20 + 12)
        small["metadata"]["labels"] = {"queue": "root.small"}
        self._board.world.kube.create(kinds.PODS, small)
        self._families.pod(f"sampled-{number}")
        changes = {"spec": {"unschedulable": next(self._nodes)}}
        self._families.world.kube.merge(kinds.NODES, ("", "external"), changes)
        review = reviews.body(bad_manifests.pod("web", ""), asked=reviews.Asked(namespace="team"))
        _post(f"https://127.0.0.1:{self._families.daemon.server.port}/admission/validate", review)
        _post(f"http://127.0.0.1:{self._board.daemon.server.port}/pods", b"{}")
        self._board.get("/queues/config")


def _post(url: str, body: bytes) -> None:
    """Whatever is answered."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    asked = urllib.request.Request(url, data=body, method="POST")  # noqa: S310 - loopback
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(asked, timeout=20, context=context):  # noqa: S310
        pass


def asked(expr: str) -> str:
    """As Grafana would ask for it."""
    return re.sub(r"\$__rate_interval", "30s", expr).replace("$job", ".+")


@contextlib.contextmanager
def daemons(folder: pathlib.Path) -> Iterator[tuple[Running, Running]]:
    """Both, each between pocket servers of its own."""
    certificate = folder / "tls.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    with (
        pocket.world(nodes=6, cpus=8) as world,
        pocket.world(nodes=2) as other,
        running(world, folder / "board.json", **shipped()) as first,
        running(other, folder / "families.json", **families(certificate)) as second,
    ):
        yield first, second


def scrapes(board: Running, families: Running) -> list[dict[str, Any]]:
    """One job for each."""
    return [
        {
            "job_name": name,
            "honor_labels": True,
            "scheme": scheme,
            "tls_config": {"insecure_skip_verify": True},
            "static_configs": [{"targets": [f"127.0.0.1:{daemon.daemon.server.port}"]}],
        }
        for name, scheme, daemon in (("slurm-bridge", "http", board), ("families", "https", families))
    ]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What Prometheus answered to each expression while there was work; and its rules at the end."""
    folder = tmp_path_factory.mktemp("board")
    open_, data = dict.fromkeys(expr for _, expr in (*PANELS, *RULES)), dict[str, Any]()
    with daemons(folder) as (board, families), support_prometheus.running(folder, scrapes(board, families)) as server:
        load = Load(board, families)
        load.begin()
        wait.until(server.up, "scrapes", SECONDS)

        def all_have_data() -> bool:
            load.step()
            for expr in tuple(open_):
                found = [one for one in server.values(asked(expr)).values() if math.isfinite(one)]
                if found:
                    data[expr] = found
                    del open_[expr]
            return not open_

        with contextlib.suppress(AssertionError):  # each expression without data fails a case of its own
            wait.until(all_have_data, "data", SECONDS, every=1.0)
        data["rules"] = server.get("rules")["groups"][0]["rules"]
        data["namespaces"] = namespaces(server)
    return data


def namespaces(server: Prometheus) -> set[str]:
    """What the panel by namespace shows."""
    series = server.values('sum by (namespace) (slurm_bridge_waiting_workloads{job="slurm-bridge"})')
    return {str(json.loads(labels).get("namespace")) for labels in series}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("panel", "expr"), PANELS, ids=[f"{title}-{place}" for place, (title, _) in enumerate(PANELS)])
def test_a_panel_has_data_under_load(panel: str, expr: str, seen: Mapping[str, Any]) -> None:
    """Numbers, and not NaN."""
    assert seen.get(expr), f"{panel}: {asked(expr)}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("alert", "value"), RULES, ids=[name for name, _ in RULES])
def test_an_alert_has_a_value_under_load(alert: str, value: str, seen: Mapping[str, Any]) -> None:
    """One without would stay silent whatever happens."""
    assert seen.get(value), f"{alert}: {value}"


@pytest.mark.timeout(300)
def test_prometheus_evaluates_every_rule(seen: Mapping[str, Any]) -> None:
    """Without an error, and only alerts fire that have a reason in this load."""
    assert {one["name"]: one["health"] for one in seen["rules"]} == {alert.name: "ok" for alert in ALERTS}
    assert {one["name"] for one in seen["rules"] if one["state"] == "firing"} <= MAY_FIRE


@pytest.mark.timeout(300)
def test_the_namespaces_are_those_of_users(seen: Mapping[str, Any]) -> None:
    """With honor_labels the label of the metric wins over the one of the target."""
    assert work.NAMESPACE in seen["namespaces"]


def test_the_expressions_that_are_asked_are_those_of_the_files() -> None:
    """The board that people import, and the rules that they load."""
    shown = json.loads((board_files.FOLDER / "dashboard.json").read_text())["panels"]
    assert [target["expr"] for panel in shown for target in panel.get("targets", ())] == [expr for _, expr in PANELS]
