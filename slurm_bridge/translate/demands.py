"""The table of fields of pods that only some hooks honour.

Preferences are no demands, and no pod waits for one. Of equal demands of many pods the first stands for all. Whether
the name of a claim or of a resource is a demand depends on the object, which `hooks.honouring` looks up.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.model.features import Feature, FeatureDemand
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import apart, class_resources
from slurm_bridge.translate.class_resources import DEVICE_CLASS
from slurm_bridge.translate.members import subject

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

#: The most letters of a user's value in a message.
_LONGEST: Final = 64


def of(workload: Workload) -> tuple[FeatureDemand, ...]:
    """The demands of all pods that have no node yet, each once."""
    found: dict[tuple[Feature, tuple[str, str] | None, str], FeatureDemand] = {}
    for pod in workload.pods:
        for find in () if pod.bound else _TABLE:
            for one in find(pod, workload):
                found.setdefault((one.feature, one.claim, one.resource), one)
    return tuple(found.values())


def _spread(pod: Pod, _workload: Workload) -> Iterator[FeatureDemand]:
    for number, one in enumerate(pod.spec.topology_spread_constraints):
        if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            where = f"spec.topologySpreadConstraints[{number}] ({_word(one.get('topologyKey'))}, DoNotSchedule)"
            yield FeatureDemand(feature=Feature.TOPOLOGY_SPREAD, subject=subject(pod), field=where)


def _near(pod: Pod, _workload: Workload) -> Iterator[FeatureDemand]:
    for where, _ in _required(pod, "podAffinity"):
        yield FeatureDemand(feature=Feature.POD_AFFINITY, subject=subject(pod), field=where)


def _away(pod: Pod, workload: Workload) -> Iterator[FeatureDemand]:
    """Required anti-affinity, except between the members of a gang: Slurm is asked for one pod on each node."""
    for where, term in _required(pod, "podAntiAffinity"):
        if workload.gang is None or not apart.means_its_like(term, pod):
            yield FeatureDemand(feature=Feature.POD_ANTI_AFFINITY, subject=subject(pod), field=where)


def _ports(pod: Pod, _workload: Workload) -> Iterator[FeatureDemand]:
    """Ports of the host, except those of init containers that end before the others start."""
    spec = pod.spec
    rows = [("containers", number, one) for number, one in enumerate(spec.containers)]
    rows += [
        ("initContainers", number, one)
        for number, one in enumerate(spec.init_containers)
        if one.restart_policy == "Always"
    ]
    for where, number, container in rows:
        for place, port in enumerate(container.ports):
            if port.host_port > 0:
                field = f"spec.{where}[{number}].ports[{place}].hostPort ({port.host_port})"
                yield FeatureDemand(feature=Feature.HOST_PORTS, subject=subject(pod), field=field)


def _claimed(pod: Pod, _workload: Workload) -> Iterator[FeatureDemand]:
    """Any claim may wait for its first pod. An ephemeral one is made for its pod, and used by no other."""
    for number, one in enumerate(pod.spec.volumes):
        used = one.get("persistentVolumeClaim")
        if isinstance(used, Mapping):
            name = str(used.get("claimName", ""))
        elif "ephemeral" in one:
            name = f"{pod.metadata.name}-{one.get('name', '')}"
        else:
            continue
        claim, where = (pod.metadata.namespace, name), f"spec.volumes[{number}] (PersistentVolumeClaim {_word(name)}"
        late = f"{where}, WaitForFirstConsumer)"
        yield FeatureDemand(feature=Feature.WAITING_CLAIMS, subject=subject(pod), field=late, claim=claim)
        if isinstance(used, Mapping):
            sole = f"{where}, ReadWriteOncePod)"
            yield FeatureDemand(feature=Feature.SOLE_CLAIMS, subject=subject(pod), field=sole, claim=claim)


def _device_claims(pod: Pod, _workload: Workload) -> Iterator[FeatureDemand]:
    for number, one in enumerate(pod.spec.resource_claims):
        field = f"spec.resourceClaims[{number}] ({_word(one.get('name'))})"
        yield FeatureDemand(feature=Feature.RESOURCE_CLAIMS, subject=subject(pod), field=field)


def _devices(pod: Pod, _workload: Workload) -> Iterator[FeatureDemand]:
    feature = Feature.CLASS_RESOURCES
    for where, containers in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
        for number, container in enumerate(containers):
            for name in (*container.resources.limits, *container.resources.requests):
                if class_resources.may_be_of_a_class(name):
                    field = f"spec.{where}[{number}].resources ({_word(name)})"
                    behind = "" if name.startswith(DEVICE_CLASS) else name
                    yield FeatureDemand(feature=feature, subject=subject(pod), field=field, resource=behind)


#: A further feature that only some hooks honour is one more row here, and one more member of `model.features.Feature`.
_TABLE: Sequence[Callable[[Pod, Workload], Iterator[FeatureDemand]]] = (
    _spread,
    _near,
    _away,
    _ports,
    _claimed,
    _device_claims,
    _devices,
)


def _required(pod: Pod, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each required term, and the name of its field."""
    written = (pod.spec.affinity or {}).get(kind)
    terms = written.get(_REQUIRED) if isinstance(written, Mapping) else None
    for number, term in enumerate(terms or () if isinstance(terms, list | tuple | None) else ()):
        if isinstance(term, Mapping):
            yield f"spec.affinity.{kind}.{_REQUIRED}[{number}] ({_word(term.get('topologyKey'))})", term


def _word(written: object) -> str:
    """A user's value, shortened for a message."""
    text = str(written or "")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
