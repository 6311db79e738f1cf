"""What claims need before the pods of an allocation are bound: the table of `placement.claims`, row by row."""

import itertools
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from slurm_bridge.cluster.rules import claims as rules
from slurm_bridge.cluster.rules.volumes import Storage
from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta, OwnerReference
from slurm_bridge.model.names import JobId
from slurm_bridge.model.pod import ResourceNeeds
from slurm_bridge.model.storage import (
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    ClaimReference,
    ClaimSpec,
    ClaimStatus,
    StorageClass,
    Volume,
    VolumeReach,
    VolumeSpec,
    VolumeStatus,
)
from slurm_bridge.scheduler.placement import claims
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claims import ClaimChooser, ClaimsFound, KeepVolume, SelectNode
from tests.unit.families.kube_scheduler.scenes import HOST, claiming
from tests.unit.hooks.builders import cluster, node, pod

NODES = cluster([node("a", labels={HOST: "a"}), node("b", labels={HOST: "b"})])
JOB, OTHER, ENDED = JobId(7), JobId(8), JobId(9)
CHOOSER = ClaimChooser(cluster="here", job_id=JOB, lives=lambda job_id: job_id != ENDED)
CLASSES = (("made", "test.example/disk"), ("local", NO_PROVISIONER))


def claim(name: str = "data", *, of: str = "made", size: str = "1Gi", **changes: Any) -> Claim:
    """A claim of namespace team that waits; `selected` and `mark` are written on it, and `owner` controls it."""
    marks = {SELECTED_NODE: changes.pop("selected", ""), names.ANNOTATION_SELECTED_BY: changes.pop("mark", "")}
    phase, deleted, owner = changes.pop("phase", "Pending"), changes.pop("deleted", None), changes.pop("owner", "")
    owners = OwnerReference(api_version="v1", kind="Pod", name="p", uid=owner, controller=True)
    metadata = ObjectMeta(
        namespace="team",
        name=name,
        uid=f"uid-{name}",
        annotations={key: value for key, value in marks.items() if value},
        deletion_timestamp=deleted,
        owner_references=(owners,) if owner else (),
    )
    spec = ClaimSpec(storage_class_name=of, resources=ResourceNeeds(requests={"storage": size}), **changes)
    return Claim(metadata=metadata, spec=spec, status=ClaimStatus(phase=phase))


def volume(
    name: str = "v", on: str = "a", *, of: str = "local", size: str = "1Gi", kept: ClaimReference | None = None
) -> Volume:
    """A volume on one node."""
    row = {"key": HOST, "operator": "In", "values": [on]}
    reach = VolumeReach(required={"nodeSelectorTerms": [{"matchExpressions": [row]}]})
    spec = VolumeSpec(storage_class_name=of, capacity={"storage": size}, node_affinity=reach, claim_ref=kept)
    return Volume(metadata=ObjectMeta(name=name), spec=spec, status=VolumeStatus(phase="Available"))


def storage(*objects: Claim | Volume) -> Storage:
    """These, and two classes whose claims wait."""
    found = {one.key: one for one in objects if isinstance(one, Claim)}
    there = {one.metadata.name: one for one in objects if isinstance(one, Volume)}
    kinds = {
        name: StorageClass(metadata=ObjectMeta(name=name), provisioner=by, volume_binding_mode=WAIT_FOR_FIRST_CONSUMER)
        for name, by in CLASSES
    }
    return Storage(
        claim=lambda namespace, name: found.get((namespace, name)),
        volume=there.get,
        storage_class=kinds.get,
        every_volume=there.values,
    )


def spot(on: str, *used: str, name: str = "p") -> Spot:
    """A pod that uses these claims, and its node."""
    return Spot(pod=pod(name, volumes=claiming(*used)), slurm_name=on, node=NODES.nodes[on])


def look(*objects: Claim | Volume, spots: tuple[Spot, ...] = ()) -> ClaimsFound:
    """What is found for a pod on node a that uses the claim `data`."""
    return claims.look(spots or (spot("a", "data"),), storage(*objects), NODES.columns, CHOOSER)


MINE = CHOOSER.mark("a")


@pytest.mark.parametrize(
    ("one", "words", "avoided"),
    [
        (None, "was deleted", ()),
        (claim(deleted="2026-01-01T00:00:00Z"), "was deleted", ()),
        (claim(phase="Lost", volume_name="v"), "has lost its volume", ()),
        (claim(of="gone"), "its class does not wait for a node any more", ()),
        (claim(mark=MINE), "its provisioner gave up node a", ("a",)),
        (claim(of="local"), "finds no available PersistentVolume on node a", ("a",)),
    ],
)
def test_what_cannot_be_bound_gives_the_nodes_back(one: Claim | None, words: str, avoided: tuple[str, ...]) -> None:
    """Only a node on which there is no volume is avoided."""
    found = look(*(() if one is None else (one,)))
    assert found.misfit is not None
    assert words in found.misfit.message
    assert found.misfit.nodes == avoided
    assert found.writes == ()


@pytest.mark.parametrize(
    "one",
    [
        claim(selected="a", mark=MINE),
        claim(volume_name="v"),
        claim(phase="Bound", volume_name="not-heard-of"),
        claim(selected="b"),
        claim(selected="b", mark="elsewhere/7/b"),
        claim(selected="b", mark=f"here/{OTHER}/b"),
        claim(selected="b", mark="here/many/b"),
        claim(selected="b", mark="9" * 100_000),
    ],
)
def test_what_is_being_bound_is_waited_for(one: Claim) -> None:
    """By us, by another scheduler, or by a job that lives: nothing is written."""
    found = look(one, volume())
    assert (found.misfit, found.writes, dict(found.waiting)) == (None, (), {("team", "data"): "a"})


@pytest.mark.parametrize(
    "one",
    [
        claim(),
        claim(mark="garbage"),
        claim(selected="b", mark=f"here/{JOB}/b"),
        claim(selected="b", mark=f"here/{ENDED}/b"),
    ],
)
def test_a_node_is_selected_where_no_living_choice_stands(one: Claim) -> None:
    """Also in place of an earlier choice of this job, or of one that has ended."""
    assert look(one).writes == (SelectNode(one, MINE, "a"),)


def test_the_smallest_volume_in_reach_is_kept() -> None:
    """Neither one that is too small, nor one on another node."""
    there = volume("large", size="9Gi"), volume("right", size="2Gi"), volume("tiny", size="1Mi"), volume("far", "b")
    wanted = claim(of="local")
    assert look(wanted, *there).writes == (KeepVolume(wanted, there[1]),)


def test_a_volume_that_is_kept_already_is_waited_for() -> None:
    """And none beside it is taken."""
    kept = ClaimReference(namespace="team", name="data", uid="uid-data")
    found = look(claim(of="local"), volume("other"), volume("mine", size="9Gi", kept=kept))
    assert (found.writes, list(found.waiting)) == ((), [("team", "data")])


@pytest.mark.parametrize("uid", ["", "uid-data"])
@pytest.mark.parametrize("of", ["local", "made"])
def test_beside_a_kept_volume_out_of_reach_nothing_is_kept_or_made(of: str, uid: str) -> None:
    """The controller binds the claim to the volume that is kept for it, whatever node was chosen."""
    far = volume("far", "b", of=of, kept=ClaimReference(namespace="team", name="data", uid=uid))
    found = look(claim(of=of), volume("near", of=of), far)
    assert found.writes == ()
    assert found.misfit is not None
    assert "has PersistentVolume far kept for it, which node a cannot use" in found.misfit.message
    assert found.misfit.nodes == ("a",)


def test_what_an_administrator_has_kept_is_not_the_controllers() -> None:
    """The mark tells the controller that it may give the volume to another claim; kube-scheduler writes it likewise."""
    kept = volume(kept=ClaimReference(namespace="team", name="data"))
    (write,) = look(claim(of="local"), kept).writes
    assert write == KeepVolume(claim(of="local"), kept)
    assert write.changes["spec"]["claimRef"]["uid"] == "uid-data"
    assert write.changes["metadata"]["annotations"] == {}
    (usual,) = look(claim(of="local"), volume()).writes
    assert usual.changes["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}


def test_the_claim_of_an_ephemeral_volume_has_to_be_made_for_the_pod() -> None:
    """One that merely has its name is not written."""
    users = (Spot(pod=pod("p", volumes=({"name": "data", "ephemeral": {}},)), slurm_name="a", node=NODES.nodes["a"]),)
    found = look(claim("p-data", owner="uid-other"), spots=users)
    assert found.writes == ()
    assert found.misfit is not None
    assert (found.misfit.reason, found.misfit.nodes) == ("VolumeNotReady", ())
    assert "PersistentVolumeClaim team/p-data was not created for pod team/p" in found.misfit.message
    assert len(look(claim("p-data", owner="uid-p"), spots=users).writes) == 1


def test_a_volume_of_an_earlier_claim_of_the_name_is_not_taken() -> None:
    """It may hold that claim's data."""
    former = ClaimReference(namespace="team", name="data", uid="uid-before")
    assert not rules.takes(claim(of="local"), volume(kept=former))
    assert look(claim(of="local"), volume(kept=former)).misfit is not None


def test_a_bound_volume_out_of_reach_names_the_node() -> None:
    """Of two pods that share a claim the second one's node may not reach it."""
    users = (spot("a", "data"), spot("b", "data", name="q"))
    found = look(claim(phase="Bound", volume_name="v"), volume("v", "a"), spots=users)
    assert found.misfit is not None
    assert found.misfit.nodes == ("b",)


def test_of_a_shared_claim_the_first_pod_decides() -> None:
    """One write, for its node."""
    found = look(claim(), spots=(spot("b", "data"), spot("a", "data", name="q")))
    assert [(one.node, one.mark) for one in found.writes if isinstance(one, SelectNode)] == [("b", CHOOSER.mark("b"))]


SIZES = strategies.lists(strategies.integers(1, 5), min_size=1, max_size=4)


@hypothesis.given(SIZES, SIZES)
def test_volumes_are_found_for_all_claims_wherever_there_are_enough(wanted: list[int], there: list[int]) -> None:
    """Each volume once, and none too small: just where some assignment of volumes to claims exists."""
    asked = [claim(f"c-{number}", of="local", size=f"{size}Gi") for number, size in enumerate(wanted)]
    free = [volume(f"v-{number}", size=f"{size}Gi") for number, size in enumerate(there)]
    found = look(*asked, *free, spots=(spot("a", *(one.metadata.name for one in asked)),))
    possible = any(
        all(size <= have for size, have in zip(wanted, chosen, strict=True))
        for chosen in itertools.permutations(there, len(wanted))
    )
    assert (found.misfit is None) == possible
    if possible:
        kept = [one for one in found.writes if isinstance(one, KeepVolume)]
        assert len({one.volume.metadata.name for one in kept}) == len(wanted)
        assert all(rules.takes(one.claim, one.volume) for one in kept)
