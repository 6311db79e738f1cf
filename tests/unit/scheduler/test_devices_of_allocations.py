"""Which devices claims get: the tables of `placement.device_claims`, as far as whole runs do not reach them."""

import dataclasses
import types
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from slurm_bridge.cluster.rules.cpu_groups import Cpu
from slurm_bridge.cluster.rules.devices import DeviceSight, NodeDevice
from slurm_bridge.model.devices import (
    AllocatedDevice,
    AllocatedDevices,
    ClaimAllocation,
    Consumer,
    CounterConsumption,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    ExactRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from slurm_bridge.model.job import Gres, NodeShare
from slurm_bridge.model.meta import ObjectMeta, OwnerReference
from slurm_bridge.model.pod import ExtendedClaimStatus, PodStatus
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.device_writes import DeviceWrites
from slurm_bridge.scheduler.effects import device_claims as effects
from slurm_bridge.scheduler.placement import device_claims
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claim_writes import Allocate, DropClaim, TakeBack
from slurm_bridge.scheduler.placement.node_claims import DevicesFound, Holders
from slurm_bridge.translate import class_resources
from slurm_bridge.translate.device_claims import DeviceRow
from tests.effort import Work
from tests.unit.hooks.builders import cluster, node, pod

CLASS = "gpu.x.io"
GPUS = tuple(DeviceId(CLASS, "n1", f"gpu-{number}") for number in range(3))
ROW = DeviceRow(device_class=CLASS, driver=CLASS, gres=Gres(name="gpu", type="", count=1), index="index")
CHOSEN = dataclasses.replace(ROW, chosen=True)
NODE = cluster([node("n1")]).nodes["n1"]


def claim(version: int, *held: DeviceId, name: str = "mine") -> ResourceClaim:
    """A claim for one device; what it holds is for the pod."""
    asked = DeviceRequest(name="gpu", exactly=ExactRequest(device_class_name=CLASS))
    results = tuple(AllocatedDevice(request="gpu", driver=x.driver, pool=x.pool, device=x.device) for x in held)
    status = ResourceClaimStatus(
        allocation=ClaimAllocation(devices=AllocatedDevices(results=results)) if held else None,
        reserved_for=(Consumer(resource="pods", name=POD.metadata.name, uid=POD.uid),) if held else (),
    )
    meta = ObjectMeta(name=name, namespace=POD.metadata.namespace, uid=f"uid-{name}", resource_version=str(version))
    return ResourceClaim(metadata=meta, spec=ResourceClaimSpec(devices=DeviceClaim(requests=(asked,))), status=status)


POD = pod("a", resource_claims=({"name": "it", "resourceClaimName": "mine"},))
PLAIN = pod("a")
MADE = {class_resources.ANNOTATION: "true"}


def sight(*claims: ResourceClaim, row: DeviceRow = ROW) -> DeviceSight:
    """Three devices on one node."""
    known = {one.key: one for one in claims}
    there = [
        NodeDevice(id=gpu, device=Device(name=gpu.device, attributes={"index": DeviceAttribute(integer=number)}))
        for number, gpu in enumerate(GPUS)
    ]
    return DeviceSight(
        rows={CLASS: row},
        claim=lambda namespace, name: known.get((namespace, name)),
        holder=lambda device: next((one for one in claims if device in one.held), None),
        device_class=lambda name: DeviceClass(metadata=ObjectMeta(name=name)),
        on=lambda _node: there,
        matches=lambda *_: True,
    )


def look(seen: DeviceSight, given: str = "gpu:1(IDX:0)", **more: Any) -> DevicesFound:
    """What the claim of the pod gets."""
    of = {device: one for device in GPUS if (one := seen.holder(device)) is not None}
    spots = [Spot(pod=POD, slurm_name="n1", node=NODE)]
    share = NodeShare(node="n1", cpus=1, memory_mib=1, devices=given)
    return device_claims.look(spots, {"n1": share}, {}, seen, Holders(of=of, left=lambda _claim: True, **more))


def test_a_claim_that_is_being_written_is_waited_for() -> None:
    """It may lose the right devices at this moment, or get some: neither is its pod bound, nor is it written."""
    for one in (claim(1), claim(1, GPUS[0])):
        found = look(sight(one), busy=frozenset({one.uid}))
        assert (found.writes, found.soon) == ((), True)
        assert "is being written" in found.message


def test_a_claim_that_is_being_written_is_not_taken_back_besides() -> None:
    """It has what this pod is to get."""
    other = claim(1, GPUS[0], name="other")
    assert [type(one) for one in look(sight(claim(1), other)).writes] == [TakeBack]
    found = look(sight(claim(1), other), busy=frozenset({other.uid}))
    assert (found.writes, found.soon) == ((), True)


def test_a_claim_that_may_have_lost_its_devices_loses_them_first() -> None:
    """Only a write tells whether it has them."""
    one = claim(1, GPUS[0])
    assert look(sight(one)).waiting == {}
    assert look(sight(one), doubted=frozenset({one.uid})).writes == (TakeBack(one),)


def test_without_an_index_devices_of_an_earlier_job_are_not_right() -> None:
    """Slurm does not say that the job has them; where any will do they stay."""
    one = claim(1, GPUS[0])
    assert look(sight(one), "gpu:1").writes == (TakeBack(one),)
    assert look(sight(one, row=CHOSEN), "gpu:1").waiting == {}


def test_a_write_of_which_the_watch_tells_meanwhile_is_seen() -> None:
    """Whichever is read first: the claims have the device, or the record has it."""
    writes, store = DeviceWrites(), {"mine": claim(1)}
    writes.begin(store["mine"], [GPUS[0]])
    writes.over(store["mine"], 0.0)

    def holder(device: DeviceId) -> ResourceClaim | None:
        found = store["mine"]
        store["mine"] = claim(2, GPUS[0])
        return found if device in found.held else None

    seen = dataclasses.replace(sight(), holder=holder, claim=lambda _namespace, name: store.get(name))
    ctx = types.SimpleNamespace(device_writes=writes, clock=types.SimpleNamespace(now=lambda: 1.0))
    assert GPUS[0] in effects.holders(cast("SchedulerContext", ctx), seen, ["n1"]).of


def test_only_the_devices_of_the_nodes_are_looked_up() -> None:
    """However many claims there are elsewhere."""
    asked: list[DeviceId] = []

    def holder(device: DeviceId) -> ResourceClaim | None:
        asked.append(device)
        return None

    ctx = types.SimpleNamespace(device_writes=DeviceWrites(), clock=types.SimpleNamespace(now=lambda: 1.0))
    found = effects.holders(cast("SchedulerContext", ctx), dataclasses.replace(sight(), holder=holder), ["n1"])
    assert (found.of, asked) == ({}, list(GPUS))


def part(name: str, *sets: str, index: int = 0) -> NodeDevice:
    """A slice of a GPU, which consumes these counters."""
    consumed = tuple(CounterConsumption(counter_set=one) for one in sets)
    said = Device(name=name, attributes={"index": DeviceAttribute(integer=index)}, consumes_counters=consumed)
    return NodeDevice(id=DeviceId(CLASS, "n1", name), device=said)


def holders_of(seen: DeviceSight) -> Holders:
    """As the scheduler finds them."""
    ctx = types.SimpleNamespace(device_writes=DeviceWrites(), clock=types.SimpleNamespace(now=lambda: 1.0))
    return effects.holders(cast("SchedulerContext", ctx), seen, ["n1"])


@pytest.mark.security("neighbours")
def test_a_claim_with_a_group_of_cpus_has_each_of_them() -> None:
    """Where it does not say which ones."""
    group = DeviceId(CLASS, "n1", "group")
    theirs = claim(1, group, name="theirs")
    cpus = [
        NodeDevice(
            id=group._replace(device=f"group/{number}"), device=Device(name="group"), cpu=Cpu(number, number, "c")
        )
        for number in range(2)
    ]
    seen = dataclasses.replace(sight(theirs), on=lambda _node: cpus)
    assert holders_of(seen).of == {one.id: theirs for one in cpus}


class TestParts:
    """Slices of GPUs, of which Slurm gives the whole."""

    ROW = dataclasses.replace(ROW, partitions=True)

    def look(self, there: Sequence[NodeDevice], back: Sequence[NodeDevice], *claims: ResourceClaim) -> DevicesFound:
        """What the claim of the pod gets where these can be given away, and those are kept back."""
        seen = sight(*claims, row=self.ROW)
        seen = dataclasses.replace(seen, on=lambda _node: there, kept_back=lambda _node: back)
        holders = dataclasses.replace(holders_of(seen), left=lambda _claim: False)
        spots = [Spot(pod=POD, slurm_name="n1", node=NODE)]
        share = NodeShare(node="n1", cpus=1, memory_mib=1, devices="gpu:1(IDX:0)")
        return device_claims.look(spots, {"n1": share}, {}, seen, holders)

    @pytest.mark.security("neighbours")
    def test_a_slice_with_a_taint_still_has_its_part(self) -> None:
        """Its pod runs on: another slice of the GPU is not given away."""
        held, other = part("mig-0", "g0"), part("mig-1", "g0")
        theirs = claim(1, held.id, name="theirs")
        found = self.look([other], [held], claim(1), theirs)
        assert found.writes == ()
        assert "ResourceClaim team/theirs still has" in found.message

    @pytest.mark.security("fairness")
    def test_many_slices_cost_little(self) -> None:
        """Eight requests for slices of eight GPUs, each of which has thirty that overlap; other claims have some."""
        every = [part(f"mig-{gpu}-{number}", f"g{gpu}", index=gpu) for gpu in range(9) for number in range(30)]
        requests = tuple(
            DeviceRequest(name=f"r{number}", exactly=ExactRequest(device_class_name=CLASS)) for number in range(8)
        )
        one = msgspec.structs.replace(claim(1), spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)))
        theirs = claim(1, every[-1].id, name="theirs")
        seen = dataclasses.replace(sight(one, theirs, row=self.ROW), on=lambda _node: every)
        share = NodeShare(node="n1", cpus=1, memory_mib=1, devices="gpu:8(IDX:0-7)")
        holders = holders_of(seen)
        with Work() as work:
            found = device_claims.look([Spot(pod=POD, slurm_name="n1", node=NODE)], {"n1": share}, {}, seen, holders)
        (write,) = found.writes
        assert isinstance(write, Allocate)
        assert {device.device.split("-")[1] for _, device in write.devices} == set("01234567")
        assert work.total < 50 * len(every)


class TestAllDevices:
    """A claim for all devices of a node, which has three."""

    @staticmethod
    def look(given: str, row: DeviceRow = ROW, **more: Any) -> DevicesFound:
        """What it gets where Slurm gave these."""
        asked = DeviceRequest(name="gpu", exactly=ExactRequest(device_class_name=CLASS, allocation_mode="All"))
        one = msgspec.structs.replace(claim(1), spec=ResourceClaimSpec(devices=DeviceClaim(requests=(asked,))))
        return look(dataclasses.replace(sight(one, row=row), **more), given)

    @pytest.mark.parametrize(("given", "row"), [("gpu:3(IDX:0-2)", ROW), ("gpu:3", CHOSEN), ("gpu:4(IDX:0-3)", ROW)])
    def test_it_gets_all_of_them(self, given: str, row: DeviceRow) -> None:
        """Also where Slurm gives one more, which the driver does not publish."""
        (write,) = self.look(given, row).writes
        assert isinstance(write, Allocate)
        assert [device for _, device in write.devices] == list(GPUS)

    def test_nodes_are_given_back_where_slurm_has_not_given_all(self) -> None:
        """The node is avoided: two of three are not all."""
        misfit = self.look("gpu:2(IDX:0,2)").misfit
        assert misfit is not None
        assert misfit.nodes == ("n1",)

    @pytest.mark.parametrize("name", ["gpu-9", ""])
    def test_devices_that_cannot_be_given_are_some_of_all(self, name: str) -> None:
        """One with a taint, or a pool of which the driver has published a part."""
        other = NodeDevice(id=DeviceId(CLASS, "n1", name), device=Device(name=name))
        assert self.look("gpu:3(IDX:0-2)", kept_back=lambda _node: (other,)).misfit is not None
        other = NodeDevice(id=DeviceId("nic.x.io", "n1", name), device=Device(name=name))
        assert self.look("gpu:3(IDX:0-2)", kept_back=lambda _node: (other,)).misfit is None


class TestSiblings:
    """Two pods of one job, each with a claim of its own."""

    @staticmethod
    def look(
        mine: ResourceClaim,
        theirs: ResourceClaim,
        given: str,
        there: Sequence[NodeDevice] = (),
        **of: ResourceClaim,
    ) -> DevicesFound:
        """`of` says which claim may have which device already: answers were lost."""
        other = pod("b", resource_claims=({"name": "it", "resourceClaimName": "theirs"},))
        users = ResourceClaimStatus(
            allocation=theirs.status.allocation,
            reserved_for=(Consumer(resource="pods", name="b", uid=other.uid),) if theirs.held else (),
        )
        row = dataclasses.replace(ROW, partitions=bool(there))
        seen = sight(mine, msgspec.structs.replace(theirs, status=users), row=row)
        seen = dataclasses.replace(seen, on=lambda _node: there) if there else seen
        share = NodeShare(node="n1", cpus=1, memory_mib=1, devices=given)
        spots = [Spot(pod=one, slurm_name="n1", node=NODE) for one in (POD, other)]
        maybe = {GPUS[int(name[-1])]: one for name, one in of.items()}
        return device_claims.look(spots, {"n1": share}, {}, seen, Holders(of=maybe, left=lambda _claim: False))

    def test_what_one_may_have_already_is_not_given_to_the_other(self) -> None:
        """An earlier write of it may have happened: then both would have the device."""
        mine, theirs = claim(1), claim(1, name="theirs")
        found = self.look(mine, theirs, "gpu:3(IDX:0-2)", gpu1=mine, gpu2=theirs)
        given = {one.claim.key[1]: one.devices[0][1] for one in found.writes if isinstance(one, Allocate)}
        assert given == {"mine": GPUS[0], "theirs": GPUS[2]}

    def test_where_each_may_have_what_the_other_needs_they_wait(self) -> None:
        """The watch tells, or what was tried has not happened: it is looked at again."""
        mine, theirs = claim(1), claim(1, name="theirs")
        found = self.look(mine, theirs, "gpu:2(IDX:0-1)", gpu0=mine, gpu1=mine)
        assert (found.writes, found.soon) == ((), True)
        assert "ResourceClaim team/mine still has" in found.message

    def test_a_device_that_both_have_is_taken_back_from_one(self) -> None:
        """No pod is bound before."""
        mine, theirs = claim(1, GPUS[1]), claim(1, GPUS[1], name="theirs")
        found = self.look(mine, theirs, "gpu:3(IDX:0-2)", gpu1=mine)
        assert [(type(one), one.claim.key[1]) for one in found.writes if isinstance(one, TakeBack)] == [
            (TakeBack, "theirs")
        ]
        assert found.waiting

    def test_parts_of_one_gpu_that_both_have_are_taken_back_from_one(self) -> None:
        """They are different devices, which share counters."""
        parts = part("mig-0", "g0"), part("mig-1", "g0")
        mine, theirs = claim(1, parts[0].id), claim(1, parts[1].id, name="theirs")
        found = self.look(mine, theirs, "gpu:2(IDX:0-1)", parts)
        assert [one.claim.key[1] for one in found.writes if isinstance(one, TakeBack)] == ["theirs"]


class TestNotNeeded:
    """A pod whose status names the claim for its extended resources, and that needs none any more."""

    @staticmethod
    def look(one: ResourceClaim, named: str = "", **more: Any) -> DevicesFound:
        """What becomes of the claim."""
        status = ExtendedClaimStatus(resource_claim_name=named or class_resources.name_of(PLAIN))
        user = msgspec.structs.replace(PLAIN, status=PodStatus(extended_resource_claim_status=status))
        holders = Holders(of={}, left=lambda _claim: False, **more)
        return device_claims.look([Spot(pod=user, slurm_name="n1", node=NODE)], {}, {}, sight(one), holders)

    @staticmethod
    def claim(name: str = "", **annotations: str) -> ResourceClaim:
        """A claim that belongs to the pod, as the bridge makes it or otherwise."""
        owner = OwnerReference(api_version="v1", kind="Pod", name="a", uid=PLAIN.uid, controller=True)
        one = claim(1, name=name or class_resources.name_of(PLAIN))
        return msgspec.structs.replace(
            one, metadata=msgspec.structs.replace(one.metadata, annotations=annotations, owner_references=(owner,))
        )

    def test_the_claim_is_deleted(self) -> None:
        """And the status names none any more."""
        one = self.claim(**MADE)
        assert [each.claim for each in self.look(one).writes if isinstance(each, DropClaim)] == [one]

    def test_a_claim_that_is_being_written_is_not_deleted(self) -> None:
        """The watch has not told of its last version yet."""
        one = self.claim(**MADE)
        found = self.look(one, busy=frozenset({one.uid}))
        assert (found.writes, found.soon) == ((), True)

    @pytest.mark.security("neighbours")
    @pytest.mark.parametrize(("name", "marks"), [("mine", MADE), ("mine", {}), ("", {})])
    def test_a_claim_that_the_bridge_has_not_made_is_not_deleted(self, name: str, marks: dict[str, str]) -> None:
        """A status that names another claim of the pod, such as that of a template, loses only that name."""
        one = self.claim(name, **marks)
        found = self.look(one, one.metadata.name)
        assert [each.claim for each in found.writes if isinstance(each, DropClaim)] == [None]
