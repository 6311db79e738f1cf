"""Of annotations and volumes only what is read is kept in memory."""

import json
from typing import Any

import pytest

from slurm_bridge.kube import codec
from slurm_bridge.kube.kept import MOST_OTHERS, MOST_OURS, TOKEN_MOUNT, KeptFields
from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import workload_key
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.scheduler.eviction import notes
from slurm_bridge.translate import translator
from tests.unit.translate.translating import a_workload, configured, one_pod

LIMIT = names.JOB_PREFIX + "timelimit"


def pruned(annotations: dict[str, str], kept: KeptFields | None = None) -> dict[str, str]:
    """What is left of these once a pod has been decoded."""
    return decoded({}, annotations, kept).metadata.annotations


def decoded(spec: dict[str, Any], annotations: dict[str, str], kept: KeptFields | None = None) -> Pod:
    """A pod from the API server: alone, in a list, and in a watch it is the same."""
    metadata = {"name": "a", "namespace": "team", "uid": "u", "annotations": annotations}
    manifest = {"metadata": metadata, "spec": spec}
    reader = codec.codec(kinds.PODS, kept)
    read = reader.one(json.dumps(manifest).encode())
    (listed,) = (
        reader.page(json.dumps({"metadata": {"resourceVersion": "1"}, "items": [manifest]}).encode()).items or ()
    )
    (heard,) = reader.changes(json.dumps({"type": "ADDED", "object": manifest}).encode())
    assert read == listed == heard.object  # type: ignore[union-attr]
    return read


@pytest.mark.security("fairness")
def test_large_annotations_that_nobody_reads_are_not_kept() -> None:
    """Annotations that neither the bridge nor a hook reads cost at most 4 KiB of memory for each object."""
    given = {"evil.example/blob": "x" * 250_000, "site.example/zone": "a", LIMIT: "5"}
    assert pruned(given) == {"site.example/zone": "a", LIMIT: "5"}
    many = {f"evil.example/k{number:04}": "x" * 100 for number in range(2000)}
    left = pruned({**many, LIMIT: "5"})
    assert left[LIMIT] == "5"
    assert sum(len(key) + len(value) for key, value in left.items()) <= MOST_OTHERS + len(LIMIT) + 1


def test_small_annotations_are_kept_whoever_reads_them() -> None:
    """Hooks of a site need not declare what they read, as long as it is short."""
    given = {f"site.example/k{number}": "value" for number in range(20)}
    assert pruned(given) == given


def test_what_a_hook_declares_is_kept_however_long_it_is() -> None:
    """And only that."""
    kept = KeptFields()
    kept.declare(["site.example/plan"])
    given = {"site.example/plan": "x" * 100_000, "site.example/other": "y" * 100_000}
    assert pruned(given, kept) == {"site.example/plan": "x" * 100_000}


def test_a_value_of_ours_that_is_too_long_is_refused_and_not_forgotten() -> None:
    """It is cut to a text that no form accepts: its user is told."""
    left = pruned({names.JOB_PREFIX + "constraints": "a" * 100_000})
    refused = translator.translate(a_workload(one_pod(), left), configured())
    assert isinstance(refused, Reject)
    assert names.JOB_PREFIX + "constraints" in refused.message


def test_thousands_of_keys_of_ours_are_bounded() -> None:
    """Those of jobs come first, and say enough of what is wrong."""
    many = {f"{names.JOB_PREFIX}k{number:05}": "x" * 60 for number in range(3000)}
    left = pruned(many)
    assert 0 < sum(len(key) + len(value) for key, value in left.items()) <= MOST_OURS


def test_the_note_of_who_goes_for_a_pod_is_kept_as_long_as_it_is_read() -> None:
    """A large group has hundreds of others go for it, and a restart has to know them all."""
    victims = {
        workload_key("Pod", "team", f"worker-{number}", "0" * 36): f"team/worker-{number}" for number in range(400)
    }
    text = notes.text({"victims": victims, "nodes": [f"node-{number}" for number in range(400)]})
    left = pruned({names.ANNOTATION_ROOM: text, names.ANNOTATION_PARKED: "x" * 20_000})
    pods = [Pod(metadata=ObjectMeta(name="a", namespace="team", uid="u", annotations=left))]
    assert len(notes.room_made_by(pods)) == len(notes.room_on(pods)) == 400
    assert len(left[names.ANNOTATION_PARKED]) < 100
    assert len(pruned({names.ANNOTATION_ROOM: "x" * (names.MOST_OF_ROOM + 1)})[names.ANNOTATION_ROOM]) < 100


def token_volume(end: str) -> dict[str, Any]:
    """As the API server adds it to each pod."""
    sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]
    return {"name": f"kube-api-access-{end}", "projected": {"defaultMode": 420, "sources": sources}}


def test_the_volume_with_the_token_of_the_account_makes_no_pod_different() -> None:
    """Each has a name of its own. It is left out at the end, and has one name before others, whose numbers stay."""
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "a"}}
    for end in ("4x7k2", "zz9p1"):
        token = token_volume(end)
        assert decoded({"volumes": [token]}, {}).spec.volumes == ()
        assert decoded({"volumes": [data, token]}, {}).spec.volumes == (data,)
        assert decoded({"volumes": [token, data]}, {}).spec.volumes == (TOKEN_MOUNT, data)


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "volume",
    [
        {"name": "kube-api-access-4x7k2", "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "kube-api-access-4x7k2", "projected": {}, "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "my-kube-api-access-4x7k2", "projected": {"sources": []}},
        {"name": ["kube-api-access-4x7k2"], "projected": {"sources": []}},
        {"projected": {"sources": []}},
    ],
)
def test_a_volume_that_is_called_like_that_of_the_token_stays_as_it_is(volume: dict[str, Any]) -> None:
    """Users choose the names of their volumes: a claim is not lost because of one."""
    assert decoded({"volumes": [volume]}, {}).spec.volumes == (volume,)
