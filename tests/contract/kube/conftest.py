"""The apiservers that the cases ask: a pocket one that this run starts, and the real one of the local cluster."""

import dataclasses
import pathlib
import random
from collections.abc import Callable, Iterator, Mapping

import kubetalk
import pytest
import urllib3

from localcluster import envfile
from slurm_bridge.kube import client, config
from slurm_bridge.runtime import clock
from slurm_bridge.sim.kube import access, world
from tests.direct_kube import DirectAccess
from tests.direct_line import Line

#: A token that is known and allows nothing, where the server lets us choose one.
POWERLESS = "powerless-token"


@pytest.fixture(scope="session")
def pocket() -> Iterator[world.PocketKubeServer]:
    """One pocket world for all modules, in real time."""
    kube = world.PocketKube(tokens={POWERLESS: access.User(name="powerless", rules=())})
    kube.add_nodes("pocket-1", "pocket-2")
    with world.PocketKubeServer(kube) as server:
        yield server


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KubeServer:
    """An apiserver and the way in as its administrator."""

    kind: str
    kubeconfig: pathlib.Path


@pytest.fixture(scope="session")
def kube_server(
    server_kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> KubeServer:
    """The server of this run of the cases; the kubeconfig is a copy of our own."""
    copied = tmp_path_factory.mktemp("kube") / "kubeconfig"
    if server_kind != "real":
        server: world.PocketKubeServer = request.getfixturevalue("pocket")
        server.write_kubeconfig(copied)
    else:
        variables: Mapping[str, str] = envfile.read()
        copied.touch(mode=0o600)
        copied.write_bytes(pathlib.Path(variables["KUBECONFIG"]).read_bytes())
    return KubeServer(kind=server_kind, kubeconfig=copied)


@pytest.fixture(scope="module")
def cluster_port(kube_server: KubeServer, request: pytest.FixtureRequest) -> Iterator[client.KubeClient]:
    """Our adapter, as an administrator."""
    time = clock.SystemClock()
    if kube_server.kind == "direct":
        pocket: world.PocketKubeServer = request.getfixturevalue("pocket")
        way = DirectAccess(Line(pocket.kube.handler, clock=time), token=pocket.kube.token)
        made = client.KubeClient(way, clock=time, dice=random.Random(1))
    else:
        made = client.KubeClient(config.from_kubeconfig(kube_server.kubeconfig), clock=time, dice=random.Random(1))
    yield made
    made.close()


@pytest.fixture(scope="session")
def talk(kube_server: KubeServer) -> kubetalk.Talk:
    """The apiserver, asked as its administrator."""
    return kubetalk.Talk.from_kubeconfig(kube_server.kubeconfig)


@pytest.fixture(scope="module")
def room(talk: kubetalk.Talk, request: pytest.FixtureRequest) -> Iterator[kubetalk.Room]:
    """A namespace of the module's own, deleted afterwards."""
    name = kubetalk.fresh(request.module.__name__.rpartition(".")[2].replace("_", "-"))
    answer = talk.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.status == 201, answer.body
    path = f"/api/v1/namespaces/{name}"
    accounts = f"{path}/serviceaccounts"
    if talk.ask("GET", "/apis/apiregistration.k8s.io").status == 200:  # a full server admits pods once this is there
        kubetalk.wait_for(lambda: "default" in talk.ask("GET", accounts).names, "the default service account")
    yield kubetalk.Room(talk=talk, namespace=name)
    pods = talk.ask("GET", f"{path}/pods").names
    for pod in pods:
        talk.ask("PATCH", f"{path}/pods/{pod}", {"metadata": {"finalizers": None}}, media=kubetalk.MERGE)
        talk.ask("DELETE", f"{path}/pods/{pod}", {"gracePeriodSeconds": 0})
    talk.ask("DELETE", path)


@pytest.fixture(scope="session")
def forget_beginnings(server_kind: str) -> Callable[[], None]:
    """Let the server forget its first versions, as every server has after some minutes; later ones are kept."""
    if server_kind != "real":
        return lambda: None  # it is born so
    variables: Mapping[str, str] = envfile.read()
    etcd = variables["ETCD_URL"]

    def compact() -> None:
        answer = urllib3.PoolManager().request("POST", f"{etcd}/v3/kv/compaction", json={"revision": 20}, timeout=10)
        assert answer.status == 200 or b"compacted" in answer.data, answer.data

    return compact
