"""ResourceClaims: Slurm is asked for GRES, on nodes that have the devices, and claims get what Slurm has allocated."""

import dataclasses
import pathlib
from typing import Any

import pytest

from slurm_bridge.families.device_claims import hook, selectors
from slurm_bridge.hooks import chain, needs
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.claimed_devices import (
    DRIVER,
    Devices,
    Json,
    bridge_of,
    exactly,
    hooks,
    results_of,
    using,
)
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import NAMESPACE, World

SORTS = ("small", "big")
MODEL = f'device.attributes["{DRIVER}"].model'


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """On hybrid nodes, with the hook."""
    return bridge_of(tmp_path)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """The GPUs of its nodes."""
    return Devices(bridge)


def asked(bridge: Bridge, pod: str = "a") -> str:
    """The GRES of the pod's job, as `name:count`."""
    ask = bridge.job(pod).ask
    return ",".join(f"{one.name}:{one.count}" for one in (*ask.gres_per_node, *ask.gres_per_task))


class TestRequest:
    """What Slurm is asked for."""

    def test_a_claim_of_a_template_is_gres(self, bridge: Bridge, devices: Devices) -> None:
        """The claim is made after the pod; the pod waits for it in words."""
        bridge.slurm.control.pause()
        bridge.pod("a", spec=using("two"))
        bridge.run(3)
        assert bridge.condition("a")[0] == "WaitsForResourceClaims"
        assert "ResourceClaimTemplate two" in bridge.condition("a")[1]
        assert bridge.submits() == 0
        devices.template("two", exactly(count=2))
        bridge.run(3)
        assert asked(bridge) == "gpu:2"

    def test_several_claims_and_requests_are_added(self, bridge: Bridge, devices: Devices) -> None:
        """One of a template with two requests, and one by its name."""
        devices.template("pair", exactly("first"), exactly("second", 2))
        devices.claim("mine")
        bridge.slurm.control.pause()
        bridge.pod("a", spec=using("pair", more="mine"))
        bridge.run(3)
        assert asked(bridge) == "gpu:4"

    def test_of_alternatives_the_first_of_the_table_counts(self, bridge: Bridge, devices: Devices) -> None:
        """A class that Slurm knows nothing of is passed over."""
        options = [{"name": "x", "deviceClassName": "x.io"}, {"name": "g", "deviceClassName": DRIVER, "count": 3}]
        devices.template("any", {"name": "gpu", "firstAvailable": options})
        bridge.slurm.control.pause()
        bridge.pod("a", spec=using("any"))
        bridge.run(3)
        assert asked(bridge) == "gpu:3"

    @pytest.mark.parametrize(
        ("request_", "spec", "words"),
        [
            (exactly(adminAccess=True), {}, ("adminAccess",)),
            (exactly(allocationMode="Some"), {}, ("allocationMode Some", "ExactCount")),
            (exactly(deviceClassName="x.io"), {}, ("DeviceClass x.io", DRIVER)),
            (exactly(), {"constraints": [{"matchAttribute": "a/b"}]}, ("constraints",)),
            (exactly("gpu", 1, "[1].all(x, x > 0)"), {}, ("selector", "calls all")),
            (exactly("gpu", 1, "true ||"), {}, ("selector", "cannot be read as CEL")),
        ],
    )
    def test_what_slurm_cannot_be_asked_for_is_told(
        self, bridge: Bridge, devices: Devices, request_: Json, spec: Json, words: tuple[str, ...]
    ) -> None:
        """With the claim, the field, and what would help."""
        devices.claim("odd", request_, **spec)
        bridge.pod("a", spec=using(it="odd"))
        bridge.run(3)
        reason, message = bridge.condition("a")
        assert reason == "DevicesNotRequestable"
        assert all(word in message for word in (f"ResourceClaim {NAMESPACE}/odd", *words)), message
        assert bridge.submits() == 0

    @pytest.mark.security("input")
    def test_a_claim_that_was_not_made_for_the_pod_is_none_of_it(self, bridge: Bridge, devices: Devices) -> None:
        """A pod status that names the claim of another pod gives the pod nothing."""
        devices.claim("others")
        bridge.pod("a", spec=using("absent"))
        bridge.status("a", resourceClaimStatuses=[{"name": "absent", "resourceClaimName": "others"}])
        bridge.run(3)
        assert "was not created for this pod" in bridge.condition("a")[1]
        assert bridge.submits() == 0

    def test_the_gres_annotation_beside_a_claim_is_told(self, bridge: Bridge, devices: Devices) -> None:
        """It would replace what the claims need."""
        devices.template()
        bridge.pod("a", spec=using("one"), annotations={f"{names.JOB_PREFIX}gres": "gpu:1"})
        bridge.run(3)
        assert bridge.condition("a")[0] == "InvalidAnnotation"
        assert "ResourceClaims" in bridge.condition("a")[1]


class TestNodes:
    """Which nodes Slurm is asked for."""

    def test_nodes_without_such_devices_are_left_out(self, bridge: Bridge, devices: Devices) -> None:
        """There are four big GPUs on n2 only; those of n1 are small, and n4 has two."""
        devices.template("big", exactly("gpu", 3, f'{MODEL} == "big"'))
        bridge.slurm.control.pause()
        bridge.pod("a", spec=using("big"))
        bridge.run(3)
        assert set(bridge.job().ask.excluded) == {"n1", "n3", "s4"}

    def test_nodes_with_other_devices_beside_them_are_left_out(self, bridge: Bridge, devices: Devices) -> None:
        """Slurm would give any of them: the user is told so, and no allocation is tried in vain."""
        for node in ("n2", "n4"):
            devices.retract(node)
            devices.publish(node, 2, "small", "big")
        devices.template("big", exactly("gpu", 1, f'{MODEL} == "big"'))
        bridge.pod("a", spec=using("big"))
        bridge.run(3)
        assert bridge.submits() == 0
        assert "2 node(s) have devices of the same gres that do not meet the claims" in bridge.condition("a")[1]

    def test_devices_that_are_nowhere_are_waited_for(self, bridge: Bridge, devices: Devices) -> None:
        """A driver that publishes them wakes the pod."""
        devices.template("huge", exactly("gpu", 1, f'{MODEL} == "huge"'))
        bridge.pod("a", spec=using("huge"))
        bridge.run(3)
        assert bridge.submits() == 0
        assert "4 node(s) do not have the claimed devices" in bridge.condition("a")[1]
        devices.retract("n2")
        devices.publish("n2", 4, "huge")
        bridge.until(lambda: bridge.submits() == 1)

    def test_many_conditions_are_compared_bit_by_bit(
        self, bridge: Bridge, devices: Devices, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pass makes a few evaluations, and the next one goes on from there."""
        monkeypatch.setattr(hook, "MOST_EVALUATIONS", 2)
        devices.template("third", exactly("gpu", 1, f'device.attributes["{DRIVER}"].index < 9'))
        bridge.pod("a", spec=using("third"))
        bridge.until(lambda: bridge.condition("a")[0] == "ComparingDevices")
        bridge.until(lambda: bridge.node_of("a"))


class TestAllocation:
    """What claims get once Slurm has allocated."""

    def test_the_claims_get_what_slurm_allocated(self, bridge: Bridge, devices: Devices) -> None:
        """By its indices; a native job has two of the node's GPUs."""
        bridge.world.submit("gpus", required_nodes=["n1"], tres_per_node="gres/gpu:2")
        bridge.world.pass_time(2)
        devices.template("two", exactly(count=2))
        bridge.pod("a", spec={**using("two"), "nodeSelector": {"kubernetes.io/hostname": "n1"}})
        bridge.until(lambda: bridge.node_of("a"))
        assert devices.held("a") == ["n1/gpu-2", "n1/gpu-3"]
        (claim,) = devices.of("a")
        assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "a", "uid": bridge.uid("a")}]
        (term,) = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]

    def test_drivers_are_handed_the_parameters_of_a_claim(self, bridge: Bridge, devices: Devices) -> None:
        """As they are written, and only those for requests that there are."""
        opaque = {"driver": DRIVER, "parameters": {"sharing": {"strategy": "TimeSlicing"}, "list": [1, 2.5, None]}}
        devices.claim("mine", config=[{"opaque": opaque}, {"requests": ["other"], "opaque": opaque}])
        bridge.pod("a", spec=using(it="mine"))
        bridge.until(lambda: bridge.node_of("a"))
        (claim,) = devices.claims()
        assert claim["status"]["allocation"]["devices"]["config"] == [{"source": "FromClaim", "opaque": opaque}]

    def test_nodes_are_kept_while_there_is_no_time_to_compare(
        self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was known when Slurm was asked is forgotten: it is compared again, as soon as there is time for it."""
        monkeypatch.setattr(selectors, "MOST_RESULTS", 1)
        bridge = bridge_of(tmp_path)
        devices = Devices(bridge)
        devices.template("third", exactly("gpu", 1, f'device.attributes["{DRIVER}"].index < 9'))
        bridge.slurm.control.pause()
        bridge.pod("a", spec=using("third"))
        bridge.until(lambda: bridge.submits() == 1)
        with monkeypatch.context() as nothing_saved:
            nothing_saved.setattr(selectors, "MOST_SAVED", -1e-9)
            bridge.slurm.control.unpause()
            bridge.run(20)
            assert not bridge.node_of("a")
            assert devices.held("a") == []
            assert bridge.condition("a")[0] == "WaitsForDevices"
            assert "compared with the conditions (CEL)" in bridge.condition("a")[1]
        bridge.until(lambda: bridge.node_of("a"))
        assert bridge.submits() == 1

    def test_nodes_are_given_back_when_there_is_no_time_to_compare(
        self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After `workloads.volume_seconds`, as with every other wait for claims."""
        monkeypatch.setattr(selectors, "MOST_RESULTS", 1)
        world = World(1, tmp_path / "token", fleet=fleet.HYBRID)
        bridge = Bridge(tmp_path, world=world, hooks=hooks(), workloads={"volume_seconds": 30})
        devices = Devices(bridge)
        devices.template("third", exactly("gpu", 1, f'device.attributes["{DRIVER}"].index < 9'))
        bridge.slurm.control.pause()
        bridge.pod("a", spec=using("third"))
        bridge.until(lambda: bridge.submits() == 1)
        monkeypatch.setattr(selectors, "MOST_SAVED", -1e-9)
        bridge.slurm.control.unpause()
        bridge.run(25)
        assert not bridge.job("a").over
        bridge.until(lambda: any(reason == "DeviceAllocationFailed" for reason, _ in bridge.events("a")), 20)

    def test_classes_with_types_share_a_node(self, tmp_path: pathlib.Path) -> None:
        """Slurm knows which GPUs of n1 are small and which are big, and each claim of the pod gets its sort."""
        rows = [{"device_class": sort, "driver": DRIVER, "gres": f"gpu:{sort}", "index": "index"} for sort in SORTS]
        bridge = bridge_of(tmp_path, None, *rows)
        devices = Devices(bridge)
        devices.retract("n1")
        devices.publish("n1", 4, *SORTS)
        change_node(bridge, "n1", gres=tuple(state.Gres(name="gpu", type=sort, count=2) for sort in SORTS))
        for sort in SORTS:
            selector = {"cel": {"expression": f'{MODEL} == "{sort}"'}}
            bridge.kube.create(kinds.DEVICECLASSES, {"metadata": {"name": sort}, "spec": {"selectors": [selector]}})
            devices.template(sort, exactly(deviceClassName=sort))
        bridge.pod("a", spec={**using(*SORTS), "nodeSelector": {"kubernetes.io/hostname": "n1"}})
        bridge.until(lambda: bridge.node_of("a"))
        assert devices.held("a") == ["n1/gpu-0", "n1/gpu-2"]

    def test_every_member_of_a_gang_gets_its_own(self, bridge: Bridge, devices: Devices) -> None:
        """On whichever nodes: no device twice, and each on the node of its pod."""
        devices.template()
        for number in range(6):
            member(bridge, f"g-{number}", size=6, spec=using("one"))
        bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(6)))
        held = [device for number in range(6) for device in devices.held(f"g-{number}")]
        assert len(set(held)) == 6
        for number in range(6):
            assert devices.held(f"g-{number}")[0].startswith(f"{bridge.node_of(f'g-{number}')}/")

    def test_no_member_starts_before_all_claims_are_allocated(self, bridge: Bridge, devices: Devices) -> None:
        """A claim that cannot be written yet keeps the whole gang."""
        devices.template()
        bridge.kube_calls.plan(faults.Answer(503), method="PATCH", target="/resourceclaims/.*/status", times=3)
        for number in range(3):
            member(bridge, f"g-{number}", size=3, spec=using("one"))
        bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(3)), 120)
        assert len({device for number in range(3) for device in devices.held(f"g-{number}")}) == 3

    def test_devices_come_back_after_the_pod(self, bridge: Bridge, devices: Devices) -> None:
        """Kubernetes' controller takes them back, and the next pod gets them."""
        devices.template("all", exactly(count=4))
        for name in ("a", "b", "c"):
            bridge.pod(name, spec=using("all"), annotations={"kwok.local/outcome": "succeed"})
        bridge.until(lambda: all(bridge.phase(name) == "Succeeded" for name in ("a", "b", "c")), 200)
        bridge.run(10)
        assert not any(results_of(one) for one in devices.claims())

    def test_a_named_claim_serves_one_pod_after_the_other(self, bridge: Bridge, devices: Devices) -> None:
        """The second waits in words, without a job, until the first has ended."""
        devices.claim("mine")
        bridge.pod("a", spec=using(it="mine"))
        bridge.until(lambda: bridge.node_of("a"))
        bridge.pod("b", spec=using(it="mine"))
        bridge.run(5)
        assert bridge.condition("b")[0] == "ResourceClaimInUse"
        assert "pods a" in bridge.condition("b")[1]
        assert bridge.submits() == 1
        bridge.delete("a")
        bridge.until(lambda: bridge.node_of("b"))

    def test_a_pod_that_names_the_claim_of_another_pod_is_woken(self, bridge: Bridge, devices: Devices) -> None:
        """The claim was made for that pod, whose end takes it away: the one that waits says so at once."""
        devices.template()
        bridge.pod("a", spec=using("one"))
        bridge.until(lambda: bridge.node_of("a"))
        (claim,) = devices.of("a")
        bridge.pod("b", spec=using(it=claim["metadata"]["name"]))
        bridge.until(lambda: bridge.condition("b")[0] == "ResourceClaimInUse")
        bridge.delete("a")
        bridge.until(lambda: not bridge.exists("a") and not devices.claims(), 30)
        bridge.run(1)
        assert "does not exist" in bridge.condition("b")[1]

    @pytest.mark.security("input")
    @pytest.mark.parametrize(
        "owner",
        [{"controller": None}, {"apiVersion": "x.io/v1"}, {"uid": "unknown"}, {"kind": "Job"}, {"uid": "other"}],
    )
    def test_a_claim_with_forged_owners_wakes_those_that_name_it(
        self, bridge: Bridge, devices: Devices, owner: Json
    ) -> None:
        """Owners that a user writes on a claim keep no pod that names it from being woken."""
        devices.claim("mine")
        bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": "elsewhere"}})
        uids = {"other": bridge.pod("far", "elsewhere", spec={"schedulingGates": [{"name": "x"}]})}
        uids["near"] = bridge.pod("near", spec={"schedulingGates": [{"name": "x"}]})
        made = {"apiVersion": "v1", "kind": "Pod", "name": "near", "uid": "near", "controller": True, **owner}
        made["uid"] = uids.get(made["uid"], made["uid"])
        metadata = {"metadata": {"ownerReferences": [made]}}
        bridge.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, "mine"), metadata)
        devices.allocate("mine", "n2", "gpu-3")
        bridge.pod("a", spec=using(it="mine"))
        bridge.run(5)
        assert bridge.condition("a")[0] == "ResourceClaimInUse"
        devices.clear("mine")
        bridge.until(lambda: bridge.node_of("a"))

    def test_changes_that_decide_nothing_wake_nobody(self, bridge: Bridge, devices: Devices) -> None:
        """Annotations of users come as often as they like."""
        devices.claim("mine")
        devices.allocate("mine", "n2", "gpu-3")
        bridge.pod("a", spec=using(it="mine"))
        bridge.run(5)
        bridge.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, "mine"), {"metadata": {"annotations": {"x": "y"}}})
        bridge.hear()
        bridge.clock.advance(2)
        assert not bridge.core.schedule_step()

    def test_the_hook_may_go_between_decision_and_binding(self, bridge: Bridge, devices: Devices) -> None:
        """Without it nobody gives devices: no pod is bound without them, and the nodes are given back."""
        devices.template()
        bridge.slurm.control.pause()
        bridge.pod("a", spec=using("one"))
        bridge.run(3)
        bridge.slurm.control.unpause()
        while bridge.job().pending:
            bridge.world.pass_time(1)

        def run(key: names.WorkloadKey, act: Any) -> None:
            hooks = tuple(one for one in bridge.core.context.config.chain.hooks if one.name != "device-claims")
            made = chain.Chain(hooks, ChainServices(clock=bridge.clock))
            made.see({need: feed.store for need, feed in bridge.seen.items()})
            bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=made))
            bridge.core.carry_out(key, act)

        while not bridge.core.schedule_step(run):
            bridge.world.pass_time(1)
            bridge.core.mirror_step()
            bridge.hear()
        bridge.run(30)
        assert bridge.kube_calls.count(method="POST", target="/binding") == 0
        assert bridge.condition("a")[0] == "NotHonoured"
        assert devices.held("a") == []

    def test_many_claims_are_freed_until_the_server_does_not_answer(self, bridge: Bridge, devices: Devices) -> None:
        """What is left is taken back when Slurm gives its devices away."""
        devices.template()
        bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1000)
        for number in range(4):
            member(
                bridge, f"g-{number}", size=4, spec={**using("one"), "nodeSelector": {"kubernetes.io/hostname": "n1"}}
            )
        bridge.until(lambda: all(devices.held(f"g-{number}") for number in range(4)))
        before = bridge.kube_calls.count(method="PATCH", target="/resourceclaims/")
        bridge.kube_calls.plan(faults.Answer(503), method="PATCH", target="/resourceclaims/", times=1000)
        bridge.kube.merge(kinds.NODES, ("", "n1"), {"spec": {"unschedulable": True}})
        bridge.run(10)
        assert bridge.kube_calls.count(method="PATCH", target="/resourceclaims/") == before + 1

    def test_a_pod_that_has_ended_beside_the_user_of_a_claim_holds_up_nothing(
        self, bridge: Bridge, devices: Devices
    ) -> None:
        """Kubernetes' controller adds it now and then, and takes it out again."""
        devices.claim("mine")
        ended = bridge.pod("ended", spec={"schedulerName": "other", "nodeName": "n1"})

        def add() -> None:
            (claim,) = devices.claims()
            users = [*claim["status"]["reservedFor"], {"resource": "pods", "name": "ended", "uid": ended}]
            status = {"reservedFor": users}
            bridge.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, "mine"), {"status": status}, subresource="status")

        bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1)
        bridge.pod("a", spec=using(it="mine"))
        bridge.until(lambda: devices.held("a"))
        add()
        bridge.until(lambda: bridge.node_of("a"))

    def test_a_device_that_another_claim_still_has_is_waited_for(self, bridge: Bridge, devices: Devices) -> None:
        """Slurm has given it away already; the pod on its way out keeps it until it is gone."""
        devices.claim("others")
        devices.template()
        uid = bridge.pod("other", spec={"schedulerName": "other", "nodeName": "n1"})
        devices.allocate("others", "n1", "gpu-0", pods={"other": uid})
        bridge.pod("a", spec={**using("one"), "nodeSelector": {"kubernetes.io/hostname": "n1"}})
        bridge.run(10)
        assert bridge.node_of("a") == ""
        assert bridge.condition("a")[0] == "WaitsForDevices"
        assert f"ResourceClaim {NAMESPACE}/others still has" in bridge.condition("a")[1]
        devices.clear("others")
        bridge.until(lambda: bridge.node_of("a"))
        assert devices.held("a") == ["n1/gpu-0"]

    def test_what_others_allocated_is_never_overwritten(self, bridge: Bridge, devices: Devices) -> None:
        """A claim with devices that this daemon has not chosen stays as it is."""
        devices.claim("mine")
        devices.allocate("mine", "n2", "gpu-3")
        bridge.pod("a", spec=using(it="mine"))
        bridge.run(10)
        assert bridge.submits() == 0
        assert bridge.condition("a")[0] == "ResourceClaimInUse"
        assert bridge.kube_calls.count(method="PATCH", target="/resourceclaims/") == 0

    def test_a_given_back_allocation_gives_back_its_devices(self, bridge: Bridge, devices: Devices) -> None:
        """Its node goes while the claim is written: the claim is free again, and gets others with the next job."""
        devices.claim("mine")
        bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=2)
        bridge.pod("a", spec=using(it="mine"))
        bridge.until(lambda: devices.held("a"))
        node, job = devices.held("a")[0].partition("/")[0], bridge.job("a").job_id
        assert bridge.node_of("a") == ""
        bridge.kube.merge(kinds.NODES, ("", node), {"spec": {"unschedulable": True}})
        bridge.until(lambda: bridge.node_of("a"), 200)
        assert bridge.job("a").job_id != job
        assert bridge.node_of("a") != node
        assert devices.held("a")[0].startswith(f"{bridge.node_of('a')}/")

    def test_without_an_index_the_nodes_are_given_back(self, bridge: Bridge, devices: Devices) -> None:
        """Slurm counts, and says no more: refused in words."""
        forget_indices(bridge)
        devices.template()
        bridge.pod("a", spec=using("one"))
        bridge.run(20)
        assert bridge.node_of("a") == ""
        assert any("Slurm gave no indices of gres gpu" in message for _, message in bridge.events("a"))

    def test_a_driver_that_starts_anew_is_waited_for(self, bridge: Bridge, devices: Devices) -> None:
        """Its slices are gone for a moment: the nodes are kept."""
        devices.template()
        bridge.slurm.control.pause()
        bridge.pod("a", spec={**using("one"), "nodeSelector": {"kubernetes.io/hostname": "n1"}})
        bridge.run(3)
        job = bridge.job("a")
        devices.retract("n1")
        bridge.hear()
        bridge.slurm.control.unpause()
        bridge.world.pass_time(1)
        bridge.until(lambda: bridge.condition("a")[0] == "WaitsForDevices", 20)
        devices.publish("n1", 4)
        bridge.until(lambda: bridge.node_of("a"))
        assert bridge.job("a").job_id == job.job_id


class TestChosen:
    """Generic resources of which Slurm knows the number only."""

    @pytest.fixture
    def bridge(self, tmp_path: pathlib.Path) -> Bridge:
        """Any device will do."""
        made = bridge_of(tmp_path, without_index="choose")
        forget_indices(made)
        return made

    def test_any_free_device_will_do(self, bridge: Bridge, devices: Devices) -> None:
        """No two pods get the same one."""
        devices.template()
        names_ = [f"p{number}" for number in range(6)]
        for name in names_:
            bridge.pod(name, spec=using("one"))
        bridge.until(lambda: all(bridge.node_of(name) for name in names_))
        assert len({device for name in names_ for device in devices.held(name)}) == 6

    def test_a_lost_answer_and_a_late_watch_give_no_device_twice(self, bridge: Bridge, devices: Devices) -> None:
        """The second try is refused, for the first has happened; until the watch tells, the device is taken."""
        devices.template()
        only = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
        bridge.slurm.control.pause()
        for name in ("a", "b"):
            bridge.pod(name, spec={**using("one"), **only, "schedulingGates": [{"name": "later"}]})
        bridge.run(3)
        every, claims = bridge.feeds, bridge.seen[needs.Need.RESOURCECLAIMS]
        bridge.feeds = tuple(one for one in every if one is not claims)
        bridge.kube_calls.plan(faults.Drop(), method="PATCH", target="/resourceclaims/.*/status")
        bridge.slurm.control.unpause()
        for name in ("a", "b"):
            bridge.kube.merge(kinds.PODS, (NAMESPACE, name), {"spec": {"schedulingGates": []}})
            bridge.run(15)
        bridge.feeds = every
        bridge.until(lambda: bridge.node_of("a") and bridge.node_of("b"))
        assert devices.held("a") != devices.held("b")


def forget_indices(bridge: Bridge) -> None:
    """Slurm's nodes have GPUs without files."""
    for name in list(bridge.slurm.world.nodes):
        change_node(bridge, name, indexed=False)


def change_node(bridge: Bridge, name: str, **changes: Any) -> None:
    """An administrator writes another gres.conf."""
    world = bridge.slurm.world
    world.nodes[name] = dataclasses.replace(world.nodes[name], **changes)
    world.recount()
