"""The hook on a small cluster: what is bounded in one pass, and what stays known for the next one."""

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from slurm_bridge import errors
from slurm_bridge.families.device_claims import hook
from slurm_bridge.families.device_claims.hook import DeviceClaims
from slurm_bridge.families.device_claims.judged import MOST_WISHES, JudgedNode, JudgedWishes
from slurm_bridge.hooks.base import GO, Ask, Denied, Session
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from slurm_bridge.model.job import Gres
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod, PodSpec
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate.device_claims import AskedDevices, DeviceRow
from tests.effort import Work
from tests.unit.hooks.builders import pod, request, workload

GPU = "gpu.example.com"
NODES = frozenset({"n1", "n2", "n3", "n4"})
INDEX = f'device.attributes["{GPU}"].index'

Json = dict[str, Any]


@dataclasses.dataclass
class Known:
    """The objects of one kind."""

    objects: dict[tuple[str, str], Object] = dataclasses.field(default_factory=dict)
    version: int = 0

    def get(self, namespace: str, name: str) -> Object | None:
        return self.objects.get((namespace, name))

    def all(self) -> Sequence[Object]:
        return list(self.objects.values())

    def __len__(self) -> int:
        return len(self.objects)

    def put(self, kind: type[Object], written: Json) -> None:
        """As a watch tells it."""
        made = msgspec.json.decode(msgspec.json.encode(written), type=kind)
        self.objects[made.key] = made
        self.version += 1


class Cluster:
    """Views, and one device on each node."""

    def __init__(self) -> None:
        self.views = {need: Known() for need in DeviceClaims.needs}
        self.views[Need.DEVICECLASSES].put(DeviceClass, {"metadata": {"name": GPU}, "spec": {}})
        for node in sorted(NODES):
            self.publish(node)

    def view(self, need: Need) -> Known:
        return self.views[need]

    def publish(self, node: str) -> None:
        """Its driver says the same again, in a new version."""
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": "gpu-0", "attributes": {"index": {"int": int(node[1:])}}}]
        spec = {"driver": GPU, "nodeName": node, "pool": pool, "devices": devices}
        self.views[Need.RESOURCESLICES].put(ResourceSlice, {"metadata": {"name": node}, "spec": spec})

    def claiming(self, *conditions: str) -> Ask:
        """A pod whose claim has these conditions."""
        selectors = [{"cel": {"expression": one}} for one in conditions]
        wanted = {"name": "gpu", "exactly": {"deviceClassName": GPU, "selectors": selectors}}
        meta = {"name": "mine", "namespace": "team"}
        written = {"metadata": meta, "spec": {"devices": {"requests": [wanted]}}}
        self.views[Need.RESOURCECLAIMS].put(ResourceClaim, written)
        spec = PodSpec(resource_claims=({"name": "gpu", "resourceClaimName": "mine"},))
        return Ask(workload=workload(Pod(metadata=pod("a").metadata, spec=spec)), request=request())

    @property
    def session(self) -> Session:
        """As far as the hook looks at it."""
        return cast(Session, self)


@pytest.fixture
def cluster() -> Cluster:
    """Four nodes."""
    return Cluster()


class BusyClock(VirtualClock):
    """Whatever happens between two looks at it takes a hundredth of a second."""

    def now(self) -> float:
        """Later each time."""
        self.advance(0.01)
        return super().now()


@pytest.fixture
def claims() -> DeviceClaims:
    """The hook with one class, on a machine where nothing takes time."""
    return hook_at(VirtualClock())


def hook_at(clock: VirtualClock) -> DeviceClaims:
    """The hook with one class."""
    row = {"device_class": GPU, "gres": "gpu", "index": "index"}
    return DeviceClaims(DeviceClaims.Options.model_validate({"classes": [row]}), HookServices(clock=clock))


@pytest.mark.security("fairness")
def test_other_nodes_that_change_do_not_undo_the_comparison(
    cluster: Cluster, claims: DeviceClaims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass gets to one node; before each pass the slices of a node change, and it still comes to an end."""
    ask = cluster.claiming(f"{INDEX} > 1")
    monkeypatch.setattr(hook, "MOST_LOOK_UPS", 1)
    found: Denied | Wait = claims.filter(cluster.session, ask, NODES)
    for _ in range(8):
        if isinstance(found, Denied):
            break
        assert found.reason == "ComparingDevices"
        cluster.publish("n1")
        found = claims.filter(cluster.session, ask, NODES - {"n1"})
    assert isinstance(found, Denied)


@pytest.mark.security("fairness")
def test_nodes_are_judged_within_the_time_also_without_conditions(cluster: Cluster) -> None:
    """What is judged stays known, so it comes to an end; the namespace pays for it."""
    clock = BusyClock()
    made, ask = hook_at(clock), cluster.claiming()
    for number in range(10, 60):
        cluster.publish(f"n{number}")
    nodes = frozenset(f"n{number}" for number in range(10, 60))
    answers: list[Denied | Wait] = []
    while len(answers) < 100 and not (answers and isinstance(answers[-1], Denied)):
        answers.append(made.filter(cluster.session, ask, nodes))
        clock.advance(getattr(answers[-1], "retry_after", None) or 0.0)
    assert len(answers) > 10
    assert isinstance(answers[-1], Denied)


def test_equal_requests_are_judged_once(cluster: Cluster, claims: DeviceClaims) -> None:
    """A claim may have many of them."""
    sight = claims.devices(cluster.views, "team")
    row = DeviceRow(device_class=GPU, driver=GPU, gres=Gres(name="gpu", type="", count=1), index="index")

    def work(count: int) -> int:
        wish = [AskedDevices(request=f"r{number}", row=row, count=1, selectors=("true",)) for number in range(count)]
        many = [
            dataclasses.replace(one, id=one.id._replace(device=f"g{n}")) for n in range(50) for one in sight.on("n1")
        ]
        with Work() as found:
            dataclasses.replace(sight, on=lambda _node: many).judged(wish, "n1")
        return found.total

    assert work(32) < work(1) + 32 * 50


def test_devices_that_change_are_compared_again(cluster: Cluster, claims: DeviceClaims) -> None:
    """What a node lacked is not what it lacks."""
    ask = cluster.claiming(f"{INDEX} == 7")
    found = claims.filter(cluster.session, ask, frozenset({"n1"}))
    assert isinstance(found, Denied)
    assert set(found.nodes) == {"n1"}
    written = msgspec.json.decode(msgspec.json.encode(cluster.views[Need.RESOURCESLICES].get("", "n1")))
    written["spec"]["devices"][0]["attributes"]["index"] = {"int": 7}
    cluster.views[Need.RESOURCESLICES].put(ResourceSlice, written)
    found = claims.filter(cluster.session, ask, frozenset({"n1"}))
    assert isinstance(found, Denied)
    assert found.nodes == {}


@pytest.mark.security("fairness")
def test_conditions_are_compiled_bit_by_bit(
    cluster: Cluster, claims: DeviceClaims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Admission compiles so many, waits in words, and goes on from there."""
    monkeypatch.setattr(hook, "MOST_EVALUATIONS", 5)
    ask = cluster.claiming(*(f"{INDEX} < {number}" for number in range(10, 24)))
    answers = [claims.admit(cluster.session, ask) for _ in range(3)]
    assert [getattr(one, "reason", "") for one in answers[:2]] == ["ComparingDevices"] * 2
    assert answers[2] == GO


@pytest.mark.security("fairness")
def test_the_scheduler_waits_likewise(cluster: Cluster) -> None:
    """Once Slurm has allocated, conditions that are not known cost no more time than there is for all."""
    cluster.claiming()
    sight = hook_at(BusyClock()).devices(cluster.views, "team")
    (one,) = sight.on("n1")
    with pytest.raises(errors.TryLater) as stopped:
        all(sight.matches(f"{INDEX} < {number}", GPU, one.device) for number in range(10, 10_000))
    assert stopped.value.retry_after


@pytest.mark.security("neighbours")
def test_the_scheduler_of_one_namespace_does_not_wait_for_another(cluster: Cluster) -> None:
    """What a namespace has used up after its allocations is its own part of the time."""
    cluster.claiming()
    made = hook_at(BusyClock())
    greedy, modest = (made.devices(cluster.views, name) for name in ("greedy", "modest"))
    (one,) = greedy.on("n1")
    with pytest.raises(errors.TryLater):
        all(greedy.matches(f"{INDEX} < {number}", GPU, one.device) for number in range(10, 10_000))
    assert modest.matches(f"{INDEX} < 5000", GPU, one.device)


@pytest.mark.security("neighbours")
def test_many_wishes_of_one_namespace_do_not_displace_others() -> None:
    """A namespace with most of them loses its own."""
    row = DeviceRow(device_class=GPU, driver=GPU, gres=Gres(name="gpu", count=1), index="index")
    wishes = [(AskedDevices(request=f"r{number}", row=row, count=1),) for number in range(3 * MOST_WISHES)]
    judged = JudgedWishes()
    ours = judged.of("ours", wishes[0], 1)
    ours["n1"] = JudgedNode((), "lacks", 0)
    for wish in wishes:
        judged.of("theirs", wish, 1)
    assert judged.of("ours", wishes[0], 1) is ours
    assert judged.of("ours", wishes[0], 2) == {}, "other classes may select other devices"
