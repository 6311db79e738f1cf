"""The admin service of the queues on real servers: the API server says whose tokens these are.

The queues are in a file that is exchanged as a kubelet exchanges those of a ConfigMap.
"""

import contextlib
import dataclasses
import http.client
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from tests import wait
from tests.e2e import support_daemon, support_families, support_farm, support_queues, support_servers, support_world
from tests.e2e.support_families import pods
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_queues import most, pod, queue, refused
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: The account that all daemons share gets a right here, and other cases need it missing: none runs beside these.
pytestmark = [pytest.mark.real, pytest.mark.disruptive]

PROGRAM = pathlib.Path(sys.executable).with_name("slurm-bridge")
SECONDS = 60.0
OPEN_TO_ALL = {"submitacl": "*"}
FIRST = (queue("a", resources=most(vcore="1"), **OPEN_TO_ALL),)
SECOND = (queue("a", resources=most(vcore="2"), **OPEN_TO_ALL), queue("b", **OPEN_TO_ALL))


def text(*queues: Json) -> str:
    """A file of queues; ann administers them."""
    root = {"name": "root", "adminacl": "ann", "queues": list(queues)}
    partition = {"name": "default", "placementrules": [{"name": "provided"}], "queues": [root]}
    return yaml.safe_dump({"partitions": [partition]})


class Mounted:
    """A folder as a kubelet mounts a ConfigMap: what is in it changes by moving a link."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder, self._version = folder, 0
        self.file = folder / "queues.yaml"
        self.file.symlink_to(pathlib.Path("..data") / "queues.yaml")

    def write(self, words: str) -> None:
        """Another version of it."""
        self._version += 1
        inside = self._folder / f"..version-{self._version}"
        inside.mkdir()
        (inside / "queues.yaml").write_text(words)
        (self._folder / "..new").symlink_to(inside.name)
        (self._folder / "..new").replace(self._folder / "..data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Office:
    """A world whose daemon has queues from a file, and service accounts that want something of them."""

    world: World
    mounted: Mounted
    folder: pathlib.Path

    @property
    def port(self) -> int:
        return int(self.world.daemon.settings["web"]["port"])

    def token(self, name: str) -> pathlib.Path:
        """The file with the token of a new service account, as the API server issues it."""
        accounts = f"/api/v1/namespaces/{self.world.namespace}/serviceaccounts"
        self.world.kube.create(accounts, {"metadata": {"name": name}})
        issued = self.world.kube.create(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 600}})
        file = self.folder / name
        file.touch(mode=0o600)
        file.write_text(issued["status"]["token"])
        return file

    def ask(self, method: str, path: str, token: str = "") -> tuple[int, Json]:
        """Status, and what the JSON says."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            found: Json = json.loads(answer.read())
            return answer.status, found

    def command(self, *words: str, token: pathlib.Path) -> tuple[int, str]:
        """What `slurm-bridge queues …` ends with and says."""
        url = f"http://127.0.0.1:{self.port}"
        line = [str(PROGRAM), "queues", *words, "--url", url, "--token-file", str(token)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """One node, with room for more than any queue may have."""
    with support_farm.built(kube, slurm, 0, cpus=8) as made:
        yield made


@pytest.fixture(scope="module")
def office(
    farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Office]:
    """Its daemon has the rights of deploy/yunikorn and deploy/submission.

    Its service account `root-admin` is ann, and no other is.
    """
    mounted = Mounted(tmp_path_factory.mktemp("mounted"))
    mounted.write(text(*FIRST))
    with support_families.granted(kube, "yunikorn", "submission"):
        world = open_world("administered", start=False, defaults={"partition": farm.partition})
        users = [{"namespaces": [world.namespace], "service_accounts": ["root-admin"], "user": "ann"}]
        hooks = [{"name": "yunikorn", "options": {"file": str(mounted.file), "users": users}}]
        settings = {**world.daemon.settings, "hooks": hooks}
        settings["web"] = {**settings["web"], "administration": {"enabled": True, "requests_per_second": 50}}
        world.daemon.configure(settings)
        world.daemon.start()
        world.daemon.await_ready()
        wait.until(lambda: support_queues.page(world), "queues", support_daemon.READY_SECONDS)
        yield Office(world=world, mounted=mounted, folder=tmp_path_factory.mktemp("tokens"))


@pytest.fixture(scope="module")
def admin(office: Office) -> pathlib.Path:
    """The token of the administrator, once the daemon may have tokens reviewed."""
    file = office.token("root-admin")
    token = file.read_text()
    wait.until(lambda: office.ask("GET", "/queues/config", token)[0] == 200, "the right to review tokens", 15)
    return file


@pytest.fixture(autouse=True)
def begun(office: Office, admin: pathlib.Path) -> None:
    """Each test begins with the first configuration."""
    office.mounted.write(text(*FIRST))
    assert office.command("reload", token=admin)[0] == 0


def test_only_administrators_of_the_root_may_change_it(office: Office, admin: pathlib.Path) -> None:
    """The API server decides: not another account, and no request without a token or with an unknown one."""
    other = office.token("other").read_text()
    paths = [("GET", "/queues/config"), ("POST", "/queues/validate"), ("POST", "/queues/reload")]
    for token, status in ((other, 403), ("made-up", 401), ("", 401)):
        assert [office.ask(*path, token)[0] for path in paths] == [status] * len(paths)
    status, said = office.ask("GET", "/queues/config", admin.read_text())
    assert (status, yaml.safe_load(said["configuration"])) == (200, yaml.safe_load(text(*FIRST)))
    assert (said["file"], said["error"]) == (str(office.mounted.file), None)
    _, said = office.ask("POST", "/queues/reload", other)
    account = f"system:serviceaccount:{office.world.namespace}:other"
    assert said["message"].startswith(f"{account} does not administer the queues")
    told = office.world.daemon.log.read_text()
    assert account in told
    assert not [token for token in (other, admin.read_text()) if token[-40:] in told]


def test_a_token_for_another_audience_is_none(office: Office) -> None:
    """What was issued for another audience says nothing to the API server."""
    accounts = f"/api/v1/namespaces/{office.world.namespace}/serviceaccounts"
    issued = office.world.kube.create(f"{accounts}/root-admin/token", {"spec": {"audiences": ["elsewhere"]}})
    assert office.ask("GET", "/queues/config", issued["status"]["token"])[0] == 401


def test_a_token_whose_account_is_gone_is_none(office: Office) -> None:
    """From then on: nothing that was once decided is kept."""
    token = office.token("leaves").read_text()
    assert office.ask("GET", "/queues/config", token)[0] == 403
    office.world.kube.delete(f"/api/v1/namespaces/{office.world.namespace}/serviceaccounts/leaves")
    wait.until(lambda: office.ask("GET", "/queues/config", token)[0] == 401, "the end of its token", 30, every=1.0)


def test_a_reload_takes_over_a_changed_file_with_all_that_is_in_the_queues(office: Office, admin: pathlib.Path) -> None:
    """The new maximum lets a waiting pod in, the new queue one that was refused, and a running pod goes on."""
    world = office.world
    with pods(world, pod(world, "runs", "root.a")):
        world.await_pod("runs", "a node", support_world.is_bound, SECONDS)
        with pods(world, pod(world, "waits", "root.a"), pod(world, "lost", "root.b")):
            world.await_pod("waits", "its turn", support_world.waits_for("QueueWaiting"), SECONDS)
            world.await_pod("lost", "refusal", refused("root.b does not exist"), SECONDS)
            office.mounted.write(text(*SECOND))
            status, said = office.command("reload", token=admin)
            assert (status, "version" in said) == (0, True), said
            for name in ("waits", "lost"):
                world.await_pod(name, "a node", support_world.is_bound, SECONDS)
            assert support_queues.used(world, "root.a") == 2


def test_a_broken_file_keeps_the_last_good_one_and_says_why(office: Office, admin: pathlib.Path) -> None:
    """In the answer, in the configuration that is shown, and in the log; the next good one takes the complaint away."""
    before = office.ask("GET", "/queues/config", admin.read_text())[1]
    office.mounted.write(text(*FIRST, queue("b c")))
    status, said = office.command("reload", token=admin)
    assert status == 1
    assert all(words in said for words in ("the last good one stays", "'b c'", before["version"]))
    now = office.ask("GET", "/queues/config", admin.read_text())[1]
    assert (now["version"], now["since"], now["configuration"]) == (
        before["version"],
        before["since"],
        before["configuration"],
    )
    assert "'b c'" in now["error"]["problems"][0]
    assert "root.a" in support_queues.shown(office.world)
    office.mounted.write(text(*SECOND))
    assert office.command("reload", token=admin)[0] == 0
    assert office.ask("GET", "/queues/config", admin.read_text())[1]["error"] is None


def test_a_dry_run_knows_which_pods_are_in_the_queues(office: Office, admin: pathlib.Path) -> None:
    """What would be fine elsewhere cannot take the place of this one; nothing is changed by asking."""
    world, file = office.world, office.folder / "mine.yaml"
    file.write_text(text(queue("a", queue("below"))))
    assert office.command("validate", str(file), token=admin)[0] == 0
    with pods(world, pod(world, "inside", "root.a")):
        world.await_pod("inside", "a node", support_world.is_bound, SECONDS)
        status, said = office.command("validate", str(file), token=admin)
        assert (status, "root.a" in said) == (1, True), said
        file.write_text(text(*SECOND))
        assert office.command("validate", str(file), token=admin)[0] == 0
        assert "root.b" not in support_queues.shown(world)


def test_a_mounted_file_that_changes_is_followed_without_being_asked(office: Office) -> None:
    """As the daemon's own configuration is."""
    office.mounted.write(text(*SECOND))
    wait.until(lambda: "root.b" in support_queues.shown(office.world), "the new queue", SECONDS, every=0.2)
