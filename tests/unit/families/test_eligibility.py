"""Which pods are ours, and on which nodes they can run."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.eligibility import Eligibility, EligibilityOptions
from slurm_bridge.hooks import calls
from slurm_bridge.hooks.base import Ask, Deny, Fields
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.meta import Object, ObjectMeta
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.storage import Claim, Volume
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate import resources
from tests.effort import Work
from tests.unit.hooks.builders import (
    SCHEDULER,
    Around,
    cluster,
    gang,
    hook,
    node,
    owned_by,
    partition,
    pod,
    request,
    shape,
    slurm_node,
    tolerate,
    translated,
    workload,
)


class Objects:
    """What is watched of one kind."""

    def __init__(self, **objects: Object) -> None:
        self.objects = objects

    def get(self, _namespace: str, name: str) -> Object | None:
        return self.objects.get(name)

    def all(self) -> tuple[Object, ...]:
        return tuple(self.objects.values())

    version = 1

    def __len__(self) -> int:
        return len(self.objects)


def chained(around: Around, views: Mapping[Need, Objects] | None = None, **options: Any) -> Chain:
    """A chain of this hook alone."""
    made = Eligibility(EligibilityOptions(**options))
    hook = calls.Hook(name="eligibility", hook=made, needs=made.needs, budget_seconds=60)
    chain = Chain([hook], around.make())
    chain.see(views or dict.fromkeys(made.needs, Objects()))
    return chain


def plan(around: Around, asking: Pod, seen: ClusterSnapshot, **options: Any) -> Plan | Wait | Reject:
    """What becomes of a pod."""
    return chained(around, **options).plan(workload(asking), translated(), seen, now=0.0)


def excluded(found: Plan | Wait | Reject) -> tuple[str, ...]:
    """The nodes that the plan keeps away from."""
    assert isinstance(found, Plan), found
    return found.request.excluded_nodes


ONE = cluster([node("a")])


@pytest.mark.parametrize(
    ("asking", "reason", "said"),
    [
        (pod(scheduler_name="default-scheduler"), "NotOurs", "names scheduler 'default-scheduler'"),
        (pod(node_name="a"), "AlreadyBound", "runs on node a already"),
        (pod(metadata={"owner_references": (owned_by("DaemonSet"),)}), "BelongsToNode", "DaemonSet or mirror pod"),
        (pod(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}), "BelongsToNode", "mirror pod"),
        (pod(priority_class_name="system-node-critical"), "SystemCritical", "cannot wait for Slurm"),
        (pod(priority_class_name="system-cluster-critical"), "SystemCritical", "cannot wait for Slurm"),
    ],
)
def test_pods_that_are_not_for_us(asking: Pod, reason: str, said: str, around: Around) -> None:
    """They are refused, with the pod's name."""
    found = plan(around, asking, ONE)
    assert isinstance(found, Reject)
    assert found.reason == reason
    assert found.message.startswith("Pod team/p ")
    assert said in found.message


def test_a_gated_pod_waits(around: Around) -> None:
    """The gates are named: whoever set them has to take them away."""
    found = plan(around, pod(gates=["example.com/quota", "two"]), ONE)
    assert isinstance(found, Wait)
    assert (found.reason, found.message) == (
        "SchedulingGated",
        "Pod team/p is held by scheduling gates: example.com/quota, two",
    )


def test_several_scheduler_names(around: Around) -> None:
    """All of them are ours."""
    names = (SCHEDULER, "second")
    assert excluded(plan(around, pod(scheduler_name="second"), ONE, scheduler_names=names)) == ()


TAINT = Taint(key="gpu", value="yes", effect="NoSchedule")

#: What is wrong with node b, as kube-scheduler says it.
WRONG: Mapping[str, tuple[Any, Any]] = {
    "node(s) were not ready": (node("b", ready=False), pod()),
    "node(s) were unschedulable": (node("b", unschedulable=True), pod()),
    "node(s) are being deleted": (node("b", deleting=True), pod()),
    "node(s) had untolerated taint {gpu: yes}": (node("b", taints=[TAINT]), pod()),
    "Insufficient cpu": (node("b", allocatable={"cpu": "2"}), pod(requests={"cpu": "2500m"})),
    "Insufficient memory": (node("b", allocatable={"memory": "1Gi"}), pod(requests={"memory": "2Gi"})),
    "Too many pods": (node("b", allocatable={"pods": "0"}), pod()),
}


@pytest.mark.parametrize("reason", WRONG)
def test_nodes_that_cannot_take_the_pod(reason: str, around: Around) -> None:
    """Each is excluded beside a good one, and alone it is the reason to wait."""
    bad, asking = WRONG[reason]
    found = plan(around, asking, cluster([node("a"), bad]))
    assert excluded(found) == ("b",)
    alone = plan(around, asking, cluster([bad]))
    assert alone == Wait(reason="Unschedulable", message=f"0/1 nodes are available: 1 {reason}.")


def test_t13_a_tolerated_taint_is_no_obstacle(around: Around) -> None:
    """Neither a plain one, nor the one of a cordoned node."""
    seen = cluster([node("a", taints=[TAINT]), node("b", unschedulable=True)])
    assert excluded(plan(around, pod(tolerations=(tolerate("gpu"),)), seen)) == ("b",)
    assert excluded(plan(around, pod(tolerations=(tolerate(),)), seen)) == ()


def test_t13_an_untolerated_tainted_node_is_never_offered(around: Around) -> None:
    """Equal pods with other tolerations get other answers from the same hook."""
    chain, seen = chained(around), cluster([node("a"), node("b", taints=[TAINT])])
    asking = [pod("x"), pod("y", tolerations=(tolerate("gpu"),)), pod("z")]
    answers = [chain.plan(workload(one), translated(), seen, now=0.0) for one in asking]
    assert [excluded(one) for one in answers] == [("b",), (), ("b",)]


def test_no_toleration_helps_against_a_node_that_is_not_ready(around: Around) -> None:
    """Slurm would start the job there, and no kubelet would run it."""
    assert excluded(plan(around, pod(tolerations=(tolerate(),)), cluster([node("a"), node("b", ready=False)]))) == (
        "b",
    )


def test_selector_and_affinity(around: Around) -> None:
    """What the pod says about labels."""
    seen = cluster([node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"})])
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert excluded(plan(around, pod(node_selector={"zone": "a"}), seen)) == ("b",)
    assert excluded(plan(around, pod(affinity={"nodeAffinity": required}), seen)) == ("a",)
    nowhere = plan(around, pod(node_selector={"zone": "c"}), seen)
    assert isinstance(nowhere, Wait)
    assert nowhere.message == "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."


def test_only_nodes_that_slurm_knows(around: Around) -> None:
    """On others Slurm could place nothing."""
    found = plan(around, pod(), cluster([node("a"), node("b")], slurm=["a"]))
    assert (excluded(found), found.eligible) == ((), 1)  # type: ignore[union-attr]
    none = plan(around, pod(), cluster([node("a")], slurm=[]))
    assert isinstance(none, Wait)
    assert none.message == "0/1 nodes are available: 1 node(s) are not known to Slurm."


def test_only_managed_nodes(around: Around) -> None:
    """Where a label says which are."""
    seen = cluster([node("a", labels={"managed": "yes"}), node("b")])
    assert excluded(plan(around, pod(), seen, node_selector="managed=yes")) == ("b",)


def test_t15_a_resource_that_no_node_has(around: Around) -> None:
    """Never submitted, and the reason counts the nodes."""
    mixed = [*(node(f"n{i:02}") for i in range(12)), *(node(f"t{i}", taints=[TAINT]) for i in range(8))]
    found = plan(around, pod(requests={"nvidia.com/gpu": "1"}), cluster(mixed))
    assert found == Wait(
        reason="Unschedulable",
        message="0/20 nodes are available: 12 Insufficient nvidia.com/gpu, 8 node(s) had untolerated taint {gpu: yes}.",
    )


def filling() -> cluster_cache.ClusterCache:
    """Two nodes, one of which another scheduler's pod fills."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    for name in ("a", "b"):
        made.on_node(None, node(name))
    made.set_slurm([slurm_node("a"), slurm_node("b")], [partition("debug", "a", "b")])
    made.on_pod(None, pod("other", requests={"cpu": "16"}, node_name="b"))
    return made


def test_t23_nodes_in_use_do_not_keep_a_workload_out_of_slurm(around: Around) -> None:
    """It has to age in the queue, to be seen there, and to be able to preempt."""
    assert excluded(plan(around, pod(requests={"cpu": "1"}), filling().snapshot())) == ()


def test_free_capacity_can_be_asked_for(around: Around) -> None:
    """Where a site wants it so; then use counts, and the answer follows it."""
    chain, seen = chained(around, capacity="free"), filling()
    asking = workload(pod(requests={"cpu": "1"}))
    assert excluded(chain.plan(asking, translated(), seen.snapshot(), now=0.0)) == ("b",)
    seen.on_pod(pod("other", node_name="b"), None)
    assert excluded(chain.plan(asking, translated(), seen.snapshot(), now=0.0)) == ()


class TestGangs:
    def test_of_several_shapes_one_is_enough(self, around: Around) -> None:
        """Asked about all at once, a node stays that any of them can use; the chain asks for each shape."""
        seen = cluster([node("a", labels={"x": "1"}), node("b", labels={"x": "2"}), node("c")])
        one, two = pod("one", node_selector={"x": "1"}), pod("two", node_selector={"x": "2"})
        whole = Ask(workload=gang(one, two), request=request(), shapes=(shape(one), shape(two)))
        with chained(around).session(seen, now=0.0) as session:
            assert session.filter_nodes(whole, seen.names) == {"a", "b"}

    @pytest.mark.parametrize("held", ["gated", "terminating", "bound"])
    def test_every_member_is_looked_at(self, held: str, around: Around) -> None:
        """One that should not have been gathered holds up all, and is named."""
        last = {
            "gated": pod("last", gates=["g"]),
            "terminating": pod("last", metadata={"deletion_timestamp": "2026-01-01T00:00:00Z"}),
            "bound": pod("last", node_name="a"),
        }[held]
        found = chained(around).plan(gang(pod("first"), last), translated(), ONE, now=0.0)
        assert isinstance(found, Wait | Reject)
        assert found.message.startswith("Pod team/last ")

    def test_equal_members_cost_one_look_at_the_nodes(self, around: Around) -> None:
        """However many there are: no rule looks at the requests of the second one."""
        members = [pod(f"w-{number}", requests={"cpu": "1"}) for number in range(500)]
        unreadable = pod("unreadable", requests={"cpu": "much"})
        whole = Ask(workload=gang(*members, unreadable), request=request())
        with chained(around).session(ONE, now=0.0) as session:
            assert session.filter_nodes(whole, ONE.names) == {"a"}

    def test_t14_a_node_has_to_reach_the_volumes_of_all(self, around: Around) -> None:
        """Any member may come on any node of the job, though each has claims of its own."""
        both = {**stored("data", zone="a"), Need.PVCS: Objects()}
        for name, zones in (("one", ("a", "b")), ("two", ("b", "c"))):
            more = stored(name, zones=zones)
            both = {need: Objects(**both[need].objects, **more[need].objects) for need in both}
        seen = cluster([node(zone, labels={"zone": zone}) for zone in "abc"])
        members = [pod(name, volumes=using(name)) for name in ("one", "two")]
        found = chained(around, both).plan(gang(*members), translated(), seen, now=0.0)
        assert excluded(found) == ("a", "c")

    def test_volumes_within_the_same_reach_are_one_question(self, around: Around) -> None:
        """Five hundred claims in one zone cost no more than one."""
        names = [f"claim-{number}" for number in range(20)]
        views = {need: Objects() for need in stored()}
        for name in names:
            more = stored(name, zone="a")
            views = {need: Objects(**views[need].objects, **more[need].objects) for need in views}
        chain = chained(around, views)
        made = chain.hooks[0].hook
        assert isinstance(made, Eligibility)
        with chain.session(ZONES, now=0.0) as session:
            answers = {id(made._of(session, [pod(name, volumes=using(name))])) for name in names}
            assert len(answers) == 1
            assert made._of(session, [pod(name, volumes=using(name)) for name in names]).nodes.keys() == {"b"}


class TestVerify:
    def test_all_is_well(self, around: Around) -> None:
        """The nodes are still what they were."""
        assert chained(around).verify(workload(), {"uid-p": "a"}, ONE) is None

    @pytest.mark.parametrize(
        ("now", "said"),
        [
            (node("a", unschedulable=True), "a: node(s) were unschedulable"),
            (node("a", ready=False), "a: node(s) were not ready"),
            (node("b"), "a: the node is gone from Kubernetes"),
        ],
    )
    def test_a_node_that_went_bad_meanwhile(self, now: Any, said: str, around: Around) -> None:
        """Between submission and start much can happen; nothing is bound there."""
        found = chained(around).verify(workload(), {"uid-p": "a"}, cluster([now]))
        assert isinstance(found, Deny)
        assert found.nodes == {"a"}
        assert found.message.endswith(said)

    def test_every_member_is_checked_on_its_own_node(self, around: Around) -> None:
        """What is wrong is told once for each node, and denies just those."""
        members = [
            pod(f"w-{number}", requests={"cpu": "1" if number < 6 else "8"}, node_selector={"x": "1"})
            for number in range(8)
        ]
        seen = cluster(
            [
                node("good", labels={"x": "1"}),
                node("small", labels={"x": "1"}, allocatable={"cpu": "4"}),
                node("moved", labels={"x": "2"}),
            ]
        )
        places = dict(zip((one.uid for one in members), ["good"] * 3 + ["moved"] * 3 + ["small"] * 2, strict=True))
        found = chained(around).verify(gang(*members), places, seen)
        assert isinstance(found, Deny)
        assert found.nodes == {"moved", "small"}
        assert found.message.endswith(
            "moved: node(s) didn't match Pod's node affinity/selector; small: Insufficient cpu"
        )

    def test_a_pod_without_a_node_is_no_matter(self, around: Around) -> None:
        """Whoever places decides on those."""
        assert chained(around).verify(workload(), {}, ONE) is None


GPU = "example.com/gpu"
GPUS = {GPU: "4"}

#: A node that native jobs share, an external one, and one without devices that native jobs share, too.
MIXED = cluster(
    [node("shared", allocatable=GPUS), node("pods", allocatable=GPUS), node("bare")], native=("shared", "bare")
)
SHARED = cluster([node("shared", allocatable=GPUS)], native=("shared",))
PODS = cluster([node("pods", allocatable=GPUS)])


def with_gpu(name: str = "p") -> Pod:
    """A pod whose device a plugin chooses."""
    return pod(name, requests={"cpu": "1", GPU: "1"})


class TestDevicesBesideNativeJobs:
    def test_a_pod_that_asks_a_device_plugin_keeps_away(self, around: Around) -> None:
        """Slurm has given some of these devices to native jobs, and the plugin does not know which."""
        found = plan(around, with_gpu(), MIXED, devices=(GPU,))
        assert excluded(found) == ("bare", "shared")

    def test_it_is_told_why(self, around: Around) -> None:
        """The resource and the setting."""
        found = plan(around, with_gpu(), SHARED, devices=(GPU,))
        assert isinstance(found, Wait)
        assert found.message == (
            "0/1 nodes are available: 1 node(s) had example.com/gpu that native Slurm jobs may hold, and a device "
            "plugin does not know which (hybrid_devices: refuse)."
        )

    def test_other_pods_share_the_node(self, around: Around) -> None:
        """As do those that ask for a resource which Slurm does not count."""
        assert excluded(plan(around, pod(), MIXED, devices=(GPU,))) == ()
        assert excluded(plan(around, with_gpu(), MIXED, devices=())) == ("bare",)

    def test_a_node_that_became_shared_is_given_back(self, around: Around) -> None:
        """Slurm had allocated it before that was known."""
        found = chained(around, devices=(GPU,)).verify(workload(with_gpu()), {"uid-p": "shared"}, SHARED)
        assert isinstance(found, Deny)
        assert found.nodes == {"shared"}

    @pytest.mark.parametrize(
        ("asking", "seen", "whole"),
        [
            (with_gpu(), SHARED, True),
            (with_gpu(), MIXED, True),
            (with_gpu(), PODS, False),
            (pod(), SHARED, False),
        ],
    )
    def test_it_may_have_the_node_for_itself(
        self, asking: Pod, seen: ClusterSnapshot, *, whole: bool, around: Around
    ) -> None:
        """Where native jobs share one of the nodes that it may get."""
        found = plan(around, asking, seen, devices=(GPU,), hybrid_devices="whole-node")
        assert isinstance(found, Plan)
        assert found.request.exclusive is whole
        assert "shared" not in found.request.excluded_nodes
        said = [value.source for value in found.values if value.field == "exclusive"]
        assert said == (["hybrid_devices: whole-node"] if whole else [])

    @pytest.mark.parametrize(
        ("changed", "whole"),
        [
            ({"unschedulable": True}, True),
            ({"ready": False}, True),
            ({"taints": [TAINT]}, True),
            ({"labels": {"x": "2"}}, False),
            ({"labels": {"x": "1", "managed": "no"}}, False),
            ({"allocatable": {}}, False),
        ],
    )
    def test_what_passes_changes_nothing(self, changed: Mapping[str, Any], around: Around, *, whole: bool) -> None:
        """Or the job would be submitted anew each time that a node is cordoned; what lasts decides."""
        labels = {"x": "1"}
        shared = node("shared", **{"allocatable": GPUS, "labels": labels, **changed})
        seen = cluster([shared, node("pods", allocatable=GPUS, labels=labels)], native=("shared",))
        asking = pod(requests={"cpu": "1", GPU: "1"}, node_selector=labels)
        options = {"devices": (GPU,), "hybrid_devices": "whole-node", "node_selector": "managed!=no"}
        found = plan(around, asking, seen, **options)
        assert isinstance(found, Plan)
        assert found.request.exclusive is whole

    @pytest.mark.security("input")
    @pytest.mark.parametrize("setting", ["refuse", "whole-node"])
    def test_an_amount_that_cannot_be_read_keeps_pods_from_its_node_only(self, setting: str, around: Around) -> None:
        """Whichever kubelet wrote it."""
        odd = node("odd", allocatable={GPU: "1q!"})
        seen = cluster([odd, node("pods", allocatable=GPUS)], native=("odd",))
        found = plan(around, with_gpu(), seen, devices=(GPU,), hybrid_devices=setting)
        assert excluded(found) == ("odd",)

    def test_only_nodes_of_its_partition_count(self, around: Around) -> None:
        """A node that it never gets does not make it take whole ones."""
        nodes = [node("shared", allocatable=GPUS), node("pods", allocatable=GPUS)]
        apart = (partition("debug", "pods", default=True), partition("hybrid", "shared"))
        seen = cluster(nodes, *apart, native=("shared",))
        options = {"devices": (GPU,), "hybrid_devices": "whole-node"}
        for chosen, whole in (("debug", False), ("hybrid", True)):
            asked = translated(partition=chosen)
            found = chained(around, **options).plan(workload(with_gpu()), asked, seen, now=0.0)
            assert isinstance(found, Plan)
            assert found.request.exclusive is whole

    def test_a_partition_that_another_hook_chooses_counts(self, around: Around) -> None:
        """Be that hook the next one in the chain."""
        made = Eligibility(EligibilityOptions(devices=(GPU,), hybrid_devices="whole-node", volumes=False))
        first = calls.Hook(name="eligibility", hook=made, budget_seconds=60)
        chain = Chain([first, hook(express=Fields(partition="hybrid"))], around.make())
        apart = (partition("debug", "pods", default=True), partition("hybrid", "shared"))
        nodes = [node("shared", allocatable=GPUS), node("pods", allocatable=GPUS)]
        found = chain.plan(workload(with_gpu()), translated(), cluster(nodes, *apart, native=("shared",)), now=0.0)
        assert isinstance(found, Plan)
        assert found.request.exclusive

    def test_a_site_may_know_that_native_jobs_use_none(self, around: Around) -> None:
        """Then Slurm counts, as on external nodes."""
        found = plan(around, with_gpu(), SHARED, devices=(GPU,), hybrid_devices="count")
        assert isinstance(found, Plan)
        assert not found.request.exclusive


def using(claim: str) -> tuple[dict[str, object], ...]:
    """The volumes of a pod that uses this claim."""
    return ({"name": "v", "persistentVolumeClaim": {"claimName": claim}},)


USES_DATA = using("data")


def stored(
    name: str = "data", *, phase: str = "Bound", zone: str = "a", zones: tuple[str, ...] = ()
) -> Mapping[Need, Objects]:
    """A claim and its volume, which one zone reaches, or several."""
    claim = {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"volumeName": f"pv-{name}"},
        "status": {"phase": phase},
    }
    row = {"key": "zone", "operator": "In", "values": [*zones] or [zone]}
    reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [row]}]}}
    volume = msgspec.convert({"metadata": {}, "spec": {"nodeAffinity": reach}}, Volume)
    volume = msgspec.structs.replace(volume, metadata=ObjectMeta(name=f"pv-{name}", uid=f"pv-{name}"))
    return {
        Need.PVCS: Objects(**{name: msgspec.convert(claim, Claim)}),
        Need.PVS: Objects(**{f"pv-{name}": volume}),
        Need.STORAGECLASSES: Objects(),
    }


ZONES = cluster([node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"})])


class TestVolumes:
    def test_t14_the_volume_decides_where(self, around: Around) -> None:
        """A bound volume's node affinity filters nodes; a changed volume is another question."""
        asking = workload(pod(volumes=USES_DATA))
        chain = chained(around, stored())
        assert excluded(chain.plan(asking, translated(), ZONES, now=0.0)) == ("b",)
        chain.see(stored(zone="b"))
        assert excluded(chain.plan(asking, translated(), ZONES, now=0.0)) == ("a",)

    def test_t14_a_volume_out_of_reach(self, around: Around) -> None:
        """The reason is Kubernetes' own."""
        chain = chained(around, stored(zone="c"))
        found = chain.plan(workload(pod(volumes=USES_DATA)), translated(), ZONES, now=0.0)
        assert isinstance(found, Wait)
        assert found.message == "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."

    def test_t14_an_unbound_claim_is_not_submitted(self, around: Around) -> None:
        """It waits, and says for which claim."""
        chain = chained(around, stored(phase="Pending"))
        found = chain.plan(workload(pod(volumes=USES_DATA)), translated(), ZONES, now=0.0)
        assert isinstance(found, Wait)
        assert (found.reason, "team/data is not bound" in found.message) == ("VolumeNotReady", True)

    def test_pods_without_claims_ask_nothing(self, around: Around) -> None:
        """Every pod has a projected token; nobody is asked about that."""
        chain = Chain([_unseeing()], around.make())
        asking = pod(volumes=({"name": "token", "projected": {}},))
        assert excluded(chain.plan(workload(asking), translated(), ZONES, now=0.0)) == ()

    def test_switched_off(self, around: Around) -> None:
        """Then nothing is watched, and a pod with a claim is told why it waits."""
        assert Eligibility(EligibilityOptions(volumes=False)).needs == frozenset()
        found = plan(around, pod(volumes=USES_DATA), ZONES, volumes=False)
        assert isinstance(found, Wait)
        assert "volumes: false" in found.message


def _unseeing() -> calls.Hook:
    """The hook without any view: looking would fail."""
    return calls.Hook(name="eligibility", hook=Eligibility(EligibilityOptions()), budget_seconds=60)


def test_a_plan_that_was_worked_out_costs_a_fraction(around: Around) -> None:
    """Over a thousand nodes, the next equal pod is planned at least five times faster than the first one."""
    seen = cluster([node(f"n{number:04}", taints=[TAINT] if number % 4 else ()) for number in range(1000)])

    def took(chain: Chain, name: str) -> int:
        asking, asked = workload(pod(name, requests={"cpu": "1"})), translated()
        with Work() as work:
            assert len(excluded(chain.plan(asking, asked, seen, now=0.0))) == 750
        return work.total

    chain = chained(around)
    assert took(chain, "first") > 5 * took(chain, "next")


def test_equal_pods_cost_one_look_at_the_nodes(around: Around) -> None:
    """The second pod of a kind gets the answer of the first, as the same record, until the cluster changes."""
    chain = chained(around)
    hook = chain.hooks[0].hook
    assert isinstance(hook, Eligibility)
    nodes = [node(f"n{number}") for number in range(50)]
    seen, later = cluster(nodes), cluster([*nodes, node("new")])
    answers = []
    for snapshot, name in ((seen, "x"), (seen, "y"), (later, "x")):
        with chain.session(snapshot, now=0.0) as session:
            asked = workload(pod(name, requests={"cpu": "1"}))
            answers.append(hook._of(session, asked.pods))
    assert answers[0] is answers[1]
    assert answers[1] is not answers[2]
