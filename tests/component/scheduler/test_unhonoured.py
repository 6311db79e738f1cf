"""What a pod asks for and no hook of the chain honours is never ignored in silence: the pod waits, and says why."""

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from tests.component.scheduler.gang_scenes import gang, member
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

HOST = "kubernetes.io/hostname"
LIKE = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOST}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

KUBE = [{"name": "kube-scheduler"}]


def container(**changes: Any) -> Mapping[str, Any]:
    """A container with something more."""
    resources = {"requests": {"cpu": "1", "memory": "500Mi"}}
    return {"name": "main", "image": "none", "resources": resources, **changes}


def spread(how: str = "DoNotSchedule") -> Mapping[str, Any]:
    """Over the nodes."""
    return {"topologySpreadConstraints": [{**LIKE, "maxSkew": 1, "whenUnsatisfiable": how}]}


def affinity(kind: str, *terms: Any, how: str = REQUIRED) -> Mapping[str, Any]:
    """Required, or preferred."""
    return {"affinity": {kind: {how: list(terms)}}}


PORTS = {"containers": [container(ports=[{"containerPort": 80, "hostPort": 8080}])]}
SIDECAR = {"initContainers": [container(name="s", restartPolicy="Always", ports=[{"hostPort": 9}])]}
CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
DEVICES = {"containers": [container(resources={"limits": {"deviceclass.resource.kubernetes.io/big-gpu": "1"}})]}
VOLUME = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}]}

#: What a pod asks for, the field that the message names, and who would honour it.
ASKS: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "spread": (spread(), "spec.topologySpreadConstraints[0]", "needs hook kube-scheduler"),
    "near": (affinity("podAffinity", LIKE), f"spec.affinity.podAffinity.{REQUIRED}[0]", "needs hook kube-scheduler"),
    "away": (
        affinity("podAntiAffinity", LIKE),
        f"spec.affinity.podAntiAffinity.{REQUIRED}[0]",
        "needs hook kube-scheduler",
    ),
    "port": (PORTS, "spec.containers[0].ports[0].hostPort (8080)", "needs hook kube-scheduler"),
    "sidecar": (SIDECAR, "spec.initContainers[0].ports[0].hostPort (9)", "needs hook kube-scheduler"),
    "claims": (CLAIMS, "spec.resourceClaims[0] (gpu)", "needs hook device-claims"),
    "devices": (DEVICES, "deviceclass.resource.kubernetes.io/big-gpu", "device-claims"),
}

SOFT: Mapping[str, Mapping[str, Any]] = {
    "spread": spread("ScheduleAnyway"),
    "near": affinity("podAffinity", {"weight": 1, "podAffinityTerm": LIKE}, how=PREFERRED),
    "away": affinity("podAntiAffinity", {"weight": 1, "podAffinityTerm": LIKE}, how=PREFERRED),
    "port": {"containers": [container(ports=[{"containerPort": 80}])]},
    "over": {"initContainers": [container(ports=[{"hostPort": 9}])]},
    "none": {"affinity": {}, "topologySpreadConstraints": [], "resourceClaims": []},
}


def bare(asks: Mapping[str, Any]) -> Mapping[str, Any]:
    """With a container, in case it says nothing of containers."""
    return {"containers": [container()], **asks}


def asking(bridge: Bridge, name: str, what: str, **changes: Any) -> None:
    """A pod that asks for it."""
    bridge.pod(name, spec=bare(ASKS[what][0]), **changes)


@pytest.mark.security("neighbours")
@pytest.mark.parametrize("what", ASKS)
def test_what_no_hook_honours_holds_the_pod_with_words(bridge: Bridge, what: str) -> None:
    """A pod that asks for what no hook honours is never submitted; its condition names the hook that would."""
    _, field, who = ASKS[what]
    asking(bridge, "asks", what)
    bridge.run(10)
    reason, message = bridge.condition("asks")
    assert reason == "NotHonoured"
    assert field in message
    assert who in message
    assert f"Pod {NAMESPACE}/asks" in message
    assert (bridge.submits(), bridge.node_of("asks")) == (0, "")
    assert [one for one, _ in bridge.events("asks")] == ["NotHonoured"]


@pytest.mark.parametrize("what", SOFT)
def test_what_is_only_wished_for_holds_nobody(bridge: Bridge, what: str) -> None:
    """ScheduleAnyway, preferences, ports of the pod alone, and ports of init containers that end before the others."""
    bridge.pod("soft", spec=bare(SOFT[what]))
    bridge.until(lambda: bridge.node_of("soft"))


@pytest.mark.security("neighbours")
def test_a_neighbour_of_such_a_pod_starts_as_ever(bridge: Bridge) -> None:
    """A pod that waits because no hook honours what it asks for keeps no other pod from its node."""
    for what in ASKS:
        asking(bridge, what, what)
    bridge.bound("plain")


@pytest.mark.parametrize("what", ["spread", "near", "away", "port", "sidecar"])
def test_with_the_hook_that_honours_it_the_pod_starts(bridge: Bridge, what: str) -> None:
    """The chain is asked, and not the version of the program."""
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=KUBE)
    labels = {"app": "a"} if what == "near" else {}
    asking(bridge, "asks", what, labels=labels)
    bridge.until(lambda: bridge.node_of("asks"))


@pytest.mark.parametrize("what", ["claims", "devices"])
def test_claims_of_devices_wait_whatever_is_configured(bridge: Bridge, what: str) -> None:
    """Their pods could never start: no kubelet starts a pod whose claim is not allocated."""
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=KUBE, unhonoured="ignore")
    asking(bridge, "asks", what)
    bridge.run(10)
    assert bridge.condition("asks")[0] == "NotHonoured"
    assert bridge.submits() == 0


def test_a_hook_honours_what_its_predicates_look_at(bridge: Bridge) -> None:
    """Without the predicate the pod waits, although the hook is there."""
    options = {"predicates": ["GeneralPredicates"]}
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=[{"name": "kube-scheduler", "options": options}])
    asking(bridge, "spread", "spread")
    asking(bridge, "port", "port")
    bridge.until(lambda: bridge.node_of("port"))
    reason, message = bridge.condition("spread")
    assert reason == "NotHonoured"
    assert "predicate EvenPodsSpread" in message


@pytest.mark.security("neighbours")
def test_one_member_holds_its_group(bridge: Bridge) -> None:
    """A group of which one member has resource claims waits as a whole, and each member says why."""
    for number in range(3):
        member(bridge, f"g-{number}", size=4)
    member(bridge, "g-3", size=4, spec=bare(CLAIMS))
    bridge.run(10)
    told = {bridge.condition(f"g-{number}") for number in range(4)}
    assert {reason for reason, _ in told} == {"NotHonoured"}
    assert all(f"Pod {NAMESPACE}/g-3: spec.resourceClaims[0] (gpu)" in message for _, message in told)
    assert bridge.submits() == 0


def test_members_that_keep_apart_from_each_other_are_one_per_node(bridge: Bridge) -> None:
    """Slurm is asked for that itself."""
    own = {"labelSelector": {"matchLabels": {names.GROUP: "g"}}, "topologyKey": HOST}
    pods = gang(bridge, 3, spec=bare(affinity("podAntiAffinity", own)))
    bridge.until(lambda: all(bridge.node_of(name) for name in pods))
    assert len({bridge.node_of(name) for name in pods}) == 3


def test_members_that_keep_apart_from_others_too_wait(bridge: Bridge) -> None:
    """Slurm knows nothing of these."""
    own = {"labelSelector": {"matchLabels": {names.GROUP: "g"}}, "topologyKey": HOST}
    gang(bridge, 3, spec=bare(affinity("podAntiAffinity", own, LIKE)))
    bridge.run(10)
    reason, message = bridge.condition("g-0")
    assert reason == "NotHonoured"
    assert f"podAntiAffinity.{REQUIRED}[1]" in message


def test_a_newcomer_with_claims_joins_no_running_group(bridge: Bridge) -> None:
    """It is told why, and the others run on."""
    pods = gang(bridge, 3, lost="keep")
    bridge.until(lambda: all(bridge.node_of(name) for name in pods))
    bridge.delete("g-2", grace=0)
    bridge.run(2)
    member(bridge, "g-4", size=3, lost="keep", spec=bare(CLAIMS))
    bridge.run(10)
    assert bridge.node_of("g-4") == ""
    assert bridge.condition("g-4")[0] == "NotHonoured"
    assert bridge.node_of("g-0")
    assert bridge.phase("g-1") in ("Pending", "Running")


def again(bridge: Bridge, **settings: Any) -> Bridge:
    """The next process, configured otherwise, in the same world."""
    return Bridge(bridge.folder, world=bridge.world, **settings)


@pytest.mark.parametrize("starts", [False, True])
def test_a_job_that_was_submitted_before_is_withdrawn_with_words(bridge: Bridge, *, starts: bool) -> None:
    """A job of a pod whose field nobody honours any more has to go, pending or started: its pod is not bound."""
    bridge = again(bridge, hooks=KUBE)
    bridge.slurm.control.pause()
    asking(bridge, "asks", "spread")
    bridge.step()
    job = bridge.job("asks")
    bridge = again(bridge)
    if starts:
        bridge.slurm.control.unpause()
        bridge.world.pass_time(5)
    bridge.run(10)
    assert bridge.of(job).over
    assert "spec.topologySpreadConstraints[0]" in bridge.note(job)
    assert bridge.condition("asks")[0] == "NotHonoured"
    assert bridge.node_of("asks") == ""


def test_bound_pods_stay_where_they_are(bridge: Bridge) -> None:
    """Pods that run have been through this."""
    bridge = again(bridge, hooks=KUBE)
    bridge.pod("asks", spec=bare(spread()))
    bridge.until(lambda: bridge.node_of("asks"))
    job = bridge.job("asks")
    bridge = again(bridge)
    bridge.run(20)
    assert not bridge.of(job).over
    assert bridge.node_of("asks")


def test_a_field_that_is_taken_away_ends_the_waiting(bridge: Bridge) -> None:
    """As the message says; of a pod that somebody made anew."""
    asking(bridge, "asks", "port")
    bridge.run(5)
    bridge.delete("asks", grace=0)
    bridge.run(1)
    bridge.bound("asks")


def test_sites_may_ignore_it_and_pods_say_so(bridge: Bridge) -> None:
    """With `unhonoured: ignore` the pod is submitted, and an event names what was ignored."""
    bridge = again(bridge, unhonoured="ignore")
    asking(bridge, "asks", "spread")
    bridge.until(lambda: bridge.node_of("asks"))
    told = [message for reason, message in bridge.events("asks") if reason == "NotHonoured"]
    assert len(told) == 1
    assert "spec.topologySpreadConstraints[0]" in told[0]
    assert "unhonoured: ignore" in told[0]


class TestDevices:
    """A class of devices may have a second name, which reads like a resource of a device plugin."""

    NAME = "example.com/gpu"

    def offered(self, bridge: Bridge) -> None:
        """Such a class."""
        spec = {"extendedResourceName": self.NAME}
        bridge.kube.create(kinds.DEVICECLASSES, {"metadata": {"name": "big"}, "spec": spec})

    def asked(self, bridge: Bridge) -> None:
        """A pod that asks for one of it."""
        bridge.pod("asks", spec=bare({"containers": [container(resources={"limits": {self.NAME: "1"}})]}))

    @pytest.mark.security("neighbours")
    def test_the_second_name_of_a_class_of_devices_waits_like_a_claim(self, bridge: Bridge) -> None:
        """A pod that requests a DeviceClass by its extended resource waits with a message, as with a claim."""
        self.offered(bridge)
        self.asked(bridge)
        bridge.run(5)
        reason, message = bridge.condition("asks")
        assert reason == "NotHonoured"
        assert f"spec.containers[0].resources ({self.NAME})" in message
        assert bridge.submits() == 0

    def test_where_nodes_have_it_from_a_device_plugin_they_give_it(self, bridge: Bridge) -> None:
        """As kube-scheduler has it: node by node, and what a node counts itself is no matter of claims."""
        self.offered(bridge)
        for node in [one["metadata"]["name"] for one in bridge.kube.list(kinds.NODES)][:1]:
            status = {"status": {"allocatable": {self.NAME: "2"}}}
            bridge.kube.merge(kinds.NODES, ("", node), status, subresource="status")
        self.asked(bridge)
        bridge.until(lambda: bridge.node_of("asks"))

    def test_a_resource_that_nobody_has_is_another_matter(self, bridge: Bridge) -> None:
        """No class stands behind it."""
        self.asked(bridge)
        bridge.run(5)
        reason, message = bridge.condition("asks")
        assert reason == "Unschedulable"
        assert f"Insufficient {self.NAME}" in message

    def test_a_class_that_goes_is_noticed(self, bridge: Bridge) -> None:
        """It is looked at like everything else that hooks see."""
        self.offered(bridge)
        self.asked(bridge)
        bridge.run(5)
        bridge.kube.delete(kinds.DEVICECLASSES, ("", "big"))
        bridge.run(5)
        assert bridge.condition("asks")[0] == "Unschedulable"


class TestStorage:
    def claim(self, bridge: Bridge, mode: str) -> None:
        """A claim that is bound to a volume."""
        spec = {"accessModes": [mode], "volumeName": "v"}
        volume = {"metadata": {"name": "v"}, "spec": {"accessModes": [mode]}}
        bridge.kube.create(kinds.PERSISTENTVOLUMES, volume)
        made = {"metadata": {"name": "mine", "namespace": NAMESPACE}, "spec": spec}
        bridge.kube.create(kinds.PERSISTENTVOLUMECLAIMS, made)
        bound = {"status": {"phase": "Bound"}}
        bridge.kube.merge(kinds.PERSISTENTVOLUMECLAIMS, (NAMESPACE, "mine"), bound, subresource="status")

    def test_a_claim_for_one_pod_alone(self, bridge: Bridge) -> None:
        """ReadWriteOncePod: without the predicate it is not known whether another pod uses it."""
        self.claim(bridge, "ReadWriteOncePod")
        bridge.pod("asks", spec=bare(VOLUME))
        bridge.run(5)
        reason, message = bridge.condition("asks")
        assert reason == "NotHonoured"
        assert "spec.volumes[0] (PersistentVolumeClaim mine, ReadWriteOncePod)" in message
        assert bridge.submits() == 0

    def test_other_claims_hold_nobody(self, bridge: Bridge) -> None:
        """A node may have several pods that use it."""
        self.claim(bridge, "ReadWriteOnce")
        bridge.pod("plain", spec=bare(VOLUME))
        bridge.until(lambda: bridge.node_of("plain"))

    @pytest.mark.security("neighbours")
    def test_a_claim_that_waits_for_its_first_consumer(self, bridge: Bridge) -> None:
        """A pod whose claim waits for its first consumer is not submitted where no hook honours it, and says so."""
        made = {"metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"}
        bridge.kube.create(kinds.STORAGECLASSES, made)
        claim = {"metadata": {"name": "mine", "namespace": NAMESPACE}, "spec": {"storageClassName": "late"}}
        bridge.kube.create(kinds.PERSISTENTVOLUMECLAIMS, claim)
        bridge.pod("asks", spec=bare(VOLUME))
        bridge.run(5)
        reason, message = bridge.condition("asks")
        assert reason == "NotHonoured"
        assert "spec.volumes[0] (PersistentVolumeClaim mine, WaitForFirstConsumer) needs hook kube-scheduler" in message
        assert bridge.submits() == 0
