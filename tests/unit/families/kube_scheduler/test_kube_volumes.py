"""Predicates about claims: volumes in reach, volumes that could be made, zones, and how many a node can attach."""

from typing import Any

import msgspec
import pytest

from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.model.meta import ObjectMeta, OwnerReference
from slurm_bridge.model.pod import ResourceNeeds
from slurm_bridge.model.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    ClaimReference,
    ClaimSpec,
    Driven,
    StorageClass,
    Volume,
    VolumeReach,
    VolumeSpec,
    VolumeStatus,
)
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, claiming, lookup, node, pod, said, seen

NODES = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"}), node("c")]
EVERYWHERE = {"a", "b", "c"}


def claim(name: str = "data", volume: str = "", *, size: str = "1Gi", leaving: bool = False, **spec: Any) -> Claim:
    """A claim of namespace team."""
    deleted = "2026-01-01T00:00:00Z" if leaving else None
    return Claim(
        metadata=ObjectMeta(namespace="team", name=name, deletion_timestamp=deleted),
        spec=ClaimSpec(volume_name=volume, resources=ResourceNeeds(requests={"storage": size}), **spec),
    )


def on(name: str) -> VolumeReach:
    """Reached from one node only."""
    row = {"key": HOST, "operator": "In", "values": [name]}
    return VolumeReach(required={"nodeSelectorTerms": [{"matchExpressions": [row]}]})


def volume(name: str = "v", *, labels: dict[str, str] | None = None, phase: str = "Available", **spec: Any) -> Volume:
    """A volume of one gibibyte."""
    given = {"capacity": {"storage": "1Gi"}, **spec}
    return Volume(
        metadata=ObjectMeta(name=name, labels=labels or {}), spec=VolumeSpec(**given), status=VolumeStatus(phase=phase)
    )


def kind(name: str = "local", provisioner: str = "kubernetes.io/no-provisioner", **others: Any) -> StorageClass:
    """A class whose claims wait for their first pod."""
    metadata = ObjectMeta(name=name)
    return StorageClass(
        metadata=metadata, provisioner=provisioner, volume_binding_mode=WAIT_FOR_FIRST_CONSUMER, **others
    )


def denied(name: str, *claims: Claim, **look: Any) -> dict[str, tuple[str, ...]]:
    """What a predicate says of a pod that uses these claims."""
    subject = pod(volumes=claiming(*(one.metadata.name for one in claims)))
    return said(name, seen(subject, NODES, lookup=lookup(claims, **look)))


def binding(*claims: Claim, **look: Any) -> dict[str, tuple[str, ...]]:
    """The same for CheckVolumeBinding."""
    return denied("CheckVolumeBinding", *claims, **look)


WAITING = {"storage_class_name": "local"}


def test_a_pod_without_claims_passes() -> None:
    """There is nothing to look at."""
    at = seen(pod(volumes=({"name": "x", "emptyDir": {}},)), NODES)
    for name in ("CheckVolumeBinding", "NoVolumeZoneConflict", "MaxCSIVolumeCount"):
        assert said(name, at) == {}


def test_a_bound_volume_has_to_be_in_reach() -> None:
    """Local volumes are on one node; a volume that says nothing is everywhere."""
    local = volume(node_affinity=on("a"))
    assert binding(claim(volume="v"), volumes=[local]) == dict.fromkeys(["b", "c"], (reasons.VOLUME_NODE,))
    assert binding(claim(volume="v"), volumes=[volume()]) == {}


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (claim(volume="gone"), reasons.VOLUME_BIND),
        (claim(leaving=True, volume="v"), reasons.VOLUME_BIND),
        (claim(), reasons.UNBOUND),
    ],
)
def test_claims_that_cannot_be_used_deny_everything(one: Claim, reason: str) -> None:
    """A claim whose volume is gone, that is on its way out, or that waits for its volume without regard for pods."""
    assert binding(one, volumes=[volume()]) == dict.fromkeys(EVERYWHERE, (reason,))


def test_a_claim_that_nobody_knows() -> None:
    """The pod fits nowhere."""
    at = seen(pod(volumes=claiming("data")), NODES, lookup=lookup())
    assert said("CheckVolumeBinding", at).keys() == EVERYWHERE


def test_a_waiting_claim_finds_its_volume() -> None:
    """Where a free volume of its class is in reach that is large enough."""
    free = volume(node_affinity=on("b"), storage_class_name="local")
    found = binding(claim(**WAITING), volumes=[free], kinds=[kind()])
    assert found == dict.fromkeys(["a", "c"], (reasons.VOLUME_BIND,))


@pytest.mark.parametrize(
    "unfit",
    [
        {"phase": "Bound"},
        {"claim_ref": ClaimReference(namespace="team", name="other")},
        {"storage_class_name": "other"},
        {"capacity": {"storage": "1Mi"}},
        {"volume_mode": "Block"},
        {"access_modes": ("ReadOnlyMany",)},
    ],
)
def test_volumes_that_a_claim_cannot_take(unfit: dict[str, Any]) -> None:
    """Taken or kept for another, of another class, too small, used otherwise."""
    given = {"storage_class_name": "local", "access_modes": ("ReadWriteOnce",), **unfit}
    wanted = claim(access_modes=("ReadWriteOnce",), **WAITING)
    assert binding(wanted, volumes=[volume(**given)], kinds=[kind()]).keys() == EVERYWHERE


def test_a_volume_that_is_kept_for_the_claim() -> None:
    """Somebody has promised it."""
    kept = volume(phase="", claim_ref=ClaimReference(namespace="team", name="data"), storage_class_name="local")
    assert binding(claim(**WAITING), volumes=[kept], kinds=[kind()]) == {}


@pytest.mark.parametrize("provisioner", ["kubernetes.io/no-provisioner", "csi.example.com"])
def test_only_nodes_that_reach_the_kept_volume_will_do(provisioner: str) -> None:
    """Neither another volume nor one that could be made replaces it: the controller binds the one that is kept."""
    kept = ClaimReference(namespace="team", name="data")
    far = volume("far", claim_ref=kept, node_affinity=on("b"), storage_class_name="local")
    free = volume("free", node_affinity=on("a"), storage_class_name="local")
    found = binding(claim(**WAITING), volumes=[far, free], kinds=[kind(provisioner=provisioner)])
    assert found == dict.fromkeys(["a", "c"], (reasons.VOLUME_BIND,))


def test_a_kept_volume_costs_other_claims_none() -> None:
    """The larger claim has its own; the smaller one finds the volume that is left."""
    large, small = claim("large", size="1Gi", **WAITING), claim("small", size="1Mi", **WAITING)
    kept = volume("kept", claim_ref=ClaimReference(namespace="team", name="large"), storage_class_name="local")
    free = volume("free", node_affinity=on("a"), storage_class_name="local")
    assert binding(large, small, volumes=[kept, free], kinds=[kind()]).keys() == {"b", "c"}


def test_a_claim_that_merely_has_the_name_of_a_pods_own() -> None:
    """The pod fits nowhere, as long as the claim was not made for it."""
    subject = pod("p", volumes=({"name": "data", "ephemeral": {}},))
    of = {"api_version": "v1", "kind": "Pod", "name": "p", "controller": True}
    for uid, nowhere in (("uid-other", True), ("uid-p", False)):
        owned = msgspec.structs.replace(
            claim("p-data", "v").metadata, owner_references=(OwnerReference(uid=uid, **of),)
        )
        found = lookup([msgspec.structs.replace(claim("p-data", "v"), metadata=owned)], volumes=[volume()])
        said_of = said("CheckVolumeBinding", seen(subject, NODES, lookup=found))
        assert said_of == (dict.fromkeys(EVERYWHERE, (reasons.VOLUME_BIND,)) if nowhere else {})


def test_two_claims_need_two_volumes() -> None:
    """A node with one free volume is not enough for both; the larger claim leaves the smaller one what is left."""
    large, small = claim("large", size="1Gi", **WAITING), claim("small", size="1Mi", **WAITING)
    one = volume("v1", node_affinity=on("a"), storage_class_name="local")
    two = volume("v2", node_affinity=on("a"), storage_class_name="local", capacity={"storage": "2Mi"})
    assert binding(small, large, volumes=[one], kinds=[kind()]).keys() == EVERYWHERE
    assert binding(small, large, volumes=[one, two], kinds=[kind()]).keys() == {"b", "c"}


def test_volumes_with_other_reach_count_too() -> None:
    """A volume that is in reach of several nodes by other words than one label."""
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]}
    wide = volume(node_affinity=VolumeReach(required=required), storage_class_name="local")
    assert binding(claim(**WAITING), volumes=[wide], kinds=[kind()]).keys() == {"c"}


def test_a_volume_can_be_made() -> None:
    """By a class with a provisioner, everywhere or where it says."""
    row = {"key": ZONE, "values": ["2"]}
    in_zone = kind(provisioner="csi.example.com", allowed_topologies=({"matchLabelExpressions": [row]},))
    assert binding(claim(**WAITING), kinds=[kind(provisioner="csi.example.com")]) == {}
    assert binding(claim(**WAITING), kinds=[in_zone]).keys() == {"a", "c"}


def test_zones_of_volumes() -> None:
    """A node that names its zone has to be in the volume's; one that names none is asked no questions."""
    zoned = volume(labels={ZONE: "2__3"})
    found = denied("NoVolumeZoneConflict", claim(volume="v"), volumes=[zoned])
    assert found == {"a": (reasons.VOLUME_ZONE,)}
    assert denied("NoVolumeZoneConflict", claim(volume="v"), volumes=[volume()]) == {}


OLD = "failure-domain.beta.kubernetes.io"
ZONED = [
    node("new-1", labels={ZONE: "1", "topology.kubernetes.io/region": "r"}),
    node("new-2", labels={ZONE: "2", "topology.kubernetes.io/region": "r"}),
    node("old-1", labels={f"{OLD}/zone": "1"}),
    node("both", labels={f"{OLD}/zone": "1", ZONE: "2"}),
    node("region", labels={"topology.kubernetes.io/region": "r"}),
    node("none"),
]


@pytest.mark.parametrize(
    ("key", "value", "outside"),
    [
        # The old label of a volume is compared with the node's old one, or else with its new one.
        (f"{OLD}/zone", "1", {"new-2", "region"}),
        (f"{OLD}/zone", "2", {"new-1", "old-1", "both", "region"}),
        (f"{OLD}/zone", "1__2", {"region"}),
        (f"{OLD}/region", "r", {"old-1", "both"}),
        # The new one is compared with the new one alone.
        (ZONE, "1", {"new-2", "old-1", "both", "region"}),
    ],
)
def test_old_labels_of_volumes_meet_new_ones_of_nodes(key: str, value: str, outside: set[str]) -> None:
    """Nodes have had the new labels alone for years, and volumes that were made before keep their old ones."""
    data, subject = claim(volume="v"), pod(volumes=claiming("data"))
    at = seen(subject, ZONED, lookup=lookup([data], volumes=[volume(labels={key: value})]))
    assert said("NoVolumeZoneConflict", at) == dict.fromkeys(outside, (reasons.VOLUME_ZONE,))


DRIVER = "ebs.csi.aws.com"


def attached(name: str, driver: str = DRIVER) -> Volume:
    """A volume of a driver."""
    return volume(name, csi=Driven(driver=driver, volume_handle=f"h-{name}"))


def counted(predicate: str, limits: dict[str, int], *, driver: str = DRIVER, shared: bool = False) -> set[str]:
    """Who is full for a pod with claim `new`, when claims `one` and `two` are used by pods on a."""
    claims = [claim(name, name) for name in ("one", "two", "new")]
    volumes = [attached(name, driver) for name in ("one", "two", "new")]
    look = lookup(claims, volumes, volume_limits=lambda asked: limits if asked == DRIVER else {})
    running = [pod("r1", on="a", volumes=claiming("one")), pod("r2", on="a", volumes=claiming("one", "two"))]
    subject = pod(volumes=claiming("one" if shared else "new"))
    return set(said(predicate, seen(subject, NODES, running, lookup=look)))


def test_a_node_attaches_so_many_volumes() -> None:
    """Each volume counts once, however many pods use it; nodes of which nothing is known take any number."""
    assert counted("MaxCSIVolumeCount", {"a": 3}) == set()
    assert counted("MaxCSIVolumeCount", {"a": 2, "b": 0}) == {"a", "b"}
    assert counted("MaxCSIVolumeCount", {"a": 2}, shared=True) == set()


def test_limits_of_one_driver() -> None:
    """The kinds that once had limits of their own look at the driver that took them over."""
    assert counted("MaxEBSVolumeCount", {"a": 2}) == {"a"}
    assert counted("MaxGCEPDVolumeCount", {"a": 2}) == set()
    assert counted("MaxCSIVolumeCount", {"a": 2}, driver="other.example.com") == set()


def test_a_node_may_say_its_limit_itself() -> None:
    """In its allocatable amounts, where no CSINode says it."""
    small = node("s", allocatable={f"attachable-volumes-csi-{DRIVER}": 0})
    at = seen(pod(volumes=claiming("new")), [small], lookup=lookup([claim("new", "v")], [attached("v")]))
    assert said("MaxCSIVolumeCount", at) == {"s": (reasons.VOLUME_COUNT,)}


@pytest.mark.parametrize(("provisioner", "full"), [(DRIVER, {"a"}), ("other.example.com", set())])
def test_a_volume_that_is_to_be_made_counts(provisioner: str, full: set[str]) -> None:
    """By the provisioner of its class, which is the driver that will attach it; also for pods that are there."""
    claims = [claim(name, storage_class_name="late") for name in ("there", "new")]
    limits = {DRIVER: {"a": 1, "b": 1}}
    look = lookup(claims, kinds=[kind("late", provisioner)], volume_limits=lambda driver: limits.get(driver, {}))
    running = [pod("r", on="a", volumes=claiming("there"))]
    at = seen(pod(volumes=claiming("new")), NODES, running, lookup=look)
    assert set(said("MaxCSIVolumeCount", at)) == full


def test_a_claim_whose_class_is_not_there_is_not_counted() -> None:
    """Nothing is known of what has to be attached for it."""
    look = lookup([claim("new", storage_class_name="gone")], volume_limits=lambda _: {"a": 0})
    assert said("MaxCSIVolumeCount", seen(pod(volumes=claiming("new")), NODES, lookup=look)) == {}


def test_a_pod_that_brings_no_volume_more_passes() -> None:
    """Also on a node that has more of them than it should."""
    assert counted("MaxCSIVolumeCount", {"a": 1}, shared=True) == set()
