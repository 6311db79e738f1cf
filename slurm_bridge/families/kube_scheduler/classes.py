"""Pods that no filter and no score can tell apart are of one class: what was worked out for one holds for all."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from slurm_bridge.cluster.memo import ByPod
from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod, PodTerm

#: So many pods are remembered with their keys; a key is about as long as the part of the manifest that it stands for.
MOST_PODS = 4096

#: Volumes that every node can give; the one with the service account's token has another name in every pod. Images are
#: not among them: some nodes have them already.
_ANYWHERE = frozenset({"configMap", "downwardAPI", "emptyDir", "gitRepo", "hostPath", "projected", "secret"})


def _of_pod(pod: Pod) -> bytes:
    meta = pod.metadata
    controller = next((owner for owner in meta.owner_references if owner.controller), None)
    written = {name: value for name, value in meta.annotations.items() if name.startswith(names.JOB_PREFIX)}
    return msgspec.json.encode((meta.labels, controller, written), order="deterministic") + _body(pod)


def _of_spec(pod: Pod) -> bytes:
    # Gates and groups decide when a pod is placed, and not where; each pod of an Indexed Job has its own hostname.
    spec = msgspec.structs.replace(
        pod.spec,
        volumes=tuple(_volumes(pod)),
        scheduling_gates=(),
        scheduling_group=None,
        hostname="",
        subdomain="",
    )
    return msgspec.json.encode((pod.metadata.namespace, spec), order="deterministic")


#: The class of a pod: namespace, labels, owning controller, the job's annotations, and what its spec asks for.
#: Not its name, uid or status: a rule that looks at these has to remember by them as well.
key: ByPod[bytes] = ByPod(_of_pod, MOST_PODS)

#: The namespace, and what the spec asks for.
_body: ByPod[bytes] = ByPod(_of_spec, MOST_PODS)


def exchangeable(pods: Sequence[Pod]) -> bool:
    """Whether each may come on the node of any other: their specs are equal, and no term of theirs tells them apart.

    The pods of an Indexed Job or of a StatefulSet have labels with their numbers, which hardly any term is about.
    """
    if len({_body(pod) for pod in pods}) > 1:
        return False
    # Equal specs have equal terms.
    keys = _compared(pods[0])
    return len({tuple(pod.metadata.labels.get(key) for key in keys) for pod in pods}) == 1


def kinds(pods: Sequence[Pod], most: int) -> list[Pod]:
    """The first pods of different specs, so many of them."""
    return list(itertools.islice({_body(pod): pod for pod in reversed(pods)}.values(), most))


def _compared(pod: Pod) -> tuple[str, ...]:
    """The keys of labels that a pod's terms about others are about."""
    return tuple(sorted(set(_keys_in([pod.spec.affinity or {}, *pod.spec.topology_spread_constraints]))))


def _keys_in(written: object) -> Iterator[str]:
    """Of every label selector in what users have written, and of the lists of keys beside them."""
    if isinstance(written, list | tuple):
        for one in written:
            yield from _keys_in(one)
    elif isinstance(written, Mapping):
        labels = written.get("matchLabels")
        yield from labels if isinstance(labels, Mapping) else ()
        for name in ("matchLabelKeys", "mismatchLabelKeys"):
            more = written.get(name)
            yield from (one for one in more if isinstance(one, str)) if isinstance(more, list | tuple) else ()
        if isinstance(key := written.get("key"), str):
            yield key
        for one in written.values():
            yield from _keys_in(one)


def _volumes(pod: Pod) -> Iterator[PodTerm]:
    """Those that matter where the pod comes; a claim that is made for this pod alone bears its name, and its uid."""
    for volume in pod.spec.volumes:
        if "ephemeral" in volume:
            yield {"claim": f"{pod.metadata.name}-{volume.get('name', '')}", "of": pod.uid}
        elif not volume.keys() & _ANYWHERE:
            yield {kind: source for kind, source in volume.items() if kind != "name"}
